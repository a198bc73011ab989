"""Batches on the device: reproducible, well mixed, and still Sudokus."""

import numpy as np
import pytest
import torch

from samm import tasks
from samm.data import symmetries
from samm.data.batches import Batches
from samm.data.format import Dataset
from samm.errors import InputError
from samm.tasks import Problem

task = tasks.get("sudoku")


def dataset(rows: int, seed: int) -> Dataset:
    tokens, answers, ratings = task.make(seed, 0)
    part = slice(0, rows)
    return Dataset(
        task, tokens[part].astype(np.uint8), answers[part].astype(np.uint8), ratings[part], {}
    )


def test_the_same_seed_and_step_give_the_same_batch() -> None:
    sets = [dataset(100, 0), dataset(50, 1)]
    one, two = Batches(sets, 64, seed=3), Batches(sets, 64, seed=3)
    later = one.draw(5)
    one.draw(6)
    assert all(torch.equal(a, b) for a, b in zip(later, two.draw(5), strict=True))
    assert not torch.equal(later[0], two.draw(6)[0])
    assert not torch.equal(later[0], Batches(sets, 64, seed=4).draw(5)[0])


def test_batches_drawn_together_are_different_and_do_not_depend_on_the_order() -> None:
    sets = [dataset(100, 0)]
    batches = Batches(sets, 3000, seed=3)
    assert batches.ahead == 2
    steps = [4, 1, 0, 5, 1]
    drawn = {step: batches.draw(step)[0] for step in steps}
    for step in steps:
        assert drawn[step].shape == (3000, 81)
        assert torch.equal(drawn[step], Batches(sets, 3000, seed=3).draw(step)[0])
    assert len({tokens.numpy().tobytes() for tokens in drawn.values()}) == 4
    assert Batches(sets, 10_000, seed=3).ahead == 1


def test_augmented_puzzles_are_sudokus_with_their_answers() -> None:
    tokens, answers = Batches([dataset(200, 0)], 512, seed=0).draw(0)
    assert tokens.dtype == torch.uint8
    tokens, answers = tokens.long(), answers.long()
    clue = tokens != task.mask
    assert bool(task.verify(Problem(tokens, clue, torch.zeros_like(clue)), answers).all())
    _, counts = task.oracle(Problem(tokens, clue, torch.zeros_like(clue)))
    assert bool((counts == 1).all())


def test_weights_are_shares_of_the_batch() -> None:
    sets = [dataset(10, 0), dataset(200, 1), dataset(5, 2)]
    batches = Batches(sets, 30_000, seed=0, weights=[3, 1, 0], augment=False)
    tokens, _ = batches.draw(0)
    rows = [{row.tobytes() for row in s.tokens} for s in sets]
    drawn = [row.numpy().tobytes() for row in tokens]
    shares = [sum(row in members for row in drawn) / len(drawn) for members in rows]
    assert shares == pytest.approx([0.75, 0.25, 0], abs=0.01)
    counts = np.unique([row for row in drawn if row in rows[0]], return_counts=True)[1]
    assert len(counts) == 10, "every row is drawn"
    assert counts.min() > 0.8 * counts.mean(), "rows of a set are equally likely"


@pytest.mark.parametrize("box", [(3, 3), (2, 2), (2, 3)])
def test_symmetries_are_uniform(box: tuple[int, int]) -> None:
    """Every cell goes everywhere equally often, and every digit gets every name."""
    generator = torch.Generator().manual_seed(0)
    n = box[0] * box[1]
    count = 40_000
    cells = symmetries.random_cells(count, box, generator)
    names = symmetries.random_relabelling(count, n, generator)
    assert torch.equal(cells.sort(1).values, torch.arange(n * n).expand(count, -1))
    assert torch.equal(names.sort(1).values, torch.arange(n + 1).expand(count, -1))
    assert bool((names[:, -1] == n).all())
    for image, size in ((cells, n * n), (names[:, :n], n)):
        for position in (0, size // 2, size - 1):
            frequency = torch.bincount(image[:, position], minlength=size) * size / count
            assert float((frequency - 1).abs().max()) < 6 * (size / count) ** 0.5


def test_all_symmetries_of_the_smallest_board_occur() -> None:
    """2·2·2·2·2·2 orders of lines twice and transposition: 128 images of the cells of 4×4."""
    cells = symmetries.random_cells(5000, (2, 2), torch.Generator().manual_seed(0))
    assert len(torch.unique(cells, dim=0)) == 128


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 8), "no data set"),
        (([dataset(5, 0)], 0), "batch size 0"),
        (([dataset(5, 0)], 8, 0, "cpu", [1, 2]), "2 weights for 1 data sets"),
        (([dataset(5, 0)], 8, 0, "cpu", [-1]), "expected numbers ≥ 0"),
        (([dataset(0, 0)], 8), "data set 1 is empty"),
    ],
)
def test_unfit_mixtures_are_refused(arguments, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Batches(*arguments, **({"seed": 0} if len(arguments) == 2 else {}))

"""The classical engine against known counts, known puzzles, brute force and itself."""

import itertools

import numpy as np
import pytest

from samm.data import sudoku_engine as engine
from samm.errors import InputError

BOXES = [(2, 2), (2, 3), (3, 2), (2, 4), (3, 3)]


def board(text: str) -> np.ndarray:
    return np.array([int(c) if c.isdigit() else 0 for c in text], np.uint8)


FAMOUS = {
    "inkala": "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..",
    "nugget": ".......39.....1..5..3.5.8....8.9...6.7...2...1..4.......9.8..5..2....6..4..7.....",
    "easter": "1.......2.9.4...5...6...7...5.9.3.......7.......85..4.7.....6...3...9.8...2.....1",
}


@pytest.mark.parametrize("text", FAMOUS.values(), ids=FAMOUS.keys())
def test_famous_puzzles(text: str) -> None:
    puzzle = board(text)
    solution = engine.solve(puzzle)[0]
    assert engine.is_grid(solution[None]).all()
    assert (solution == puzzle)[puzzle > 0].all()
    assert engine.count_solutions(puzzle, 10)[0] == 1
    assert engine.is_minimal(puzzle).all()
    assert engine.rate(puzzle, 20)[0] > 20


def test_counts_of_whole_boards() -> None:
    """The numbers of 4×4 and of 6×6 Sudoku grids are known: 288 and 28,200,960."""
    assert engine.count_solutions(np.zeros(16, np.uint8), 1000, (2, 2)).item() == 288
    first_row = np.zeros(36, np.uint8)
    first_row[:6] = range(1, 7)
    expected = 28_200_960 // 720
    assert engine.count_solutions(first_row, 10**6, (2, 3)).item() == expected


def test_count_agrees_with_brute_force_on_4x4() -> None:
    grids = engine.solutions(np.zeros(16, np.uint8), 1000, (2, 2))
    assert len({g.tobytes() for g in grids}) == 288
    random = np.random.default_rng(0)
    puzzles = np.where(random.random((500, 16)) < 0.35, random.integers(1, 5, (500, 16)), 0).astype(
        np.uint8
    )
    agree = ((puzzles[:, None] == 0) | (puzzles[:, None] == grids)).all(-1).sum(1)
    assert (engine.count_solutions(puzzles, 1000, (2, 2)) == agree).all()
    assert (agree == 0).any()
    assert (agree > 1).any()
    solved = engine.solve(puzzles, (2, 2))
    assert ((solved > 0).all(1) == (agree > 0)).all()


def test_limit_stops_the_count() -> None:
    assert engine.count_solutions(np.zeros(81, np.uint8), 5).item() == 5


@pytest.mark.parametrize("box", BOXES)
def test_random_puzzles_are_unique_minimal_and_reproducible(box: tuple[int, int]) -> None:
    puzzles, grids = engine.random_puzzles(30, seed=3, box=box)
    assert engine.is_grid(grids, box).all()
    solved, counts = engine.solve_and_count(puzzles, 2, box)
    assert (counts == 1).all()
    assert (solved == grids).all()
    assert engine.is_minimal(puzzles, box).all()
    later, _ = engine.random_puzzles(10, seed=3, first=20, box=box, threads=1)
    assert (later == puzzles[20:]).all()
    assert (engine.random_puzzles(30, seed=4, box=box)[0] != puzzles).any()


def test_minimal_is_what_brute_force_says() -> None:
    puzzles, grids = engine.random_puzzles(20, seed=0)
    puzzles[::2, :] = np.where(np.arange(81) % 11 == 0, grids[::2], puzzles[::2])  # extra clues
    for puzzle, verdict in zip(puzzles, engine.is_minimal(puzzles), strict=True):
        fewer = np.repeat(puzzle[None], 81, 0)
        np.fill_diagonal(fewer, 0)
        assert verdict == (engine.count_solutions(fewer[puzzle > 0]) == 2).all()


def test_hard_search_finds_hard_unique_minimal_different_puzzles() -> None:
    puzzles, grids, ratings = engine.hard_puzzles(chain=0, seed=1, least=10, count=8)
    assert len({p.tobytes() for p in puzzles}) == 8
    assert (ratings >= 10).all()
    assert engine.rate(puzzles, 50, seed=99).mean() > 8, "an independent rating agrees"
    solved, counts = engine.solve_and_count(puzzles)
    assert (counts == 1).all()
    assert (solved == grids).all()
    assert engine.is_minimal(puzzles).all()
    again = engine.hard_puzzles(chain=0, seed=1, least=10, count=8)[0]
    assert (again == puzzles).all()
    assert (engine.hard_puzzles(chain=1, seed=1, least=10, count=8)[0] != puzzles).any()


def test_hard_search_gives_up_where_nothing_is_hard() -> None:
    assert len(engine.hard_puzzles(0, 0, least=5, count=1, box=(2, 2), tries=5000)[0]) == 0


@pytest.mark.parametrize("box", BOXES)
def test_canonical_forms_are_blind_to_symmetry(box: tuple[int, int]) -> None:
    puzzles, grids = engine.random_puzzles(10, seed=5, box=box)
    random = np.random.default_rng(0)
    n = box[0] * box[1]
    for _ in range(3):
        cells = [_image(box, random) for _ in puzzles]
        digits = [np.append(0, 1 + random.permutation(n)).astype(np.uint8) for _ in puzzles]
        moved = [
            np.array([d[row[c]] for row, c, d in zip(boards, cells, digits, strict=True)])
            for boards in (puzzles, grids)
        ]
        ours = engine.canonical_puzzles(puzzles, grids, box)
        theirs = engine.canonical_puzzles(*moved, box)
        assert (ours[0] == theirs[0]).all()
        assert (ours[1] == theirs[1]).all()
        assert (engine.fingerprint(grids, box) == engine.fingerprint(moved[1], box)).all()


def _image(box: tuple[int, int], random: np.random.Generator) -> np.ndarray:
    """Where the cells of a random image come from; written here without the project's code."""
    rows, cols = box
    n = rows * cols
    grid = np.arange(n * n).reshape(n, n)
    if rows == cols and random.random() < 0.5:
        grid = grid.T
    down = [g * rows + i for g in random.permutation(cols) for i in random.permutation(rows)]
    across = [g * cols + i for g in random.permutation(rows) for i in random.permutation(cols)]
    return grid[down][:, across].ravel()


def test_canonical_grid_is_the_smallest_image() -> None:
    """Against the definition, by trying all images of 4×4 grids."""
    grids = engine.random_grids(5, seed=1, box=(2, 2))
    lines = [(0, 1, 2, 3), (1, 0, 2, 3), (0, 1, 3, 2), (1, 0, 3, 2)]
    lines += [(c, d, a, b) for a, b, c, d in lines]
    for grid in grids:
        square = grid.reshape(4, 4)
        images = []
        for source, down, across in itertools.product((square, square.T), lines, lines):
            moved = source[list(down)][:, list(across)]
            names = np.argsort(moved[0])[moved - 1] + 1  # labelled by the first row
            images.append(tuple(names.ravel().tolist()))
        assert tuple(engine.canonical(grid, (2, 2))[0].tolist()) == min(images)


def test_numbers_of_classes_are_the_known_ones() -> None:
    """Up to symmetry there are 2 grids of 4×4 and 49 of 6×6."""
    four = engine.solutions(np.zeros(16, np.uint8), 300, (2, 2))
    assert len(np.unique(engine.canonical(four, (2, 2)), axis=0)) == 2
    six = engine.random_grids(20_000, seed=0, box=(2, 3))
    assert len(np.unique(engine.canonical(six, (2, 3)), axis=0)) == 49


def test_different_9x9_grids_have_different_forms() -> None:
    grids = engine.random_grids(500, seed=2)
    assert len(np.unique(engine.canonical(grids), axis=0)) == 500
    assert len(set(engine.fingerprint(grids).tolist())) > 450


def test_results_do_not_depend_on_threads() -> None:
    puzzles, grids = engine.random_puzzles(600, seed=8, threads=1)
    assert (engine.random_puzzles(600, seed=8, threads=3)[0] == puzzles).all()
    assert (engine.solve(puzzles, threads=3) == grids).all()
    assert (engine.rate(puzzles, 3, threads=1) == engine.rate(puzzles, 3, threads=2)).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: engine.solve(np.zeros(80, np.uint8)), r"puzzles: expected integers \[N, 81\]"),
        (lambda: engine.solve(np.full(81, 10)), "expected 0 to 9, got values 10 to 10"),
        (lambda: engine.solve(np.zeros(81)), "got float64"),
        (lambda: engine.canonical(np.zeros(81, np.uint8)), r"grids\[0\] is not a full 9×9"),
        (lambda: engine.canonical(np.ones((1, 256), np.uint8), (4, 4)), "use fingerprint"),
        (lambda: engine.hard_puzzles(0, 0, 5, box=(4, 4)), "up to 9×9, not 16×16"),
    ],
)
def test_bad_arrays_are_refused(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_clashing_clues_have_no_solution() -> None:
    puzzle = np.zeros(81, np.uint8)
    puzzle[[0, 80]] = 5
    assert engine.count_solutions(puzzle, 1).item() == 1
    puzzle[8] = 5
    assert engine.count_solutions(puzzle).item() == 0
    assert engine.solve(puzzle).sum() == 0

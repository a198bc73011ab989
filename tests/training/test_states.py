"""On-policy states: from the path, by kernel steps of the live network, without gradient."""

import pytest
import torch
from torch import Tensor

from samm import tasks
from samm.config import Config
from samm.model import Network
from samm.process.kernel import Kernel
from samm.process.prediction import Prediction, progress_target
from samm.training.states import States

task = tasks.get("sudoku", box_rows=2, box_cols=2)
SMALL = {"task": task.spec(), "network": {"width": 16, "heads": 2, "layers": 1, "loops": 1}}


def states(**sections: dict) -> States:
    return States.of(Config.build({**SMALL, **sections}), task.vocabulary)


def problems(count: int) -> tuple[Tensor, Tensor]:
    examples = [task.example(1, i % 20) for i in range(count)]
    tokens = torch.stack([e.problem.tokens for e in examples])
    return tokens, torch.stack([e.answer for e in examples])


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class Wrong:
    """Commits everywhere, always to token 0; counts how often it is asked."""

    calls = 0

    def __call__(self, tokens: Tensor, clue: Tensor) -> Prediction:
        self.calls += 1
        logits = torch.zeros(*tokens.shape, task.vocabulary)
        logits[..., 0] = 100
        return Prediction(logits, torch.full(tokens.shape, 100.0), torch.full((len(tokens),), 99.0))


def test_path_states_alone() -> None:
    tokens, answers = problems(4000)
    model = Wrong()
    made = states(states={"steps": [1]}).draw(tokens, answers, model, generator(), 0)
    assert model.calls == 0
    assert bool(((made.tokens == answers) | (made.tokens == task.mask)).all())
    assert torch.equal(made.clue, tokens != task.mask)
    blank = made.time == 0
    assert float(blank.float().mean()) == pytest.approx(0.5, abs=0.04)
    assert bool((made.tokens == tokens)[blank].all())
    assert float(made.time[~blank].mean()) == pytest.approx(0.5, abs=0.03)
    shown = progress_target(made.tokens, answers, made.clue)[~blank]
    assert float((shown - made.time[~blank]).mean()) == pytest.approx(0, abs=0.02)


def test_distribution_of_the_time() -> None:
    tokens, answers = problems(4000)
    path = {"blank_share": 0.0, "time_exponent": 3.0, "exponent": 2.0}
    made = states(path=path, states={"steps": [1]}).draw(tokens, answers, Wrong(), generator(), 0)
    assert float(made.time.mean()) == pytest.approx(1 / 4, abs=0.02)
    shown = progress_target(made.tokens, answers, made.clue)
    assert float((shown - made.time**2).mean()) == pytest.approx(0, abs=0.02)


def test_the_kernel_step_is_the_kernels_without_stop() -> None:
    tokens, answers = problems(50)
    made = states().draw(tokens, answers, Wrong(), generator(), 0)
    assert bool((made.tokens[~made.clue] == 0).all()), "a sure stop does not hold it back"
    assert torch.equal(made.tokens[made.clue], tokens[made.clue])
    assert torch.equal(made.answers, answers)


def test_two_steps_are_one_after_another() -> None:
    network = Network(Config.build(SMALL).network, task)
    tokens, answers = problems(10)
    path = {"blank_share": 1.0}
    random = generator(3)
    made = states(path=path, states={"steps": [0, 0, 1]}).draw(tokens, answers, network, random, 0)
    random = generator(3)
    for _ in range(4):  # time, blank, path, share that moves
        torch.rand(10 if _ != 2 else (10, 16), generator=random)
    state, clue = tokens, tokens != task.mask
    for _ in range(2):
        chance = torch.rand(10, 16, generator=random)
        state = Kernel().step(network(state, clue), state, clue, chance)
    assert torch.equal(made.tokens, state)


def test_share_that_moves() -> None:
    tokens, answers = problems(4000)
    options = {"path": {"blank_share": 1.0}, "states": {"probability": 0.1}}
    made = states(**options).draw(tokens, answers, Wrong(), generator(), 0)
    moved = (made.tokens != tokens).any(-1)
    assert float(moved.float().mean()) == pytest.approx(0.1, abs=0.02)


def test_number_of_steps_has_its_distribution() -> None:
    tokens, answers = problems(2)
    drawn = states(states={"steps": [1, 0, 3]})
    counts = []
    for seed in range(400):
        model = Wrong()
        drawn.draw(tokens, answers, model, generator(), seed)
        counts.append(model.calls)
    assert set(counts) == {0, 2}
    assert counts.count(2) / 400 == pytest.approx(0.75, abs=0.07)
    assert drawn.mean_steps == 1.5


def test_no_gradient_flows_through_the_states() -> None:
    """The loss on z has the same gradient as on a copy of z that never met the network."""
    torch.manual_seed(0)
    network = Network(Config.build(SMALL).network, task)
    tokens, answers = problems(8)
    made = states().draw(tokens, answers, network, generator(), 0)
    for field in (made.tokens, made.answers, made.clue, made.time):
        assert not field.requires_grad
    assert all(p.grad is None for p in network.parameters())

    def gradient(state: Tensor) -> list[Tensor]:
        loss = network(state, made.clue).logits.square().mean()
        return list(torch.autograd.grad(loss, list(network.blocks.parameters())))

    for a, b in zip(gradient(made.tokens), gradient(made.tokens.clone()), strict=True):
        assert torch.equal(a, b)


def test_rows_are_those_of_the_whole_batch() -> None:
    torch.manual_seed(0)
    network = Network(Config.build(SMALL).network, task)
    tokens, answers = problems(8)
    whole = states().draw(tokens, answers, network, generator(), 0)
    for rows in (slice(0, 4), slice(4, 8)):
        part = states().draw(tokens, answers, network, generator(), 0, rows)
        assert torch.equal(part.tokens, whole.tokens[rows])
        assert torch.equal(part.time, whole.time[rows])

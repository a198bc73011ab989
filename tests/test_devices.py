"""Nothing is made on the wrong device: every step, rule and loss on tensors without memory.

The meta device stands in for a GPU that test machines do not have: mixing it with the CPU fails.
"""

import pytest
import torch

from samm import tasks
from samm.process.objective import CrossEntropy, Objective, Samm, Share, State
from samm.process.path import Hybrid, Uniform
from samm.process.prediction import Prediction
from samm.process.rivals import D3pm, Gidd, Mgdm
from samm.samplers.base import Sampler, View
from samm.samplers.ensemble import RULES, Chains
from samm.samplers.registry import SAMPLERS
from samm.samplers.restart import Restart
from samm.samplers.streams import Chances, keys
from samm.tasks import Problem

task = tasks.get("sudoku")
B, D, K, N = 7, task.length, task.vocabulary, 3


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def prediction() -> Prediction:
    return Prediction(empty(B, D, K), empty(B, D), empty(B))


def whole(*shape: int) -> torch.Tensor:
    return empty(*shape, dtype=torch.long)


def flags(*shape: int) -> torch.Tensor:
    return empty(*shape, dtype=torch.bool)


@pytest.mark.parametrize("kind", SAMPLERS.values(), ids=SAMPLERS)
def test_samplers(kind: type[Sampler]) -> None:
    sampler = Restart(task=task) if kind is Restart else kind()
    seen = prediction()
    view = View(whole(B, D), flags(B, D), whole(B))
    chances = Chances(keys(3, view.step, view.step), view.step, D)
    for made in (
        sampler.start(view.state, view.clue, chances),
        sampler.time(view.step),
        sampler.done(seen, view),
        sampler.step(seen, view, chances),
        sampler.finish(seen, view, chances),
        sampler.confidence(seen, view.state),
    ):
        assert made is None or made.is_meta


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    problem = Problem(whole(B, D), flags(B, D), flags(B, D))
    chains = Chains(
        whole(B, N, D), flags(B, N), whole(B, N), empty(B, N, D), empty(B, N), empty(B, N, D, K)
    )
    choice = RULES[name].choose(problem, chains, flags(B, N))
    assert choice.calls.is_meta
    assert choice.answer.tokens.is_meta


@pytest.mark.parametrize(
    "objective",
    [
        Samm(),
        CrossEntropy(),
        Gidd(Hybrid()),
        Gidd(Hybrid(), dynamic=False),
        Mgdm(),
        D3pm(Uniform()),
    ],
    ids=repr,
)
def test_objectives(objective: Objective) -> None:
    state = State(whole(B, D), whole(B, D), flags(B, D), empty(B))
    assert objective(prediction(), state, Share(empty(), 1 / B)).is_meta


def test_optimum_and_verification() -> None:
    p = empty(B, D, K)
    assert Samm().expected_optimum(p, p).is_meta
    assert task.verify(Problem(whole(B, D), flags(B, D), flags(B, D)), whole(B, D)).is_meta

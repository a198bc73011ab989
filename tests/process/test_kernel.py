"""P_θ of eq:markov_kernel: exact probabilities, sampled frequencies, clues, the absorbing stop."""

import pytest
import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.kernel import Kernel
from samm.process.prediction import Prediction

K, D = 4, 5


def random_prediction(batch: int, seed: int = 0, stop: float = 0.0) -> Prediction:
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(batch, D, K, generator=random)
    commit = torch.randn(batch, D, generator=random)
    return Prediction(logits, commit, torch.full((batch,), stop))


def states(batch: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(seed)
    clue = torch.rand(batch, D, generator=random) < 0.3
    tokens = torch.randint(K + 1, (batch, D), generator=random)
    return torch.where(clue & (tokens == K), 0, tokens), clue


def repeat(prediction: Prediction, count: int) -> Prediction:
    def expand(field: Tensor) -> Tensor:
        return field.expand(count, *field.shape[1:])

    return Prediction(*(expand(f) for f in (prediction.logits, prediction.commit, prediction.stop)))


KERNELS = [
    Kernel(),
    Kernel(0.5, 2.0),
    Kernel(0.0, 1.0),
    Kernel(1.0, 0.0),
    Kernel(1.5, 0.7, 0.01),
    Kernel(always_commit=True),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_transition_probabilities_sum_to_one(kernel: Kernel) -> None:
    state, clue = states(50)
    p = kernel.transition(random_prediction(50), state, clue)
    assert p.shape == (50, D, K + 1)
    assert bool((p >= 0).all())
    assert torch.allclose(p.sum(-1), torch.ones(50, D))


def test_transition_is_the_formula() -> None:
    """(1 - c) δ_m + c p at free positions."""
    state, clue = states(20)
    prediction = random_prediction(20)
    p = Kernel().transition(prediction, state, clue)
    c = torch.sigmoid(prediction.commit)
    tokens = prediction.logits.exp() / prediction.logits.exp().sum(-1, keepdim=True)
    assert torch.allclose(p[..., K][~clue], (1 - c)[~clue])
    assert torch.allclose(p[..., :K][~clue], (c[..., None] * tokens)[~clue])
    assert bool((p.gather(-1, state[..., None])[..., 0][clue] == 1).all())


@pytest.mark.parametrize("kernel", KERNELS)
def test_steps_are_drawn_from_the_transition(kernel: Kernel) -> None:
    count = 40_000
    one, clue = states(1, seed=3)
    prediction = random_prediction(1, seed=4)
    p = kernel.transition(prediction, one, clue)[0]
    chance = torch.rand(count, D, generator=torch.Generator().manual_seed(0))
    wide = repeat(prediction, count)
    drawn = kernel.step(wide, one.expand(count, -1), clue.expand(count, -1), chance)
    for position in range(D):
        seen = torch.bincount(drawn[:, position], minlength=K + 1) / count
        spread = (p[position] * (1 - p[position]) / count).sqrt()
        assert bool(((seen - p[position]).abs() <= 5 * spread + 1e-7).all())


def test_clues_never_move() -> None:
    state, clue = states(500)
    start = state.clone()
    random = torch.Generator().manual_seed(0)
    for step in range(5):
        chance = torch.rand(500, D, generator=random)
        state = Kernel(2.0, 2.0).step(random_prediction(500, step), state, clue, chance)
        assert torch.equal(state[clue], start[clue])


def test_the_stop_is_absorbing_and_needs_a_full_state_and_a_sure_network() -> None:
    kernel = Kernel(stop_epsilon=0.01)
    clue = torch.zeros(3, D, dtype=torch.bool)
    full = torch.zeros(3, D, dtype=torch.long)
    state = full.clone()
    state[1, 2] = K  # a mask is left
    sure = random_prediction(3, stop=10.0)
    assert kernel.stops(sure, state).tolist() == [True, False, True]
    chance = torch.rand(3, D, generator=torch.Generator().manual_seed(0))
    after = kernel.step(sure, state, clue, chance)
    assert torch.equal(after[[0, 2]], state[[0, 2]])
    stays = kernel.transition(sure, state, clue)[0]
    assert torch.equal(stays, torch.nn.functional.one_hot(state[0], K + 1).float())

    threshold = torch.logit(torch.tensor(0.99))
    for offset, expected in ((-0.01, False), (0.01, True)):
        prediction = random_prediction(3, stop=float(threshold) + offset)
        assert kernel.stops(prediction, full).tolist() == [expected] * 3
    assert not bool(Kernel().stops(sure, full).any()), "without ε it never stops"


def test_zero_temperatures_take_the_likeliest() -> None:
    state, clue = torch.full((9, D), K), torch.zeros(9, D, dtype=torch.bool)
    prediction = random_prediction(9)
    chance = torch.rand(9, D, generator=torch.Generator().manual_seed(0))
    after = Kernel(0.0, 0.0).step(prediction, state, clue, chance)
    committed = prediction.commit > 0
    assert torch.equal(after[committed], prediction.logits.argmax(-1)[committed])
    assert bool((after[~committed] == K).all())


def test_impossible_tokens_are_never_drawn() -> None:
    prediction = random_prediction(2000)
    prediction.logits[..., 1:3] = -torch.inf
    state, clue = torch.full((2000, D), K), torch.zeros(2000, D, dtype=torch.bool)
    chance = torch.rand(2000, D, generator=torch.Generator().manual_seed(0))
    assert set(Kernel().step(prediction, state, clue, chance).unique().tolist()) == {0, 3, K}


@pytest.mark.parametrize("options", [(-1.0,), (1.0, float("nan")), (1.0, 1.0, 1.5)])
def test_nonsense_is_refused(options) -> None:
    with pytest.raises(InputError, match="expected"):
        Kernel(*options)


def test_without_the_commit_head_nothing_is_masked() -> None:
    state, clue = states(200)
    prediction = random_prediction(200)
    p = Kernel(always_commit=True).transition(prediction, state, clue)
    assert torch.allclose(p[..., :K][~clue], prediction.probabilities[~clue])
    assert bool((p[..., K][~clue] == 0).all())

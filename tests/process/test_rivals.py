"""The rivals' losses: GIDD, MGDM, D3PM."""

import dataclasses

import pytest
import torch
from losses import B, D, K, gradients, problem
from torch import Tensor

from samm.process.objective import Objective, Share, State
from samm.process.path import Hybrid, Uniform
from samm.process.prediction import Prediction
from samm.process.rivals import D3pm, Gidd, Mgdm


def certain(prediction: Prediction, answers: Tensor) -> Prediction:
    """All on the answers."""
    logits = torch.full((B, D, K), -50.0, dtype=torch.float64)
    logits = logits.scatter(-1, answers[..., None], 50.0)
    return dataclasses.replace(prediction, logits=logits)


@pytest.mark.parametrize(
    "objective",
    [Gidd(Hybrid(0.2)), Gidd(Hybrid(0.2), dynamic=False), D3pm(Uniform()), Mgdm()],
    ids=repr,
)
def test_zero_at_the_truth_and_positive_elsewhere(objective: Objective) -> None:
    prediction, state = problem()
    if isinstance(objective, D3pm):  # its path has no masks
        state = dataclasses.replace(state, tokens=state.tokens.clamp(max=K - 1))
    share = Share.of(state.clue)
    at_truth = float(objective(certain(prediction, state.answers), state, share))
    assert at_truth == pytest.approx(0, abs=1e-5)
    assert float(objective(prediction, state, share)) > 0.01
    for gradient in gradients(objective, prediction, state).values():
        assert bool(gradient.isfinite().all())


def test_gidd_weights_are_as_written() -> None:
    """Dynamic: 2 at masks, 1 at random tokens, B/K √(u/(1-u)) at right ones. Clipped: ≤ largest."""
    path = Hybrid(0.2)
    tokens, answers = torch.tensor([[K, 1, 0]]), torch.zeros(1, 3, dtype=torch.long)
    state = State(tokens, answers, torch.zeros(1, 3, dtype=torch.bool), torch.tensor([0.2]))
    true = path.marginal(answers, state.time, K)
    here = true.gather(-1, tokens[..., None])[..., 0]
    dynamic = Gidd(path).weights(state, here, state.time, K)[0]
    assert dynamic.tolist() == pytest.approx([2, 1, 0.5 / K * (0.8 / 0.2) ** 0.5])
    free = Gidd(path, dynamic=False, largest=1e9).weights(state, here, state.time, K)
    into_mask, into_tokens = path.entry_rate(state.time)
    expected = [float(into_mask), float(into_tokens) / K, float(into_tokens) / K]
    assert (free * here)[0].tolist() == pytest.approx(expected)
    clipped = Gidd(path, dynamic=False, largest=0.5).weights(state, here, state.time, K)
    assert torch.equal(clipped, free.clamp(max=0.5))


@pytest.mark.parametrize("objective", [Gidd(Hybrid(0.1)), D3pm(Uniform()), Mgdm()], ids=repr)
@pytest.mark.parametrize("time", [0.0, 0.5, 0.97, 1.0])
@pytest.mark.parametrize("double", [True, False])
def test_gradients_are_finite_at_every_time(objective, time: float, double: bool) -> None:
    """Also in the last of the T steps, which ends where the answer is certain."""
    prediction, state = problem()
    if not double:
        fields = (prediction.logits, prediction.commit, prediction.stop)
        prediction = Prediction(*(30 * field.float() for field in fields))
    tokens = state.tokens.clamp(max=K - 1) if isinstance(objective, D3pm) else state.tokens
    state = State(tokens, state.answers, state.clue, torch.full((B,), time))
    for gradient in gradients(objective, prediction, state).values():
        assert bool(gradient.isfinite().all())


def test_mgdm_is_its_formula() -> None:
    """(κ_t + 1/T)(1 - p)^γ (-log p) at masks, over the number of free positions."""
    prediction, state = problem()
    p = prediction.probabilities
    for focus, times, exponent in ((1.0, 20, 1.0), (0.25, 5, 2.0), (0.0, 1, 1.0)):
        total = 0.0
        for row in range(B):
            for place in range(D):
                if int(state.tokens[row, place]) == K:
                    right = float(p[row, place, state.answers[row, place]])
                    late = float(state.time[row]) ** exponent + 1 / times
                    total -= late * (1 - right) ** focus * float(torch.tensor(right).log())
        loss = Mgdm(focus, times, exponent)(prediction, state, Share.of(state.clue))
        assert float(loss) == pytest.approx(total / int((~state.clue).sum()), rel=1e-5)


def test_mgdm_weighs_times_as_the_cited_paper() -> None:
    """T - n at noise n = 0 .. T - 1, where a share (n + 1)/T is masked: ours up to the factor T."""
    times = 20
    prediction, state = problem()

    def loss(n: int) -> float:
        """Of the same masked state, at noise n."""
        masked = torch.where(state.clue, state.answers, K)
        at = State(masked, state.answers, state.clue, torch.full((B,), 1 - (n + 1) / times))
        return float(Mgdm(times=times)(prediction, at, Share.of(state.clue)))

    for n in range(times):
        assert loss(n) / loss(times - 1) == pytest.approx(times - n, rel=1e-4)


def test_d3pm_is_the_divergence_of_the_posteriors() -> None:
    """Written out: every token's posterior by Bayes, averaged over the prediction."""
    prediction, state = problem()
    state = dataclasses.replace(state, tokens=state.tokens.clamp(max=K - 1))
    path, times = Uniform(), 10
    p, total = prediction.probabilities, 0.0
    for row in range(B):
        t = float(state.time[row])
        s = min(t + 1 / times, 1.0)
        t = min(t, s - 0.01 / times)
        for place in range(D):
            if bool(state.clue[row, place]):
                continue
            here = int(state.tokens[row, place])

            def posterior(x: int, t: float = t, s: float = s, here: int = here) -> Tensor:
                jump = torch.full((K,), (1 - t / s) / K, dtype=torch.float64)  # q(z_t | z_s = v)
                jump[here] += t / s
                clean = torch.full((K,), (1 - s) / K, dtype=torch.float64)  # q(z_s | x)
                clean[x] += s
                joint = jump * clean
                return joint / joint.sum()

            true = posterior(int(state.answers[row, place]))
            model = sum(p[row, place, x] * posterior(x) for x in range(K))
            total += float(torch.special.xlogy(true, true / model).sum())
    terms = D3pm(path, times).terms(prediction, state, Share.of(state.clue))
    expected = times * total / int((~state.clue).sum())
    assert float(terms["bound"]) == pytest.approx(expected, rel=1e-4)

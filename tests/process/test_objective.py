"""Losses: gradients against finite differences, the closed-form optimum, every option."""

import dataclasses
import math

import pytest
import torch
from losses import FIELDS, B, D, K, gradients, problem
from torch import Tensor

from samm.errors import InputError
from samm.process.objective import CrossEntropy, Objective, Samm, Share, State
from samm.process.path import Hybrid, Uniform
from samm.process.prediction import Prediction, progress_target
from samm.process.rivals import D3pm, Gidd, Mgdm

OBJECTIVES = (
    Samm(), Samm(sums=True), Samm(all_positions=True), CrossEntropy(), Gidd(Hybrid()),
    Mgdm(), D3pm(Uniform()),
)  # fmt: skip


def difference(value, prediction: Prediction, name: str) -> Tensor:
    """Central differences of value(prediction) with respect to one field."""
    base, h = getattr(prediction, name), 1e-6
    out = torch.zeros_like(base)
    for index in range(base.numel()):
        ends = []
        for sign in (1, -1):
            moved = base.clone()
            moved.view(-1)[index] += sign * h
            ends.append(float(value(dataclasses.replace(prediction, **{name: moved}))))
        out.view(-1)[index] = (ends[0] - ends[1]) / (2 * h)
    return out


def written_out(
    options: Samm,
    state: State,
    held: Prediction | None,
    hold_p: bool,
    hold_weight: bool,
):
    """The loss of method.md in plain numbers; q and w taken at `held` where they are detached."""

    def value(prediction: Prediction) -> float:
        total = {"ce": 0.0, "commit": 0.0, "stop": 0.0}
        free = int((~state.clue).sum())
        target = progress_target(state.tokens, state.answers, state.clue)
        for b in range(B):
            tau = 1 / (1 + math.exp(-prediction.stop[b]))
            total["stop"] += (tau - float(target[b])) ** 2 / B
            for i in range(D):
                if state.clue[b, i]:
                    continue
                right = int(state.answers[b, i])
                p = float(prediction.logits[b, i].softmax(-1)[right])
                c = 1 / (1 + math.exp(-prediction.commit[b, i]))
                at = held if hold_p else prediction
                q = 1 - float(at.logits[b, i].softmax(-1)[right])
                at = held if hold_weight else prediction
                c_at = 1 / (1 + math.exp(-at.commit[b, i]))
                w = (1 - c_at + options.epsilon) ** -options.exponent
                total["ce"] += -math.log(p) / free
                total["commit"] += (-math.log(c) - w * math.log(1 - c * q)) / free
        return (
            total["ce"]
            + options.commit_weight * total["commit"]
            + options.stop_weight * total["stop"]
        )

    return value


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("attached", [False, True])
def test_value_and_gradients_are_those_of_the_formula(coupled: bool, attached: bool) -> None:
    """Detached quantities are held fixed; attached and coupled ones move with the rest."""
    objective = Samm(weight_attached=attached, coupled=coupled, exponent=1.3)
    prediction, state = problem()
    value = written_out(objective, state, prediction, not coupled, not attached)
    loss = objective(prediction, state, Share.of(state.clue))
    assert float(loss) == pytest.approx(value(prediction), rel=1e-6)
    ours = gradients(objective, prediction, state)
    for name in FIELDS:
        theirs = difference(value, prediction, name)
        assert torch.allclose(ours[name], theirs, atol=1e-7, rtol=1e-5), name


def test_options_change_the_gradients_they_name_and_no_others() -> None:
    prediction, state = problem()
    base = gradients(Samm(), prediction, state)
    changes = {
        "coupled": {"logits"},
        "weight_attached": {"commit"},
        "calibrated": {"commit"},
        "all_positions": {"logits"},
        "sums": {"logits", "commit"},
    }
    for option, expected in changes.items():
        other = gradients(Samm(**{option: True}), prediction, state)
        changed = {name for name in FIELDS if not torch.allclose(base[name], other[name])}
        assert changed == expected, option
    for norm in ("l1", "bce"):
        other = gradients(Samm(stop_norm=norm), prediction, state)
        assert {n for n in FIELDS if not torch.allclose(base[n], other[n])} == {"stop"}
    for option, field in (("commit_weight", "commit"), ("stop_weight", "stop")):
        doubled = gradients(Samm(**{option: 2 * getattr(Samm(), option)}), prediction, state)
        assert torch.allclose(doubled[field], 2 * base[field])


def test_clues_carry_no_loss_unless_asked_for() -> None:
    prediction, state = problem()
    for option, expected in ((False, False), (True, True)):
        found = gradients(Samm(all_positions=option), prediction, state)
        assert bool(found["logits"][state.clue].any()) == expected
        assert not bool(found["commit"][state.clue].any())


def test_sums_are_per_example_sums() -> None:
    prediction, state = problem()
    share = Share.of(state.clue)
    means = Samm().terms(prediction, state, share)
    sums = Samm(sums=True).terms(prediction, state, share)
    factor = int((~state.clue).sum()) / B
    for name in ("ce", "commit"):
        assert float(sums[name]) == pytest.approx(factor * float(means[name]))
    assert float(sums["stop"]) == float(means["stop"])
    everywhere = Samm(sums=True, all_positions=True).terms(prediction, state, share)["ce"]
    average = Samm(all_positions=True).terms(prediction, state, share)["ce"]
    assert float(everywhere) == pytest.approx(D * float(average))


def test_stop_norms() -> None:
    prediction, state = problem()
    gap = prediction.progress - progress_target(state.tokens, state.answers, state.clue)
    t, tau = prediction.progress - gap, prediction.progress
    kl = torch.xlogy(t, t / tau) + torch.xlogy(1 - t, (1 - t) / (1 - tau))
    for norm, expected in (("mse", gap**2), ("l1", gap.abs()), ("bce", kl)):
        terms = Samm(stop_norm=norm, stop_weight=1).terms(prediction, state, Share.of(state.clue))
        assert float(terms["stop"]) == pytest.approx(float(expected.mean()))
    with pytest.raises(InputError, match="stop_norm 'l3'"):
        Samm(stop_norm="l3")


@pytest.mark.parametrize(("q", "expected"), [(1.0, 0.3956), (0.5, 0.6106), (0.2, None)])
def test_commit_head_converges_to_its_closed_form(q: float, expected: float | None) -> None:
    """(1 - c + ε)(1 - c q) = c q, the stationary point for fixed q and detached weight."""
    objective = Samm()
    commit = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    right = torch.tensor([1 - q], dtype=torch.float64).log()
    for _ in range(3000):
        (slope,) = torch.autograd.grad(objective.commit(commit, right).sum(), commit)
        commit = (commit - slope).detach().requires_grad_()
    c = float(torch.sigmoid(commit.detach()))
    assert (1 - c + objective.epsilon) * (1 - c * q) == pytest.approx(c * q, abs=1e-6)
    if expected is not None:
        assert c == pytest.approx(expected, abs=1e-3)


def test_commit_head_is_certain_below_the_threshold() -> None:
    """No stationary point for q up to about 0.048: the gradient pushes c to 1 everywhere."""
    commit = torch.linspace(-5, 12, 200, dtype=torch.float64, requires_grad=True)
    for q, sure in ((0.0, True), (0.045, True), (0.06, False)):
        right = torch.full_like(commit, 1 - q).detach().log()
        (slope,) = torch.autograd.grad(Samm().commit(commit, right).sum(), commit)
        assert bool((slope < 0).all()) == sure, q


def test_calibrated_commit_is_the_probability_of_being_right() -> None:
    commit = torch.logit(torch.tensor([0.3], dtype=torch.float64)).requires_grad_()
    right = torch.tensor([0.3], dtype=torch.float64).log()
    (slope,) = torch.autograd.grad(Samm(calibrated=True).commit(commit, right).sum(), commit)
    assert float(slope) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("options", [{}, {"coupled": True}, {"weight_attached": True}])
@pytest.mark.parametrize("extreme", [60.0, -60.0])
def test_extreme_predictions_keep_loss_and_gradients_finite(options, extreme: float) -> None:
    _, state = problem()
    for sign in (1, -1):
        logits = torch.zeros(B, D, K)
        logits.scatter_(-1, state.answers[..., None], sign * 60.0)
        prediction = Prediction(logits, torch.full((B, D), extreme), torch.full((B,), extreme))
        for gradient in gradients(Samm(**options), prediction, state).values():
            assert bool(gradient.isfinite().all())


def test_a_solved_problem_has_no_position_loss_and_progress_one() -> None:
    prediction, state = problem()
    done = State(state.answers, state.answers, torch.ones_like(state.clue), state.time)
    terms = Samm().terms(prediction, done, Share.of(done.clue))
    assert float(terms["ce"]) == float(terms["commit"]) == 0
    expected = Samm().stop_weight * float(((prediction.progress - 1) ** 2).mean())
    assert float(terms["stop"]) == pytest.approx(expected)


@pytest.mark.parametrize("objective", OBJECTIVES, ids=repr)
def test_parts_of_a_batch_add_up_to_the_whole(objective: Objective) -> None:
    prediction, state = problem()
    share = Share.of(state.clue)
    whole = objective(prediction, state, share)
    parts = torch.zeros((), dtype=torch.float64)
    for rows in (slice(0, 1), slice(1, B)):
        part = Prediction(*(getattr(prediction, name)[rows] for name in FIELDS))
        fields = (state.tokens, state.answers, state.clue, state.time)
        parts = parts + objective(part, State(*(f[rows] for f in fields)), share)
    assert float(parts) == pytest.approx(float(whole))


def test_cross_entropy_is_torchs() -> None:
    prediction, state = problem()
    share = Share.of(state.clue)
    logits, answers = prediction.logits, state.answers
    everywhere = torch.nn.functional.cross_entropy(logits.flatten(0, 1), answers.flatten())
    free = torch.nn.functional.cross_entropy(logits[~state.clue], answers[~state.clue])
    assert float(CrossEntropy()(prediction, state, share)) == pytest.approx(float(everywhere))
    ours = float(CrossEntropy(all_positions=False)(prediction, state, share))
    assert ours == pytest.approx(float(free))


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.1, "exponent": 2.0}, {"calibrated": True}])
def test_optimum_is_where_the_expected_slope_vanishes(options) -> None:
    """For known q, and for a network whose p can be trusted: by gradients of L_commit itself."""
    objective = Samm(**options)
    p = torch.tensor([0.55, 0.25, 0.15, 0.05], dtype=torch.float64)
    c = objective.expected_optimum(1 - p, p)
    commit = torch.logit(c).expand(4).clone().requires_grad_()
    losses = objective.commit(commit, p.log())
    (slopes,) = torch.autograd.grad((p * losses).sum(), commit)
    assert float(slopes.sum()) == pytest.approx(0, abs=1e-6)
    for q in (1.0, 0.5, 0.2):
        c = objective.optimum(torch.tensor([q], dtype=torch.float64))
        commit = torch.logit(c.clamp(max=1 - 1e-9)).requires_grad_()
        right = torch.tensor([max(1 - q, 1e-12)], dtype=torch.float64).log()
        (slope,) = torch.autograd.grad(objective.commit(commit, right).sum(), commit)
        assert float(slope) == pytest.approx(0, abs=1e-5)
    assert float(objective.optimum(torch.tensor([0.0]))) == pytest.approx(1, abs=1e-6)

"""The rivals against their closed-form transition probabilities, on networks that know."""

import pytest
import torch
from dummies import Knowing, Recorder, small_problems
from torch import Tensor

from samm import tasks
from samm.process.path import Uniform
from samm.process.prediction import Prediction
from samm.process.schedule import Power
from samm.samplers import D3pm, Euler, Gidd, Margin, Remasking, Remdm, TopK, sample
from samm.samplers.base import Independent, View
from samm.samplers.streams import Chances, keys

task = tasks.get("sudoku", box_rows=2, box_cols=2)
K, D = 4, 6


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def chances(count: int, step: int = 0, length: int = D) -> Chances:
    number = torch.arange(count)
    return Chances(keys(1, number), torch.full((count,), step), length)


def predicted(count: int = 1, seed: int = 0) -> Prediction:
    logits = torch.randn(1, D, K, generator=generator(seed)).expand(count, -1, -1)
    commit = torch.randn(1, D, generator=generator(seed)).expand(count, -1)
    return Prediction(logits, commit, torch.full((count,), 0.3))


def view(count: int = 1, step: int = 0) -> View:
    """A clue, a free token, and masks."""
    state = torch.tensor([[1, 2, K, K, 0, K]]).expand(count, -1)
    clue = torch.tensor([[True, False, False, False, False, False]]).expand(count, -1)
    return View(state, clue, torch.full((count,), step))


INDEPENDENT = (
    Euler(steps=10),
    Euler(steps=10, revisit=True),
    Euler(steps=10, clock="progress"),
    Remdm(steps=10),
    Remdm(steps=10, clock="progress"),
    Gidd(steps=10),
    D3pm(steps=10, exponent=2.0),
)


@pytest.mark.parametrize("sampler", INDEPENDENT, ids=repr)
@pytest.mark.parametrize("step", [0, 4, 9])
def test_steps_are_drawn_from_the_transition(sampler: Independent, step: int) -> None:
    count = 40_000
    one = view(step=step)
    if isinstance(sampler, D3pm):  # its states hold no masks
        one = View(one.state % K, one.clue, one.step)
    if isinstance(sampler, Gidd) and step == 0:  # where its states hold nothing else
        one = View(torch.where(one.clue, one.state, K), one.clue, one.step)
    p = sampler.transition(predicted(), one)[0]
    free = ~one.clue[0]
    assert torch.allclose(p.sum(-1)[free], torch.ones(D)[free], atol=1e-5)
    assert bool((p >= 0).all())
    wide = View(*(f.expand(count, *f.shape[1:]) for f in (one.state, one.clue, one.step)))
    drawn = sampler.step(predicted(count), wide, chances(count, step))
    assert bool((drawn[:, 0] == 1).all()), "the clue stays"
    for position in range(1, D):
        seen = torch.bincount(drawn[:, position], minlength=K + 1) / count
        spread = (p[position] * (1 - p[position]) / count).sqrt()
        assert bool(((seen - p[position]).abs() <= 5 * spread + 1e-6).all())


def test_euler_is_the_formula() -> None:
    """h κ̇_t/(1 - κ_t) p at masks; with revisiting at every free position (eq:vel_final)."""
    t, h = 0.4, 0.1
    jump = h * 2 * t / (1 - t**2)
    p = predicted().probabilities[0]
    for revisit in (False, True):
        found = Euler(steps=10, revisit=revisit).transition(predicted(), view(step=4))[0]
        assert torch.allclose(found[2, :K], jump * p[2])
        assert float(found[2, K]) == pytest.approx(1 - jump)
        assert float(found[1, 3]) == pytest.approx(jump * float(p[1, 3]) if revisit else 0)


def test_remdm_is_the_formula() -> None:
    t, s, eta = 0.4, 0.5, 0.9
    now, then = t**2, s**2
    sigma = eta * min(1, (1 - then) / now)
    found = Remdm(steps=10).transition(predicted(), view(step=4))[0]
    assert float(found[1, K]) == pytest.approx(sigma)
    assert float(found[1, 2]) == pytest.approx(1 - sigma)
    shown = (then - (1 - sigma) * now) / (1 - now)
    assert torch.allclose(found[2, :K], shown * predicted().probabilities[0, 2])


@pytest.mark.parametrize("eta", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("exponent", [1.0, 2.0])
def test_remdm_does_not_change_the_marginals(eta: float, exponent: float) -> None:
    """Theorem 3.1 of the cited paper: every step leads from the marginal at t to that at s."""
    sampler = Remdm(steps=20, eta=eta, exponent=exponent)
    answers = torch.randint(K, (1, D), generator=generator())
    sure = torch.full((1, D, K), -60.0).scatter(-1, answers[..., None], 60.0)
    prediction = Prediction(sure, torch.zeros(1, D), torch.zeros(1))
    clue = torch.zeros(1, D, dtype=torch.bool)
    for step in range(20):
        alpha, after = (step / 20) ** exponent, ((step + 1) / 20) ** exponent
        number = torch.tensor([step])
        masked = sampler.transition(prediction, View(torch.full((1, D), K), clue, number))[0]
        right = sampler.transition(prediction, View(answers, clue, number))[0]
        mixed = (1 - alpha) * masked + alpha * right  # the law at s
        assert torch.allclose(mixed[:, K], torch.tensor(1 - after), atol=1e-5)
        held = mixed.gather(-1, answers[0][:, None])[:, 0]
        assert torch.allclose(held, torch.tensor(after), atol=1e-5)


def test_remdm_really_puts_masks_back() -> None:
    batch, answers = small_problems(task, 1)
    many = batch.map(lambda field: field.expand(200, -1))
    model = Recorder(Knowing(answers, batch.clue, task.vocabulary, 0.7))
    sample(model, many, generator(), Remdm(steps=10))
    again = [
        int(((before != task.mask) & (after == task.mask)).sum())
        for before, after in zip(model.states, model.states[1:], strict=False)
    ]
    assert sum(again) > 0


def test_time_runs_from_0_to_1() -> None:
    batch, answers = small_problems(task, 3)
    for sampler in (Euler(steps=4, revisit=True), Remdm(steps=4), D3pm(steps=4)):
        model = Knowing(answers, batch.clue, task.vocabulary, 0.5)
        sample(model, batch, generator(), sampler)
        assert [float(time[0]) for time in model.times] == [0, 0.25, 0.5, 0.75, 1]
    model = Knowing(answers, batch.clue, task.vocabulary, 0.5)
    sample(model, batch, generator(), Euler(steps=4, clock="progress"))
    assert set(model.times) == {None}, "its own clock: the network is told nothing"


@pytest.mark.parametrize("revisit", [False, True])
def test_tokens_are_revisited_only_if_asked_for(revisit: bool) -> None:
    """With one look per position, skill is the share that is right; looking again keeps it."""
    batch, answers = small_problems(task, 1)
    count = 3000
    many = batch.map(lambda field: field.expand(count, -1))
    # all examples leave together, so that states of two calls can be compared
    model = Recorder(Knowing(answers, batch.clue, task.vocabulary, 0.7))
    seen: dict[int, Tensor] = {}
    changed = 0

    def watch(frame) -> None:
        nonlocal changed
        for number, state in zip(frame.index.tolist(), frame.view.state, strict=True):
            if number in seen and number < 300:
                before = seen[number]
                changed += int(((before != state) & (before != task.mask)).sum())
            seen[number] = state

    sampler = Euler(steps=10, exponent=1.0, revisit=revisit)
    answer = sample(model, many, generator(), sampler, count, watch)
    assert (changed > 0) == revisit
    share = float((answer.tokens == answers)[many.free].float().mean())
    assert share == pytest.approx(0.7, abs=0.02)


def test_the_marginal_of_euler_follows_the_schedule() -> None:
    """Small steps: a share κ_t of the free positions is unmasked at time t."""
    batch, answers = small_problems(task, 1)
    many = batch.map(lambda field: field.expand(2000, -1))
    model = Recorder(Knowing(answers, batch.clue, task.vocabulary, 0.7))
    sample(model, many, generator(), Euler(steps=100), 2000)
    for step in (20, 50, 80):
        masks = int((model.states[step] == task.mask).sum())  # of those that are not full yet
        shown = 1 - masks / int(many.free.sum())
        assert shown == pytest.approx((step / 100) ** 2, abs=0.02)


class TestTopK:
    def test_unmasks_the_most_certain_and_as_many_as_it_should(self) -> None:
        """K_t = M_t (α_s - α_t)/(1 - α_t), rounded; at least one; all in the last step."""
        state = torch.full((1, D), K)
        clue = torch.zeros(1, D, dtype=torch.bool)
        for step, steps, exponent, expected in (
            (0, 4, 1.0, 2), (0, 10, 2.0, 1), (5, 10, 2.0, 1), (9, 10, 2.0, 6), (8, 10, 2.0, 3),
        ):  # fmt: skip
            sampler = TopK(steps=steps, exponent=exponent)
            t, s = (step / steps) ** exponent, ((step + 1) / steps) ** exponent
            assert expected == (6 if step == steps - 1 else max(1, round(6 * (s - t) / (1 - t))))
            one = View(state, clue, torch.tensor([step]))
            after = sampler.step(predicted(), one, chances(1, step))[0]
            chosen = (after != K).nonzero()[:, 0]
            certain = predicted().probabilities[0].amax(-1)
            assert set(chosen.tolist()) == set(certain.topk(expected).indices.tolist())

    def test_tokens_are_drawn_from_p(self) -> None:
        count = 40_000
        wide = View(
            torch.full((count, D), K), torch.zeros(count, D, dtype=torch.bool),
            torch.full((count,), 9),
        )  # fmt: skip
        drawn = TopK(steps=10).step(predicted(count), wide, chances(count, 9))
        p = predicted().probabilities[0]
        for position in range(D):
            seen = torch.bincount(drawn[:, position], minlength=K) / count
            assert torch.allclose(seen, p[position], atol=0.015)

    def test_the_margin_is_another_order(self) -> None:
        p = torch.tensor([[[0.5, 0.49, 0.01, 0.0], [0.4, 0.2, 0.2, 0.2]]])
        prediction = Prediction((p + 1e-9).log(), torch.zeros(1, 2), torch.zeros(1))
        one = View(
            torch.full((1, 2), K), torch.zeros(1, 2, dtype=torch.bool), torch.zeros(1).long()
        )
        for sampler, place in ((TopK(steps=9), 0), (Margin(steps=9), 1)):
            after = sampler.step(prediction, one, chances(1, length=2))[0]
            assert (after != K).nonzero().flatten().tolist() == [place]

    def test_held_tokens_stay(self) -> None:
        for step in range(10):
            after = TopK(steps=10).step(predicted(), view(step=step), chances(1, step))[0]
            assert after[[0, 1, 4]].tolist() == [1, 2, 0]

    def test_zero_temperature_takes_the_likeliest(self) -> None:
        after = TopK(steps=1, token_temperature=0.0).step(predicted(), view(), chances(1))[0]
        best = predicted().logits[0].argmax(-1)
        assert after[[2, 3, 5]].tolist() == best[[2, 3, 5]].tolist()

    def test_progress_sets_the_pace(self) -> None:
        """At τ = 0.8 with κ = t, half of the remaining distance to 0.9 is half of the masks."""
        state, clue = torch.full((1, D), K), torch.zeros(1, D, dtype=torch.bool)
        stop = torch.logit(torch.tensor([0.8]))
        prediction = Prediction(predicted().logits, torch.zeros(1, D), stop)
        sampler = TopK(steps=10, exponent=1.0, clock="progress")
        after = sampler.step(prediction, View(state, clue, torch.tensor([0])), chances(1))
        assert int((after != K).sum()) == 3


def test_remasking_keeps_the_surest_share() -> None:
    """After step n of T, ⌊free · (1 - n/T)⌋ of the free positions are masked, the least sure."""
    sampler = Remasking(steps=5, noise=0.0)
    best = predicted().logits[0].log_softmax(-1).amax(-1)
    for step in range(5):
        after = sampler.step(predicted(), view(step=step), chances(1, step))[0]
        masked = int(5 * (1 - (step + 1) / 5) + 1e-6)
        order = best[1:].argsort()[:masked] + 1
        assert set((after == K).nonzero().flatten().tolist()) == set(order.tolist())
    likeliest = predicted().logits[0].argmax(-1)
    assert after[[2, 3, 5]].tolist() == likeliest[[2, 3, 5]].tolist()
    assert after[[0, 1, 4]].tolist() == [1, 2, 0]


class TestGidd:
    def test_the_last_step_leaves_no_mask(self) -> None:
        count = 2000
        wide = view(count, step=9)
        after = Gidd(steps=10).step(predicted(count), wide, chances(count, 9))
        assert bool((after != K).all())

    def test_correction_changes_one_token_to_the_likeliest_that_differs(self) -> None:
        state = torch.tensor([[1, 2, 0, 3, 0, 2]])
        clue = view().clue
        sampler = Gidd(steps=10, corrections=5, correction_temperature=0.0)
        prediction = predicted()
        logp = prediction.logits[0].log_softmax(-1)
        best, token = logp.max(-1)
        differs = (token != state[0]) & ~clue[0]
        place = int(best.masked_fill(~differs, -torch.inf).argmax())
        after = sampler.step(prediction, View(state, clue, torch.tensor([10])), chances(1, 10))
        assert (after != state).nonzero()[:, 1].tolist() == [place]
        assert int(after[0, place]) == int(token[place])

    def test_correction_ends_where_nothing_changes(self) -> None:
        best = predicted().logits.argmax(-1)
        clue = view().clue
        sampler = Gidd(steps=10, corrections=5)
        for step, state, expected in (
            (10, best, True), (9, best, False),
            (10, (best + 1) % K, False), (15, (best + 1) % K, True),
        ):  # fmt: skip
            one = View(state, clue, torch.tensor([step]))
            assert sampler.done(predicted(), one).tolist() == [expected]

    def test_correction_mends_what_the_schedule_broke(self) -> None:
        batch, answers = small_problems(task, 40)
        model = Knowing(answers, batch.clue, task.vocabulary, 0.9)
        without = sample(model, batch, generator(), Gidd(steps=20, corrections=0))
        with_it = sample(model, batch, generator(), Gidd(steps=20, corrections=16))
        assert float((without.tokens == answers).all(-1).float().mean()) < 0.7
        assert torch.equal(with_it.tokens, answers)
        assert float(with_it.steps.float().mean()) < 36, "most need few corrections"

    def test_its_clock_stands_still_at_the_end(self) -> None:
        assert Gidd(steps=4).time(torch.tensor([0, 2, 4, 9])).tolist() == [0, 0.5, 1, 1]


class TestD3pm:
    def test_it_starts_from_noise_and_follows_the_marginals(self) -> None:
        """With the truth as prediction, the law at every step is that of the uniform path."""
        batch, answers = small_problems(task, 1)
        count, steps = 4000, 8
        many = batch.map(lambda field: field.expand(count, -1))
        model = Recorder(Knowing(answers, batch.clue, task.vocabulary, 1 - 1e-7))
        sample(model, many, generator(), D3pm(steps=steps), count)
        assert bool((torch.stack(model.states) != task.mask).all())
        path = Uniform(Power(1.0))
        for step, state in enumerate(model.states):
            t = torch.full((count,), step / steps)
            p = path.marginal(answers.expand(count, -1), t, task.vocabulary)
            expected = float(p.gather(-1, answers.expand(count, -1)[..., None])[0, 0, 0])
            right = float((state == answers)[many.free].float().mean())
            assert right == pytest.approx(expected, abs=0.015)

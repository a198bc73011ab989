"""Every sampler: clues stay, the seed decides, order is kept, a network that knows is believed."""

import pytest
import torch
from dummies import Knowing

from samm import tasks
from samm.errors import InputError
from samm.process.schedule import Power
from samm.samplers.chain import ChainOptions, chain
from samm.samplers.euler import EulerOptions, euler
from samm.tasks import Answer, Problem

task = tasks.get("sudoku", box_rows=2, box_cols=2)
COUNT = 24


def problems(count: int = COUNT) -> tuple[Problem, torch.Tensor]:
    examples = [task.example(5, index) for index in range(count)]
    return (
        Problem.stack([e.problem for e in examples]),
        torch.stack([e.answer for e in examples]),
    )


def knowing(skill: float = 0.9, commit: float = 0.8) -> Knowing:
    batch, answers = problems()
    return Knowing(answers, batch.clue, task.vocabulary, skill, commit)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class SamplerContract:
    """What holds for every sampler."""

    @staticmethod
    def sample(model: Knowing, batch: Problem, seed: int = 0) -> Answer:
        raise NotImplementedError

    def test_clues_stay_and_shapes_fit(self) -> None:
        batch, _ = problems()
        answer = self.sample(knowing(0.4), batch)
        assert torch.equal(answer.tokens[batch.clue], batch.tokens[batch.clue])
        assert answer.tokens.shape == answer.confidence.shape == batch.tokens.shape
        assert answer.stopped.shape == answer.steps.shape == (COUNT,)
        assert bool((answer.confidence[batch.clue] == 1).all())
        assert 0 <= float(answer.confidence.min()) <= float(answer.confidence.max()) <= 1

    def test_the_problems_are_left_alone(self) -> None:
        batch, _ = problems()
        before = batch.map(torch.clone)
        self.sample(knowing(), batch)
        assert torch.equal(batch.tokens, before.tokens)

    def test_the_seed_decides(self) -> None:
        batch, _ = problems()
        one, two, other = (self.sample(knowing(0.5), batch, seed) for seed in (1, 1, 2))
        assert torch.equal(one.tokens, two.tokens)
        assert torch.equal(one.steps, two.steps)
        assert not torch.equal(one.tokens, other.tokens)

    def test_a_network_that_knows_is_believed_and_order_is_kept(self) -> None:
        batch, answers = problems()
        answer = self.sample(knowing(1 - 1e-7), batch)
        assert torch.equal(answer.tokens, answers)
        shuffled = torch.randperm(COUNT, generator=generator(3))
        answer = self.sample(knowing(1 - 1e-7), batch[shuffled])
        assert torch.equal(answer.tokens, answers[shuffled])
        assert bool(answer.stopped.all())

    def test_solved_problems_stay_solved(self) -> None:
        _, answers = problems()
        full = task.problem(answers)
        answer = self.sample(Knowing(answers, full.clue, task.vocabulary, 0.5), full)
        assert torch.equal(answer.tokens, answers)


class TestChain(SamplerContract):
    @staticmethod
    def sample(model: Knowing, batch: Problem, seed: int = 0) -> Answer:
        return chain(model, batch, generator(seed), ChainOptions(steps=64))

    def test_each_example_stops_by_itself_and_leaves_the_batch(self) -> None:
        batch, answers = problems()
        model = knowing(0.97, 0.9)
        answer = chain(model, batch, generator(), ChainOptions(steps=1000))
        assert bool(answer.stopped.all())
        assert torch.equal(answer.tokens, answers)
        assert len(set(answer.steps.tolist())) > 5, "they stop at different times"
        # A call is made with those that have not stopped before: the batch shrinks accordingly.
        alive = [int((answer.steps >= step).sum()) for step in range(len(model.calls))]
        assert model.calls == alive
        assert len(model.calls) == int(answer.steps.max()) + 1

    def test_the_number_of_steps_has_the_law_of_the_kernel(self) -> None:
        """A step gives all n free positions the right token with probability (c p)^n."""
        batch, answers = problems(1)
        count, free = 4000, int(batch.free.sum())
        model = Knowing(answers, batch.clue, task.vocabulary, 0.95, 0.95)
        many = batch.map(lambda field: field.expand(count, -1))
        options = ChainOptions(steps=10_000, least_steps=0)
        answer = chain(model, many, generator(), options)
        success = (0.95 * 0.95) ** free
        mean = float(answer.steps.float().mean())
        spread = ((1 - success) / success**2 / count) ** 0.5
        assert abs(mean - 1 / success) < 5 * spread

    def test_the_cap_holds_and_tells(self) -> None:
        batch, _ = problems()
        answer = chain(knowing(0.3, 0.3), batch, generator(), ChainOptions(steps=3))
        assert bool((answer.steps == 3).all())
        assert not bool(answer.stopped.any())
        assert bool((answer.tokens == task.mask).any()), "an unfinished state shows its masks"

    def test_no_stop_before_the_least_steps(self) -> None:
        batch, _ = problems()
        for least in (0, 1, 2, 5):
            options = ChainOptions(steps=50, least_steps=least)
            answer = chain(knowing(1 - 1e-7, 1 - 1e-7), batch, generator(), options)
            assert bool((answer.steps == max(least, 1)).all())

    def test_temperatures_reach_the_kernel(self) -> None:
        batch, answers = problems()
        greedy = ChainOptions(steps=4, token_temperature=0, commit_temperature=0)
        answer = chain(knowing(0.6, 0.6), batch, generator(), greedy)
        assert torch.equal(answer.tokens, answers)
        assert bool((answer.steps == 2).all())

    def test_confidence_is_that_of_the_last_state(self) -> None:
        batch, _ = problems()
        answer = self.sample(knowing(1 - 1e-7, 0.8), batch)
        assert torch.allclose(answer.confidence[batch.free], torch.tensor(0.8))

    @pytest.mark.parametrize("options", [{"steps": 1}, {"steps": 3, "least_steps": -1}])
    def test_contradictions_are_refused(self, options) -> None:
        with pytest.raises(InputError, match="least_steps"):
            ChainOptions(**options)


class TestEuler(SamplerContract):
    @staticmethod
    def sample(model: Knowing, batch: Problem, seed: int = 0) -> Answer:
        return euler(model, batch, generator(seed), EulerOptions(steps=8))

    def test_time_runs_from_0_to_1(self) -> None:
        batch, _ = problems()
        model = knowing()
        euler(model, batch, generator(), EulerOptions(steps=4))
        assert [float(time[0]) for time in model.times] == [0, 0.25, 0.5, 0.75, 1]

    @pytest.mark.parametrize("revisit", [False, True])
    def test_tokens_are_revisited_only_if_asked_for(self, revisit: bool) -> None:
        """With one look per position, skill is the share that is right; looking again keeps it."""
        batch, answers = problems(1)
        count = 3000
        many = batch.map(lambda field: field.expand(count, -1))
        model = Recorder(Knowing(answers, batch.clue, task.vocabulary, 0.7))
        options = EulerOptions(steps=10, schedule=Power(1.0), revisit=revisit)
        answer = euler(model, many, generator(), options)
        changed = sum(
            int(((before != after) & (before != task.mask)).sum())
            for before, after in zip(model.states, model.states[1:], strict=False)
        )
        assert (changed > 0) == revisit
        share = float((answer.tokens == answers)[many.free].float().mean())
        assert share == pytest.approx(0.7, abs=0.02)

    def test_the_marginal_follows_the_schedule(self) -> None:
        """Small steps: a share κ_t of the free positions is unmasked at time t."""
        batch, answers = problems(1)
        many = batch.map(lambda field: field.expand(2000, -1))
        model = Recorder(Knowing(answers, batch.clue, task.vocabulary, 0.7))
        euler(model, many, generator(), EulerOptions(steps=100, schedule=Power(2.0)))
        for step in (20, 50, 80):
            shown = float((model.states[step] != task.mask)[many.free].float().mean())
            assert shown == pytest.approx((step / 100) ** 2, abs=0.02)

    def test_no_steps_are_refused(self) -> None:
        with pytest.raises(InputError, match="steps 0"):
            EulerOptions(steps=0)


class Recorder:
    """Keeps the states that a network is asked about."""

    def __init__(self, model: Knowing) -> None:
        self.model, self.states = model, []

    def __call__(self, tokens, clue, time=None):
        self.states.append(tokens.clone())
        return self.model(tokens, clue, time)

"""What holds for every sampler: clues stay, the seed decides, a network that knows is believed."""

import pytest
import torch
from dummies import COUNT, Knowing, generator, knowing, small_problems, small_task

from samm.errors import InputError
from samm.samplers import (
    Chain,
    D3pm,
    Euler,
    Gidd,
    Margin,
    Remasking,
    Remdm,
    Restart,
    Sampler,
    TopK,
    sample,
)
from samm.samplers.left_to_right import LeftToRight
from samm.samplers.registry import SAMPLERS
from samm.tasks import Answer, Problem

task = small_task


class SamplerContract:
    sampler: Sampler

    def sample(self, model: Knowing, batch: Problem, seed: int = 0, size: int = 1024) -> Answer:
        return sample(model, batch, generator(seed), self.sampler, size)

    def test_clues_stay_and_shapes_fit(self) -> None:
        batch, _ = small_problems(task, COUNT)
        answer = self.sample(knowing(0.4), batch)
        assert torch.equal(answer.tokens[batch.clue], batch.tokens[batch.clue])
        assert answer.tokens.shape == answer.confidence.shape == batch.tokens.shape
        assert answer.stopped.shape == answer.steps.shape == (COUNT,)
        assert answer.tokens.dtype == torch.long
        assert bool((answer.confidence[batch.clue] == 1).all())
        assert 0 <= float(answer.confidence.min()) <= float(answer.confidence.max()) <= 1
        assert int(answer.steps.max()) <= self.sampler.cap

    def test_the_problems_are_left_alone(self) -> None:
        batch, _ = small_problems(task, COUNT)
        before = batch.map(torch.clone)
        self.sample(knowing(), batch)
        assert torch.equal(batch.tokens, before.tokens)

    def test_the_seed_decides(self) -> None:
        batch, _ = small_problems(task, COUNT)
        one, two, other = (self.sample(knowing(0.5), batch, seed) for seed in (1, 1, 2))
        assert torch.equal(one.tokens, two.tokens)
        assert torch.equal(one.steps, two.steps)
        if self.sampler.name != "mgdm":  # which always takes the likeliest token
            same = torch.equal(one.tokens, other.tokens) and torch.equal(one.steps, other.steps)
            assert not same

    def test_the_batch_size_does_not_matter(self) -> None:
        batch, _ = small_problems(task, COUNT)
        whole = self.sample(knowing(0.6), batch)
        for size in (1, 5, COUNT):
            some = self.sample(knowing(0.6), batch, size=size)
            for name in ("tokens", "stopped", "steps", "confidence"):
                assert torch.equal(getattr(some, name), getattr(whole, name)), (size, name)

    def test_a_network_that_knows_is_believed_and_order_is_kept(self) -> None:
        batch, answers = small_problems(task, COUNT)
        answer = self.sample(knowing(1 - 1e-7), batch)
        assert torch.equal(answer.tokens, answers)
        shuffled = torch.randperm(COUNT, generator=generator(3))
        answer = self.sample(knowing(1 - 1e-7), batch[shuffled], size=7)
        assert torch.equal(answer.tokens, answers[shuffled])
        assert bool(answer.stopped.all())

    def test_solved_problems_stay_solved(self) -> None:
        _, answers = small_problems(task, COUNT)
        full = task.problem(answers)
        answer = self.sample(Knowing(answers, full.clue, task.vocabulary, 0.5), full)
        assert torch.equal(answer.tokens, answers)

    def test_no_problems_no_answers(self) -> None:
        batch, _ = small_problems(task, 1)
        answer = self.sample(knowing(), batch[:0])
        assert answer.tokens.shape == (0, task.length)

    def test_no_steps_are_refused(self) -> None:
        with pytest.raises(InputError, match="steps"):
            type(self.sampler)(steps=0)


class TestChain(SamplerContract):
    sampler = Chain(steps=64)


class TestRestart(SamplerContract):
    sampler = Restart(steps=200, patience=10, task=task)


class TestEuler(SamplerContract):
    sampler = Euler(steps=8)


class TestEulerRevisiting(SamplerContract):
    sampler = Euler(steps=8, revisit=True)


class TestEulerOnItsOwnClock(SamplerContract):
    sampler = Euler(steps=16, clock="progress")


class TestTopK(SamplerContract):
    sampler = TopK(steps=8)


class TestTopKOnItsOwnClock(SamplerContract):
    sampler = TopK(steps=8, clock="progress")


class TestMargin(SamplerContract):
    sampler = Margin(steps=20)


class TestRemdm(SamplerContract):
    sampler = Remdm(steps=12)


class TestRemasking(SamplerContract):
    sampler = Remasking(steps=12)


class TestGidd(SamplerContract):
    sampler = Gidd(steps=12, corrections=12)


class TestGiddWithoutCorrection(SamplerContract):
    sampler = Gidd(steps=12, corrections=0)


class TestD3pm(SamplerContract):
    sampler = D3pm(steps=12)


class TestLeftToRight(SamplerContract):
    sampler = LeftToRight(token_temperature=1.0)


def test_every_sampler_is_under_contract() -> None:
    tested = {type(kind.sampler) for kind in SamplerContract.__subclasses__()}
    assert tested == set(SAMPLERS.values())


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Chain, {"steps": 1}, "least_steps 2"),
        (Chain, {"least_steps": -1}, "least_steps -1"),
        (Chain, {"token_temperature": -1.0}, "token_temperature"),
        (Chain, {"stop_epsilon": 2.0}, "stop_epsilon"),
        (Restart, {"patience": 0}, "patience 0"),
        (Euler, {"clock": "sun"}, "clock 'sun'"),
        (Euler, {"exponent": 0.0}, "exponent"),
        (TopK, {"certainty": "high"}, "certainty 'high'"),
        (TopK, {"token_temperature": -0.5}, "token_temperature"),
        (Remdm, {"eta": 1.5}, "eta 1.5"),
        (Remasking, {"noise": -1.0}, "noise -1"),
        (Gidd, {"corrections": -1}, "corrections -1"),
        (Gidd, {"correction_temperature": -1.0}, "correction_temperature"),
        (Gidd, {"uniform_share": 1.0}, "uniform_share"),
    ],
)
def test_nonsense_is_refused(kind, options, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kind(**options)

"""The chain of eq:inference: when it stops, how long it takes, what it tells."""

import torch
from dummies import COUNT, Knowing, generator, knowing, small_problems, small_task

from samm.samplers import Chain, sample

task = small_task


def test_each_example_stops_by_itself_and_leaves_the_batch() -> None:
    batch, answers = small_problems(task, COUNT)
    model = knowing(0.97, 0.9)
    answer = sample(model, batch, generator(), Chain(steps=1000))
    assert bool(answer.stopped.all())
    assert torch.equal(answer.tokens, answers)
    assert len(set(answer.steps.tolist())) > 5, "they stop at different times"
    # A call is made with those that have not stopped before: the batch shrinks accordingly.
    alive = [int((answer.steps >= step).sum()) for step in range(len(model.calls))]
    assert model.calls == alive
    assert len(model.calls) == int(answer.steps.max()) + 1


def test_the_number_of_steps_has_the_law_of_the_kernel() -> None:
    """A step gives all n free positions the right token with probability (c p)^n."""
    batch, answers = small_problems(task, 1)
    count, free = 4000, int(batch.free.sum())
    model = Knowing(answers, batch.clue, task.vocabulary, 0.95, 0.95)
    many = batch.map(lambda field: field.expand(count, -1))
    answer = sample(model, many, generator(), Chain(steps=10_000, least_steps=0))
    success = (0.95 * 0.95) ** free
    mean = float(answer.steps.float().mean())
    spread = ((1 - success) / success**2 / count) ** 0.5
    assert abs(mean - 1 / success) < 5 * spread


def test_the_cap_holds_and_tells() -> None:
    batch, _ = small_problems(task, COUNT)
    answer = sample(knowing(0.3, 0.3), batch, generator(), Chain(steps=3))
    assert bool((answer.steps == 3).all())
    assert not bool(answer.stopped.any())
    assert bool((answer.tokens == task.mask).any()), "an unfinished state shows its masks"


def test_no_stop_before_the_least_steps() -> None:
    batch, _ = small_problems(task, COUNT)
    for least in (0, 1, 2, 5):
        sampler = Chain(steps=50, least_steps=least)
        answer = sample(knowing(1 - 1e-7, 1 - 1e-7), batch, generator(), sampler)
        assert bool((answer.steps == max(least, 1)).all())


def test_temperatures_reach_the_kernel() -> None:
    batch, answers = small_problems(task, COUNT)
    greedy = Chain(steps=4, token_temperature=0, commit_temperature=0)
    answer = sample(knowing(0.6, 0.6), batch, generator(), greedy)
    assert torch.equal(answer.tokens, answers)
    assert bool((answer.steps == 2).all())


def test_confidence_is_that_of_the_last_state() -> None:
    batch, _ = small_problems(task, COUNT)
    answer = sample(knowing(1 - 1e-7, 0.8), batch, generator(), Chain(steps=64))
    assert torch.allclose(answer.confidence[batch.free], torch.tensor(0.8))

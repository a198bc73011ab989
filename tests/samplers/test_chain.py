"""The chain of eq:inference: when it stops, how long it takes, what it tells."""

import torch
from dummies import COUNT, Knowing, generator, knowing, small_problems, small_task

from samm.samplers import Chain, Restart, sample

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


class TestRestart:
    """With a verifier: only the rules end it, and a chain that went wrong starts again."""

    def test_what_it_calls_done_is_right(self) -> None:
        batch, answers = small_problems(task, COUNT)
        answer = sample(knowing(0.85), batch, generator(), Restart(steps=2000, task=task))
        assert bool(answer.stopped.all())
        assert torch.equal(answer.tokens, answers)
        few = sample(knowing(0.5), batch, generator(), Restart(steps=10, task=task))
        assert torch.equal(few.stopped, task.verify(batch, few.tokens))
        assert not bool(few.stopped.all())

    def test_a_wrong_stop_starts_again(self) -> None:
        """A network that is sure of a wrong answer until it is asked a second time."""
        batch, answers = small_problems(task, 1)
        wrong = torch.where(batch.clue, answers, (answers + 1) % task.vocabulary)

        class Stubborn(Knowing):
            """Sure of the wrong answer in its first eight calls."""

            def __call__(self, tokens, clue, time=None):
                self.answers = wrong if len(self.calls) < 8 else answers
                return super().__call__(tokens, clue, time)

        def blanks(sampler: Chain) -> list[bool]:
            """Was the chain at its beginning, step by step?"""
            seen = []
            model = Stubborn(answers, batch.clue, task.vocabulary, 1 - 1e-7, 1 - 1e-7)

            def watch(frame) -> None:
                seen.append(bool((frame.view.state == batch.tokens).all()))

            found = sample(model, batch, generator(), sampler, watch=watch)
            assert torch.equal(found.tokens, answers)
            return seen

        seen = blanks(Restart(steps=50, task=task))
        # Sure of a wrong answer after one step, and sent back to the start: at first not before
        # `least_steps`, which count from the very beginning.
        assert seen[:7] == [True, False, False, True, False, True, False]
        assert len(seen) <= 13

    def test_patience_is_counted_in_steps(self) -> None:
        batch, _ = small_problems(task, 3)
        seen = []

        def watch(frame) -> None:
            blank = (frame.view.state == batch.tokens[frame.index]).all(-1)
            seen.append((int(frame.view.step[0]), bool(blank[0])))

        never = Restart(steps=20, patience=5, task=task)
        sample(knowing(0.3, 0.9, 3), batch, generator(), never, 1, watch)
        first = [blank for step, blank in seen[:21]]
        assert [step for step in range(21) if first[step]] == [0, 5, 10, 15, 20]

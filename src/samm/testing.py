"""The contract of a task, as a test class: subclass it in your own tests and say which task.

    class TestMine(TaskContract):
        task = Mine(size=5)

It needs pytest and checks what every other part of samm relies on.
"""

import json
from itertools import islice

import numpy as np
import pytest
import torch

from samm import tasks
from samm.errors import InputError
from samm.tasks import CannotVerify, Example, Problem, Task


class TaskContract:
    """Tests that every task must pass, run on its own examples."""

    task: Task
    seed = 7
    count = 8
    """Examples looked at by each test."""
    malformed: tuple[str, ...] = ("\x00",)
    """Texts that are not a problem of this task."""

    @pytest.fixture
    def examples(self) -> list[Example]:
        return [self.task.example(self.seed, index) for index in range(self.count)]

    def test_shapes_and_types(self, examples: list[Example]) -> None:
        task, d = self.task, self.task.length
        assert task.mask == task.vocabulary == task.tokenizer.size
        for example in examples:
            problem = example.problem
            assert problem.tokens.shape == problem.clue.shape == problem.pad.shape == (d,)
            assert problem.tokens.dtype == example.answer.dtype == torch.int64
            assert problem.clue.dtype == problem.pad.dtype == torch.bool
            assert bool(((example.answer >= 0) & (example.answer < task.vocabulary)).all())
            assert not bool((problem.pad & problem.free).any()), "padding is given, not found"
            again = task.problem(problem.tokens)
            assert torch.equal(again.clue, problem.clue), "free positions are masked, others not"
            assert torch.equal(again.pad, problem.pad), "task.pad stands at the padding alone"

    def test_answers_keep_the_clues(self, examples: list[Example]) -> None:
        for example in examples:
            clue = example.problem.clue
            assert torch.equal(example.answer[clue], example.problem.tokens[clue])

    def test_coordinates(self) -> None:
        coordinates = self.task.coordinates
        assert coordinates.axes.shape[0] == coordinates.groups.shape[0] == self.task.length
        assert coordinates.axes.shape[1] >= 1
        assert len(coordinates.group_sizes) == coordinates.groups.shape[1]
        if coordinates.groups.numel():
            assert int(coordinates.groups.min()) >= 0

    def test_allowed_tokens_admit_every_answer(self, examples: list[Example]) -> None:
        allowed = self.task.allowed
        if allowed is None:
            return
        assert allowed.shape == (self.task.length, self.task.vocabulary)
        assert allowed.dtype == torch.bool
        for example in examples:
            assert bool(allowed.gather(1, example.answer[:, None]).all())

    def test_text_round_trip(self, examples: list[Example]) -> None:
        for example in examples:
            text = self.task.decode(example.problem.tokens)
            again = self.task.encode(text)
            assert torch.equal(again.tokens, example.problem.tokens)
            assert torch.equal(again.clue, example.problem.clue)
            assert torch.equal(again.pad, example.problem.pad)
            answer = self.task.encode_answer(self.task.decode(example.answer), again)
            assert torch.equal(answer, example.answer)

    def test_reading_many_is_reading_each(self, examples: list[Example]) -> None:
        texts = [self.task.decode(example.problem.tokens) for example in examples]
        answers = [self.task.decode(example.answer) for example in examples]
        many = self.task.encode_many(texts)
        assert torch.equal(many.tokens, torch.stack([e.problem.tokens for e in examples]))
        assert torch.equal(many.clue, torch.stack([e.problem.clue for e in examples]))
        read = self.task.encode_answers(answers, many)
        assert torch.equal(read, torch.stack([e.answer for e in examples]))

    def test_malformed_text_is_refused(self) -> None:
        for text in self.malformed:
            with pytest.raises(InputError):
                self.task.encode(text)

    def test_verify_accepts_every_answer(self, examples: list[Example]) -> None:
        problems = Problem.stack([example.problem for example in examples])
        answers = torch.stack([example.answer for example in examples])
        if not self.task.can_verify:
            with pytest.raises(CannotVerify):
                self.task.verify(problems, answers)
            return
        verdict = self.task.verify(problems, answers)
        assert verdict.shape == (len(examples),)
        assert verdict.dtype == torch.bool
        assert bool(verdict.all())

    def test_verify_refuses_states_and_changed_clues(self, examples: list[Example]) -> None:
        if not self.task.can_verify:
            return
        problems = Problem.stack([example.problem for example in examples])
        answers = torch.stack([example.answer for example in examples])
        has_free = problems.free.any(-1)
        assert torch.equal(self.task.verify(problems, problems.tokens), ~has_free)
        clues = problems.clue & ~problems.pad
        changed = torch.where(clues, (answers + 1) % self.task.vocabulary, answers)
        assert not bool(self.task.verify(problems, changed)[clues.any(-1)].any())

    def test_verify_and_answers_agree(self, examples: list[Example]) -> None:
        """A changed answer is right if and only if it is one of the listed answers."""
        if not self.task.can_verify:
            return
        random = np.random.default_rng(self.seed)
        for example in examples:
            listed = self.task.answers(example.problem)
            if listed is None:
                continue
            answers = list(islice(listed, 1000))
            right = {tuple(answer.tolist()) for answer in answers}
            assert len(right) == len(answers), "an answer is listed twice"
            assert tuple(example.answer.tolist()) in right or len(answers) == 1000
            free = example.problem.free.nonzero()[:, 0].tolist()
            for _ in range(50 if free else 0):
                changed = answers[random.integers(len(answers))].clone()
                changed[random.choice(free)] = int(random.integers(self.task.vocabulary + 1))
                verdict = self.task.verify(example.problem[None], changed[None]).item()
                if len(answers) < 1000:
                    assert verdict == (tuple(changed.tolist()) in right)

    def test_oracle_agrees(self, examples: list[Example]) -> None:
        problems = Problem.stack([example.problem for example in examples])
        solved = self.task.oracle(problems)
        if solved is None:
            return
        answers, counts = solved
        assert bool((counts >= 1).all())
        if self.task.can_verify:
            assert bool(self.task.verify(problems, answers).all())
        for answer, count, example in zip(answers, counts.tolist(), examples, strict=True):
            if count == 1:
                assert torch.equal(answer, example.answer)

    def test_examples_depend_on_seed_and_index_alone(self, examples: list[Example]) -> None:
        for index in reversed(range(self.count)):
            again = self.task.example(self.seed, index)
            assert torch.equal(again.answer, examples[index].answer)
            assert torch.equal(again.problem.tokens, examples[index].problem.tokens)
        assert len({tuple(e.problem.tokens.tolist()) for e in examples}) > 1
        other = [self.task.example(self.seed + 1, i).problem.tokens for i in range(self.count)]
        assert any(
            not torch.equal(a, b.problem.tokens) for a, b in zip(other, examples, strict=True)
        )

    def test_symmetries_keep_answers_right(self, examples: list[Example]) -> None:
        problems = Problem.stack([example.problem for example in examples])
        answers = torch.stack([example.answer for example in examples])
        generator = torch.Generator().manual_seed(self.seed)
        tokens, images = self.task.augment(problems.tokens, answers, generator)
        masked = (tokens == self.task.mask).sum(-1)
        assert torch.equal(masked, problems.free.sum(-1))
        clue = tokens != self.task.mask
        assert torch.equal(images[clue], tokens[clue])
        if self.task.can_verify:
            assert bool(self.task.verify(self.task.problem(tokens), images).all())

    def test_rendering(self, examples: list[Example]) -> None:
        problem, answer = examples[0].problem, examples[0].answer
        plain = self.task.render(problem, problem.tokens)
        shaded = self.task.render(problem, answer, torch.linspace(0, 1, self.task.length))
        assert len(plain.plain.splitlines()) == len(shaded.plain.splitlines())
        page = self.task.render_html(problem, answer, torch.ones(self.task.length))
        assert page.count("<td") == sum(len(row) for row in self.task.layout.rows)

    def test_difficulty_labels(self) -> None:
        ratings = np.array([0, 0.5, 1, 2, 3, 10, 11, 50, 51, 1e6, np.nan], np.float32)
        buckets = self.task.difficulty(ratings)
        assert buckets.shape == ratings.shape
        assert buckets.min() >= 0
        assert buckets.max() < len(self.task.difficulties)

    def test_split_keys_are_blind_to_symmetry(self, examples: list[Example]) -> None:
        tokens = torch.stack([example.problem.tokens for example in examples])
        answers = torch.stack([example.answer for example in examples])
        keys = self.task.split_keys(tokens.numpy(), answers.numpy())
        assert len(keys) == len(examples)
        images = self.task.augment(tokens, answers, torch.Generator().manual_seed(1))
        assert self.task.split_keys(images[0].numpy(), images[1].numpy()) == keys

    def test_rebuilt_from_its_spec(self) -> None:
        """Needs the task to be registered."""
        assert tasks.from_spec(json.loads(json.dumps(self.task.spec()))) == self.task

"""Countdown: reach the target from given numbers by a chain of `a op b = c`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from rich.text import Text
from torch import Tensor

from samm.errors import InputError
from samm.tasks.base import Coordinates, Example, Problem, Task
from samm.tasks.countdown_forms import (
    LIMIT,
    OPERATORS,
    Alphabet,
    Form,
    Slots,
    Step,
    written,
)
from samm.tasks.countdown_line import Line
from samm.tasks.render import Cell, Layout, style

HELD_OUT = {
    3: (22, 24, 25, 30, 32, 50, 65, 67, 96),
    4: (14, 39, 41, 57, 62, 81, 87, 89, 96),
    5: (43, 48, 51, 68, 73, 80, 92, 95, 98),
}
"""Targets of MGDM's test files, which its training files never have."""

RIGHT, UNREADABLE, FALSE, NO_A, NO_B, MISSED, UNUSED, CHANGED = range(8)
"""What can be wrong with an answer."""
FAULTS = {
    UNREADABLE: "step {step} is not a whole `a op b = c`",
    FALSE: "step {step}: {text} is false",
    NO_A: "step {step}: {a} is not there (any more)",
    NO_B: "step {step}: {b} is not there (any more)",
    MISSED: "the last result is {c}, not {target}",
    UNUSED: "not every number is used",
    CHANGED: "a given number was changed",
}


@dataclass(frozen=True)
class Countdown(Task):
    """`86,28,13,31,96`: make 96 from the numbers before it, by + - * / (exact) without negatives.

    Every number and every result is used at most once; under the rule `all` every given number is
    used, under `some` a chain may end as soon as it has reached the target.
    """

    numbers: int = 4
    """How many numbers are given: 3, 4 or 5."""
    alphabet: str = "digits"
    """digits (17 tokens), or numbers (a token for every number below 10,000)."""
    form: str = "slots"
    """slots: every number has its place; line: the text from left to right, as others write it."""
    rule: str = "all"
    """all numbers are used, or some."""
    highest: int = 99
    """Of the given numbers."""
    held_out: bool = False
    """The generator leaves out the nine targets of the public test files."""

    name: ClassVar[str] = "countdown"
    unique: ClassVar[bool] = False
    separators: ClassVar[str] = "; \t"

    def __post_init__(self) -> None:
        for option, known in (
            ("numbers", (3, 4, 5)),
            ("alphabet", ("digits", "numbers")),
            ("form", ("slots", "line")),
            ("rule", ("all", "some")),
        ):
            value = getattr(self, option)
            if value not in known:
                listed = ", ".join(map(str, known))
                raise InputError(f"countdown: {option} = {value!r}; expected one of {listed}")
        if not (isinstance(self.highest, int) and 1 <= self.highest < LIMIT):
            raise InputError(f"countdown: highest = {self.highest!r}; expected 1 to {LIMIT - 1}")

    @cached_property
    def writing(self) -> Form:
        kind = Slots if self.form == "slots" else Line
        width = len(str(max(self.highest, self.targets[-1])))
        return kind(self.numbers, self.tokenizer, width)

    @property
    def targets(self) -> tuple[int, ...]:
        """What the generator asks for: 10 to 100, as the public training data."""
        left_out = HELD_OUT[self.numbers] if self.held_out else ()
        return tuple(t for t in range(10, 101) if t not in left_out)

    @property
    def every(self) -> bool:
        return self.rule == "all"

    @property
    def length(self) -> int:
        return self.writing.length

    @cached_property
    def tokenizer(self) -> Alphabet:
        return Alphabet(self.alphabet == "digits")

    @property
    def coordinates(self) -> Coordinates:
        return self.writing.coordinates

    @property
    def allowed(self) -> Tensor | None:
        return self.writing.allowed(short=not self.every)

    # --- text

    def encode(self, text: str) -> Problem:
        """`n1,n2,n3,n4,target`"""
        pieces = [piece.strip() for piece in text.split(",")]
        largest = 10**self.writing.width - 1 if self.tokenizer.digits else LIMIT - 1
        for place, piece in enumerate(pieces, 1):
            if not (piece.isascii() and piece.isdigit() and int(piece) <= largest):
                raise InputError(f"number {place}: {piece!r} is no whole number up to {largest:,}")
        if len(pieces) != self.numbers + 1:
            raise InputError(
                f"{len(pieces)} numbers, expected {self.numbers + 1}: "
                f"{self.numbers} to use, then the target"
            )
        *numbers, target = map(int, pieces)
        return self.problem(torch.tensor(self.writing.write(numbers, target, None)))

    def encode_answer(self, text: str, problem: Problem) -> Tensor:
        """`86+28=114,31-13=18,114-18=96`"""
        steps = self._steps(text)
        numbers, target = self._question(problem)
        tokens = torch.tensor(self.writing.write(numbers, target, steps))
        if fault := self.fault(problem, tokens):
            raise InputError(f"solution: {fault}")
        return tokens

    def decode(self, tokens: Tensor) -> str:
        """The steps, with ? for what is missing; a problem itself where nothing is found yet."""
        row = tokens.tolist()
        if steps := self.writing.text(row):
            return steps
        numbers, target = self.writing.question(tokens[None])
        return ",".join(map(str, [*numbers[0].tolist(), int(target)]))

    def _steps(self, text: str) -> list[Step]:
        steps: list[Step] = []
        for number, part in enumerate(text.split(","), 1):
            match = re.fullmatch(r"\s*(\d+)\s*([-+*/])\s*(\d+)\s*=\s*(\d+)\s*", part, re.ASCII)
            if not match:
                raise InputError(f"solution: step {number}: {part!r} is not of the form a+b=c")
            a, b, c = (int(match[i]) for i in (1, 3, 4))
            if max(a, b, c) >= LIMIT:
                raise InputError(f"solution: step {number}: numbers stay below {LIMIT:,}")
            steps.append((a, OPERATORS.index(match[2]), b, c))
        if len(steps) > self.writing.steps:
            raise InputError(f"solution: {len(steps)} steps, expected {self.writing.steps} at most")
        return steps + [(0, -1, 0, 0)] * (self.writing.steps - len(steps))

    def _question(self, problem: Problem) -> tuple[list[int], int]:
        numbers, target = self.writing.question(problem.tokens[None])
        return numbers[0].tolist(), int(target)

    # --- truth

    def verify(self, problem: Problem, tokens: Tensor) -> Tensor:
        return self._judge(problem, tokens)[0] == RIGHT

    def fault(self, problem: Problem, tokens: Tensor) -> str | None:
        code, step = (int(x) for x in self._judge(problem[None], tokens[None]))
        if code == RIGHT:
            return None
        chains = self.writing.chains(tokens[None])
        a, operator, b, c = (
            int(part[0, step]) for part in (chains.a, chains.operator, chains.b, chains.c)
        )
        text = written([(a, operator, b, c)])
        target = self._question(problem)[1]
        return FAULTS[code].format(step=step + 1, text=text, a=a, b=b, c=c, target=target)

    def _judge(self, problem: Problem, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Execute the steps of every row: the code of its first fault and the step.  [B], [B]"""
        numbers, target = self.writing.question(problem.tokens)
        chains = self.writing.chains(tokens)
        code, at = torch.zeros_like(target), torch.zeros_like(target)

        def blame(wrong: Tensor, what: int, step: Tensor | int) -> None:
            first = wrong & (code == RIGHT)
            code.masked_fill_(first, what)
            at.copy_(torch.where(first, torch.as_tensor(step, device=at.device), at))

        blame(((tokens != problem.tokens) & problem.clue).any(-1), CHANGED, 0)
        pool = numbers
        left = torch.ones_like(pool, dtype=torch.bool)
        result, last = torch.full_like(target, -1), torch.zeros_like(target)
        over = torch.zeros_like(code, dtype=torch.bool)
        for step in range(self.writing.steps):
            a, operator, b, c = (
                part[:, step] for part in (chains.a, chains.operator, chains.b, chains.c)
            )
            over = over | (operator < 0)
            blame(~chains.sound[:, step] | (over & (operator >= 0)), UNREADABLE, step)
            blame(~over & ~_true(a, operator, b, c), FALSE, step)
            for value, what in ((a, NO_A), (b, NO_B)):
                found, left = _take(pool, left, value, ~over)
                blame(~over & ~found, what, step)
            pool = torch.cat([pool, c[:, None]], 1)
            left = torch.cat([left, ~over[:, None]], 1)
            result, last = torch.where(over, result, c), torch.where(over, last, step)
        if self.every:
            blame(over, UNUSED, last)
        blame(result != target, MISSED, last)
        return code, at

    def closest(self, state: Tensor, answers: Tensor) -> Tensor:
        from samm.tasks.countdown_closest import closest

        if not isinstance(self.writing, Slots) or self.numbers > 4 or not self.every:
            raise InputError(
                "countdown: the closest answer is found in slots, for up to four numbers, all used"
            )
        return closest(self.writing, state, answers)

    def answers(self, problem: Problem) -> Iterator[Tensor]:
        """Every right answer, however it can be written."""
        from samm.data import countdown_engine as engine

        numbers, target = self._question(problem)
        for steps in engine.all_answers(numbers, target, self.every):
            yield torch.tensor(self.writing.write(numbers, target, steps.tolist()))

    def oracle(self, problems: Problem) -> tuple[Tensor, Tensor]:
        from samm.data import countdown_engine as engine

        numbers, targets = self.writing.question(problems.tokens)
        steps, _ = engine.first_answers(numbers.numpy(), targets.numpy(), self.every)
        counts = engine.answers(numbers.numpy(), targets.numpy(), self.every, limit=2)
        given = torch.cat([numbers, targets[:, None]], 1).numpy()
        return torch.from_numpy(self.writing.write_all(given, steps)), torch.from_numpy(counts)

    # --- examples

    def example(self, seed: int, index: int) -> Example:
        """A target from 10 to 100, and numbers that reach it, as in the public training data."""
        tokens, answers = self._made(seed, index, 1)
        return Example(self.problem(torch.from_numpy(tokens[0])), torch.from_numpy(answers[0]))

    def make(
        self, seed: int, chunk: int, min_rating: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if min_rating > 0:
            return super().make(seed, chunk, min_rating)  # which says that there are no ratings
        tokens, answers = self._made(seed, chunk * 1024, 1024)
        return tokens, answers, np.full(len(tokens), np.nan, np.float32)

    def _made(self, seed: int, first: int, count: int) -> tuple[np.ndarray, np.ndarray]:
        from samm.data import countdown_engine as engine

        made = engine.instances(count, seed, first, self.numbers, self.targets, self.highest)
        given = np.concatenate([made[0], made[1][:, None]], 1)
        return self.writing.write_all(given, None), self.writing.write_all(given, made[2])

    def augment(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """The given numbers in any order; only where each has a place of the same width."""
        if self.writing.places is None:
            return tokens, answers
        places = torch.tensor([list(p) for p in self.writing.places], device=tokens.device)
        order = torch.rand(len(tokens), self.numbers, generator=generator, device=tokens.device)
        source = places[order.argsort(1)].flatten(1)  # [B, N · width]
        index = torch.arange(self.length, device=tokens.device).repeat(len(tokens), 1)
        index[:, places.flatten()] = source
        return tokens.gather(1, index), answers.gather(1, index)

    def split_keys(self, tokens: np.ndarray, answers: np.ndarray) -> list[bytes]:
        """The numbers, in any order, with the target."""
        numbers, targets = self.writing.question(torch.from_numpy(tokens.astype(np.int64)))
        keys = torch.cat([numbers.sort(1).values, targets[:, None]], 1).numpy().astype("<u2")
        return [key.tobytes() for key in keys]

    # --- display

    @property
    def layout(self) -> Layout:
        return Layout(self.writing.rows)

    def render(self, problem: Problem, tokens: Tensor, confidence: Tensor | None = None) -> Text:
        """The question, then the steps; each number with its least certain digit's shade."""
        cells, lines = self._cells(problem, tokens, confidence), []
        for line in self.writing.pieces(tokens.tolist()):
            shown = Text()
            for text, places in line:
                shades = [cells[p].confidence for p in places]
                sure = [shade for shade in shades if shade is not None]
                clue = not places or cells[places[0]].clue
                cell = Cell(text, clue, min(sure) if sure else None)
                shown.append(text, style(cell) if places else "dim")
            lines.append(shown)
        return Text("\n").join(lines)

    def cell(self, token: int) -> str:
        return "·" if token == self.mask else self.tokenizer.decode([token]).replace("_", "")


def _true(a: Tensor, operator: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Is `a op b = c`?  [B]"""
    results = torch.stack([a + b == c, a - b == c, a * b == c, (b > 0) & (b * c == a)], 1)
    return results.gather(1, operator.clamp(0, 3)[:, None])[:, 0]


def _take(pool: Tensor, left: Tensor, value: Tensor, where: Tensor) -> tuple[Tensor, Tensor]:
    """Find a number that is left and take it: whether it was there, and what is left then."""
    there = left & (pool == value[:, None])
    found = there.any(1)
    first = there.long().argmax(1)
    taken = torch.nn.functional.one_hot(first, pool.shape[1]).bool() & (found & where)[:, None]
    return found, left & ~taken

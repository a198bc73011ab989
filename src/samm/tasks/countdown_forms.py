"""How a Countdown instance and its chain of steps stand in a row of tokens, and how they are read.

Two alphabets: a token for every number below 10,000 (the paper's; 10,007 tokens), or for every
digit (17 tokens). Two forms: slots (here), where every number and operator has its fixed place, and
signs that never change have none; or the line from left to right that the paper and MGDM write.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from samm.errors import InputError
from samm.tasks.base import Batch, Coordinates

OPERATORS = "+-*/"
LIMIT = 10_000
DIGITS = 4
"""Digits of the largest number."""
Step = tuple[int, int, int, int]
"""(a, op, b, c) for `a op b = c`; op is an index into OPERATORS, or -1 in a step not needed."""


@dataclass(frozen=True)
class Alphabet:
    """Numbers (or digits) first, then + - * / = , and the sign that fills the end."""

    digits: bool

    @property
    def base(self) -> int:
        return 10 if self.digits else LIMIT

    @property
    def operator(self) -> int:
        return self.base

    @property
    def equals(self) -> int:
        return self.base + 4

    @property
    def comma(self) -> int:
        return self.base + 5

    @property
    def end(self) -> int:
        return self.base + 6

    @property
    def size(self) -> int:
        return self.base + 7

    def encode(self, text: str) -> list[int]:
        tokens: list[int] = []
        for piece in re.findall(r"\d+|.", text, re.DOTALL):
            if piece.isascii() and piece.isdigit() and int(piece) < LIMIT:
                tokens += [int(d) for d in piece] if self.digits else [int(piece)]
            elif piece in "+-*/=,":
                tokens.append(self.base + "+-*/=,".index(piece))
            else:
                raise InputError(f"{piece!r} is neither a number below {LIMIT:,} nor one of +-*/=,")
        return tokens

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(str(t) if t < self.base else "+-*/=,_?"[t - self.base] for t in tokens)


@dataclass(frozen=True)
class Chains(Batch):
    """Steps [B, S] as states write them."""

    a: Tensor
    operator: Tensor
    """0..3, or -1 where a step is not needed."""
    b: Tensor
    c: Tensor
    sound: Tensor
    """[B, S] bool: the step can be read at all."""


class Form(ABC):
    """One form in one alphabet, for instances of `size` numbers."""

    def __init__(self, size: int, alphabet: Alphabet, width: int) -> None:
        self.size, self.alphabet, self.width = size, alphabet, width
        """`width`: digits of the largest number or target that is given."""
        self.steps = size - 1

    @property
    @abstractmethod
    def length(self) -> int: ...

    @property
    @abstractmethod
    def coordinates(self) -> Coordinates: ...

    @abstractmethod
    def write(self, numbers: Sequence[int], target: int, steps: Sequence[Step] | None) -> list[int]:
        """All tokens; masks where the steps are to be found."""

    def write_all(self, given: np.ndarray, steps: np.ndarray | None) -> np.ndarray:
        """Many at once: numbers and target [B, N + 1] and steps [B, S, 4] as tokens [B, d]."""
        rows = [None] * len(given) if steps is None else steps.tolist()
        return np.array(
            [self.write(row[:-1], row[-1], s) for row, s in zip(given.tolist(), rows, strict=True)]
        )

    @abstractmethod
    def question(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The given numbers [B, N] and targets [B]."""

    @abstractmethod
    def chains(self, tokens: Tensor) -> Chains:
        """The steps that states [B, d] hold."""

    @abstractmethod
    def text(self, tokens: list[int]) -> str:
        """The steps of one state as text, with ? for what is missing; empty if all is."""

    @property
    @abstractmethod
    def rows(self) -> tuple[tuple[int, ...], ...]:
        """The positions of each line on screen."""

    @abstractmethod
    def pieces(self, tokens: list[int]) -> list[list[tuple[str, list[int]]]]:
        """What stands in each line on screen: texts, with the positions that they show."""

    @property
    def places(self) -> list[range] | None:
        """Positions of each given number, where they can be exchanged."""
        return None

    def allowed(self, short: bool) -> Tensor | None:
        """[d, K] the tokens that can stand at a position; `short`: steps may be left out."""
        return None


class Slots(Form):
    """Given numbers, target, then a op b c of every step; digits with zeros before them."""

    @cached_property
    def fields(self) -> list[tuple[int, int, int]]:
        """(step, role, width) of every field; step 0 is the question."""
        given, inner = (self.width, DIGITS) if self.alphabet.digits else (1, 1)
        question = [(0, role, given) for role in range(self.size + 1)]
        roles = (inner, 1, inner, inner)
        step = [(self.size + 1 + r, width) for r, width in enumerate(roles)]
        return question + [(s + 1, role, w) for s in range(self.steps) for role, w in step]

    @property
    def length(self) -> int:
        return sum(width for _, _, width in self.fields)

    @cached_property
    def spans(self) -> list[range]:
        """Positions of every field."""
        ends = accumulate(width for _, _, width in self.fields)
        return [
            range(end - width, end) for end, (_, _, width) in zip(ends, self.fields, strict=True)
        ]

    @property
    def given(self) -> list[range]:
        """Positions of the numbers and of the target."""
        return self.spans[: self.size + 1]

    @property
    def chain(self) -> list[list[range]]:
        """Positions of a, op, b and c in every step."""
        return [self.spans[i : i + 4] for i in range(self.size + 1, len(self.spans), 4)]

    @cached_property
    def coordinates(self) -> Coordinates:
        """Axes: step, field in the step, digit; groups: step, role, digit."""
        rows = [
            (step, role if step == 0 else role - self.size - 1, place, role, width - 1 - place)
            for step, role, width in self.fields
            for place in range(width)
        ]
        table = torch.tensor(rows)
        return Coordinates(table[:, :3], table[:, [0, 3, 4]])

    @property
    def places(self) -> list[range]:
        return self.given[:-1]

    def write(self, numbers: Sequence[int], target: int, steps: Sequence[Step] | None) -> list[int]:
        given = np.array([[*numbers, target]])
        row = self.write_all(given, None if steps is None else np.array([steps]))[0]
        return [int(token) for token in row]

    def write_all(self, given: np.ndarray, steps: np.ndarray | None) -> np.ndarray:
        alphabet = self.alphabet
        tokens = np.full((len(given), self.length), alphabet.size)
        for values, span in zip(given.T, self.given, strict=True):
            tokens[:, span] = self._digits(values, span)
        if steps is None:
            return tokens
        for step, spans in zip(steps.transpose(1, 2, 0), self.chain, strict=True):  # [4, B]
            for role, (values, span) in enumerate(zip(step, spans, strict=True)):
                sign = alphabet.operator + values[:, None]
                written = sign if role == 1 else self._digits(values, span)
                unused = (step[1] < 0)[:, None]
                tokens[:, span] = np.where(unused, alphabet.end, written)
        return tokens

    def _digits(self, values: np.ndarray, span: range) -> np.ndarray:
        """[B] -> [B, width]"""
        power = self.alphabet.base ** np.arange(len(span) - 1, -1, -1)
        digits: np.ndarray = values[:, None] // power % self.alphabet.base
        return digits

    def _value(self, tokens: Tensor, span: range) -> Tensor:
        """The number in a field, or a negative one if there is none.  [B]"""
        digits = tokens[:, span.start : span.stop]
        power = self.alphabet.base ** torch.arange(len(span) - 1, -1, -1, device=tokens.device)
        sound = (digits < self.alphabet.base).all(1)
        return torch.where(sound, (digits * power).sum(1), -1)

    def question(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        values = [self._value(tokens, span) for span in self.given]
        return torch.stack(values[:-1], 1), values[-1]

    def chains(self, tokens: Tensor) -> Chains:
        steps = []
        for spans in self.chain:
            a, b, c = (self._value(tokens, spans[i]) for i in (0, 2, 3))
            operator = tokens[:, spans[1].start] - self.alphabet.operator
            whole = tokens[:, spans[0].start : spans[3].stop]
            unused = (whole == self.alphabet.end).all(1)
            sound = (a >= 0) & (b >= 0) & (c >= 0) & (operator >= 0) & (operator < 4)
            operator = torch.where(unused, -1, operator.clamp(0, 3))
            steps.append((a, operator, b, c, sound | unused))
        return Chains(*(torch.stack(part, 1) for part in zip(*steps, strict=True)))

    def text(self, tokens: list[int]) -> str:
        fields = [[self._shown(tokens, span) for span in spans] for spans in self.chain]
        if {sign for step in fields for field in step for sign in field} == {"?"}:
            return ""
        steps = ["{}{}{}={}".format(*step) for step in fields]
        return ",".join(step for step in steps if set(step) != {"_", "="})

    def _shown(self, tokens: list[int], span: range) -> str:
        """One field as text, a whole number without zeros before it."""
        text = self.alphabet.decode([tokens[place] for place in span])
        return str(int(text)) if text.isdigit() else text

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        lines = [self.given, *self.chain]
        return tuple(tuple(range(line[0].start, line[-1].stop)) for line in lines)

    def pieces(self, tokens: list[int]) -> list[list[tuple[str, list[int]]]]:
        lines: list[list[tuple[str, list[int]]]] = []
        before_target, before_result = [" "] * (self.size - 1) + [" → ", ""], [" ", " ", " = ", ""]
        for spans in (self.given, *self.chain):
            line: list[tuple[str, list[int]]] = []
            signs = before_result if lines else before_target
            for span, sign in zip(spans, signs, strict=True):
                line += [(self._shown(tokens, span), list(span)), (sign, [])]
            lines.append(line)
        return lines

    def allowed(self, short: bool) -> Tensor:
        alphabet = self.alphabet
        table = torch.zeros(self.length, alphabet.size, dtype=torch.bool)
        for (step, role, _), span in zip(self.fields, self.spans, strict=True):
            if step and role == self.size + 2:
                table[span, alphabet.operator : alphabet.operator + 4] = True
            else:
                table[span, : alphabet.base] = True
            if short and step > 1:
                table[span, alphabet.end] = True
        return table


def written(steps: Iterable[Sequence[int]]) -> str:
    """`86+28=114,31-13=18,114-18=96`"""
    return ",".join(f"{a}{OPERATORS[o]}{b}={c}" for a, o, b, c in steps if o >= 0)

"""What a problem is: the Task protocol, and the small values that travel between the parts.

A task says once what its problems look like, how they are written, checked and shown. Everything
else (training, samplers, evaluation, the command line, the page) works with any task.

Shapes: d = task.length positions, K = task.vocabulary tokens, B problems in a batch. Tokens are
int64 in 0..K-1; K itself is the mask, which stands only in states, never in answers.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from rich.text import Text
from torch import Tensor

from samm.errors import InputError
from samm.tasks.render import Cell, Layout, html, terminal


class CannotVerify(TypeError):
    """The task cannot tell right from wrong without the solution."""


@dataclass(frozen=True)
class Batch:
    """Tensors that travel together: every field has the same leading dimensions."""

    def map(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Apply `change` to every field."""
        return type(self)(*(change(getattr(self, f.name)) for f in dataclasses.fields(self)))

    def to(self, device: torch.device | str) -> Self:
        return self.map(lambda field: field.to(device))

    def __getitem__(self, index: Any) -> Self:
        return self.map(lambda field: field[index])

    @classmethod
    def stack(cls, items: Sequence[Self]) -> Self:
        """One batch of single items."""
        return cls._combine(torch.stack, items)

    @classmethod
    def join(cls, batches: Sequence[Self]) -> Self:
        """One batch of several."""
        return cls._combine(torch.cat, batches)

    @classmethod
    def _combine(cls, how: Callable[[list[Tensor]], Tensor], items: Sequence[Self]) -> Self:
        names = [f.name for f in dataclasses.fields(cls)]
        return cls(*(how([getattr(item, name) for item in items]) for name in names))


@dataclass(frozen=True)
class Problem(Batch):
    """What is given: one problem [d] or a batch [B, d]."""

    tokens: Tensor
    """Clues where `clue`, the pad token where `pad`, the mask elsewhere."""
    clue: Tensor
    """True at positions that are given and never change, padding included."""
    pad: Tensor
    """True at positions beyond the end of this problem; `Task.pad` stands there."""

    @property
    def free(self) -> Tensor:
        """True at the positions to be found."""
        return ~self.clue


@dataclass(frozen=True)
class Answer(Batch):
    """What a sampler returns, for one problem or a batch."""

    tokens: Tensor
    """[.., d] the final state; it may still hold masks if the chain did not stop."""
    stopped: Tensor
    """[..] bool: did the chain stop by itself?"""
    steps: Tensor
    """[..] kernel steps taken."""
    confidence: Tensor
    """[.., d] in 0..1; 1 at clues."""


@dataclass(frozen=True)
class Example:
    """A problem with one right answer, as training and tests use them."""

    problem: Problem
    answer: Tensor
    """[d] full tokens: clues and padding included."""
    rating: float = float("nan")
    """Difficulty in the task's own unit; nan if unknown."""


@dataclass(frozen=True)
class Coordinates:
    """Where the positions lie, for rotary and learned embeddings."""

    axes: Tensor
    """[d, A] ordered coordinates (a line has one axis, a grid two)."""
    groups: Tensor
    """[d, G] membership in categories that have no order (row, column, box)."""

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Number of categories in each of the G groupings."""
        return tuple(int(g) + 1 for g in self.groups.max(0).values) if self.groups.numel() else ()

    @classmethod
    def line(cls, length: int) -> "Coordinates":
        """Positions of a plain sequence: one axis, no groups."""
        return cls(torch.arange(length)[:, None], torch.empty(length, 0, dtype=torch.long))


class Tokenizer(Protocol):
    """Text <-> token numbers 0..size-1."""

    @property
    def size(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, tokens: Sequence[int]) -> str: ...


@dataclass(frozen=True)
class Symbols:
    """The tokeniser of one character per token."""

    symbols: str

    @property
    def size(self) -> int:
        return len(self.symbols)

    def encode(self, text: str) -> list[int]:
        for i, character in enumerate(text):
            if character not in self.symbols:
                raise InputError(f"character {i + 1}: {character!r} is not one of {self.symbols!r}")
        return [self.symbols.index(character) for character in text]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(self.symbols[t] for t in tokens)


@dataclass(frozen=True)
class Task(ABC):
    """A family of problems. Subclasses are frozen dataclasses whose fields are their options."""

    name: ClassVar[str]
    """How the registry, configurations and checkpoints call it."""
    can_verify: ClassVar[bool] = True
    """Whether `verify` can tell right from wrong without a solution."""
    unique: ClassVar[bool] = True
    """Whether a good problem has one answer only; data with several are refused then."""
    separators: ClassVar[str] = ",; \t"
    """What ends a problem in a plain list of one problem per line; the rest is a comment."""
    difficulties: ClassVar[tuple[str, ...]] = ("all",)
    """Labels of the buckets in reports, easiest first; see `difficulty`."""

    # --- what the network needs to know

    @property
    @abstractmethod
    def length(self) -> int:
        """d, the number of positions."""

    @property
    @abstractmethod
    def tokenizer(self) -> Tokenizer:
        """The chosen tokeniser (a task that offers several has an option for it)."""

    @property
    def vocabulary(self) -> int:
        """K, the number of tokens; the mask is not one of them."""
        return self.tokenizer.size

    @property
    def mask(self) -> int:
        return self.vocabulary

    @property
    def pad(self) -> int | None:
        """The token that fills the positions beyond the end, or None if all have one length."""
        return None

    @property
    def coordinates(self) -> Coordinates:
        return Coordinates.line(self.length)

    @property
    def allowed(self) -> Tensor | None:
        """[d, K] bool: the tokens that can stand at a position, whatever the problem."""
        return None

    def problem(self, tokens: Tensor) -> Problem:
        """Clues, padding and masks [.., d] as a problem: what is not masked is given."""
        clue = tokens != self.mask
        pad = torch.zeros_like(clue) if self.pad is None else tokens == self.pad
        return Problem(tokens, clue, pad)

    # --- text

    @abstractmethod
    def encode(self, text: str) -> Problem:
        """Read one problem [d]. InputError says what is wrong and where."""

    @abstractmethod
    def encode_answer(self, text: str, problem: Problem) -> Tensor:
        """Read a full answer [d] to `problem`; clues must agree."""

    @abstractmethod
    def decode(self, tokens: Tensor) -> str:
        """Write a state or an answer [d]; masks as the task writes blanks."""

    def encode_many(self, texts: Sequence[str]) -> Problem:
        """Read many problems [B, d]. The message of an InputError starts with `item N:`."""
        problems = []
        for i, text in enumerate(texts):
            try:
                problems.append(self.encode(text))
            except InputError as error:
                raise InputError(f"item {i + 1}: {error}") from None
        return Problem.stack(problems)

    def encode_answers(self, texts: Sequence[str], problems: Problem) -> Tensor:
        """Read the answers [B, d] of many problems; errors as in `encode_many`."""
        answers = []
        for i, text in enumerate(texts):
            try:
                answers.append(self.encode_answer(text, problems[i]))
            except InputError as error:
                raise InputError(f"item {i + 1}: {error}") from None
        return torch.stack(answers)

    # --- truth

    def verify(self, problem: Problem, tokens: Tensor) -> Tensor:
        """[B] bool: is each row of `tokens` [B, d] a right answer? Needs no solution."""
        raise CannotVerify(f"task '{self.name}' cannot verify answers without their solutions")

    def right(self, problem: Problem, tokens: Tensor, answers: Tensor) -> Tensor:
        """[B] bool: by the rules, or by equality with the known answers [B, d] without them."""
        return self.verify(problem, tokens) if self.can_verify else (tokens == answers).all(-1)

    def fault(self, problem: Problem, tokens: Tensor) -> str | None:
        """What is wrong with an answer [d], in words; None if it is right, or nobody can say."""
        return None

    def answers(self, problem: Problem) -> Iterator[Tensor] | None:
        """All right answers [d] of one problem, or None if the task cannot list them."""
        return None

    def closest(self, state: Tensor, answers: Tensor) -> Tensor:
        """Of all right answers the one that a state [B, d] agrees with most; in doubt the given."""
        raise InputError(f"task '{self.name}' cannot choose among answers: states.target = 'given'")

    def oracle(self, problems: Problem) -> tuple[Tensor, Tensor] | None:
        """A classical solver's answers [B, d] and numbers of solutions [B] (2: several), if any."""
        return None

    # --- examples

    @abstractmethod
    def example(self, seed: int, index: int) -> Example:
        """Example number `index` of the stream `seed`: always the same."""

    def make(
        self, seed: int, chunk: int, min_rating: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Chunk number `chunk` of the stream `seed`: tokens, answers [n, d] and ratings [n]."""
        if min_rating > 0:
            raise InputError(f"task '{self.name}' does not rate its problems: leave out the rating")
        examples = [self.example(seed, chunk * 256 + i) for i in range(256)]
        return (
            torch.stack([e.problem.tokens for e in examples]).numpy(),
            torch.stack([e.answer for e in examples]).numpy(),
            np.array([e.rating for e in examples], np.float32),
        )

    def augment(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Map problems and answers [B, d] by random symmetries of the task, on their device.

        Tokens may have any integer type; the mask stays the mask.
        """
        return tokens, answers

    def split_keys(self, tokens: np.ndarray, answers: np.ndarray) -> list[bytes]:
        """A key per problem [N, d]; problems with one key never part when data is split."""
        return [row.tobytes() for row in tokens]

    # --- reports and display

    def difficulty(self, ratings: np.ndarray) -> np.ndarray:
        """Index into `difficulties` of each rating [N]."""
        return np.zeros(len(ratings), np.int64)

    @property
    def layout(self) -> Layout:
        """How positions are arranged on screen: rows of positions, and rules between them."""
        return Layout.line(self.length)

    def cell(self, token: int) -> str:
        """What one token looks like on screen."""
        return "·" if token == self.mask else self.tokenizer.decode([token])

    def render(self, problem: Problem, tokens: Tensor, confidence: Tensor | None = None) -> Text:
        """One state [d] for a terminal; shading shows the confidence [d] of each position."""
        return terminal(self._cells(problem, tokens, confidence), self.layout)

    def render_html(
        self, problem: Problem, tokens: Tensor, confidence: Tensor | None = None
    ) -> str:
        """One state [d] as an HTML table with inline styles."""
        return html(self._cells(problem, tokens, confidence), self.layout)

    def _cells(self, problem: Problem, tokens: Tensor, confidence: Tensor | None) -> list[Cell]:
        shades: list[float | None] = [None] * self.length
        if confidence is not None:
            shades = list(confidence.tolist())
        return [
            Cell("" if pad else self.cell(token), clue, None if clue else shade)
            for token, clue, pad, shade in zip(
                tokens.tolist(), problem.clue.tolist(), problem.pad.tolist(), shades, strict=True
            )
        ]

    # --- identity

    def spec(self) -> dict[str, Any]:
        """What rebuilds this task: its name and options, ready for JSON or TOML."""
        return {"name": self.name, **dataclasses.asdict(self)}

"""A toy task with several answers and variable length: a whole third-party task in one file."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from samm import tasks
from samm.errors import InputError
from samm.tasks import Example, Problem, Symbols, Task

PAD = 3


@tasks.register
@dataclass(frozen=True)
class Ribbon(Task):
    """Colour the dots of a ribbon of at most `longest` fields, neighbours differently.

    Text: `R..G.`; three colours, and a fourth token that pads short ribbons.
    """

    longest: int = 8
    name: ClassVar[str] = "ribbon"

    @property
    def length(self) -> int:
        return self.longest

    @property
    def tokenizer(self) -> Symbols:
        return Symbols("RGB_")

    @property
    def pad(self) -> int:
        return PAD

    @property
    def allowed(self) -> Tensor:
        return torch.ones(self.length, self.vocabulary, dtype=torch.bool)

    def encode(self, text: str) -> Problem:
        if not 1 <= len(text) <= self.longest:
            raise InputError(f"{len(text)} fields, expected 1 to {self.longest}")
        for i, character in enumerate(text):
            if character not in "RGB.":
                raise InputError(f"field {i + 1}: {character!r} is not one of R, G, B or .")
        tokens = ["RGB_.".index(c) for c in text] + [PAD] * (self.longest - len(text))
        if any(a == b < PAD for a, b in pairwise(tokens)):
            raise InputError("two neighbours have the same colour")
        state = torch.tensor(tokens)
        return self.problem(state)

    def encode_answer(self, text: str, problem: Problem) -> Tensor:
        answer = self.encode(text).tokens
        if bool((answer == self.mask).any()):
            raise InputError("the answer has uncoloured fields")
        if bool((answer != problem.tokens)[problem.clue].any()):
            raise InputError("the answer changes a clue")
        return answer

    def decode(self, tokens: Tensor) -> str:
        return "".join("RGB_."[t] for t in tokens.tolist() if t != PAD)

    def verify(self, problem: Problem, tokens: Tensor) -> Tensor:
        kept = ((tokens == problem.tokens) | problem.free).all(-1)
        coloured = ((tokens < PAD) | problem.pad).all(-1)
        touching = (tokens[:, 1:] == tokens[:, :-1]) & ~problem.pad[:, 1:]
        return kept & coloured & ~touching.any(-1)

    def answers(self, problem: Problem) -> Iterator[Tensor]:
        free = problem.free.nonzero()[:, 0]
        for colours in product(range(PAD), repeat=len(free)):
            tokens = problem.tokens.clone()
            tokens[free] = torch.tensor(colours, dtype=torch.long)
            if bool(self.verify(problem[None], tokens[None])):
                yield tokens

    def example(self, seed: int, index: int) -> Example:
        random = np.random.default_rng([seed, index])
        size = int(random.integers(2, self.longest + 1))
        colours = [int(random.integers(PAD))]
        while len(colours) < size:
            colours.append((colours[-1] + int(random.integers(1, PAD))) % PAD)
        answer = torch.tensor(colours + [PAD] * (self.longest - size))
        hidden = torch.from_numpy(random.random(self.longest) < 0.6) & (answer != PAD)
        tokens = torch.where(hidden, self.mask, answer)
        return Example(self.problem(tokens), answer)

"""Training states: z ~ ν_t, the path followed by kernel steps of the live network."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from samm.config import Config
from samm.process.kernel import Kernel
from samm.process.objective import State
from samm.process.path import Hybrid, Known, Masking, Path, Uniform
from samm.process.prediction import Prediction
from samm.process.schedule import Power

Predict = Callable[[Tensor, Tensor], Prediction]
"""(tokens, clue) -> prediction, without gradient."""


def build_path(config: Config) -> Path:
    """The path that the configuration names."""
    if config.path.kind == "hybrid":
        return Hybrid(config.path.uniform_share)
    if config.path.kind == "answer":
        return Known()
    schedule = Power(config.path.exponent)
    return Uniform(schedule) if config.path.kind == "uniform" else Masking(schedule)


@dataclass(frozen=True)
class States:
    """Where training states come from.

    All randomness is drawn for the whole batch, and `rows` of it are kept: processes that share a
    batch see the same states as one process with all of it.
    """

    path: Path
    time_exponent: float
    blank_share: float
    step_weights: tuple[float, ...]
    probability: float
    vocabulary: int
    always_commit: bool = False

    @classmethod
    def of(cls, config: Config, vocabulary: int) -> "States":
        states = config.states
        return cls(
            build_path(config),
            config.path.time_exponent,
            config.path.blank_share,
            states.steps,
            states.probability,
            vocabulary,
            states.always_commit,
        )

    @property
    def mean_steps(self) -> float:
        """Network calls without gradient per batch, on average."""
        total = sum(self.step_weights)
        return sum(n * w for n, w in enumerate(self.step_weights)) / total

    @torch.no_grad()
    def draw(
        self,
        tokens: Tensor,
        answers: Tensor,
        predict: Predict,
        generator: torch.Generator,
        seed: int,
        rows: slice = slice(None),
    ) -> State:
        """States for problems [B, d] (clues and masks) with answers [B, d].

        x_t from the path with t = 0 for a share of the batch and t = u^b for the rest; then n
        kernel steps, n drawn from `step_weights` by `seed`. No gradient flows through them.
        """
        batch, device = len(tokens), tokens.device
        clue = tokens != self.vocabulary
        t = torch.rand(batch, generator=generator, device=device) ** self.time_exponent
        blank = torch.rand(batch, generator=generator, device=device) < self.blank_share
        t = torch.where(blank, torch.zeros_like(t), t)
        start = self.path.sample(answers, clue, t, self.vocabulary, generator)
        moving = torch.rand(batch, 1, generator=generator, device=device) < self.probability
        counts = range(len(self.step_weights))
        steps = random.Random(seed).choices(counts, self.step_weights)[0]
        start, clue, answers, moving, t = (x[rows] for x in (start, clue, answers, moving, t))
        state, kernel = start, Kernel(always_commit=self.always_commit)
        for _ in range(steps):
            chance = torch.rand(tokens.shape, generator=generator, device=device)[rows]
            state = kernel.step(predict(state, clue), state, clue, chance)
        return State(torch.where(moving, state, start), answers, clue, t)

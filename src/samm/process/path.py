"""Conditional paths p_t(· | x_0, x_1): from clues and masks to the answer. Clues never move."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.race import draw
from samm.process.schedule import Power, Schedule


class Path(ABC):
    """A path acts on every free position independently."""

    @abstractmethod
    def marginal(self, answers: Tensor, t: Tensor, vocabulary: int) -> Tensor:
        """p_t(· | x_1) at every position, the mask last.  [B, d], [B] -> [B, d, K + 1]"""

    def sample(
        self,
        answers: Tensor,
        clue: Tensor,
        t: Tensor,
        vocabulary: int,
        generator: torch.Generator,
    ) -> Tensor:
        """x_t ~ p_t(· | x_0, x_1), with the clues in place.  [B, d]"""
        probabilities = self.marginal(answers, t, vocabulary)
        state = draw(probabilities, generator)
        return torch.where(clue, answers, state)


@dataclass(frozen=True)
class Masking(Path):
    """eq:masking path: (1 - κ_t) δ_m + κ_t δ_{x_1}."""

    schedule: Schedule = field(default_factory=Power)

    def marginal(self, answers: Tensor, t: Tensor, vocabulary: int) -> Tensor:
        kappa = self.schedule.kappa(t)[:, None, None]  # [B, 1, 1]
        shown = torch.nn.functional.one_hot(answers, vocabulary + 1).to(kappa.dtype)
        masked = torch.zeros_like(shown)
        masked[..., vocabulary] = 1
        return (1 - kappa) * masked + kappa * shown

    def sample(
        self,
        answers: Tensor,
        clue: Tensor,
        t: Tensor,
        vocabulary: int,
        generator: torch.Generator,
    ) -> Tensor:
        """The same in one draw per position."""
        chance = torch.rand(answers.shape, generator=generator, device=answers.device)
        shown = clue | (chance < self.schedule.kappa(t)[:, None])
        return torch.where(shown, answers, vocabulary)


@dataclass(frozen=True)
class Hybrid(Path):
    """GIDD's path (app:gidd): masks and uniformly random tokens.

    In the cited paper's reversed time u = 1 - t:
        q_u(z | x) = [(1 - u) δ_x + u δ_m + c_u · uniform] / (1 + c_u)
        c_u = B (u (1 - u))^{γ/2},   B = 2^γ p_u / (1 - p_u)
    so that at u = 1/2 a share p_u of the tokens is random.
    """

    uniform_share: float = 0.1
    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.uniform_share < 1:
            raise InputError(f"uniform_share {self.uniform_share}: expected between 0 and 1")

    @property
    def scale(self) -> float:
        """B"""
        return 2**self.gamma * self.uniform_share / (1 - self.uniform_share)

    def noise(self, t: Tensor) -> Tensor:
        """c_u at u = 1 - t."""
        return self.scale * (t * (1 - t)) ** (self.gamma / 2)

    def marginal(self, answers: Tensor, t: Tensor, vocabulary: int) -> Tensor:
        shown = torch.nn.functional.one_hot(answers, vocabulary + 1).to(t.dtype)
        return self.blur(shown, t)

    def blur(self, clean: Tensor, t: Tensor) -> Tensor:
        """q_u(· | x) for a distribution `clean` [B, d, K + 1] over x instead of one x."""
        vocabulary = clean.shape[-1] - 1
        t, c = t[:, None, None], self.noise(t)[:, None, None]  # [B, 1, 1]
        rest = torch.zeros_like(clean)
        rest[..., :vocabulary] = 1 / vocabulary
        rest = c * rest
        rest[..., vocabulary] = (1 - t)[..., 0]
        return (t * clean + rest) / (1 + c)

    def entry_rate(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """Rates in u of jumping into the mask, and into tokens (all K together).  [B] each

        (β_u π_u)' - (α_u'/α_u) β_u π_u with α_u = (1 - u)/(1 + c_u), which simplifies to
        1 / ((1 + c)(1 - u)) and (c' + c/(1 - u)) / (1 + c).
        """
        u, c = 1 - t, self.noise(t)
        growth = c * (self.gamma / 2 * (1 - 2 * u) + u) / (u * (1 - u))  # c' + c / (1 - u)
        return 1 / ((1 + c) * (1 - u)), growth / (1 + c)

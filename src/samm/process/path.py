"""Conditional paths p_t(· | x_0, x_1): from clues and noise to the answer. Clues never move.

Every path here interpolates (eq:path): at time t a free position is right with probability a_t and
otherwise noise,

    p_t(z | x) = a_t δ_x(z) + b_t(z),

with t = 0 all noise and t = 1 all right.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional as F

from samm.errors import InputError
from samm.process.draw import draw
from samm.process.schedule import Power, Schedule


class Path(ABC):
    """A path acts on every free position independently."""

    @abstractmethod
    def keep(self, t: Tensor) -> Tensor:
        """a_t.  [B] -> [B]"""

    @abstractmethod
    def noise(self, t: Tensor, vocabulary: int) -> Tensor:
        """b_t, the mask last.  [B] -> [B, K + 1]"""

    def blur(self, clean: Tensor, t: Tensor) -> Tensor:
        """p_t(· | x) for weights `clean` over x: a_t · clean + b_t · their sum.  [B, d, K + 1]"""
        keep, noise = self.keep(t)[:, None, None], self.noise(t, clean.shape[-1] - 1)[:, None]
        return keep * clean + noise * clean.sum(-1, keepdim=True)

    def marginal(self, answers: Tensor, t: Tensor, vocabulary: int) -> Tensor:
        """p_t(· | x_1) at every position, the mask last.  [B, d], [B] -> [B, d, K + 1]"""
        return self.blur(F.one_hot(answers, vocabulary + 1).to(t.dtype), t)

    def sample(
        self,
        answers: Tensor,
        clue: Tensor,
        t: Tensor,
        vocabulary: int,
        generator: torch.Generator,
    ) -> Tensor:
        """x_t ~ p_t(· | x_0, x_1), with the clues in place.  [B, d]"""
        chance = torch.rand(answers.shape, generator=generator, device=answers.device)
        state = draw(self.marginal(answers, t, vocabulary), chance)
        return torch.where(clue, answers, state)

    def likelihood(self, state: Tensor, t: Tensor, s: Tensor, vocabulary: int) -> Tensor:
        """q(z_t = state | z_s = v) for every v, with s > t the cleaner time.  [B, d, K + 1]

        a_t/a_s [v = z_t] + b_t(z_t) - a_t/a_s b_s(z_t)
        """
        ratio = (self.keep(t) / self.keep(s))[:, None]
        fresh = self.noise(t, vocabulary) - ratio * self.noise(s, vocabulary)  # [B, K + 1]
        same = F.one_hot(state, vocabulary + 1).to(ratio.dtype) * ratio[..., None]
        return same + fresh.clamp(min=0).gather(1, state)[..., None]

    def reverse(
        self, state: Tensor, clean: Tensor, t: Tensor, s: Tensor, mixture: bool = False
    ) -> Tensor:
        """p(z_s | z_t = state) for a prediction `clean` [B, d, K] of x.  [B, d, K + 1]

        ∝ q(z_t | z_s) q_s(z_s | p): the posterior with p in place of x, as GIDD. `mixture` instead
        takes the mean of the posteriors over x ~ p, as D3PM: the same with p(x) / q_t(z_t | x) in
        place of p(x). Both are the exact posterior where p knows x.
        """
        vocabulary = clean.shape[-1]
        weights = F.pad(clean, (0, 1))
        if mixture:
            noise = self.noise(t, vocabulary).gather(1, state)[..., None]  # [B, d, 1]
            same = F.one_hot(state, vocabulary + 1).to(clean.dtype)
            weights = weights / (self.keep(t)[:, None, None] * same + noise).clamp(min=1e-12)
        found = self.likelihood(state, t, s, vocabulary) * self.blur(weights, s)
        return found / found.sum(-1, keepdim=True).clamp(min=1e-30)


@dataclass(frozen=True)
class Masking(Path):
    """eq:masking path: a_t = κ_t, and all noise is the mask."""

    schedule: Schedule = field(default_factory=Power)

    def keep(self, t: Tensor) -> Tensor:
        return self.schedule.kappa(t)

    def noise(self, t: Tensor, vocabulary: int) -> Tensor:
        return F.pad((1 - self.schedule.kappa(t))[:, None], (vocabulary, 0))

    def sample(
        self,
        answers: Tensor,
        clue: Tensor,
        t: Tensor,
        vocabulary: int,
        generator: torch.Generator,
    ) -> Tensor:
        """The same without the probabilities of all tokens."""
        chance = torch.rand(answers.shape, generator=generator, device=answers.device)
        shown = clue | (chance < self.schedule.kappa(t)[:, None])
        return torch.where(shown, answers, vocabulary)


@dataclass(frozen=True)
class Known(Path):
    """No noise at all: states of an autoregressive model, which sees the tokens before."""

    def keep(self, t: Tensor) -> Tensor:
        return torch.ones_like(t)

    def noise(self, t: Tensor, vocabulary: int) -> Tensor:
        return torch.zeros(len(t), vocabulary + 1, device=t.device)


@dataclass(frozen=True)
class Uniform(Path):
    """D3PM's uniform noise: a_t = κ_t, and otherwise any token, all equally likely. No masks."""

    schedule: Schedule = field(default_factory=Power)

    def keep(self, t: Tensor) -> Tensor:
        return self.schedule.kappa(t)

    def noise(self, t: Tensor, vocabulary: int) -> Tensor:
        share = ((1 - self.schedule.kappa(t)) / vocabulary)[:, None]
        return F.pad(share.expand(-1, vocabulary), (0, 1))


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

    def disorder(self, t: Tensor) -> Tensor:
        """c_u at u = 1 - t."""
        return self.scale * (t * (1 - t)) ** (self.gamma / 2)

    def keep(self, t: Tensor) -> Tensor:
        return t / (1 + self.disorder(t))

    def noise(self, t: Tensor, vocabulary: int) -> Tensor:
        c = self.disorder(t)[:, None]  # [B, 1]
        tokens = (c / vocabulary).expand(-1, vocabulary)
        return torch.cat([tokens, 1 - t[:, None]], 1) / (1 + c)

    def entry_rate(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """Rates in u of jumping into the mask, and into tokens (all K together).  [B] each

        (β_u π_u)' - (α_u'/α_u) β_u π_u with α_u = (1 - u)/(1 + c_u), which simplifies to
        1 / ((1 + c)(1 - u)) and (c' + c/(1 - u)) / (1 + c).
        """
        u, c = 1 - t, self.disorder(t)
        growth = c * (self.gamma / 2 * (1 - 2 * u) + u) / (u * (1 - u))  # c' + c / (1 - u)
        return 1 / ((1 + c) * (1 - u)), growth / (1 + c)

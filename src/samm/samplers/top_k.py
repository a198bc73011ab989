"""Top-K and Top-K margin (app:topk): the most certain positions first."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.draw import draw
from samm.process.kernel import tempered
from samm.process.prediction import Prediction
from samm.samplers.base import Scheduled, View
from samm.samplers.streams import Chances


@dataclass(frozen=True)
class TopK(Scheduled):
    """K_t = M_t (α_s - α_t)/(1 - α_t) of the M_t masks get a token, α = κ, s = t + h.

    Rounded to nearest, at least one, and all of them in the last step.
    """

    name: ClassVar[str] = "top_k"

    certainty: str = "largest"
    """largest: the largest probability; margin: the largest less the second."""
    token_temperature: float = 1.0
    """Divides the logits; 0 takes the likeliest token."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.certainty not in ("largest", "margin"):
            raise InputError(f"certainty '{self.certainty}': expected largest or margin")
        if not self.token_temperature >= 0:
            raise InputError(f"token_temperature {self.token_temperature}: expected ≥ 0")

    def certain(self, prediction: Prediction) -> Tensor:
        """How certain the network is at every position.  [b, d]"""
        best = prediction.probabilities.topk(min(2, prediction.logits.shape[-1]), -1).values
        return best[..., 0] - best[..., -1] if self.certainty == "margin" else best[..., 0]

    def how_many(self, prediction: Prediction, view: View, masked: Tensor) -> Tensor:
        """K_t.  [b]"""
        t, s = self.span(prediction, view.step)
        now, then = self.schedule.kappa(t), self.schedule.kappa(s)
        masks = masked.sum(-1)
        count = (masks * (then - now) / (1 - now)).round().clamp(min=1)
        return torch.where(view.step == self.steps - 1, masks, count.long())

    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        masked = view.state == prediction.logits.shape[-1]
        certain = self.certain(prediction).masked_fill(~masked, -torch.inf)
        rank = certain.argsort(dim=-1, descending=True, stable=True).argsort(-1)
        chosen = masked & (rank < self.how_many(prediction, view, masked)[:, None])
        p = tempered(prediction.logits, self.token_temperature)
        drawn = draw(p, chances.uniform()).to(view.state.dtype)
        return torch.where(chosen, drawn, view.state)


@dataclass(frozen=True)
class Margin(TopK):
    """Top-K with the margin as certainty."""

    name: ClassVar[str] = "margin"

    certainty: str = "margin"


@dataclass(frozen=True)
class Remasking(Scheduled):
    """MGDM's own decoding: fill all masks with the likeliest tokens, mask the least certain again.

    After step n = 1 .. T a share 1 - n/T of the free positions is masked: those with the lowest
    max log p + ½ (1 - n/T) · Gumbel noise. Tokens that were held before can be among them.
    """

    name: ClassVar[str] = "mgdm"

    steps: int = 20
    exponent: float = 1.0
    noise: float = 0.5
    """The factor ½ of the Gumbel noise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.noise >= 0:
            raise InputError(f"noise {self.noise}: expected ≥ 0")

    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        vocabulary, free = prediction.logits.shape[-1], ~view.clue
        best, likeliest = prediction.logits.log_softmax(-1).max(-1)
        filled = torch.where(view.state == vocabulary, likeliest, view.state)
        rest = 1 - self.schedule.kappa(self.span(prediction, view.step)[1])  # [b]
        score = best + (self.noise * rest)[:, None] * chances.gumbel(1)
        rank = score.masked_fill(view.clue, torch.inf).argsort(dim=-1, stable=True).argsort(-1)
        count = (free.sum(-1) * rest + 1e-4).floor()  # whole numbers stay whole
        again = free & (rank < count[:, None])
        return torch.where(again, vocabulary, filled)

    def done(self, prediction: Prediction, view: View) -> Tensor:
        return view.step >= self.steps

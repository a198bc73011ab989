"""ReMDM (app:remdm): masked diffusion that puts masks back, without changing the marginals."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.prediction import Prediction
from samm.samplers.base import Independent, View, held


@dataclass(frozen=True)
class Remdm(Independent):
    """The rescale schedule: from t to s = t + h, with α = κ,

        σ = η min(1, (1 - α_s)/α_t)

    an unmasked position goes back to the mask with probability σ, and a masked one becomes a token
    of p with probability (α_s - (1 - σ) α_t)/(1 - α_t).
    """

    name: ClassVar[str] = "remdm"

    eta: float = 0.9
    """η"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.eta <= 1:
            raise InputError(f"eta {self.eta}: expected 0 to 1")

    def transition(self, prediction: Prediction, view: View) -> Tensor:
        vocabulary = prediction.logits.shape[-1]
        t, s = self.span(prediction, view.step)
        now, then = self.schedule.kappa(t)[:, None, None], self.schedule.kappa(s)[:, None, None]
        sigma = self.eta * ((1 - then) / now).clamp(max=1)  # η at t = 0, where nothing is unmasked
        shown = ((then - (1 - sigma) * now) / (1 - now)).clamp(0, 1)
        mask = held(torch.full_like(view.state, vocabulary), vocabulary)
        tokens = torch.nn.functional.pad(prediction.probabilities, (0, 1))
        from_mask = shown * tokens + (1 - shown) * mask
        from_token = (1 - sigma) * held(view.state, vocabulary) + sigma * mask
        return torch.where((view.state == vocabulary)[..., None], from_mask, from_token)

    def done(self, prediction: Prediction, view: View) -> Tensor:
        return view.step >= self.steps

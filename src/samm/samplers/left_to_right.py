"""Autoregressive decoding: one token after the other, greedily or by chance."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.draw import draw
from samm.process.kernel import tempered
from samm.process.prediction import Prediction
from samm.samplers.base import Sampler, View
from samm.samplers.streams import Chances


@dataclass(frozen=True)
class LeftToRight(Sampler):
    """The first masked position gets its token, and keeps it. As many steps as positions."""

    name: ClassVar[str] = "left_to_right"

    steps: int = 4096
    """Cap; an example needs as many as it has free positions."""
    token_temperature: float = 0.0
    """0: the likeliest token; 1: sampled from p."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.token_temperature >= 0:
            raise InputError(f"token_temperature {self.token_temperature}: expected ≥ 0")

    def done(self, prediction: Prediction, view: View) -> Tensor:
        return (view.state != prediction.logits.shape[-1]).all(-1)

    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        masked = view.state == prediction.logits.shape[-1]
        first = masked & (masked.cumsum(-1) == 1)
        p = tempered(prediction.logits, self.token_temperature)
        drawn = draw(p, chances.uniform()).to(view.state.dtype)
        return torch.where(first, drawn, view.state)

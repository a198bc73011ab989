"""Discrete flow matching's Euler sampler (eq:euler)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samm.process.prediction import Prediction
from samm.samplers.base import Independent, View, held


@dataclass(frozen=True)
class Euler(Independent):
    """In a step h from t a position jumps with probability h κ̇_t/(1-κ_t), to a draw of p."""

    name: ClassVar[str] = "euler"

    revisit: bool = False
    """Let unmasked positions jump too (eq:vel_final); the paper's baseline lets only masks jump."""

    def transition(self, prediction: Prediction, view: View) -> Tensor:
        vocabulary = prediction.logits.shape[-1]
        t, s = self.span(prediction, view.step)
        jump = ((s - t) * self.schedule.rate(t)).clamp(0, 1)[:, None, None]
        stays = held(view.state, vocabulary)
        if not self.revisit:
            jump = torch.where((view.state == vocabulary)[..., None], jump, 0.0)
        moves = torch.nn.functional.pad(prediction.probabilities, (0, 1))
        return (1 - jump) * stays + jump * moves

    def done(self, prediction: Prediction, view: View) -> Tensor:
        if self.revisit:
            return view.step >= self.steps
        return super().done(prediction, view)

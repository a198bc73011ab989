"""What a network says about a state."""

from dataclasses import dataclass

import torch
from torch import Tensor

from samm.tasks import Batch


@dataclass(frozen=True)
class Prediction(Batch):
    """T_θ(z) of eq:network, before the softmax and the sigmoids; float32 whatever the network."""

    logits: Tensor
    """[B, d, K]; p = softmax(logits) is the prediction, the mask is not among the tokens."""
    commit: Tensor
    """[B, d]; c = σ(commit) is the confidence."""
    stop: Tensor
    """[B]; τ = σ(stop) is the estimated progress."""

    @property
    def probabilities(self) -> Tensor:
        return self.logits.softmax(-1)

    @property
    def confidence(self) -> Tensor:
        return torch.sigmoid(self.commit)

    @property
    def progress(self) -> Tensor:
        return torch.sigmoid(self.stop)


def progress_target(state: Tensor, answers: Tensor, clue: Tensor) -> Tensor:
    """τ* of eq:real time: the share of free positions of `state` that are right.  [B]

    1 where there is nothing to find.
    """
    free = ~clue
    right = ((state == answers) & free).sum(-1).float()
    total = free.sum(-1)
    return torch.where(total > 0, right / total.clamp(min=1), torch.ones_like(right))


def committed_share(state: Tensor, clue: Tensor, mask: int) -> Tensor:
    """The share of free positions that hold a token, right or wrong.  [B]"""
    free = ~clue
    held = ((state != mask) & free).sum(-1).float()
    total = free.sum(-1)
    return torch.where(total > 0, held / total.clamp(min=1), torch.ones_like(held))

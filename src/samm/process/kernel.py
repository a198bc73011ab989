"""The Markov kernel P_θ (eq:markov_kernel), made from a network's prediction.

If τ(z) ≥ 1 - ε and no mask is left, the state stays. Otherwise every free position independently
becomes a token drawn from p with probability c, or the mask with probability 1 - c.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.draw import draw
from samm.process.prediction import Prediction


@dataclass(frozen=True)
class Kernel:
    """One step of the chain. Temperatures belong to sampling; training leaves them at 1."""

    token_temperature: float = 1.0
    """Divides the logits; 0 takes the likeliest token."""
    commit_temperature: float = 1.0
    """Divides the commit logit; 0 commits where c > 1/2."""
    stop_epsilon: float | None = None
    """ε of the stop; None never stops, as in training."""
    always_commit: bool = False
    """c = 1 everywhere: no position ever goes back to the mask."""

    def __post_init__(self) -> None:
        for name in ("token_temperature", "commit_temperature"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} {getattr(self, name)}: expected a number ≥ 0")
        if self.stop_epsilon is not None and not 0 <= self.stop_epsilon <= 1:
            raise InputError(f"stop_epsilon {self.stop_epsilon}: expected between 0 and 1")

    def tokens(self, prediction: Prediction) -> Tensor:
        """p at the token temperature.  [B, d, K]"""
        return tempered(prediction.logits, self.token_temperature)

    def confidence(self, prediction: Prediction) -> Tensor:
        """c at the commit temperature.  [B, d]"""
        commit = prediction.commit
        if self.always_commit:
            return torch.ones_like(commit)
        if self.commit_temperature == 0:
            return (commit > 0).to(commit.dtype)
        return torch.sigmoid(commit / self.commit_temperature)

    def stops(self, prediction: Prediction, state: Tensor) -> Tensor:
        """Is the state absorbing?  [B]"""
        if self.stop_epsilon is None:
            return torch.zeros_like(prediction.stop, dtype=torch.bool)
        mask = prediction.logits.shape[-1]
        sure = prediction.progress >= 1 - self.stop_epsilon
        return sure & (state != mask).all(-1)

    def transition(self, prediction: Prediction, state: Tensor, clue: Tensor) -> Tensor:
        """P_θ(· | state) at every position, the mask last.  [B, d, K + 1]"""
        c = self.confidence(prediction)[..., None]
        moves = torch.cat([c * self.tokens(prediction), 1 - c], -1)
        stays = torch.nn.functional.one_hot(state, moves.shape[-1]).to(moves.dtype)
        fixed = clue | self.stops(prediction, state)[:, None]
        return torch.where(fixed[..., None], stays, moves)

    def step(self, prediction: Prediction, state: Tensor, clue: Tensor, chance: Tensor) -> Tensor:
        """The next state, drawn from `transition` by uniform chances [B, d].  [B, d]"""
        return draw(self.transition(prediction, state, clue), chance).to(state.dtype)


def tempered(logits: Tensor, temperature: float) -> Tensor:
    """softmax(logits / temperature); all on the likeliest token at 0.  [.., K]"""
    if temperature == 0:
        likeliest = logits.argmax(-1)
        return torch.nn.functional.one_hot(likeliest, logits.shape[-1]).to(logits.dtype)
    return (logits / temperature).softmax(-1)

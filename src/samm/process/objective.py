"""Losses: each a small class that takes a prediction on a state and the answer.

Losses are sums over the batch times `Share`, so that processes that hold parts of one batch only
have to add their gradients.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from samm.errors import InputError
from samm.process.prediction import Prediction, progress_target


@dataclass(frozen=True)
class Share:
    """What one position and one example count in a mean over the whole batch."""

    position: Tensor
    """1 / number of free positions, a scalar (1 where there is none)."""
    example: float
    """1 / number of examples."""

    @classmethod
    def of(cls, clue: Tensor) -> "Share":
        """Of a batch with these clues [B, d]."""
        return cls(1 / (~clue).sum().clamp(min=1).float(), 1 / len(clue))


@dataclass(frozen=True)
class State:
    """What the loss is computed on."""

    tokens: Tensor
    """[B, d] the state z."""
    answers: Tensor
    """[B, d]"""
    clue: Tensor
    """[B, d]"""
    time: Tensor
    """[B] the path time that the state started from."""


class Objective(ABC):
    """A training loss."""

    @abstractmethod
    def terms(self, prediction: Prediction, state: State, share: Share) -> dict[str, Tensor]:
        """The weighted terms; their sum is the loss."""

    def __call__(self, prediction: Prediction, state: State, share: Share) -> Tensor:
        return torch.stack(list(self.terms(prediction, state, share).values())).sum()


def log_right(prediction: Prediction, answers: Tensor) -> Tensor:
    """log p(x_1 | z) at every position.  [B, d]"""
    return F.log_softmax(prediction.logits, -1).gather(-1, answers[..., None])[..., 0]


@dataclass(frozen=True)
class Samm(Objective):
    """eq:loss: be right, commit where right, know how far you are.

    L_ce     = -log p(x_1 | z)
    L_commit = -log c - w(c) log(1 - c q),   q = 1 - p(x_1 | z),   w(c) = (1 - c + ε)^-k
    L_stop   = (τ - τ*)²
    L        = L_ce + λ_c L_commit + λ_s L_stop
    """

    commit_weight: float = 0.1
    """λ_c"""
    stop_weight: float = 0.5
    """λ_s"""
    epsilon: float = 0.05
    exponent: float = 1.0
    """k of w(c)"""
    stop_norm: str = "mse"
    """mse (the appendix), l1 (eq:loss), or bce: ours, see `stop`."""
    weight_attached: bool = False
    """Let gradients flow through w(c)."""
    coupled: bool = False
    """Let gradients of L_commit flow into p (eq:loss as printed)."""
    all_positions: bool = False
    """Cross-entropy at clues too."""
    sums: bool = False
    """Sum over the positions of an example, as the paper, instead of the batch-wide mean."""
    calibrated: bool = False
    """Instead of L_commit: binary cross-entropy of c on "the token drawn here is right"."""

    def __post_init__(self) -> None:
        if self.stop_norm not in ("mse", "l1", "bce"):
            raise InputError(f"stop_norm '{self.stop_norm}': expected mse or l1 or bce")

    def terms(self, prediction: Prediction, state: State, share: Share) -> dict[str, Tensor]:
        free = (~state.clue).float()
        position = share.example if self.sums else share.position
        right = log_right(prediction, state.answers)
        commit = self.commit(prediction.commit, right)
        target = progress_target(state.tokens, state.answers, state.clue)
        stop = self.stop(prediction.stop, target)
        return {
            "ce": cross_entropy(right, state.clue, share, self.all_positions, self.sums),
            "commit": self.commit_weight * (commit * free).sum() * position,
            "stop": self.stop_weight * stop.sum() * share.example,
        }

    def stop(self, stop: Tensor, target: Tensor) -> Tensor:
        """L_stop of stop logits and τ*, per example.

        The slope of the squared error in the logit vanishes as τ nears 1, just where the stop has
        to decide; that of the cross-entropy is τ - τ*, with the same optimum.
        """
        if self.stop_norm == "bce":
            floor = torch.special.entr(target) + torch.special.entr(1 - target)  # 0 at τ = τ*
            # -τ* log τ - (1 - τ*) log(1 - τ) of a logit
            result: Tensor = F.softplus(stop) - target * stop - floor
            return result
        gap = torch.sigmoid(stop) - target
        return gap.abs() if self.stop_norm == "l1" else gap**2

    def commit(self, commit: Tensor, right: Tensor) -> Tensor:
        """L_commit of commit logits and log p(x_1 | z), per position."""
        p = (right if self.coupled else right.detach()).exp()
        log_c, log_rest = F.logsigmoid(commit), F.logsigmoid(-commit)
        if self.calibrated:
            return -(p * log_c + (1 - p) * log_rest)
        c = torch.sigmoid(commit)
        weight = (1 - c + self.epsilon) ** -self.exponent
        if not self.weight_attached:
            weight = weight.detach()
        # 1 - c q = (1 - c) + c p, a sum of two non-negative numbers: safe as c and q go to 1
        safe = (log_rest.exp() + c * p).clamp(min=1e-12).log()
        return -log_c - weight * safe

    def optimum(self, q: Tensor) -> Tensor:
        """c*(q), where L_commit with w detached is stationary: (1 - c + ε)^k (1 - c q) = c q.

        1 where there is no such point below 1. `calibrated` has c* = 1 - q instead.
        """
        return self.expected_optimum(q[..., None], torch.ones_like(q)[..., None])

    def expected_optimum(self, q: Tensor, chance: Tensor) -> Tensor:
        """The same where q takes several values [.., V] with these chances [.., V].  [..]

        With q_v = 1 - p_v and chance p_v, v = 1 .. K, it is what a head should say that knows no
        more than a network whose p can be trusted.
        """
        if self.calibrated:
            return ((1 - q) * chance).sum(-1)
        low, high = torch.zeros_like(q[..., 0]), torch.ones_like(q[..., 0])
        for _ in range(30):  # the left side grows in c and the right side falls: bisection
            c = (low + high) / 2
            odds = c[..., None] * q
            growing = (chance * odds / (1 - odds).clamp(min=1e-12)).sum(-1)
            below = growing < (1 - c + self.epsilon) ** self.exponent
            low, high = torch.where(below, c, low), torch.where(below, high, c)
        return high


def cross_entropy(
    right: Tensor, clue: Tensor, share: Share, all_positions: bool, sums: bool
) -> Tensor:
    """-log p(x_1 | z), summed or averaged over the free or over all positions."""
    if all_positions:
        return -right.sum() * (share.example if sums else share.example / right.shape[-1])
    return -(right * ~clue).sum() * (share.example if sums else share.position)


@dataclass(frozen=True)
class CrossEntropy(Objective):
    """DFM's loss (eq:cross-entropy): no commit, no stop, no weight in time."""

    all_positions: bool = True

    def terms(self, prediction: Prediction, state: State, share: Share) -> dict[str, Tensor]:
        right = log_right(prediction, state.answers)
        return {"ce": cross_entropy(right, state.clue, share, self.all_positions, sums=False)}

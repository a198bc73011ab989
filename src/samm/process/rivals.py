"""The rivals' losses, on the same trunk and in the same form as ours: GIDD, MGDM, D3PM."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from samm.process.objective import Objective, Share, State, log_right
from samm.process.path import Hybrid, Uniform
from samm.process.prediction import Prediction


def kl_divergence(true: Tensor, model: Tensor) -> Tensor:
    """KL(true ‖ model); impossible tokens of `true` add nothing, to its gradient either."""
    divergence: Tensor = (torch.special.xlogy(true, true) - true * model.log()).sum(-1)
    return divergence


@dataclass(frozen=True)
class Gidd(Objective):
    """GIDD's weighted ELBO (app:gidd) on the hybrid path.

        w(z, x) · [KL(q(·|x) ‖ q(·|p)) + q(z|x)/q(z|p) - log(q(z|x)/q(z|p)) - 1]

    with w the ELBO's weights clipped at `largest`, or (`dynamic`) their ratios alone: 2 at masks,
    1 at random tokens, B/K·√(u/(1-u)) at right tokens, times `largest`.
    """

    path: Hybrid
    dynamic: bool = True
    largest: float = 1.0

    def terms(self, prediction: Prediction, state: State, share: Share) -> dict[str, Tensor]:
        vocabulary = prediction.logits.shape[-1]
        t = state.time.clamp(1e-4, 1 - 1e-4)
        clean = F.pad(prediction.logits.softmax(-1), (0, 1))  # [B, d, K + 1]
        model = self.path.blur(clean, t).clamp(min=1e-12)
        true = self.path.marginal(state.answers, t, vocabulary)
        kl = kl_divergence(true, model)
        here = state.tokens[..., None]
        true_here = true.gather(-1, here)[..., 0]
        ratio = true_here / model.gather(-1, here)[..., 0]
        weight = self.weights(state, true_here, t, vocabulary)
        loss = weight * (kl + ratio - ratio.log() - 1)
        return {"elbo": (loss * ~state.clue).sum() * share.position}

    def weights(self, state: State, true_here: Tensor, t: Tensor, vocabulary: int) -> Tensor:
        masked, right = state.tokens == vocabulary, state.tokens == state.answers
        if self.dynamic:
            ratio = self.path.scale / vocabulary * ((1 - t) / t).sqrt()[:, None]
            one = torch.ones_like(true_here)
            return self.largest * torch.where(masked, 2 * one, torch.where(right, ratio, one))
        into_mask, into_tokens = self.path.entry_rate(t)
        rate = torch.where(masked, into_mask[:, None], into_tokens[:, None] / vocabulary)
        return (rate / true_here).clamp(max=self.largest)


@dataclass(frozen=True)
class Mgdm(Objective):
    """MGDM's multi-granularity loss on the masking path: hard tokens and late times count more.

        w(t) · (1 - p(x_1 | z))^γ · -log p(x_1 | z)   at masks,   w(t) = κ_t + 1/T

    The cited paper numbers its T times by noise, n = 0 .. T - 1 with a share (n + 1)/T of masks,
    and weighs them by T - n: ours up to the factor T. Its factor α scales everything alike.
    """

    focus: float = 1.0
    """γ; 0 weighs all tokens alike."""
    times: int = 20
    """T"""
    exponent: float = 1.0
    """κ_t = t^a of the path."""

    def terms(self, prediction: Prediction, state: State, share: Share) -> dict[str, Tensor]:
        right = log_right(prediction, state.answers)
        masked = state.tokens == prediction.logits.shape[-1]
        hard = (1 - right.exp()).clamp(min=0) ** self.focus
        late = (state.time**self.exponent + 1 / self.times)[:, None]
        return {"ce": -(late * hard * right * masked).sum() * share.position}


@dataclass(frozen=True)
class D3pm(Objective):
    """D3PM's loss on the uniform path: T · KL(q(z_s | z_t, x_1) ‖ p_θ(z_s | z_t)) + λ L_ce.

    s = t + 1/T, one of T steps nearer to the answer; p_θ is the mean of the posteriors over p.
    """

    path: Uniform
    times: int = 20
    """T"""
    auxiliary: float = 0.01
    """λ, as the cited paper for text."""

    def terms(self, prediction: Prediction, state: State, share: Share) -> dict[str, Tensor]:
        vocabulary, right = prediction.logits.shape[-1], log_right(prediction, state.answers)
        s = (state.time + 1 / self.times).clamp(max=1)
        t = torch.minimum(state.time, s - 0.01 / self.times)  # a step has some length
        known = F.one_hot(state.answers, vocabulary).to(prediction.logits.dtype)
        true = self.path.reverse(state.tokens, known, t, s)
        model = self.path.reverse(state.tokens, prediction.probabilities, t, s, mixture=True)
        kl = kl_divergence(true, model.clamp(min=1e-12))
        free = ~state.clue
        return {
            "bound": self.times * (kl * free).sum() * share.position,
            "ce": -self.auxiliary * (right * free).sum() * share.position,
        }

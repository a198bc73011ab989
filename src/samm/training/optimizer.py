"""Optimisers, their schedule, and averaged weights."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from samm.config import OptimizerConfig
from samm.model import Network


def plateau_end(config: OptimizerConfig, steps: int) -> int:
    """The step from which the rate falls. Until there, nothing depends on the run's length."""
    if config.schedule == "cosine":
        return config.warmup
    return max(config.warmup, round(steps * (1 - config.cooldown)))


class Optimizer:
    """Muon on the hidden matrices and AdamW on the rest, or AdamW (Adam) alone; one schedule."""

    def __init__(self, config: OptimizerConfig, network: Network, steps: int) -> None:
        self.config, self.steps = config, steps
        hidden = network.hidden_matrices if config.kind == "muon" else []
        taken = {id(p) for p in hidden}
        rest = [p for p in network.parameters() if id(p) not in taken]
        kind = torch.optim.Adam if config.kind == "adam" else torch.optim.AdamW
        self.parts: list[torch.optim.Optimizer] = [
            kind(
                rest,
                lr=config.rate,
                betas=(config.betas[0], config.betas[1]),
                weight_decay=config.decay,
                fused=rest[0].is_cuda,
            )
        ]
        self.rates = [config.rate]
        if hidden:
            self.parts.append(
                torch.optim.Muon(hidden, lr=config.muon_rate, weight_decay=config.muon_decay)
            )
            self.rates.append(config.muon_rate)
        self.parameters = list(network.parameters())

    def scale(self, step: int) -> float:
        """Share of the full rate at a step: linear warm-up, perhaps a plateau, down to `final`."""
        if step < self.config.warmup:
            return (step + 1) / self.config.warmup
        start = plateau_end(self.config, self.steps)
        part = min(max((step - start) / max(self.steps - start, 1), 0.0), 1.0)
        cosine = self.config.schedule == "cosine"
        left = (1 + math.cos(math.pi * part)) / 2 if cosine else 1 - part
        return self.config.final + (1 - self.config.final) * left

    def step(self, step: int) -> Tensor:
        """Clip the gradients and move the weights; returns the gradient's norm."""
        norm = nn.utils.clip_grad_norm_(self.parameters, self.config.clip, foreach=True)
        for part, rate in zip(self.parts, self.rates, strict=True):
            for group in part.param_groups:
                group["lr"] = rate * self.scale(step)
            part.step()
        return norm

    def zero(self) -> None:
        for part in self.parts:
            part.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, Tensor]:
        """The optimisers' state by name: part, parameter, key."""
        return {
            f"{i}.{j}.{key}": value
            for i, part in enumerate(self.parts)
            for j, values in part.state_dict()["state"].items()
            for key, value in values.items()
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """What `tensors` gave."""
        for i, part in enumerate(self.parts):
            whole = part.state_dict()
            states: dict[int, dict[str, Tensor]] = {}
            for name, value in tensors.items():
                number, parameter, key = name.split(".", 2)
                if int(number) == i:
                    states.setdefault(int(parameter), {})[key] = value
            part.load_state_dict({**whole, "state": states})


@torch.no_grad()
def average(
    averaged: Sequence[Tensor] | Iterable[Tensor],
    live: Sequence[Tensor] | Iterable[Tensor],
    decay: float,
    step: int,
) -> None:
    """Exponential moving average of the weights, warm at the start: it trusts young weights less.

    The decay grows as (1 + n)/(10 + n) up to `decay`.
    """
    warm = min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(averaged), list(live), 1 - warm)

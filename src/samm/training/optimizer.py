"""Optimisers, their schedule, and averaged weights."""

import math
import warnings
from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from samm.config import OptimizerConfig
from samm.model import Network
from samm.recorded import Recorded


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
        if hidden:
            self.parts.append(
                torch.optim.Muon(hidden, lr=config.muon_rate, weight_decay=config.muon_decay)
            )
        self.parameters: list[Tensor] = list(network.parameters())
        self.before = [p.detach().clone() for p in self.parameters]
        self.move: Callable[[], Tensor] = self.full_step

    def scale(self, step: int) -> float:
        """Share of the full rate at a step: linear warm-up, perhaps a plateau, down to `final`."""
        if step < self.config.warmup:
            return (step + 1) / self.config.warmup
        start = plateau_end(self.config, self.steps)
        part = min(max((step - start) / max(self.steps - start, 1), 0.0), 1.0)
        cosine = self.config.schedule == "cosine"
        left = (1 + math.cos(math.pi * part)) / 2 if cosine else 1 - part
        return self.config.final + (1 - self.config.final) * left

    @torch.no_grad()
    def step(self, step: int) -> Tensor:
        """Clip the gradients and move the weights; returns the gradient's norm.

        Every update is linear in its rate. So a step is taken at the full rate, the same operations
        each time (which can be recorded), and then the schedule's share of it is kept.
        """
        torch._foreach_copy_(self.before, self.parameters)
        norm = self.move()
        torch._foreach_lerp_(self.before, self.parameters, self.scale(step))
        torch._foreach_copy_(self.parameters, self.before)
        return norm

    def record(self) -> None:
        """Launch the update as one from now on."""
        for group in self.parts[0].param_groups:
            group["capturable"] = True
        # Said of the warm-up, which is not recorded yet.
        warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")
        self.move = Recorded(self.full_step)

    def full_step(self) -> Tensor:
        norm = nn.utils.clip_grad_norm_(self.parameters, self.config.clip, foreach=True)
        for part in self.parts:
            part.step()
        return norm

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

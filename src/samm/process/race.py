"""Drawing tokens: exponential clocks race, and the fastest one in the last dimension wins."""

import torch
from torch import Tensor


def clocks(*shape: int, generator: torch.Generator) -> Tensor:
    """Independent times of rate 1; above zero, which torch's draws on the CPU need not be."""
    times = torch.empty(shape, device=generator.device).exponential_(generator=generator)
    return times.clamp_(min=torch.finfo(times.dtype).tiny)


def race(probabilities: Tensor, times: Tensor) -> Tensor:
    """A draw from each distribution: token i arrives at time times_i / p_i.  [.., K] -> [..]"""
    return (probabilities / times).argmax(-1)


def draw(probabilities: Tensor, generator: torch.Generator) -> Tensor:
    """A draw from each distribution in the last dimension."""
    return race(probabilities, clocks(*probabilities.shape, generator=generator))

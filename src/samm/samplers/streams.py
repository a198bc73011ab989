"""Random numbers for every example of its own: its batch and its neighbours make no difference.

A number is a function of (seed, problem, chain, step, position), by splitmix64. So answers do not
depend on the batch size, on the order of the problems, or on how work is cut into parts.
"""

import torch
from torch import Tensor

from samm.randomness import FACTORS, SPREAD

GOLDEN = 0x9E3779B97F4A7C15


def _signed(x: int) -> int:
    """64 bits as torch's int64 writes them."""
    return x - (1 << 64) if x >= 1 << 63 else x


def _shifted(x: Tensor, bits: int) -> Tensor:
    """x >> bits, with zeros coming in from the left."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def _scrambled(x: Tensor) -> Tensor:
    """The finaliser of splitmix64."""
    for shift, factor in FACTORS:
        x = (x ^ _shifted(x, shift)) * _signed(factor)
    return x ^ _shifted(x, 31)


def keys(seed: int, *numbers: Tensor) -> Tensor:
    """A key for every example of these numbers (problem, chain) [n].  [n]"""
    key = torch.full_like(numbers[0], _signed(seed % (1 << 64)))
    for number in numbers:
        key = _scrambled(key * _signed(SPREAD) + number + 1)
    return key


class Chances:
    """The uniform numbers of one step of several examples."""

    def __init__(self, key: Tensor, step: Tensor, length: int) -> None:
        self._counter = key + step * _signed(GOLDEN)
        self.length = length

    def uniform(self, lane: int = 0) -> Tensor:
        """In [0, 1), independent for every lane.  [b, length]"""
        place = torch.arange(self.length, device=self._counter.device) + lane * self.length + 1
        bits = _scrambled(_scrambled(self._counter)[:, None] + place * _signed(GOLDEN))
        return _shifted(bits, 40).float() / (1 << 24)

    def gumbel(self, lane: int) -> Tensor:
        """Standard Gumbel noise.  [b, length]"""
        return -(-(self.uniform(lane) + 0.5 / (1 << 24)).log()).log()


def seed_from(generator: torch.Generator) -> int:
    """A seed drawn from a generator."""
    draw = torch.randint(1 << 62, (), generator=generator, device=generator.device)
    return int(draw)

"""How much of the answer is visible at time t: schedules κ_t with κ_0 = 0 and κ_1 = 1."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import Tensor

from samm.errors import InputError


class Schedule(ABC):
    """κ_t of eq:masking path."""

    @abstractmethod
    def kappa(self, t: Tensor) -> Tensor:
        """κ_t"""

    @abstractmethod
    def rate(self, t: Tensor) -> Tensor:
        """κ̇_t / (1 - κ_t) of eq:down; infinite at t = 1."""


@dataclass(frozen=True)
class Power(Schedule):
    """κ_t = t^a."""

    exponent: float = 1.0

    def __post_init__(self) -> None:
        if not self.exponent > 0:
            raise InputError(f"exponent {self.exponent}: expected a number above 0")

    def kappa(self, t: Tensor) -> Tensor:
        return t**self.exponent

    def rate(self, t: Tensor) -> Tensor:
        return self.exponent * t ** (self.exponent - 1) / (1 - self.kappa(t))

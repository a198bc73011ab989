"""The chain of eq:inference: apply the kernel until the network itself says stop."""

from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from samm.errors import InputError
from samm.process.kernel import Kernel
from samm.process.prediction import Prediction
from samm.samplers.base import Sampler, View
from samm.samplers.streams import Chances


@dataclass(frozen=True)
class Chain(Sampler):
    """Ours."""

    name: ClassVar[str] = "chain"
    learned_stop: ClassVar[bool] = True

    steps: int = 256
    """Cap on the kernel steps."""
    least_steps: int = 2
    """No stop before this many."""
    token_temperature: float = 1.0
    """Divides the logits; 0 takes the likeliest token."""
    commit_temperature: float = 1.0
    """Divides the commit logit; 0 commits where c > 1/2."""
    stop_epsilon: float = 0.01
    """ε: stop where τ ≥ 1 - ε and no mask is left."""
    always_commit: bool = False
    """Without the commit head, as a network that was trained so."""

    def __post_init__(self) -> None:
        if not 0 <= self.least_steps <= self.steps:
            raise InputError(
                f"least_steps {self.least_steps}: expected 0 to the cap of {self.steps} steps"
            )
        _ = self.kernel  # which checks its own options

    @property
    def kernel(self) -> Kernel:
        return Kernel(
            self.token_temperature, self.commit_temperature, self.stop_epsilon, self.always_commit
        )

    def done(self, prediction: Prediction, view: View) -> Tensor:
        return self.kernel.stops(prediction, view.state) & (view.step >= self.least_steps)

    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        # Who may stop has left; before `least_steps` nobody may.
        moving = replace(self.kernel, stop_epsilon=None)
        return moving.step(prediction, view.state, view.clue, chances.uniform())

    def confidence(self, prediction: Prediction, answer: Tensor) -> Tensor:
        """c, at the commit temperature."""
        return self.kernel.confidence(prediction)

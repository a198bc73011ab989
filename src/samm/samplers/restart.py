"""The chain with a verifier: it looks at the rules alone, and what went wrong starts again."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.prediction import Prediction
from samm.samplers.base import View
from samm.samplers.chain import Chain
from samm.samplers.streams import Chances
from samm.tasks import Task


@dataclass(frozen=True)
class Restart(Chain):
    """Done as soon as a state obeys the rules; not when the network says so.

    Where the network stops on a state that does not, or has not got there within `patience` steps,
    the chain goes back to the blank problem, with fresh randomness.
    """

    name: ClassVar[str] = "restart"
    verifier: ClassVar[bool] = True

    steps: int = 1000
    """Cap on all steps, restarts included."""
    patience: int = 64
    """Steps until a chain that has not stopped starts again."""
    task: Task | None = None
    """Whose rules; taken from the network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.patience < 1:
            raise InputError(f"patience {self.patience}: expected at least 1")

    def done(self, prediction: Prediction, view: View) -> Tensor:
        if self.task is None:
            raise ValueError("Restart needs a task that can verify answers")
        problem = self.task.problem(self.blank(prediction, view))
        return self.task.verify(problem, view.state)

    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        moved = super().step(prediction, view, chances)
        wrong = self.kernel.stops(prediction, view.state) & (view.step >= self.least_steps)
        stalled = (view.step + 1) % self.patience == 0
        again = (wrong | stalled)[:, None]
        return torch.where(again, self.blank(prediction, view), moved)

    def blank(self, prediction: Prediction, view: View) -> Tensor:
        """The problem that the chain started from.  [b, d]"""
        return torch.where(view.clue, view.state, prediction.logits.shape[-1])

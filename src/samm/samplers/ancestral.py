"""GIDD and D3PM: back along the path, by the posterior of each less noisy state (app:gidd)."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.draw import draw
from samm.process.kernel import tempered
from samm.process.path import Hybrid, Path, Uniform
from samm.process.prediction import Prediction
from samm.samplers.base import Independent, View
from samm.samplers.streams import Chances


@dataclass(frozen=True)
class Ancestral(Independent):
    """From t to s = t + h by p(z_s | z_t), made of the prediction (`Path.reverse`)."""

    mixture: ClassVar[bool]
    """Which of its two readings."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The path that the network was trained on."""

    def transition(self, prediction: Prediction, view: View) -> Tensor:
        t, s = self.span(prediction, view.step)
        # Past t = 1 there is only the correction, which does not come here.
        t, s = t.clamp(max=1 - 0.5 / self.steps), s.clamp(max=1)
        return self.path.reverse(view.state, prediction.probabilities, t, s, self.mixture)

    def done(self, prediction: Prediction, view: View) -> Tensor:
        return view.step >= self.steps


@dataclass(frozen=True)
class D3pm(Ancestral):
    """From uniformly random tokens, by the mean of the posteriors over the prediction."""

    name: ClassVar[str] = "d3pm"
    mixture: ClassVar[bool] = True

    exponent: float = 1.0

    @property
    def path(self) -> Path:
        return Uniform(self.schedule)

    def start(self, problems: Tensor, clue: Tensor, chances: Chances) -> Tensor:
        # The mask, which stands at every free position, is the number of tokens.
        noise = (chances.uniform() * problems).long()
        return torch.where(clue, problems, noise)


@dataclass(frozen=True)
class Gidd(Ancestral):
    """From masks, by the posterior with p in place of x; then the self-correction.

    That looks at the finished answer with t = 1, draws a token everywhere at a low temperature and
    takes over the likeliest one of those that differ, one per step, until the network's likeliest
    tokens are those that stand there.
    """

    name: ClassVar[str] = "gidd"
    mixture: ClassVar[bool] = False

    steps: int = 64
    """Steps of the schedule."""
    corrections: int = 64
    """The most steps of the self-correction; 0 leaves it out."""
    correction_temperature: float = 0.1
    """Divides the logits of its draws."""
    uniform_share: float = 0.1
    """p_u of the path, as in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.corrections < 0:
            raise InputError(f"corrections {self.corrections}: expected 0 or more")
        if not self.correction_temperature >= 0:
            raise InputError(f"correction_temperature {self.correction_temperature}: expected ≥ 0")
        _ = self.path  # which checks its own option

    @property
    def cap(self) -> int:
        return self.steps + self.corrections

    @property
    def path(self) -> Path:
        return Hybrid(self.uniform_share)

    def time(self, step: Tensor) -> Tensor | None:
        return None if self.clock == "progress" else (step / self.steps).clamp(max=1)

    def done(self, prediction: Prediction, view: View) -> Tensor:
        agreed = (prediction.logits.argmax(-1) == view.state) | view.clue
        return (view.step >= self.cap) | ((view.step >= self.steps) & agreed.all(-1))

    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        backwards = super().step(prediction, view, chances)
        corrected = self.correct(prediction, view, chances)
        return torch.where((view.step < self.steps)[:, None], backwards, corrected)

    def correct(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        """One token more as the network would have it.  [b, d]"""
        p = tempered(prediction.logits, self.correction_temperature)
        drawn = draw(p, chances.uniform(1)).to(view.state.dtype)
        likely = prediction.logits.log_softmax(-1).gather(-1, drawn[..., None])[..., 0]
        differs = (drawn != view.state) & ~view.clue
        best = likely.masked_fill(~differs, -torch.inf).argmax(-1, keepdim=True)
        here = torch.zeros_like(differs).scatter(-1, best, True) & differs
        return torch.where(here, drawn, view.state)

"""What a sampler is, and what it needs of a model.

A sampler is a frozen dataclass: its fields are its options, its methods say how one step goes. The
engine (engine.py) runs any of them on any number of problems.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from samm.errors import InputError
from samm.process.draw import draw
from samm.process.prediction import Prediction
from samm.process.schedule import Power, Schedule
from samm.recorded import Recorded
from samm.samplers.streams import Chances
from samm.tasks import Batch


class Model(Protocol):
    """A network, or anything that predicts like one."""

    def __call__(self, tokens: Tensor, clue: Tensor, time: Tensor | None = None) -> Prediction: ...


class Compiled:
    """A network compiled for full batches, which a queue keeps full.

    At its end batches shrink: down to a quarter they are filled up with blanks, since compiled code
    is several times faster; smaller ones are left to the network as it is.
    """

    def __init__(self, network: torch.nn.Module, batch: int) -> None:
        self.network, self.batch = network, batch
        self.full = Recorded(torch.compile(network, dynamic=False))

    def __call__(self, tokens: Tensor, clue: Tensor, time: Tensor | None = None) -> Prediction:
        size = len(tokens)
        if size > self.batch or 4 * size < self.batch:
            whole: Prediction = self.network(tokens, clue, time)
            return whole
        missing = self.batch - size
        tokens, clue = (torch.nn.functional.pad(x, (0, 0, 0, missing)) for x in (tokens, clue))
        if time is not None:
            time = torch.nn.functional.pad(time, (0, missing))
        padded: Prediction = self.full(tokens, clue, time)
        return padded[:size]


@dataclass(frozen=True)
class View(Batch):
    """The examples that a sampler is working on, each at a step of its own."""

    state: Tensor
    """[b, d]"""
    clue: Tensor
    """[b, d]"""
    step: Tensor
    """[b] steps taken so far."""


@dataclass(frozen=True)
class Sampler(ABC):
    """One way from clues and masks to an answer."""

    name: ClassVar[str]
    learned_stop: ClassVar[bool] = False
    """Does the network decide when to stop?"""
    verifier: ClassVar[bool] = False
    """Does it ask the rules of the task?"""

    steps: int = 64
    """The most steps an example takes."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise InputError(f"steps {self.steps}: expected at least 1")

    @property
    def cap(self) -> int:
        """The most steps of all, whatever they are for."""
        return self.steps

    def start(self, problems: Tensor, clue: Tensor, chances: Chances) -> Tensor:
        """The first state [b, d] for problems (clues and masks) [b, d]."""
        return problems

    def time(self, step: Tensor) -> Tensor | None:
        """What the network is told of the time, if anything.  [b]"""
        return None

    @abstractmethod
    def done(self, prediction: Prediction, view: View) -> Tensor:
        """Which examples have come to their end.  [b]"""

    @abstractmethod
    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        """The next state; clues stay.  [b, d]"""

    def finish(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        """The answer of an example that leaves.  [b, d]"""
        return view.state

    def confidence(self, prediction: Prediction, answer: Tensor) -> Tensor:
        """How sure the network is of every position of the answer: p of what stands there.

        [b, d]; 0 at masks.
        """
        padded = torch.nn.functional.pad(prediction.probabilities, (0, 1))
        return padded.gather(-1, answer[..., None])[..., 0]


@dataclass(frozen=True)
class Scheduled(Sampler):
    """A rival: a fixed number of steps from t = 0 to t = 1, without a learned stop.

    Masks that are left at the end are filled from p.
    """

    exponent: float = 2.0
    """Of the schedule κ_t = t^a."""
    clock: str = "schedule"
    """schedule: t = step/steps; progress: t = τ_θ(z), the network's own (eq:real time)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.clock not in ("schedule", "progress"):
            raise InputError(f"clock '{self.clock}': expected schedule or progress")
        _ = self.schedule  # which checks its own option

    @property
    def schedule(self) -> Schedule:
        return Power(self.exponent)

    def time(self, step: Tensor) -> Tensor | None:
        """The schedule's time; a network that reads its own clock is told none."""
        return step / self.steps if self.clock == "schedule" else None

    def span(self, prediction: Prediction, step: Tensor) -> tuple[Tensor, Tensor]:
        """From which time to which a step goes.  [b] twice"""
        if self.clock == "schedule":
            return step / self.steps, (step + 1) / self.steps
        t = prediction.progress.clamp(max=1 - 1e-6)
        return t, (t + 1 / self.steps).clamp(max=1)

    def done(self, prediction: Prediction, view: View) -> Tensor:
        """At t = 1, or where nothing is masked: most samplers never touch a token again."""
        full = (view.state != prediction.logits.shape[-1]).all(-1)
        return full | (view.step >= self.steps)

    def finish(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        drawn = draw(prediction.probabilities, chances.uniform()).to(view.state.dtype)
        return torch.where(view.state == prediction.logits.shape[-1], drawn, view.state)


@dataclass(frozen=True)
class Independent(Scheduled):
    """A rival whose positions move independently: its transition probabilities say all."""

    @abstractmethod
    def transition(self, prediction: Prediction, view: View) -> Tensor:
        """P(next | state) at every free position, the mask last.  [b, d, K + 1]"""

    def step(self, prediction: Prediction, view: View, chances: Chances) -> Tensor:
        moved = draw(self.transition(prediction, view), chances.uniform())
        return torch.where(view.clue, view.state, moved.to(view.state.dtype))


def held(state: Tensor, vocabulary: int) -> Tensor:
    """The state as probabilities.  [b, d] -> [b, d, K + 1]"""
    return torch.nn.functional.one_hot(state, vocabulary + 1).float()

"""What samplers need of a model."""

from typing import Protocol

from torch import Tensor

from samm.process.prediction import Prediction


class Model(Protocol):
    """A network, or anything that predicts like one."""

    def __call__(self, tokens: Tensor, clue: Tensor, time: Tensor | None = None) -> Prediction: ...

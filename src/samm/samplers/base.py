"""What samplers need of a model."""

from typing import Protocol

from torch import Tensor

from samm.process.prediction import Prediction


class Model(Protocol):
    """A network, or anything that predicts like one."""

    def __call__(
        self, tokens: Tensor, clue: Tensor, pad: Tensor | None = None, time: Tensor | None = None
    ) -> Prediction: ...


def padding(pad: Tensor) -> Tensor | None:
    """The padding mask, or None where nothing is padded (which lets attention run faster)."""
    return pad if bool(pad.any()) else None

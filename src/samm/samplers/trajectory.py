"""What happened on the way: every state of an example, and what the network thought of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from samm.samplers.engine import Frame


@dataclass(frozen=True)
class Trajectory:
    """One example, from its start to its last state."""

    states: Tensor
    """[T + 1, d]"""
    confidence: Tensor
    """[T + 1, d] c of every state."""
    certainty: Tensor
    """[T + 1, d] the largest probability at every position."""
    progress: Tensor
    """[T + 1] τ of every state."""


@dataclass
class Recorder:
    """Give it to `sample` as `watch`, and it keeps the trajectories of some of the examples."""

    wanted: Sequence[int]
    """Numbers of the examples."""
    _frames: dict[int, list[tuple[Tensor, ...]]] = field(default_factory=dict)

    def __call__(self, frame: Frame) -> None:
        numbers = torch.tensor(list(self.wanted), device=frame.index.device)
        rows = torch.isin(frame.index, numbers).nonzero()[:, 0]
        seen = frame.prediction
        parts = (
            frame.view.state[rows],
            seen.confidence[rows],
            seen.logits[rows].softmax(-1).amax(-1),
            seen.progress[rows],
        )
        on_host = [part.cpu() for part in parts]
        for place, number in enumerate(frame.index[rows].tolist()):
            self._frames.setdefault(number, []).append(tuple(part[place] for part in on_host))

    def __getitem__(self, number: int) -> Trajectory:
        columns = zip(*self._frames[number], strict=True)
        return Trajectory(*(torch.stack(column) for column in columns))

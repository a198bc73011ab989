"""Training batches drawn and augmented on the device.

The whole data lives there as uint8. A batch is a function of (seed, step): rows are drawn with
replacement, each from one of the sets with the probability of its weight, and mapped by random
symmetries of the task. Nothing crosses to the host.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from samm.data.format import Dataset
from samm.errors import InputError
from samm.randomness import mix
from samm.tasks import Task

AT_ONCE = 8192
"""Problems drawn together: on a GPU a small batch costs no less than a larger one."""


class Batches:
    """A weighted mixture of data sets on a device."""

    def __init__(
        self,
        datasets: Sequence[Dataset],
        batch_size: int,
        seed: int,
        device: torch.device | str = "cpu",
        weights: Sequence[float] | None = None,
        augment: bool = True,
    ) -> None:
        weights = [1.0] * len(datasets) if weights is None else list(weights)
        _refuse_unfit(datasets, weights, batch_size)
        self.task: Task = datasets[0].task
        self.batch_size, self.seed, self.augmented = batch_size, seed, augment
        self.tokens = _to_device([d.tokens for d in datasets], device)  # [N, d]
        self.answers = _to_device([d.answers for d in datasets], device)
        sizes = torch.tensor([len(d) for d in datasets])
        share = torch.tensor(weights, dtype=torch.float64).cumsum(0)
        self._sizes = sizes.to(device)
        self._starts = (sizes.cumsum(0) - sizes).to(device)
        self._shares = (share / share[-1])[:-1].float().to(device)
        self.generator = torch.Generator(self.tokens.device)
        self.ahead = max(1, AT_ONCE // batch_size)
        self._number: int | None = None
        self._drawn = (self.tokens[:0], self.answers[:0])

    def draw(self, step: int) -> tuple[Tensor, Tensor]:
        """Tokens (clues and masks) and answers of batch number `step`.  [B, d] twice, uint8"""
        number, place = divmod(step, self.ahead)
        if number != self._number:
            self._number, self._drawn = number, self._draw(number)
        rows = slice(place * self.batch_size, (place + 1) * self.batch_size)
        tokens, answers = self._drawn
        return tokens[rows], answers[rows]

    def _draw(self, number: int) -> tuple[Tensor, Tensor]:
        """Batches number · ahead, number · ahead + 1, ... in a row."""
        self.generator.manual_seed(mix(self.seed, number))
        rows = self._rows(self.ahead * self.batch_size)
        tokens, answers = self.tokens[rows], self.answers[rows]
        if self.augmented:
            return self.task.augment(tokens, answers, self.generator)
        return tokens, answers

    def _rows(self, count: int) -> Tensor:
        shape, device, generator = (count,), self.tokens.device, self.generator
        place = torch.rand(shape, device=device, generator=generator)
        chosen = torch.bucketize(place, self._shares, right=True)  # which set, [B]
        offset = torch.randint(1 << 62, shape, device=device, generator=generator)
        rows: Tensor = self._starts[chosen] + offset % self._sizes[chosen]
        return rows


def _refuse_unfit(datasets: Sequence[Dataset], weights: list[float], batch_size: int) -> None:
    if not datasets:
        raise InputError("no data set to draw from")
    if len(weights) != len(datasets):
        raise InputError(f"{len(weights)} weights for {len(datasets)} data sets")
    if any(not np.isfinite(w) or w < 0 for w in weights) or sum(weights) == 0:
        raise InputError(f"weights {weights}: expected numbers ≥ 0, not all 0")
    if batch_size < 1:
        raise InputError(f"batch size {batch_size}: expected at least 1")
    for number, dataset in enumerate(datasets, 1):
        if len(dataset) == 0:
            raise InputError(f"data set {number} is empty")
        if dataset.task != datasets[0].task:
            raise InputError(
                f"data set {number} holds problems of {dataset.task.spec()}, "
                f"the first one of {datasets[0].task.spec()}"
            )


def _to_device(arrays: list[np.ndarray], device: torch.device | str) -> Tensor:
    joined = np.concatenate(arrays)
    if joined.dtype != np.uint8:  # torch computes little in uint16
        joined = joined.astype(np.int32)
    return torch.from_numpy(joined).to(device)

"""CUDA graphs: a thousand small launches become one.

A step of a small network is over on a GPU before the CPU has launched its kernels one by one. A
recorded function is launched whole, and costs the CPU next to nothing.
"""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, cast

import torch
from torch import Tensor

WARM_UP = 2
"""Calls before the recording: compilers compile, libraries and optimisers allocate."""


R = TypeVar("R")


class Recorded(Generic[R]):
    """A function of tensors, recorded at its third call and replayed from then on.

    What the function does to tensors of its own (gradients, weights) is replayed too; what it does
    in Python is not. One recording is kept for each kind of arguments (shapes, and values of what
    is no tensor). Results are copies: a tensor, or tensors that travel together.
    """

    def __init__(self, function: Callable[..., R]) -> None:
        self.function = function
        self.calls: dict[Hashable, int] = {}
        self.recordings: dict[Hashable, _Recording[R]] = {}

    def __call__(self, *args: Any) -> R:
        if any(isinstance(x, Tensor) and not x.is_cuda for x in args):
            return self.function(*args)  # nothing to record elsewhere
        kind = tuple((x.shape, x.dtype) if isinstance(x, Tensor) else x for x in args)
        if self.calls.setdefault(kind, 0) < WARM_UP:
            self.calls[kind] += 1
            return self.function(*args)
        if kind not in self.recordings:
            self.recordings[kind] = _Recording(self.function, args)
        return self.recordings[kind].replay(args)


class _Recording(Generic[R]):
    """One CUDA graph, with the places that it reads from and writes to."""

    def __init__(self, function: Callable[..., R], args: tuple[Any, ...]) -> None:
        self.inputs = tuple(x.clone() if isinstance(x, Tensor) else x for x in args)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = function(*self.inputs)

    def replay(self, args: tuple[Any, ...]) -> R:
        for place, value in zip(self.inputs, args, strict=True):
            if isinstance(place, Tensor):
                place.copy_(value)
        self.graph.replay()
        result: Any = self.result  # the next replay writes to the same places
        copied = torch.clone(result) if isinstance(result, Tensor) else result.map(torch.clone)
        return cast("R", copied)

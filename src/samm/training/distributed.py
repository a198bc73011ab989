"""Data-parallel training: what torchrun says, and the sum of gradients."""

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import distributed, nn

from samm.errors import InputError


@dataclass(frozen=True)
class World:
    """Which of how many processes this one is."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Does this process write logs and checkpoints?"""
        return self.rank == 0

    def rows(self, batch: int) -> slice:
        """The part of a global batch that belongs to this process."""
        if batch % self.size:
            raise InputError(
                f"training.batch_size = {batch} is not a multiple of the {self.size} processes"
            )
        part = batch // self.size
        return slice(self.rank * part, (self.rank + 1) * part)

    def add_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients of all processes, in one message."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        distributed.all_reduce(flat)
        parts = torch.split(flat, [g.numel() for g in gradients])
        torch._foreach_copy_(
            gradients, [p.view_as(g) for p, g in zip(parts, gradients, strict=True)]
        )

    def add(self, value: torch.Tensor) -> torch.Tensor:
        """Sum a tensor over all processes."""
        if self.size > 1:
            distributed.all_reduce(value)
        return value

    def any(self, flag: bool, device: torch.device) -> bool:
        """Is `flag` set in any process?"""
        if self.size == 1:
            return flag
        return bool(self.add(torch.tensor(float(flag), device=device)) > 0)

    def wait(self) -> None:
        if self.size > 1:
            distributed.barrier()


def join() -> tuple[World, str | None]:
    """The world that torchrun set up, and the device it gives this process (None: no torchrun)."""
    if "LOCAL_RANK" not in os.environ:
        return World(), None
    cuda = torch.cuda.is_available()
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if cuda else "gloo")
    device = f"cuda:{os.environ['LOCAL_RANK']}" if cuda else "cpu"
    if cuda:
        torch.cuda.set_device(device)
    return World(distributed.get_rank(), distributed.get_world_size()), device


def leave() -> None:
    if distributed.is_initialized():
        distributed.destroy_process_group()

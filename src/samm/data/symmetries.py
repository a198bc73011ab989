"""The symmetries of Sudoku applied to whole batches, on any device, without leaving it."""

import torch
from torch import Tensor


def random_permutations(
    count: int, size: int, generator: torch.Generator, groups: int = 1
) -> Tensor:
    """Uniform permutations of 0..size-1.  [count, groups, size]

    The rank of distinct random keys: elementwise work, much faster than sorting short rows.
    """
    assert size <= 32
    shape, device = (count, groups, size), generator.device
    keys = torch.randint(1 << 26, shape, generator=generator, device=device, dtype=torch.int32)
    keys = keys * 32 + torch.arange(size, dtype=torch.int32, device=device)  # no two are equal
    return (keys[..., None, :] < keys[..., :, None]).sum(-1, dtype=torch.int32)


def random_lines(count: int, group: int, groups: int, generator: torch.Generator) -> Tensor:
    """Random orders of `groups` groups of `group` lines that keep groups together.  [count, n]"""
    outer = random_permutations(count, groups, generator)[:, 0, :, None]  # [count, groups, 1]
    inner = random_permutations(count, group, generator, groups)  # [count, groups, group]
    return (outer * group + inner).flatten(1)


def random_cells(count: int, box: tuple[int, int], generator: torch.Generator) -> Tensor:
    """For every cell of a random image, the cell it comes from.  [count, n·n]"""
    box_rows, box_cols = box
    n = box_rows * box_cols
    rows = random_lines(count, box_rows, box_cols, generator)
    columns = random_lines(count, box_cols, box_rows, generator)
    cells = rows[:, :, None] * n + columns[:, None, :]  # [count, n, n]
    if box_rows == box_cols:
        device = generator.device
        flip = torch.rand(count, 1, 1, generator=generator, device=device) < 0.5
        transposed = rows[:, None, :] * n + columns[:, :, None]
        cells = torch.where(flip, transposed, cells)
    return cells.flatten(1)


def random_relabelling(count: int, digits: int, generator: torch.Generator) -> Tensor:
    """New names of the tokens; the mask (token `digits`) keeps its own.  [count, digits + 1]"""
    names = random_permutations(count, digits, generator)[:, 0]
    return torch.nn.functional.pad(names, (0, 1), value=digits)


def apply(tokens: Tensor, cells: Tensor, names: Tensor) -> Tensor:
    """Move and relabel tokens [B, d]; any integer type, which is kept."""
    moved = tokens.gather(1, cells.long())
    return names.to(tokens.dtype).gather(1, moved.long())

"""Where a position lies: rotary angles over any number of axes, and the embedding of a state."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samm.config import NetworkConfig
from samm.tasks import Coordinates


def rotary_angles(axes: Tensor, pairs: int, base: float) -> Tensor:
    """Angles by which the feature pairs of a head turn at every position.  [d, A] -> [d, pairs]

    The pairs are dealt out evenly over the axes; pair k of an axis with n of them turns by
    coordinate · base^(-k/n).
    """
    count = axes.shape[1]
    parts = []
    for axis in range(count):
        n = pairs // count + (axis < pairs % count)
        frequency = base ** -(torch.arange(n, dtype=torch.float32) / max(n, 1))
        parts.append(axes[:, axis : axis + 1].float() * frequency)
    return torch.cat(parts, 1)


def turn(angles: Tensor) -> tuple[Tensor, Tensor]:
    """What `rotate` multiplies with.  [d, pairs] -> [d, 1, features] twice"""
    cosine, sine = angles.cos(), angles.sin()
    return torch.cat([cosine, cosine], 1)[:, None], torch.cat([-sine, sine], 1)[:, None]


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn the feature pairs (k, k + half) of every head of [B, d, heads, features].

    Not by joining two halves: compilers make slow, branching code of that.
    """
    return x * cosine + x.roll(x.shape[-1] // 2, -1) * sine


def look_up(table: Tensor, index: Tensor) -> Tensor:
    """Rows of a table.  [N, width], [..] -> [.., width]

    Of a small table by a product with one-hot vectors: its backward pass is a product too, where
    an ordinary look-up would add up a whole batch in a handful of rows, one element at a time.
    """
    if len(table) > 64:
        return F.embedding(index, table)
    return F.one_hot(index, len(table)).to(table.dtype) @ table


class StateEmbedding(nn.Module):
    """Token + clue flag + position + groups.  [B, d] -> [B, d, width]"""

    def __init__(self, config: NetworkConfig, vocabulary: int, coordinates: Coordinates) -> None:
        super().__init__()
        width, length = config.width, len(coordinates.axes)
        self.token = nn.Parameter(torch.randn(vocabulary + 1, width) * 0.5)
        self.clue = nn.Parameter(torch.randn(2, width) * 0.5)
        self.position = (
            nn.Parameter(torch.randn(length, width) * 0.02) if config.positions else None
        )
        sizes = coordinates.group_sizes if config.groups else ()
        self.groups = nn.ParameterList(torch.randn(size, width) * 0.3 for size in sizes)
        self.register_buffer("members", coordinates.groups.T.contiguous(), persistent=False)
        self.members: Tensor

    def forward(self, tokens: Tensor, clue: Tensor) -> Tensor:
        place = torch.zeros_like(self.token[:1])
        if self.position is not None:
            place = place + self.position
        for table, member in zip(self.groups, self.members, strict=False):
            place = place + table[member]
        return look_up(self.token, tokens) + look_up(self.clue, clue.long()) + place

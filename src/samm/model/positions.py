"""Where a position lies: rotary angles over any number of axes, and the embedding of a state."""

import torch
from torch import Tensor, nn

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


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn the feature pairs (k, k + half) of [.., d, features] by the angles [d, features/2]."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cosine - second * sine, first * sine + second * cosine], -1)


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
        return self.token[tokens] + self.clue[clue.long()] + place

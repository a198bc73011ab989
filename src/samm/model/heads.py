"""The two lightweight heads: when to commit, and when to stop."""

from torch import Tensor, nn

from samm.config import NetworkConfig
from samm.model.blocks import Block


def mlp(inputs: int, hidden: int, layers: int) -> nn.Sequential:
    """`layers` linear maps with GELU between them, to one number."""
    parts: list[nn.Module] = []
    for _ in range(layers - 1):
        parts += [nn.Linear(inputs, hidden), nn.GELU()]
        inputs = hidden
    return nn.Sequential(*parts, nn.Linear(inputs, 1))


class FreePooling(nn.Module):
    """Attention pooling over the free positions.  [B, d, width] -> [B, width]"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x: Tensor, clue: Tensor) -> Tensor:
        # A large finite number instead of -inf: a problem without free positions pools evenly.
        score = self.score(x)[..., 0].float().masked_fill(clue, -1e9)
        pooled: Tensor = (score.softmax(-1)[..., None] * x).sum(1)
        return pooled


class Heads(nn.Module):
    """Commit and stop logits from the trunk's features.

    `mlp`: a small MLP per position, and one on the pooled features. `streams`: the paper's two
    parallel streams, read as one more block for each head and, for the commit head, the pooled
    context added to each position's own features (a pooled vector alone could not be per position).
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        width, hidden = config.width, config.head_width or config.width // 2
        self.commit = mlp(width, hidden, config.head_layers)
        self.pool = FreePooling(width)
        self.stop = mlp(width, hidden, config.head_layers)
        streams = config.head == "streams"
        self.commit_stream = Block(config) if streams else None
        self.stop_stream = Block(config) if streams else None
        self.context = FreePooling(width) if streams else None

    def forward(
        self,
        x: Tensor,
        clue: Tensor,
        turn: tuple[Tensor, Tensor],
        seen: Tensor | None,
        time: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """[B, d, width] -> commit [B, d], stop [B]"""
        for_commit = for_stop = x
        if self.commit_stream is not None and self.stop_stream is not None and self.context:
            for_commit = self.commit_stream(x, turn, seen, time)
            for_commit = for_commit + self.context(for_commit, clue)[:, None]
            for_stop = self.stop_stream(x, turn, seen, time)
        commit = self.commit(for_commit)[..., 0]
        stop = self.stop(self.pool(for_stop, clue))[..., 0]
        return commit.float(), stop.float()

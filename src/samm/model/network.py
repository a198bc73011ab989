"""The network: a state goes in, a prediction with confidence and progress comes out."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samm.config import NetworkConfig
from samm.model.blocks import Block, Norm, TimeEmbedding, normalise, zero
from samm.model.heads import Heads
from samm.model.positions import StateEmbedding, rotary_angles, turn
from samm.process.prediction import Prediction, committed_share
from samm.tasks import Coordinates, Task


def _behind(x: Tensor, first: int) -> Tensor:
    """What stood one position before.  [B, d]"""
    return F.pad(x[:, :-1], (1, 0), value=first)


class TiedHead(nn.Module):
    """Token logits by the table that embeds tokens (its last row is the mask)."""

    def __init__(self, table: nn.Parameter) -> None:
        super().__init__()
        self.table = [table]  # in a list: the parameter belongs to the embedding
        self.bias = nn.Parameter(torch.zeros(len(table) - 1))

    def forward(self, x: Tensor) -> Tensor:
        table = self.table[0][:-1] * x.shape[-1] ** -0.5
        return F.linear(x, table.to(x.dtype), self.bias.to(x.dtype))


class Network(nn.Module):
    """T_θ(z, clue) -> (logits, commit, stop), eq:network.

    Depth is layers × loops: each loop normalises the hidden state, adds the embedded state again
    and runs the same layers. One loop is an ordinary transformer.
    """

    def __init__(self, config: NetworkConfig, task: Task) -> None:
        super().__init__()
        self.config, self.task = config, task
        coordinates = task.coordinates
        axes = coordinates.axes if config.rotary == "axes" else Coordinates.line(task.length).axes
        angles = rotary_angles(axes, config.width // config.heads // 2, config.rotary_base)
        cosine, sine = turn(angles)
        self.register_buffer("cosine", cosine, persistent=False)
        self.register_buffer("sine", sine, persistent=False)
        self.register_buffer("allowed", task.allowed, persistent=False)
        self.cosine: Tensor
        self.sine: Tensor
        self.allowed: Tensor | None
        self.embedding = StateEmbedding(config, task.vocabulary, coordinates)
        self.start = nn.Parameter(torch.zeros(config.width))
        self.time = TimeEmbedding(config.width) if config.time != "none" else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = Norm(config.width)
        self.modulate = (
            zero(nn.Linear(config.width, 2 * config.width)) if config.time == "adaln" else None
        )
        self.tokens = (
            TiedHead(self.embedding.token)
            if config.tied
            else nn.Linear(config.width, task.vocabulary)
        )
        self.heads = Heads(config)

    def forward(
        self,
        tokens: Tensor,
        clue: Tensor,
        time: Tensor | None = None,
        loops: int | None = None,
    ) -> Prediction:
        """States [B, d] with clues [B, d].

        `time` [B] conditions networks that want one; by default it is the share of free positions
        that hold a token. `loops` replaces the configured number.
        """
        seen = None  # [B, 1, 1, d] where something is padded
        if self.task.pad is not None:
            seen = ~(clue & (tokens == self.task.pad))[:, None, None, :]
        before = (_behind(tokens, self.task.mask), _behind(clue, True))
        state, condition = self.embed(*(before if self.config.causal else (tokens, clue)), time)
        h = self.start.to(state.dtype).expand_as(state).contiguous()
        for _ in range(self.config.loops if loops is None else loops):
            h = self.loop(h, state, seen, condition)
        return self.read(h, clue, seen, condition)

    def embed(
        self, tokens: Tensor, clue: Tensor, time: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The embedded state [B, d, width], and what AdaLN is conditioned on [B, width]."""
        state, condition = self.embedding(tokens, clue), None
        if self.time is not None:
            if time is None:
                time = committed_share(tokens, clue, self.task.mask)
            condition = self.time(time)
            if self.config.time == "additive":
                state, condition = state + condition[:, None], None
        if torch.is_autocast_enabled(state.device.type):
            # The residual stream too: most of the time goes into moving it through memory.
            state = state.to(torch.get_autocast_dtype(state.device.type))
        return state, condition

    def loop(
        self, h: Tensor, state: Tensor, seen: Tensor | None, condition: Tensor | None
    ) -> Tensor:
        """Once through the layers."""
        h = normalise(h) + state
        for block in self.blocks:
            h = block(h, (self.cosine, self.sine), seen, condition)
        return h

    def read(
        self, h: Tensor, clue: Tensor, seen: Tensor | None, condition: Tensor | None
    ) -> Prediction:
        """What the heads make of the hidden state."""
        h = self.norm(h)
        if self.modulate is not None and condition is not None:
            shift, scale = self.modulate(F.silu(condition))[:, None].chunk(2, -1)
            h = h * (1 + scale) + shift
        logits = self.tokens(h).float()
        if self.config.logit_clip is not None:
            logits = logits.clamp(-self.config.logit_clip, self.config.logit_clip)
        if self.allowed is not None:
            logits = logits.masked_fill(~self.allowed, -torch.inf)
        commit, stop = self.heads(h, clue, (self.cosine, self.sine), seen, condition)
        return Prediction(logits, commit, stop)

    @property
    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())

    @property
    def hidden_matrices(self) -> list[nn.Parameter]:
        """The matrices of the blocks: what Muon moves."""
        return [
            p
            for name, p in self.named_parameters()
            if p.ndim == 2 and (name.startswith("blocks.") or "_stream." in name)
        ]

    def flops(self, loops: int | None = None) -> int:
        """Floating-point operations of one forward pass of one example, a product counted as two.

        Matrices and attention; element-wise work is left out.
        """
        d, width = self.task.length, self.config.width
        per_block = 2 * d * (4 + 2 * self.config.mlp_ratio) * width**2 + 4 * d * d * width
        blocks = self.config.layers * (self.config.loops if loops is None else loops)
        if self.config.head == "streams":
            blocks += 2
        heads = sum(p.numel() for name, p in self.heads.named_parameters() if "_stream" not in name)
        return blocks * per_block + 2 * d * (width * self.task.vocabulary + heads)

    def good_batch(self, device: torch.device) -> int:
        """How many states to look at together: thousands on a GPU, what caches hold on a CPU."""
        if device.type != "cpu":
            return 4096
        hidden = 2 * self.task.length * self.config.mlp_ratio * self.config.width  # bytes
        return min(max(1_400_000 // hidden, 1), 128)

    def spec(self) -> dict[str, Any]:
        """What rebuilds this network, next to its weights."""
        import dataclasses

        return {"task": self.task.spec(), "network": dataclasses.asdict(self.config)}

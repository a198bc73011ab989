"""Transformer blocks: pre-norm, RMSNorm, normalised queries and keys, rotary positions, GELU."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from samm.config import NetworkConfig
from samm.model.positions import rotate


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A map without bias that keeps the scale of its input."""
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.normal_(layer.weight, std=inputs**-0.5)
    return layer


def zero(layer: nn.Linear) -> nn.Linear:
    """Output projections start at zero: every block begins as the identity."""
    nn.init.zeros_(layer.weight)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer


def normalise(x: Tensor, weight: Tensor | None = None) -> Tensor:
    """RMSNorm over the features; the same in every number format."""
    return F.rms_norm(x, x.shape[-1:], None if weight is None else weight.to(x.dtype), eps=1e-6)


class Norm(nn.Module):
    """RMSNorm with a learned scale."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: Tensor) -> Tensor:
        return normalise(x, self.weight)


class Attention(nn.Module):
    """Every position looks at every other one that is not padding, or at those up to itself."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.heads, self.dropout, self.causal = config.heads, config.dropout, config.causal
        self.project = linear(config.width, 3 * config.width)
        self.out = zero(linear(config.width, config.width))

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor], seen: Tensor | None) -> Tensor:
        b, d, width = x.shape
        q, k, v = self.project(x).view(b, d, 3, self.heads, width // self.heads).unbind(2)
        q, k = (rotate(normalise(part), *turn).to(v.dtype) for part in (q, k))
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))  # [B, heads, d, features]
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(
            q, k, v, None if self.causal else seen, dropout, is_causal=self.causal
        )
        result: Tensor = self.out(y.transpose(1, 2).reshape(b, d, width))
        return result


class Mlp(nn.Module):
    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        hidden = config.mlp_ratio * config.width
        self.up = linear(config.width, hidden)
        self.down = zero(linear(hidden, config.width))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down(F.gelu(self.up(x), approximate="tanh"))
        return result


class Block(nn.Module):
    """Attention, then MLP. With AdaLN, the time shifts, scales and gates both (DiT)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.attention_norm = Norm(config.width)
        self.attention = Attention(config)
        self.mlp_norm = Norm(config.width)
        self.mlp = Mlp(config)
        self.dropout = nn.Dropout(config.dropout)
        self.modulate = (
            zero(nn.Linear(config.width, 6 * config.width)) if config.time == "adaln" else None
        )

    def forward(
        self,
        x: Tensor,
        turn: tuple[Tensor, Tensor],
        seen: Tensor | None = None,
        time: Tensor | None = None,
    ) -> Tensor:
        if self.modulate is None or time is None:
            x = x + self.dropout(self.attention(self.attention_norm(x), turn, seen))
            y = self.dropout(self.mlp(self.mlp_norm(x)))
            return torch.add(x, y)
        # Gates start at 1 instead of DiT's 0: the output projections are zero already.
        parts = self.modulate(F.silu(time))[:, None].chunk(6, -1)  # each [B, 1, width]
        shift, scale, gate = parts[:3]
        y = self.attention_norm(x) * (1 + scale) + shift
        x = x + (1 + gate) * self.dropout(self.attention(y, turn, seen))
        shift, scale, gate = parts[3:]
        y = self.mlp_norm(x) * (1 + scale) + shift
        y = self.dropout(self.mlp(y))
        return torch.addcmul(x, 1 + gate, y)


class TimeEmbedding(nn.Module):
    """Sinusoids of t in [0, 1], then a two-layer MLP.  [B] -> [B, width]"""

    def __init__(self, width: int, features: int = 256) -> None:
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(features, width), nn.SiLU(), nn.Linear(width, width))
        scale = torch.exp(-math.log(10_000) * torch.arange(features // 2) / (features // 2))
        self.register_buffer("frequency", 1000 * scale, persistent=False)
        self.frequency: Tensor

    def forward(self, t: Tensor) -> Tensor:
        angle = t.float()[:, None] * self.frequency
        result: Tensor = self.mlp(torch.cat([angle.cos(), angle.sin()], -1))
        return result

"""Drawing tokens: one uniform number per position picks from a distribution."""

import torch
from torch import Tensor


def draw(probabilities: Tensor, chance: Tensor) -> Tensor:
    """The token at which the summed probabilities pass `chance` ∈ [0, 1).  [.., K], [..] -> [..]

    Distributions need not be normalised; impossible tokens are never drawn.
    """
    sums = probabilities.cumsum(-1)
    passed = (sums <= (chance * sums[..., -1])[..., None]).sum(-1)
    drawn = passed.clamp(max=probabilities.shape[-1] - 1)
    # Sums that a GPU makes in parallel need not grow from term to term: rounding could let a
    # token of probability 0 be the one that passes.
    possible = probabilities.gather(-1, drawn[..., None])[..., 0] > 0
    return torch.where(possible, drawn, probabilities.argmax(-1))

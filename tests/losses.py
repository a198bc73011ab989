"""Predictions to try losses on, and the gradients of a loss in them."""

import torch
from torch import Tensor

from samm.process.objective import Objective, Share, State
from samm.process.prediction import Prediction

K, B, D = 5, 4, 6
FIELDS = ("logits", "commit", "stop")


def problem(seed: int = 0) -> tuple[Prediction, State]:
    """A prediction in double precision on a state with right, wrong and masked positions."""
    random = torch.Generator().manual_seed(seed)
    answers = torch.randint(K, (B, D), generator=random)
    clue = torch.rand(B, D, generator=random) < 0.3
    tokens = torch.where(clue, answers, torch.randint(K + 1, (B, D), generator=random))
    real = {"generator": random, "dtype": torch.float64}
    prediction = Prediction(
        torch.randn(B, D, K, **real), torch.randn(B, D, **real), torch.randn(B, **real)
    )
    return prediction, State(tokens, answers, clue, torch.rand(B, generator=random))


def gradients(objective: Objective, prediction: Prediction, state: State) -> dict[str, Tensor]:
    leaves = {name: getattr(prediction, name).clone().requires_grad_() for name in FIELDS}
    loss = objective(Prediction(**leaves), state, Share.of(state.clue))
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    return {
        name: torch.zeros_like(leaf) if gradient is None else gradient
        for (name, leaf), gradient in zip(leaves.items(), found, strict=True)
    }

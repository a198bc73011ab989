"""CUDA graphs: the same results as without, where there is a GPU; the function itself elsewhere."""

import pytest
import torch
from torch import Tensor

from samm.process.prediction import Prediction
from samm.recorded import WARM_UP, Recorded


def prediction(x: Tensor, factor: int | None) -> Prediction:
    return Prediction(x[..., None] * (factor or 1), x + 1, x.sum(-1))


def test_nothing_is_recorded_on_a_cpu() -> None:
    recorded = Recorded(prediction)
    x = torch.arange(6.0).view(2, 3)
    for factor in (None, 3):
        for _ in range(WARM_UP + 2):
            assert torch.equal(recorded(x, factor).logits, prediction(x, factor).logits)
    assert not recorded.recordings


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_recordings_follow_their_arguments_and_results_are_copies() -> None:
    recorded = Recorded(prediction)
    kept = []
    for step in range(WARM_UP + 4):
        for factor in (None, 3):
            x = torch.full((2, 3), float(step), device="cuda")
            kept.append((recorded(x, factor), prediction(x, factor)))
    assert len(recorded.recordings) == 2
    for found, expected in kept:
        for name in ("logits", "commit", "stop"):
            assert torch.equal(getattr(found, name), getattr(expected, name))

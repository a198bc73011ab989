"""Who moves what, how fast, and the averaged weights."""

import pytest
import torch

from samm import tasks
from samm.config import NetworkConfig, OptimizerConfig
from samm.model import Network
from samm.training.optimizer import Optimizer, average

task = tasks.get("sudoku", box_rows=2, box_cols=2)


def network() -> Network:
    torch.manual_seed(0)
    return Network(NetworkConfig(width=16, heads=2, layers=1, loops=1), task)


def descend(net: Network, optimizer: Optimizer, step: int) -> None:
    examples = [task.example(0, i) for i in range(4)]
    tokens = torch.stack([e.problem.tokens for e in examples])
    prediction = net(tokens, tokens != task.mask)
    net.zero_grad()
    (
        prediction.logits.square().mean() + prediction.commit.mean() + prediction.stop.mean()
    ).backward()
    optimizer.step(step)


def test_schedules_warm_up_and_fall() -> None:
    optimizer = Optimizer(OptimizerConfig(warmup=10, schedule="cosine", final=0.1), network(), 110)
    scales = [optimizer.scale(step) for step in range(111)]
    assert scales[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert scales[10] == 1
    assert scales[60] == pytest.approx(0.55)
    assert scales[110] == pytest.approx(0.1)
    trapezoid = OptimizerConfig(warmup=10, schedule="trapezoid", cooldown=0.4, final=0.1)
    optimizer = Optimizer(trapezoid, network(), steps=100)
    scales = [optimizer.scale(step) for step in range(101)]
    assert scales[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert set(scales[9:61]) == {1.0}
    assert scales[80] == pytest.approx(0.55)
    assert scales[100] == pytest.approx(0.1)
    constant = Optimizer(OptimizerConfig(warmup=0, final=1.0), network(), steps=50)
    assert {constant.scale(step) for step in range(60)} == {1.0}


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("muon", [torch.optim.AdamW, torch.optim.Muon]),
        ("adamw", [torch.optim.AdamW]),
        ("adam", [torch.optim.Adam]),
    ],
)
def test_every_parameter_has_one_mover(kind: str, types: list[type]) -> None:
    net = network()
    optimizer = Optimizer(OptimizerConfig(kind=kind), net, steps=10)
    assert [type(part) for part in optimizer.parts] == types
    moved = [p for part in optimizer.parts for group in part.param_groups for p in group["params"]]
    assert len(moved) == len({id(p) for p in moved}) == len(list(net.parameters()))


def test_gradients_are_clipped() -> None:
    net = network()
    optimizer = Optimizer(OptimizerConfig(kind="adamw", clip=1e-3), net, steps=10)
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    before = optimizer.step(0)
    assert float(before) == pytest.approx(net.parameter_count**0.5)
    after = torch.stack([p.grad.square().sum() for p in net.parameters()]).sum().sqrt()
    assert float(after) == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("kind", ["muon", "adamw", "adam"])
def test_a_restored_optimizer_goes_on_exactly(kind: str) -> None:
    config = OptimizerConfig(kind=kind, warmup=2)
    one = network()
    first = Optimizer(config, one, steps=10)
    for step in range(3):
        descend(one, first, step)
    two = network()
    two.load_state_dict(one.state_dict())
    second = Optimizer(config, two, steps=10)
    second.restore({k: v.clone() for k, v in first.tensors().items()})
    for step in range(3, 6):
        descend(one, first, step)
        descend(two, second, step)
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert torch.equal(a, b)


def test_average_is_warm_then_slow_and_zero_is_a_copy() -> None:
    averaged, live = [torch.zeros(3)], [torch.ones(3)]
    average(averaged, live, 0.999, step=0)
    assert averaged[0].tolist() == pytest.approx([0.9] * 3)
    averaged = [torch.zeros(3)]
    average(averaged, live, 0.999, step=10**6)
    assert averaged[0].tolist() == pytest.approx([0.001] * 3, rel=1e-3)
    average(averaged, live, 0.0, step=5)
    assert torch.equal(averaged[0], live[0])

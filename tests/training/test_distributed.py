"""Two processes make the update that one makes with the same global batch."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_runs import environment, run, tiny

from samm.errors import InputError
from samm.training import checkpoint
from samm.training.distributed import World

ALIKE = ("--set", "network.dropout=0", "--set", "optimizer.warmup=0", "--steps", 3)


def weights(out: Path, step: int) -> torch.Tensor:
    state = checkpoint.load(out / "checkpoints" / f"step-{step:08d}").train_state
    return torch.cat([v.flatten() for k, v in sorted(state.items()) if k.startswith("live.")])


@pytest.mark.skipif(sys.platform == "win32", reason="torchrun with gloo on one machine")
def test_two_processes_are_one(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    done = run(config, tmp_path / "one", *ALIKE)
    assert done.returncode == 0, done.stderr
    words = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "samm"]
    words += ["train", config, "--out", tmp_path / "two", *ALIKE]
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=180)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("of the held-out puzzles solved") == 1, "one process speaks"

    start = weights(tmp_path / "one", 0)
    assert torch.equal(start, weights(tmp_path / "two", 0))
    one, two = (weights(tmp_path / name, 3) - start for name in ("one", "two"))
    assert float(one.norm()) > 0.1
    # Sums in another order, and Muon's bfloat16 iterations, leave a little.
    assert float((one - two).norm() / one.norm()) < 0.02

    other = run(config, tmp_path / "other", *ALIKE, "--set", "training.batch_size=4")
    assert other.returncode == 0, other.stderr
    half = weights(tmp_path / "other", 3) - start
    assert float((one - half).norm() / one.norm()) > 0.2, "half of the batch would show"


def test_rows_share_the_batch_out() -> None:
    assert [World(rank, 4).rows(12) for rank in range(4)] == [
        slice(0, 3), slice(3, 6), slice(6, 9), slice(9, 12)
    ]  # fmt: skip
    with pytest.raises(InputError, match="batch_size = 10 is not a multiple of the 4 processes"):
        World(0, 4).rows(10)


def test_alone_nothing_is_sent() -> None:
    world, device = World(), torch.device("cpu")
    assert world.any(True, device)
    assert not world.any(False, device)
    value = torch.ones(2)
    assert world.add(value) is value

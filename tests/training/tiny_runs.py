"""Small runs for tests, as commands in processes of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import torch

from samm.training import checkpoint

TINY = """
[task]
name = "sudoku"
box_rows = 2
box_cols = 2
[network]
width = 16
heads = 2
layers = 1
loops = 2
fewest_loops = 1
dropout = 0.1
[states]
steps = [1, 2, 1]
[optimizer]
warmup = 5
schedule = "cosine"
ema = 0.9
[data]
generated = 400
held_out = 20
[training]
batch_size = 8
steps = 60
log_every = 4
evaluate_every = 20
checkpoint_every = 6
evaluation_steps = 4
"""


def tiny(folder: Path) -> Path:
    path = folder / "tiny.toml"
    path.write_text(TINY)
    return path


def command(config: Path, out: Path, *options: object) -> list[str]:
    words = ["train", config, "--out", out, *options]
    return [sys.executable, "-W", "error", "-m", "samm", *map(str, words)]


def environment() -> dict[str, str]:
    """One thread: the processes of a test share two cores with other tests."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "SAMM_DEVICE": "cpu"}


def heed_ctrl_c() -> None:
    """Background jobs of a shell inherit a deaf ear to SIGINT, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=heed_ctrl_c if os.name == "posix" else None,
    )


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, env=environment())


def assert_same_end(one: Path, other: Path) -> None:
    """The last checkpoints agree bit for bit: weights, averaged weights, optimisers."""
    a, b = checkpoint.load(one), checkpoint.load(other)
    assert (a.step, a.config) == (b.step, b.config)
    for ours, theirs in ((a.model, b.model), (a.train_state, b.train_state)):
        assert ours.keys() == theirs.keys()
        different = [name for name in theirs if not torch.equal(ours[name], theirs[name])]
        assert not different

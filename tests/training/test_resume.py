"""A run that is killed or interrupted at any moment and resumed ends as one that was not."""

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from tiny_runs import assert_same_end, run, start, tiny

from samm.training import checkpoint


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A configuration, and the folder of its uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole")
    config, out = tiny(folder), folder / "run"
    done = run(config, out)
    assert done.returncode == 0, done.stderr
    return config, out


def wait_for(condition, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.002)


def metrics(out: Path) -> list[dict[str, float]]:
    """Without what depends on the clock."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    clocks = ("time", "puzzles_per_second", "mfu")
    return [{k: v for k, v in row.items() if k not in clocks} for row in rows]


def test_killed_again_and_again(whole: tuple[Path, Path], tmp_path: Path) -> None:
    config, expected = whole
    out, kills = tmp_path / "run", 0
    moments = random.Random(0)
    while True:
        process = start(config, out, *(["--resume"] if checkpoint.steps(out) else []))
        before = checkpoint.steps(out)
        wait_for(lambda p=process, b=before: p.poll() is not None or checkpoint.steps(out) != b)
        if kills < 4:
            time.sleep(moments.uniform(0, 0.15))  # in the middle of steps, evaluations and saves
        if kills == 4 or process.poll() is not None:
            _, messages = process.communicate(timeout=90)
            assert process.returncode == 0, messages
            break
        process.kill()
        process.communicate()
        kills += 1
    assert kills >= 2
    assert_same_end(out, expected)
    assert metrics(out) == metrics(expected)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(number: int, whole: tuple[Path, Path], tmp_path: Path) -> None:
    config, expected = whole
    out = tmp_path / "run"
    process = start(config, out)
    wait_for(lambda: len(checkpoint.steps(out)) > 1 or process.poll() is not None)
    process.send_signal(number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert "the same command with --resume goes on" in messages
    assert "Traceback" not in messages
    stopped = checkpoint.load(out).step
    assert 0 < stopped < 60
    done = run(config, out, "--resume")
    assert done.returncode == 0, done.stderr
    assert f"resuming at step {stopped}" in done.stderr
    assert_same_end(out, expected)


def test_a_run_is_not_overwritten_or_bent(whole: tuple[Path, Path]) -> None:
    config, out = whole
    before = checkpoint.load(out)
    for options, message in (
        ((), "already holds a run; give --resume"),
        (("--resume", "--set", "optimizer.rate=0.1"), "was begun with another [optimizer]"),
        (("--resume", "--set", "training.seed=1"), "was begun with another [training]"),
        (("--resume", "--steps", 61), "was begun with 60 steps"),
        (("--minutes", 1, "--steps", 5), "contradict each other"),
        (("--minutes", -1), "-1 minutes: expected more than 0"),
    ):
        done = run(config, out, *options)
        assert done.returncode == 2
        assert message in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    assert checkpoint.load(out).train_state.keys() == before.train_state.keys()
    assert_same_end(out, out)


def test_a_finished_run_says_so(whole: tuple[Path, Path]) -> None:
    config, out = whole
    done = run(config, out, "--resume", "--set", "training.log_every=7")  # changes no weights
    assert done.returncode == 0
    assert "of the held-out puzzles solved" in done.stdout


def test_damage_is_named_and_the_last_good_checkpoint_goes_on(
    whole: tuple[Path, Path], tmp_path: Path
) -> None:
    import shutil

    config, expected = whole
    out = tmp_path / "run"
    shutil.copytree(expected, out)
    newest = out / "checkpoints" / "step-00000060"
    state = newest / "train_state.safetensors"
    content = bytearray(state.read_bytes())
    content[5000] ^= 1
    state.write_bytes(content)
    done = run(config, out, "--resume")
    assert done.returncode == 2
    assert f"{state} was altered" in done.stderr
    assert "remove" in done.stderr
    shutil.rmtree(newest)
    done = run(config, out, "--resume")
    assert done.returncode == 0, done.stderr
    assert_same_end(out, expected)


TRAPEZOID = ("--set", "optimizer.schedule=trapezoid")


def test_an_extended_run_ends_as_one_that_was_longer_from_the_start(tmp_path: Path) -> None:
    config = tiny(tmp_path)
    short, long, extended = (tmp_path / name for name in ("short", "long", "extended"))
    for out, steps in ((short, 20), (long, 40)):
        done = run(config, out, *TRAPEZOID, "--steps", steps)
        assert done.returncode == 0, done.stderr
    assert 14 in checkpoint.steps(short)  # 70 % of 20: kept, whatever else is removed
    before = (short / "metrics.jsonl").read_text()
    done = run(config, extended, *TRAPEZOID, "--steps", 40, "--extend", short)
    assert done.returncode == 0, done.stderr
    assert "going on from step 14" in done.stderr
    assert_same_end(extended, long)
    assert (short / "metrics.jsonl").read_text() == before
    first, last = metrics(short), metrics(long)
    expected = [row for row in first if row["step"] <= 14] + [
        row for row in last if row["step"] > 14
    ]
    assert [row["step"] for row in metrics(extended)] == [row["step"] for row in expected]
    assert metrics(extended)[-6:] == metrics(long)[-6:]
    for options, message in (
        (("--steps", 19), "19 steps: the rate would fall from step 13"),
        (("--steps", 40, "--set", "optimizer.rate=0.1"), "begun with another [optimizer]"),
        (("--steps", 40, "--set", "optimizer.schedule=cosine"), "follows the length of a run"),
    ):
        done = run(config, tmp_path / "other", *TRAPEZOID, "--extend", short, *options)
        assert done.returncode == 2
        assert message in done.stderr
        assert not (tmp_path / "other" / "checkpoints").exists()

"""Checkpoints: whole or not at all, every byte checked, in parts, never unpickled."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from samm.config import Config
from samm.errors import InputError
from samm.training import checkpoint

CONFIG = Config.build({"task": {"name": "sudoku"}, "training": {"part_megabytes": 1}})
MODEL = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.bfloat16)}
STATE = {"live.a": torch.randn(700_000), "optimizer.0.1.step": torch.tensor(3.0)}


def save(run: Path, step: int, keep: int = 2) -> Path:
    return checkpoint.save(run, step, CONFIG, MODEL, STATE, keep)


def test_round_trip_in_parts(tmp_path: Path) -> None:
    folder = save(tmp_path, 7)
    names = sorted(path.name for path in folder.iterdir())
    parts = [f"train_state.safetensors.{i:04d}" for i in range(3)]
    assert names == ["config.json", "manifest.json", "model.safetensors", *parts]
    assert all(path.stat().st_size <= 2**20 for path in folder.iterdir())
    for source in (tmp_path, folder):
        found = checkpoint.load(source)
        assert (found.step, found.config) == (7, CONFIG)
        for ours, theirs in ((found.model, MODEL), (found.train_state, STATE)):
            assert ours.keys() == theirs.keys()
            assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (0, 5, 100, 20):
        save(tmp_path, step)
    assert checkpoint.steps(tmp_path) == [20, 100]
    assert checkpoint.load(tmp_path).step == 100


def test_a_missing_part_or_an_altered_byte_is_named_and_the_older_one_is_intact(
    tmp_path: Path,
) -> None:
    save(tmp_path, 1)
    newest = save(tmp_path, 2)
    for path in sorted(newest.iterdir()):
        content = path.read_bytes()
        for damaged in (content[:-1], content[:9] + bytes([content[9] ^ 1]) + content[10:], None):
            path.unlink()
            if damaged is not None:
                path.write_bytes(damaged)
            if path.name == "manifest.json" and damaged is None:
                expected = r"manifest\.json cannot be read"
            else:
                expected = re.escape(path.name)
            with pytest.raises(InputError, match=expected) as refused:
                checkpoint.load(tmp_path)
            assert f"remove {newest} to go on from the checkpoint of step 1" in str(refused.value)
            path.write_bytes(content)
    assert checkpoint.load(tmp_path).step == 2
    assert checkpoint.load(tmp_path / "checkpoints" / "step-00000001").step == 1


@pytest.mark.parametrize("manifest", ["[]", "{}", '{"step": 1, "files": [1]}', "\x00", '{"files":'])
def test_nonsense_in_the_manifest_is_refused(tmp_path: Path, manifest: str) -> None:
    folder = save(tmp_path, 1)
    (folder / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=r"manifest\.json cannot be read"):
        checkpoint.load(tmp_path)


def test_files_that_the_manifest_forgets_are_named(tmp_path: Path) -> None:
    folder = save(tmp_path, 1)
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]["config.json"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"does not list config\.json"):
        checkpoint.load(tmp_path)


def test_an_empty_folder_holds_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no checkpoint"):
        checkpoint.load(tmp_path)


def test_what_a_killed_save_left_is_ignored_and_swept(tmp_path: Path) -> None:
    save(tmp_path, 1)
    left = tmp_path / "checkpoints" / ".step-00000002.unfinished"
    left.mkdir()
    (left / "model.safetensors").write_bytes(b"half")
    assert checkpoint.load(tmp_path).step == 1
    save(tmp_path, 3)
    assert not left.exists()


@pytest.mark.skipif(os.name != "posix", reason="limits the size of files")
def test_a_full_disk_is_an_error_and_the_last_checkpoint_is_intact(tmp_path: Path) -> None:
    """A real refusal of the system: files may not grow beyond 100 kB."""
    save(tmp_path, 1)
    code = (
        "import resource, signal, sys, torch\n"
        "from pathlib import Path\n"
        "sys.path.insert(0, sys.argv[2])\n"
        "from test_checkpoint import save\n"
        "from samm.errors import InputError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try:\n"
        "    save(Path(sys.argv[1]), 2)\n"
        "except InputError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True)
    folder = tmp_path / "checkpoints" / "step-00000002"
    expected = f"{folder} cannot be written: File too large; the checkpoint of step 1 is intact\n"
    assert done.stdout == expected, done.stderr
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000001"]
    assert checkpoint.load(tmp_path).step == 1


def test_nothing_is_ever_unpickled() -> None:
    source = Path(checkpoint.__file__).parents[1]
    for path in source.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"torch\.(load|save)\(|import pickle|allow_pickle=True", text), path

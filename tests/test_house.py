"""The rules of the house: who may import whom, and what the runtime chooses."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from samm import runtime
from samm.errors import InputError

SOURCE = Path(__file__).parents[1] / "src" / "samm"
ORDER = ["tasks", "data", "process", "model", "samplers", "training", "evaluation", "serving"]
# A task may ask these two for its examples and symmetries: they import nothing of the project.
LEAVES = {
    f"samm.data.{name}"
    for name in ("countdown_engine", "sudoku_engine", "sudoku_canonical", "symmetries")
}


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("folder", [name for name in ORDER if (SOURCE / name).is_dir()])
def test_no_folder_imports_a_later_one(folder: str) -> None:
    later = ORDER[ORDER.index(folder) + 1 :]
    for path in (SOURCE / folder).rglob("*.py"):
        names = imports(path) - LEAVES - {"samm.data"}
        bad = [n for n in names if n.startswith("samm.") and n.split(".")[1] in later]
        assert not bad, f"{path} imports {bad}"


@pytest.mark.parametrize("leaf", sorted(LEAVES))
def test_leaves_import_no_task(leaf: str) -> None:
    names = imports(SOURCE.parent / (leaf.replace(".", "/") + ".py"))
    assert not [n for n in names if n.startswith("samm.tasks")]


def test_import_does_nothing() -> None:
    code = "import sys, samm; assert not {'torch', 'numpy', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    code = "import samm; samm.Task, samm.Problem, samm.Answer, samm.InputError"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_runtime_takes_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = runtime.choose("cpu", "bfloat16", 3)
    assert (chosen.device, chosen.dtype, chosen.seed) == (torch.device("cpu"), torch.bfloat16, 3)
    assert set(chosen.reasons.values()) == {"asked for"}
    monkeypatch.setenv("SAMM_DTYPE", "float16")
    monkeypatch.setenv("SAMM_SEED", "11")
    chosen = runtime.choose("cpu")
    assert (chosen.dtype, chosen.seed) == (torch.float16, 11)
    assert chosen.reasons["seed"] == "asked for by SAMM_SEED"
    draws = [torch.rand(3, generator=chosen.generator()) for _ in range(2)]
    assert torch.equal(*draws)


def test_runtime_chooses_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SAMM_DEVICE", "SAMM_DTYPE", "SAMM_SEED"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    chosen = runtime.choose()
    assert (chosen.device.type, chosen.dtype) == ("cpu", torch.float32)
    assert chosen.reasons["device"].startswith("torch sees no GPU")
    assert runtime.choose().seed != chosen.seed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("abacus",), "device 'abacus' is unknown"),
        (("meta",), "device 'meta' is not supported"),
        (("cuda:99",), "torch sees"),
        (("cpu", "int8"), "dtype 'int8' is unknown; expected float32, bfloat16, float16"),
        (("cpu", None, -1), "seed -1 is out of range"),
    ],
)
def test_runtime_refuses(arguments, message: str) -> None:
    with pytest.raises(InputError, match=message):
        runtime.choose(*arguments)


def test_no_file_is_too_long_to_read_in_one_sitting() -> None:
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 350, path


def test_numba_cache_is_writable_or_elsewhere(tmp_path: Path) -> None:
    """A read-only installation still runs: numba then caches in the user's folder."""
    code = "from samm.data import sudoku_engine as e; print(len(e.random_grids(1, 0, box=(2, 2))))"
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    assert done.stdout.strip() == b"1", done.stderr

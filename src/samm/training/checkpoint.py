"""Checkpoints: a folder of safetensors and JSON, written atomically, every byte checked.

    RUN/checkpoints/step-00001000/
        model.safetensors         the averaged weights: what is evaluated and released
        train_state.safetensors   live weights and optimisers
        config.json               what rebuilds task, network and run
        manifest.json             step, and size and SHA-256 of every file

A file larger than the limit is cut into NAME.0000, NAME.0001, ... The folder gets its name only
when all of it is on disk. Nothing is ever unpickled.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from samm.config import Config
from samm.errors import InputError

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Checkpoint:
    """What a folder holds."""

    step: int
    config: Config
    model: dict[str, Tensor]
    train_state: dict[str, Tensor]


def save(
    run: Path,
    step: int,
    config: Config,
    model: Mapping[str, Tensor],
    train_state: Mapping[str, Tensor],
    keep: int,
    always: int | None = None,
) -> Path:
    """Write `RUN/checkpoints/step-N`, then remove all but the newest `keep` and step `always`."""
    home = run / "checkpoints"
    home.mkdir(parents=True, exist_ok=True)
    folder = home / f"step-{step:08d}"
    for left_over in home.glob(".step-*.unfinished"):
        shutil.rmtree(left_over, ignore_errors=True)
    unfinished = home / f".{folder.name}.unfinished"
    unfinished.mkdir()
    try:
        contents = {
            "model.safetensors": _bytes(model),
            "train_state.safetensors": _bytes(train_state),
            "config.json": json.dumps(config.table(), indent=1).encode(),
        }
        limit = config.training.part_megabytes * 2**20
        files: dict[str, Any] = {}
        for name, content in contents.items():
            for part, piece in _pieces(name, content, limit).items():
                _write(unfinished / part, piece)
                digest = hashlib.sha256(piece).hexdigest()
                files[part] = {"size": len(piece), "sha256": digest}
        manifest = {"step": step, "files": files}
        _write(unfinished / MANIFEST, json.dumps(manifest, indent=1).encode())
        _sync(unfinished)
        shutil.rmtree(folder, ignore_errors=True)  # of a run begun anew
        unfinished.rename(folder)
        _sync(home)
    except BaseException as error:
        shutil.rmtree(unfinished, ignore_errors=True)
        if isinstance(error, OSError):
            raise InputError(_unwritten(run, folder, error)) from None
        raise
    for old in set(steps(run)[:-keep]) - {always}:
        shutil.rmtree(home / f"step-{old:08d}", ignore_errors=True)
    return folder


def _unwritten(run: Path, folder: Path, error: OSError) -> str:
    text = f"{folder} cannot be written: {error.strerror or error}"
    good = steps(run)
    return f"{text}; the checkpoint of step {good[-1]:,} is intact" if good else text


def steps(run: Path) -> list[int]:
    """The steps of the finished checkpoints of a run, in order."""
    found = [re.fullmatch(r"step-(\d+)", p.name) for p in (run / "checkpoints").glob("step-*")]
    return sorted(int(match[1]) for match in found if match)


def load(run: str | Path, step: int | None = None) -> Checkpoint:
    """A run folder's checkpoint of a step, or its newest; or a checkpoint folder itself."""
    if (Path(run) / MANIFEST).exists():
        return _load(Path(run))
    available = steps(Path(run))
    if not available:
        raise InputError(f"{run} holds no checkpoint")
    if step is not None and step not in available:
        raise InputError(f"{run} holds no checkpoint of step {step:,}")
    folder = Path(run) / "checkpoints" / f"step-{available[-1] if step is None else step:08d}"
    try:
        return _load(folder)
    except InputError as error:
        if len(available) == 1 or step is not None:
            raise
        raise InputError(
            f"{error}; remove {folder} to go on from the checkpoint of step {available[-2]:,}"
        ) from None


def _load(folder: Path) -> Checkpoint:
    step, files = _manifest(folder)
    joined: dict[str, bytes] = {}
    for part in sorted(files):
        name = re.sub(r"\.\d{4}$", "", part)
        joined[name] = joined.get(name, b"") + _read(folder / part, *files[part])
    for name in ("config.json", "model.safetensors", "train_state.safetensors"):
        if name not in joined:
            raise InputError(f"{folder / MANIFEST} does not list {name}")
    try:
        config = Config.build(json.loads(joined["config.json"]))
        model = load_tensors(joined["model.safetensors"])
        train_state = load_tensors(joined["train_state.safetensors"])
    except (SafetensorError, ValueError) as error:
        raise InputError(f"{folder}: {error}") from None
    return Checkpoint(step, config, model, train_state)


def _manifest(folder: Path) -> tuple[int, dict[str, tuple[int, str]]]:
    """Step, and size and digest of every file."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        files = {
            str(name): (int(file["size"]), str(file["sha256"]))
            for name, file in manifest["files"].items()
        }
        return int(manifest["step"]), files
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder / MANIFEST} cannot be read: {error}") from None


def _bytes(tensors: Mapping[str, Tensor]) -> bytes:
    return bytes(save_tensors({k: v.detach().cpu().contiguous() for k, v in tensors.items()}))


def _pieces(name: str, content: bytes, limit: int) -> dict[str, bytes]:
    if len(content) <= limit:
        return {name: content}
    starts = range(0, len(content), limit)
    return {f"{name}.{i:04d}": content[start : start + limit] for i, start in enumerate(starts)}


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _read(path: Path, size: int, digest: str) -> bytes:
    if not path.exists():
        raise InputError(f"{path} is missing from the checkpoint")
    content = path.read_bytes()
    if len(content) != size:
        raise InputError(f"{path} is truncated: {len(content)} bytes, not {size}")
    if hashlib.sha256(content).hexdigest() != digest:
        raise InputError(f"{path} was altered: it does not match its checksum")
    return content

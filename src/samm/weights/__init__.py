"""Networks by name: released ones in this installation, exported folders, and runs.

A released or exported network is a folder of `model.safetensors` and `config.json`; a run has the
checkpoints of its training. Nothing is ever unpickled.
"""

import json
import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samm.errors import InputError

if TYPE_CHECKING:
    import torch

    from samm.config import Config
    from samm.model import Network

WEIGHTS, CONFIG = "model.safetensors", "config.json"


@dataclass(frozen=True)
class Trained:
    """A network, and how it came to be."""

    name: str
    network: "Network"
    config: "Config"
    step: int
    """Of its training."""


def installed() -> list[str]:
    """Names of the released networks in this installation."""
    return sorted(
        folder.name
        for folder in files(__package__).iterdir()
        if folder.is_dir() and folder.joinpath(WEIGHTS).is_file()
    )


def load(name: str | Path, device: "torch.device | str" = "cpu") -> Trained:
    """A released network by its name, or the network of an exported folder or of a run."""
    from samm.training import checkpoint

    released = Path(str(files(__package__))) / str(name)
    folder = released if str(name) in installed() else Path(name)
    if (folder / checkpoint.MANIFEST).exists() or checkpoint.steps(folder):
        saved = checkpoint.load(folder)
        return _build(str(name), saved.config, saved.model, saved.step, device)
    if (folder / WEIGHTS).is_file():
        return _load_exported(str(name), folder, device)
    known = ", ".join(installed()) or "none yet"
    raise InputError(f"'{name}' is no run folder and no released network (installed: {known})")


def _load_exported(name: str, folder: Path, device: "torch.device | str") -> Trained:
    from safetensors import SafetensorError
    from safetensors.torch import load as load_tensors

    from samm.config import Config

    try:
        about = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        tensors = load_tensors((folder / WEIGHTS).read_bytes())
        config, step = Config.build(about["config"]), int(about["step"])
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{folder} cannot be read: {error}") from None
    return _build(name, config, tensors, step, device)


def _build(
    name: str, config: "Config", tensors: dict[str, Any], step: int, device: "torch.device | str"
) -> Trained:
    from samm import tasks
    from samm.model import Network

    network = Network(config.network, tasks.from_spec(config.task))
    try:
        network.load_state_dict({key: value.float() for key, value in tensors.items()})
    except RuntimeError as error:
        raise InputError(f"{name}: the weights do not fit its configuration: {error}") from None
    return Trained(name, network.to(device).eval(), config, step)


def export(run: str | Path, out: Path, dtype: str = "bfloat16") -> int:
    """Write the averaged network of a run as a folder of its own; returns its size in bytes."""
    import torch
    from safetensors.torch import save as save_tensors

    types = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if dtype not in types:
        raise InputError(f"dtype '{dtype}' is unknown; expected {', '.join(types)}")
    trained = load(run)
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise InputError(f"{out} already exists; give a new folder")
    tensors = {k: v.to(types[dtype]).contiguous() for k, v in trained.network.state_dict().items()}
    content = bytes(save_tensors(tensors))
    about = {"step": trained.step, "config": trained.config.table()}
    out.mkdir(parents=True, exist_ok=True)
    for name, data in ((CONFIG, json.dumps(about, indent=1).encode()), (WEIGHTS, content)):
        unfinished = out / f".{name}.part"
        unfinished.write_bytes(data)
        os.replace(unfinished, out / name)
    return len(content)

"""The one place that chooses device, number format and seed, and says why."""

import os
import secrets
from dataclasses import dataclass

import torch

from samm.errors import InputError


@dataclass(frozen=True)
class Runtime:
    """Where and how networks run."""

    device: torch.device
    dtype: torch.dtype
    """Of activations under autocast; weights stay float32."""
    seed: int
    reasons: dict[str, str]
    """Why, one sentence each for `device`, `dtype` and `seed`."""

    def generator(self) -> torch.Generator:
        """A fresh generator on the device, seeded."""
        return torch.Generator(self.device).manual_seed(self.seed)


def choose(device: str | None = None, dtype: str | None = None, seed: int | None = None) -> Runtime:
    """Take what was asked for, or the best there is.

    The environment variables SAMM_DEVICE, SAMM_DTYPE and SAMM_SEED stand in for missing arguments.
    """
    chosen_device, device_why = _device(device)
    chosen_dtype, dtype_why = _dtype(chosen_device, dtype)
    chosen_seed, seed_why = _seed(seed)
    reasons = {"device": device_why, "dtype": dtype_why, "seed": seed_why}
    return Runtime(chosen_device, chosen_dtype, chosen_seed, reasons)


def _asked(argument: str | None, variable: str) -> tuple[str | None, str]:
    if argument is not None:
        return argument, "asked for"
    return os.environ.get(variable) or None, f"asked for by {variable}"


def _device(argument: str | None) -> tuple[torch.device, str]:
    name, why = _asked(argument, "SAMM_DEVICE")
    if name is not None:
        try:
            device = torch.device(name)
        except RuntimeError:
            raise InputError(f"device '{name}' is unknown; expected cuda, mps or cpu") from None
        if device.type not in ("cuda", "mps", "cpu"):
            raise InputError(f"device '{name}' is not supported; expected cuda, mps or cpu")
        if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
            raise InputError(f"device '{name}': torch sees {torch.cuda.device_count()} CUDA GPUs")
        if device.type == "mps" and not torch.backends.mps.is_available():
            raise InputError(f"device '{name}': torch sees no Apple GPU here")
        return device, why
    if torch.cuda.is_available():
        return torch.device("cuda"), f"torch sees a CUDA GPU: {torch.cuda.get_device_name()}"
    if torch.backends.mps.is_available():
        return torch.device("mps"), "torch sees an Apple GPU"
    return torch.device("cpu"), f"torch sees no GPU; {torch.get_num_threads()} threads"


def multiplies_bfloat16() -> bool:
    """Does this CPU have instructions for bfloat16 matrices (AVX-512 BF16 or AMX)?"""
    able: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    return bool(able.get("avx512_bf16") or able.get("amx_bf16"))


_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def _dtype(device: torch.device, argument: str | None) -> tuple[torch.dtype, str]:
    name, why = _asked(argument, "SAMM_DTYPE")
    if name is not None:
        if name not in _DTYPES:
            raise InputError(f"dtype '{name}' is unknown; expected {', '.join(_DTYPES)}")
        return _DTYPES[name], why
    if device.type == "cuda":
        if torch.cuda.get_device_capability(device) >= (8, 0):
            return torch.bfloat16, "the GPU multiplies bfloat16 matrices at full speed"
        return torch.float32, "the GPU is older than Ampere and has no bfloat16 units"
    if device.type == "mps":
        return torch.float32, "the safe choice on Apple GPUs"
    return torch.float32, "exact; samm solve takes bfloat16 where this CPU multiplies it faster"


def _seed(argument: int | None) -> tuple[int, str]:
    text, why = _asked(None if argument is None else str(argument), "SAMM_SEED")
    if text is None:
        return secrets.randbits(31), "drawn from the system's randomness"
    try:
        seed = int(text)
    except ValueError:
        raise InputError(f"seed '{text}' is not a whole number") from None
    if not 0 <= seed < 2**63:
        raise InputError(f"seed {seed} is out of range; expected 0 to 2^63 - 1")
    return seed, why

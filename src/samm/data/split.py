"""Splitting data so that nothing leaks: equivalent problems stay together."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from samm.data.format import Dataset, Writer
from samm.errors import InputError

BATCH = 4096


def split(
    dataset: Dataset,
    folder: Path,
    shares: Mapping[str, float],
    seed: int,
    exclude: Iterable[Dataset] = (),
    report: Callable[[int], None] = lambda rows: None,
) -> dict[str, int]:
    """Write `folder/NAME.samm` for every share; returns the rows of each, and those excluded.

    The side of a row is a hash of its task's split key (for Sudoku the canonical solution grid)
    and the seed: no two sides share a key, and a key keeps its side when data is added. Rows whose
    key occurs in `exclude` are left out.
    """
    names = list(shares)
    if not names or any(not 0 < share <= 1 for share in shares.values()):
        raise InputError(f"shares {dict(shares)}: expected numbers between 0 and 1")
    if not math.isclose(sum(shares.values()), 1):
        raise InputError(f"shares {dict(shares)} add up to {sum(shares.values()):g}, not 1")
    edges = np.cumsum(list(shares.values()))[:-1]
    forbidden = {key for other in exclude for keys in _keys(other) for key in keys}
    counts = dict.fromkeys([*names, "excluded"], 0)
    about = {"split": dict(shares), "seed": seed, "of": dataset.about}
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        writers = [
            stack.enter_context(
                Writer(folder / f"{name}.samm", dataset.task, {**about, "part": name})
            )
            for name in names
        ]
        for start, keys in enumerate(_keys(dataset)):
            batch = dataset[start * BATCH : (start + 1) * BATCH]
            sides = np.array([side(key, seed, edges) for key in keys])
            sides[[key in forbidden for key in keys]] = len(names)
            for number, writer in enumerate(writers):
                part = batch[sides == number]
                writer.append(part.tokens, part.answers, part.ratings)
                counts[names[number]] += len(part)
            counts["excluded"] += int((sides == len(names)).sum())
            report(start * BATCH + len(batch))
    return counts


def side(key: bytes, seed: int, edges: np.ndarray) -> int:
    """Which side of the split a key belongs to."""
    digest = hashlib.blake2b(key, digest_size=8, key=seed.to_bytes(8, "little")).digest()
    return int(np.searchsorted(edges, int.from_bytes(digest, "little") / 2**64, side="right"))


def _keys(dataset: Dataset) -> Iterable[list[bytes]]:
    """Split keys, batch by batch."""
    for start in range(0, len(dataset), BATCH):
        part = dataset[start : start + BATCH]
        yield dataset.task.split_keys(part.tokens, part.answers)

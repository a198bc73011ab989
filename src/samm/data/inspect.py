"""What is in a data set: counts and histograms, as numbers and as a figure."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from samm.data.format import Dataset
from samm.errors import InputError


@dataclass(frozen=True)
class Summary:
    """Counts of one data set."""

    rows: int
    distinct: int
    """Distinct problems, compared token by token."""
    clues: dict[int, int]
    """Number of clues -> rows."""
    difficulties: dict[str, int]
    """Difficulty label -> rows."""
    ratings: tuple[float, float, float] | None
    """Median, 90th percentile and maximum of the known ratings."""


def summarise(dataset: Dataset) -> Summary:
    """Count a data set; streams over it, so that it may be larger than memory."""
    task = dataset.task
    clues = np.zeros(task.length + 1, np.int64)
    hashes = []
    for start in range(0, len(dataset), 1 << 16):
        tokens = np.ascontiguousarray(dataset.tokens[start : start + (1 << 16)])
        clues += np.bincount((tokens != task.mask).sum(1), minlength=len(clues))
        hashes += [hash(row.tobytes()) for row in tokens]
    buckets = task.difficulty(np.asarray(dataset.ratings))
    per_bucket = np.bincount(buckets, minlength=len(task.difficulties))
    known = dataset.ratings[~np.isnan(dataset.ratings)]
    return Summary(
        rows=len(dataset),
        distinct=len(set(hashes)),
        clues={int(i): int(n) for i, n in enumerate(clues) if n},
        difficulties=dict(zip(task.difficulties, per_bucket.tolist(), strict=True)),
        ratings=(
            (float(np.median(known)), float(np.quantile(known, 0.9)), float(known.max()))
            if len(known)
            else None
        ),
    )


def figure(summary: Summary, title: str, path: Path) -> None:
    """Clue counts and difficulties side by side, as PNG, SVG or PDF by the file's suffix."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("drawing figures needs matplotlib: pip install 'samm[figures]'") from None
    sheet = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = sheet.subplots(1, 2)
    left.bar(list(summary.clues), list(summary.clues.values()), color="#3b6ea5", width=0.85)
    left.set(xlabel="clues", ylabel="puzzles")
    left.xaxis.get_major_locator().set_params(integer=True)
    labels = list(summary.difficulties)
    bars = right.bar(labels, list(summary.difficulties.values()), color="#b5533c", width=0.85)
    right.bar_label(bars, fmt="{:,.0f}", fontsize=8)
    right.set(xlabel="rating", ylabel="puzzles")
    right.margins(y=0.12)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    sheet.suptitle(f"{title}: {summary.rows:,} puzzles", fontsize=11)
    try:
        sheet.savefig(path, dpi=150)
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None

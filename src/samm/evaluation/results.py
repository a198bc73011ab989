"""Saved evaluations: the JSON objects of `samm eval --json`, read back and checked."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samm.errors import InputError

METHODS = {
    "samm": "ours",
    "cross_entropy": "DFM",
    "gidd": "GIDD",
    "mgdm": "MGDM",
    "d3pm": "D3PM",
}
"""What tables call a training objective."""

SAMPLERS = {
    "chain": "chain",
    "restart": "chain with restarts",
    "euler": "Euler",
    "top_k": "Top-K",
    "margin": "Top-K margin",
    "remdm": "ReMDM",
    "mgdm": "its decoding",
    "gidd": "its sampler",
    "d3pm": "its sampler",
}

DATA = {
    "extreme_test": "Sudoku-Extreme",
    "forum11_test": "forum 11+",
    "kaggle_radcliffe_test": "Kaggle (Radcliffe)",
    "kaggle_mgdm_test": "Kaggle (MGDM)",
    "sudoku-6x6-test": "6×6 Sudoku",
}
"""What tables call a data file, by its name without endings."""

NEEDED = (
    "n", "solved", "accuracy", "ci95", "stopped", "stopped_right", "false_stops", "mean_steps",
    "median_steps", "p90_steps", "calls_per_puzzle", "flops_per_puzzle", "seconds", "seed",
    "weights", "data", "sampler", "options", "chains", "select", "steps_cap", "verifier",
    "network", "task", "by_difficulty", "ensembles", "partial", "command", "oracle",
    "puzzles_per_second",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One evaluation."""

    file: Path
    values: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def network(self) -> str:
        """The last part of the name of its weights."""
        return Path(self["weights"]).name

    @property
    def method(self) -> str:
        """How tables call network and sampler: `ours, chain`."""
        options, name = self["options"], SAMPLERS[self["sampler"]]
        notes = [f"{options['steps']} steps"] if self["stopped"] is None else []
        notes += ["correction"] if options.get("corrections") else []
        notes += ["own clock"] if options.get("clock") == "progress" else []
        text = f"{METHODS[self['network']['objective']]}, {name}"
        return f"{text} ({', '.join(notes)})" if notes else text

    @property
    def choice(self) -> str:
        """`1 chain` or `10 chains, average`."""
        return "1 chain" if self["chains"] == 1 else f"{self['chains']} chains, {self['select']}"

    @property
    def row(self) -> str:
        """What is one row of the table of methods: the same on every data set."""
        return f"{self.method} · {self.choice} · {self.network}"

    @property
    def title(self) -> str:
        """How tables call the data, with its size."""
        stem = str(self["data"]).split(".")[0]
        return DATA.get(stem, str(stem))


def read(sources: Iterable[Path]) -> list[Result]:
    """All results in these files and folders; anything else is an error that names the file."""
    files: list[Path] = []
    for source in sources:
        found = sorted(source.glob("*.json")) if source.is_dir() else [source]
        files += found
    results = [_one(file) for file in files]
    if not results:
        raise InputError(f"no result (*.json) in {', '.join(map(str, sources))}")
    return results


def _one(file: Path) -> Result:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{file}: not JSON: {error}") from None
    missing = [name for name in NEEDED if not isinstance(values, dict) or name not in values]
    if missing:
        raise InputError(f"{file}: no result of `samm eval --json`: {missing[0]} is missing")
    known = values["sampler"] in SAMPLERS and values["network"].get("objective") in METHODS
    if not known:
        raise InputError(
            f"{file}: sampler '{values['sampler']}' and objective "
            f"'{values['network'].get('objective')}': expected those of this version of samm"
        )
    return Result(file, values)


def once(results: Sequence[Result]) -> list[Result]:
    """Of several results for one row and data set the one with most problems."""
    best: dict[tuple[str, str, int], Result] = {}
    for result in results:
        key = (result.row, result.title, result["seed"])
        if key not in best or result["n"] > best[key]["n"]:
            best[key] = result
    return list(best.values())


def distinct(names: Sequence[str]) -> list[str]:
    """Without repetitions, in order."""
    return list(dict.fromkeys(names))

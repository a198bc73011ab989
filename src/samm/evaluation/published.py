"""What others published, as the papers and project pages give it. Protocols differ: see `note`."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Whole puzzles right, in percent."""

    method: str
    extreme: float | None
    kaggle: float | None
    note: str


TABLE = (
    Row("DFM, Euler", 31.6, 44.5, "the paper, tab:sudoku; 1,000 puzzles"),
    Row("DFM, ReMDM", 51.3, 71.9, "the paper, tab:sudoku"),
    Row("DFM, Top-K margin", 68.5, 88.5, "the paper, tab:sudoku"),
    Row("DFM, Top-K", 68.8, 89.2, "the paper, tab:sudoku"),
    Row("CTTT", None, 98.9, "quoted by the paper; trained on data of its own"),
    Row("the paper's own", 95.2, 99.9, "10 chains, averaged; 146 steps; 1,000 puzzles"),
)
"""tab:sudoku."""

STEPS = {1: 64.2, 3: 105.1, 5: 123.5, 10: 146.0}
"""tab:ensemble_steps_only: chains -> average steps."""


@dataclass(frozen=True)
class Point:
    """One system on Sudoku-Extreme, by what one puzzle costs it."""

    name: str
    accuracy: float
    parameters: float
    passes: float
    """Times that all parameters meet every cell, per puzzle."""
    least: bool = False
    """Only a lower bound: the passes within a step are not published."""

    @property
    def flops(self) -> float:
        """2 · parameters · cells · passes: attention is left out."""
        return 2 * self.parameters * 81 * self.passes


POINTS = (
    Point("the paper, 10 chains", 0.952, 25.5e6, 10 * 146),
    Point("sotaku", 0.989, 0.8e6, 1024),
    Point("EqR", 0.998, 5e6, 8192),
    Point("HRM, 1 k", 0.550, 27e6, 16, least=True),
    Point("TRM, 1 k", 0.874, 7e6, 16, least=True),
)

"""One result, for a terminal."""

from typing import Any

from rich.bar import Bar
from rich.console import Console
from rich.table import Table as Grid

from samm.evaluation.tables import COSTS, interval


def show(result: dict[str, Any]) -> None:
    """Print a result as `samm eval` does."""
    console = Console(highlight=False)
    chains = "1 chain" if result["chains"] == 1 else f"{result['chains']} chains"
    verifier = "with the verifier" if result["verifier"] else "no verifier"
    console.print(
        f"[bold]{result['weights']}[/bold] on {result['data']}: {result['n']:,} problems"
        f"{' (interrupted)' if result['partial'] else ''}",
        soft_wrap=True,
    )
    console.print(
        f"{result['sampler']}, {chains}{_by(result)}, at most {result['steps_cap']} steps, "
        f"seed {result['seed']}, {verifier}",
        style="dim",
        soft_wrap=True,
    )
    facts = Grid(box=None, show_header=False, pad_edge=False)
    for name, text in COSTS:
        if text(result) != "–":
            facts.add_row(name, text(result))
    if result["exact"] != result["accuracy"]:
        facts.add_row("equal to the stored answer, %", f"{100 * result['exact']:.1f}")
    console.print(facts)
    console.print(_histogram(result["steps_histogram"]))
    if len(result["by_difficulty"]) > 1:
        grid = Grid("difficulty", "n", "solved, %", "", "steps", box=None, pad_edge=False)
        for row in result["by_difficulty"]:
            bar = Bar(1, 0, row["accuracy"], width=20)
            name, steps = row["difficulty"], f"{row['mean_steps']:.1f}"
            grid.add_row(name, f"{row['n']:,}", interval(row), bar, steps)
        console.print(grid)
    if len(result["ensembles"]) > 1:
        names = ("chains", "rule", "solved, %", "parallel steps", "calls")
        grid = Grid(*names, box=None, pad_edge=False)
        for row in result["ensembles"]:
            costs = f"{row['mean_steps']:.1f}", f"{row['calls_per_puzzle']:.1f}"
            rule = row["select"] + (" (verifier)" if row["verifier"] else "")
            grid.add_row(str(row["chains"]), rule, interval(row), *costs)
        console.print(grid)


def _histogram(steps: list[list[int]]) -> Grid:
    """Problems by the number of steps that they took, in classes that double."""
    classes: dict[int, int] = {}
    for value, count in steps:
        top = 1 << max(value - 1, 0).bit_length()  # 1, 2, 3–4, 5–8, ...
        classes[top] = classes.get(top, 0) + count
    grid = Grid("steps", "problems", "", box=None, pad_edge=False)
    grid.columns[1].justify = "right"
    for top, count in sorted(classes.items()):
        low = top // 2 + 1
        name = str(top) if low >= top else f"{low}–{top}"
        grid.add_row(name, f"{count:,}", Bar(max(classes.values()), 0, count, width=20))
    return grid


def _by(result: dict[str, Any]) -> str:
    return "" if result["chains"] == 1 else f", {result['select']}"

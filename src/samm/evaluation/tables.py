"""Tables of saved results, once as a grid of text, then as Markdown or LaTeX."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from samm.evaluation import published
from samm.evaluation.results import DATA, Result, distinct, once


@dataclass(frozen=True)
class Table:
    """A title, a header, rows of text, and the commands that made them."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        align = ["---", *["---:"] * (len(self.header) - 1)]
        lines = [f"### {self.title}", ""]
        lines += ["| " + " | ".join(row) + " |" for row in (self.header, align, *self.rows)]
        for note in self.notes:
            lines += ["", note]
        if self.commands:
            lines += ["", "Made by", ""]
            lines += ["    " + command for command in self.commands]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        columns = "l" + "r" * (len(self.header) - 1)
        body = [" & ".join(map(_latex, row)) + r" \\" for row in self.rows]
        return "\n".join(
            [
                f"% {self.title}",
                rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
                r"\toprule",
                " & ".join(map(_latex, self.header)) + r" \\",
                r"\midrule",
                *body,
                r"\bottomrule",
                r"\end{tabular}",
                "",
            ]
        )


def _latex(text: str) -> str:
    plain = {"%": r"\%", "&": r"\&", "_": r"\_", "#": r"\#", "·": r"$\cdot$", "–": "--"}
    bare = text.replace("**", "")
    out = "".join(plain.get(character, character) for character in bare)
    return rf"\textbf{{{out}}}" if text != bare else out


def percent(share: float | None, digits: int = 1) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f}"


def interval(values: dict[str, Any]) -> str:
    """`92.4 (91.9–92.9)`"""
    low, high = values["ci95"]
    return f"{percent(values['accuracy'])} ({percent(low)}–{percent(high)})"


def scientific(value: float) -> str:
    return f"{value:.2g}".replace("e+0", "e").replace("e+", "e")


def _partial(result: Result) -> str:
    return " (partial)" if result["partial"] else ""


def all_tables(results: Sequence[Result]) -> list[Table]:
    """Every table that these results have something to say for."""
    results = once(results)
    plain = [r for r in results if not r["verifier"]]
    checked = [r for r in results if r["verifier"]]
    tables = [methods(plain, "Solved, %", with_published=True)] if plain else []
    if checked:
        tables.append(methods(checked, "Solved with the verifier, %", with_published=False))
    titles = distinct([r.title for r in results])
    tables += [costs(title, [r for r in results if r.title == title]) for title in titles]
    for result in widest(results):
        tables += [ensembles(result, verifier) for verifier in (False, True)]
    by_difficulty = difficulty(results)
    tables += [by_difficulty] if by_difficulty else []
    return [table for table in tables if table.rows]


def methods(results: Sequence[Result], title: str, with_published: bool) -> Table:
    """Methods × data sets, as tab:sudoku; the best first."""
    sets = distinct([r.title for r in results])
    results = sorted(results, key=lambda r: (sets.index(r.title), -r["accuracy"]))
    cells = {(r.row, r.title): r for r in results}
    sizes = {c: max(r["n"] for r in results if r.title == c) for c in sets}
    rows = []
    for name in distinct([r.row for r in results]):
        of_row = [cells.get((name, column)) for column in sets]
        rows.append((name, *(_cell(r, sizes[r.title]) if r else "" for r in of_row)))
    known = {DATA["extreme_test"]: "extreme", DATA["kaggle_radcliffe_test"]: "kaggle"}
    if with_published and any(column in known for column in sets):
        for row in published.TABLE:
            shares = [getattr(row, known[c]) if c in known else None for c in sets]
            told = ("" if share is None else f"{share:.1f}" for share in shares)
            rows.append((f"{row.method}, as published ({row.note})", *told))
    header = ("method", *(f"{column}, n = {sizes[column]:,}" for column in sets))
    notes = ("In brackets: 95 % Wilson intervals.",)
    return Table(title, header, tuple(rows), tuple(r["command"] for r in results), notes)


def _cell(result: Result, usual: int) -> str:
    """Its own size where that is not the column's."""
    other = "" if result["n"] == usual else f", n = {result['n']:,}"
    return interval(result.values) + other + _partial(result)


COSTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    ("solved, %", interval),
    ("any chain right, %", lambda v: percent(v["oracle"])),
    ("stopped, %", lambda v: percent(v["stopped"])),
    ("stopped and right, %", lambda v: percent(v["stopped_right"])),
    ("false stops, %", lambda v: percent(v["false_stops"], 2)),
    ("steps: mean", lambda v: f"{v['mean_steps']:.1f}"),
    ("median", lambda v: f"{v['median_steps']:g}"),
    ("90 %", lambda v: f"{v['p90_steps']:g}"),
    ("calls per puzzle", lambda v: f"{v['calls_per_puzzle']:.1f}"),
    ("FLOPs per puzzle", lambda v: scientific(v["flops_per_puzzle"])),
    ("puzzles/s", lambda v: f"{v['puzzles_per_second']:,.0f}"),
)


def costs(title: str, results: Sequence[Result]) -> Table:
    """What the answers cost, and how the stop did, on one data set."""
    rows = [
        (r.row + _partial(r), f"{r['n']:,}", *(show(r.values) for _, show in COSTS))
        for r in results
    ]
    header = ("method", "n", *(name for name, _ in COSTS))
    note = "Calls and steps as counted by the harness; puzzles/s on the machine of the result."
    return Table(f"{title}: costs", header, tuple(rows), notes=(note,))


def widest(results: Sequence[Result]) -> list[Result]:
    """Of every network and sampler the result with most chains: it holds those of the others."""
    best: dict[tuple[str, str, str], Result] = {}
    for result in sorted(results, key=lambda r: -r["chains"]):
        if result["chains"] > 1:
            best.setdefault((result.network, result.method, result.title), result)
    return list(best.values())


def ensembles(result: Result, verifier: bool) -> Table:
    """Rules × numbers of chains, all of them on the same chains; with or without the verifier."""
    rows = [
        (
            f"{row['chains']}",
            row["select"],
            interval(row),
            percent(row["oracle"]),
            percent(row["false_stops"], 2),
            f"{row['mean_steps']:.1f}",
            f"{row['calls_per_puzzle']:.1f}",
        )
        for row in result["ensembles"]
        if row["verifier"] == verifier
    ]
    header = (
        "chains", "rule", "solved, %", "any chain right, %", "false stops, %", "parallel steps",
        "calls per puzzle",
    )  # fmt: skip
    by = "Ensembles with the verifier" if verifier else "Ensembles"
    title = f"{by} on {result.title}: {result.method} · {result.network}"
    paper = ", ".join(f"{steps} with {n}" for n, steps in published.STEPS.items())
    note = f"The paper's average steps on Sudoku-Extreme (tab:ensemble_steps_only): {paper}."
    return Table(title, header, tuple(rows), (result["command"],), (note,))


def difficulty(results: Sequence[Result]) -> Table | None:
    """Accuracy and mean steps by difficulty, where there are several classes."""
    several = [r for r in results if len(r["by_difficulty"]) > 1]
    if not several:
        return None
    labels = distinct([b["difficulty"] for r in several for b in r["by_difficulty"]])
    rows = []
    for r in several:
        buckets = {b["difficulty"]: b for b in r["by_difficulty"]}
        cells = (
            f"{percent(b['accuracy'])} / {b['mean_steps']:.1f} ({b['n']:,})" if b else ""
            for b in (buckets.get(label) for label in labels)
        )
        rows.append((f"{r.row} · {r.title}", *cells))
    note = "Solved, % / mean steps (puzzles)."
    return Table("By difficulty", ("method", *labels), tuple(rows), notes=(note,))

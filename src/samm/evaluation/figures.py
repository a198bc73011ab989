"""Figures of saved results, each as PNG and SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samm.errors import InputError
from samm.evaluation import published
from samm.evaluation.results import DATA, METHODS, Result, distinct, once
from samm.evaluation.tables import scientific, widest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    "ours": "#1f5fa8",
    "DFM": "#b5533c",
    "GIDD": "#7a8b2a",
    "MGDM": "#8a5aa8",
    "D3PM": "#c98a1b",
    "published": "#777777",
}
RULES = {
    "first": "#1f5fa8",
    "average": "#b5533c",
    "vote": "#c98a1b",
    "majority": "#7a8b2a",
    "residual": "#8a5aa8",
    "confidence": "#4fa3a5",
    "verified": "#222222",
}
MARKERS = {"chain": "o", "restart": "o", "euler": "s", "top_k": "^", "margin": "v", "remdm": "D"}


def sheet(width: float, height: float, columns: int = 1) -> "tuple[Figure, Any]":
    """A figure with axes in a row."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("drawing figures needs matplotlib: pip install 'samm[figures]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns)


def save(figure: "Figure", out: Path, name: str) -> list[Path]:
    """Both files; the same results give the same bytes."""
    from matplotlib import rc_context

    paths = [out / f"{name}.png", out / f"{name}.svg"]
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(paths[0], dpi=150)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def bare(*all_axes: "Axes") -> None:
    for axes in all_axes:
        axes.spines[["top", "right"]].set_visible(False)


def all_figures(results: Sequence[Result], out: Path) -> list[Path]:
    """Every figure that these results have something to show for."""
    paths: list[Path] = []
    single = once(results)
    for title in distinct([r.title for r in single]):
        here = [r for r in single if r.title == title]
        name = here[0]["data"].split(".")[0]
        paths += save(compute(title, here), out, f"compute-{name}")
        several = widest(here)
        if several:
            paths += save(chains(title, several), out, f"chains-{name}")
    rated = [r for r in single if len(r["by_difficulty"]) > 1 and r["stopped"] is not None]
    if rated:
        paths += save(difficulty(rated), out, "difficulty")
    for number, result in enumerate(r for r in results if "calibration" in r.values):
        paths += save(calibration(result), out, f"calibration-{number + 1}")
    return paths


def compute(title: str, results: Sequence[Result]) -> "Figure":
    """Accuracy against FLOPs per puzzle, with the published points where there are any."""
    figure, axes = sheet(7.2, 4.4)
    for number, result in enumerate(sorted(results, key=lambda r: -r["accuracy"]), 1):
        method = METHODS[result["network"]["objective"]]
        low, high = result["ci95"]
        share = result["accuracy"]
        filled = {"markerfacecolor": "white"} if result["verifier"] else {}
        axes.errorbar(
            result["flops_per_puzzle"],
            100 * share,
            yerr=[[max(0, 100 * (share - low))], [max(0, 100 * (high - share))]],
            fmt=MARKERS.get(result["sampler"], "P"),
            color=COLOURS[method],
            markersize=5,
            elinewidth=0.8,
            label=f"{number}: {result.method} · {result.choice} · {result.network}",
            **filled,
        )
        axes.annotate(
            str(number), (result["flops_per_puzzle"], 100 * share), fontsize=6,
            textcoords="offset points", xytext=(4, 3),
        )  # fmt: skip
    if title == DATA["extreme_test"]:
        for point in published.POINTS:
            axes.plot(point.flops, 100 * point.accuracy, "*", color=COLOURS["published"])
            text = f"{point.name}{' (at least)' if point.least else ''}"
            side = (
                {"ha": "right", "xytext": (-5, -9)} if point.flops > 1e12 else {"xytext": (5, -9)}
            )
            axes.annotate(
                text, (point.flops, 100 * point.accuracy), fontsize=7, color="#555555",
                textcoords="offset points", **side,
            )  # fmt: skip
    _decades(axes)
    axes.set(xlabel="FLOPs per puzzle", ylabel="solved, %", title=title)
    # beside the plot: many methods, few of them far apart
    axes.legend(fontsize=6, frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1))
    bare(axes)
    return figure


def _decades(axes: "Axes") -> None:
    """A logarithmic axis with few, short labels: 1e8 2e8 5e8 1e9."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: scientific(value)))


def chains(title: str, results: Sequence[Result]) -> "Figure":
    """Accuracy and parallel steps against the number of chains, by rule."""
    figure, (left, right) = sheet(10.5, 3.6, 2)
    for style, result in zip(("-", "--", ":", "-."), results, strict=False):
        rows = result["ensembles"]
        for rule in distinct([row["select"] for row in rows if row["chains"] > 1]):
            of_rule = [row for row in rows if row["select"] == rule or row["chains"] == 1]
            counts = [row["chains"] for row in of_rule]
            shares = [100 * row["accuracy"] for row in of_rule]
            steps = [row["mean_steps"] for row in of_rule]
            named = f"{rule} (verifier)" if of_rule[-1]["verifier"] else rule
            label = f"{named} · {result.network}" if len(results) > 1 else named
            options = {"color": RULES[rule], "marker": ".", "lw": 1.2, "ls": style}
            left.plot(counts, shares, label=label, **options)
            right.plot(counts, steps, **options)
        oracle = {row["chains"]: 100 * row["oracle"] for row in rows}
        left.plot(list(oracle), list(oracle.values()), color="#999999", lw=0.9, ls=style,
                  label="any chain right")  # fmt: skip
    if title == DATA["extreme_test"]:
        pairs = published.STEPS
        right.plot(list(pairs), list(pairs.values()), "*", color=COLOURS["published"],
                   label="the paper's steps")  # fmt: skip
    left.set(xlabel="chains", ylabel="solved, %", title=title)
    right.set(xlabel="chains", ylabel="parallel steps until the answer, mean")
    handles, names = left.get_legend_handles_labels()
    more = right.get_legend_handles_labels()
    figure.legend(handles + more[0], names + more[1], fontsize=7, frameon=False,
                  loc="outside right center")  # fmt: skip
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
    bare(left, right)
    return figure


def difficulty(results: Sequence[Result]) -> "Figure":
    """Accuracy and steps by difficulty, in classes of ten problems or more."""
    figure, (left, right) = sheet(11, 3.6, 2)
    enough = [[b for b in r["by_difficulty"] if b["n"] >= 10] for r in results]
    labels = distinct([b["difficulty"] for some in enough for b in some])
    for result, some in zip(results, enough, strict=True):
        buckets = {b["difficulty"]: b for b in some}
        known = [label for label in labels if label in buckets]
        places = [labels.index(label) for label in known]
        name = f"{result.row} · {result.title}"
        left.plot(places, [100 * buckets[k]["accuracy"] for k in known], "o-", ms=3, lw=1)
        mean = right.plot(
            places, [buckets[k]["mean_steps"] for k in known], "o-", ms=3, lw=1, label=name
        )
        if len(results) <= 4:
            most = [buckets[k]["p90_steps"] for k in known]
            right.plot(places, most, ":", lw=1, color=mean[0].get_color())
    for axes in (left, right):
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel("difficulty, by the classes of the task")
    left.set_ylabel("solved, %")
    dotted = ", and 90th percentile (dotted)" if len(results) <= 4 else ""
    right.set_ylabel(f"steps: mean{dotted}")
    figure.legend(fontsize=6, frameon=False, loc="outside right center")
    bare(left, right)
    return figure


def calibration(result: Result) -> "Figure":
    """The commit head against its closed form, with x_1 known and without; the stop against τ*."""
    figure, (left, middle, right) = sheet(12, 3.8, 3)
    commit, expected, stop = (result["calibration"][k] for k in ("commit", "expected", "stop"))
    head, closed = {"color": COLOURS["ours"], "ms": 3, "lw": 1}, {"color": "#999999", "lw": 1}
    seen = _filled(commit)
    left.plot(seen["wrong_mass"], seen["optimum"], **closed, label="c*(q), closed form")
    left.plot(seen["wrong_mass"], seen["confidence"], "o-", **head, label="c, mean of the head")
    left.set(xlabel="q = 1 - p(x₁ | z), the mass on wrong tokens", ylabel="commit")
    _counts(left, seen["wrong_mass"], seen["count"])
    seen = _filled(expected)
    middle.plot([0.35, 1], [0.35, 1], **closed, label="c = its optimum")
    middle.plot(seen["optimum"], seen["confidence"], "o-", **head, label="c, mean of the head")
    middle.plot(seen["optimum"], seen["right"], "s--", ms=3, lw=1, color="#b5533c",
                label="p(x₁ | z), mean")  # fmt: skip
    middle.set(xlabel="optimal commit if p is to be trusted", ylabel="commit")
    _counts(middle, seen["optimum"], seen["count"])
    seen = _filled(stop)
    right.plot([0, 1], [0, 1], **closed, label="τ = τ*")
    right.plot(seen["progress"], seen["target"], "o-", **head, label="τ*, share that is right")
    right.plot(seen["progress"], seen["right"], "s--", ms=3, lw=1, color="#b5533c",
               label="share of states all right")  # fmt: skip
    right.set(xlabel="τ, mean of the head", ylabel="progress")
    _counts(right, seen["progress"], seen["count"])
    for axes in (left, middle, right):
        axes.set_ylim(0, 1.02)
        axes.legend(frameon=False, fontsize=8)
    bare(left, middle, right)
    figure.suptitle(f"{result.network} on {result.title}, n = {result['n']:,}", fontsize=10)
    return figure


def _filled(bins: dict[str, Any]) -> dict[str, list[float]]:
    """The columns of the bins that are not empty."""
    seen = [i for i, n in enumerate(bins["count"]) if n]
    return {name: [bins[name][i] for i in seen] for name in bins if name != "edges"}


def _counts(axes: "Axes", places: list[float], counts: list[float]) -> None:
    """How many there are at every place, as faint bars along the bottom (on a root scale)."""
    most = max(counts)
    heights = [0.12 * (count / most) ** 0.25 for count in counts]
    axes.vlines(places, 0, heights, color="#cccccc", lw=3, zorder=0)

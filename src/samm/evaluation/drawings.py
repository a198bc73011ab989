"""Trajectories as the paper draws them: a grid per step, shaded by confidence, wrong tokens red."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from samm import tasks
from samm.evaluation import figures
from samm.evaluation.results import Result
from samm.tasks import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RIGHT, WRONG, CLUE = (0.12, 0.37, 0.66), (0.78, 0.16, 0.13), (0.93, 0.93, 0.91)
MOST = 12
"""Steps in one still picture."""
FRAMES = 60
"""Steps in one animation."""


def draw_all(results: Sequence[Result], out: Path) -> list[Path]:
    """A still picture (PNG and SVG) and an animated GIF of every trajectory."""
    paths: list[Path] = []
    for result in results:
        kept = result.values.get("trajectories", ())
        for number, values in enumerate(kept):
            path = Drawn.of(result, values)
            name = f"trajectory-{result.network}-{result['sampler']}-{number + 1}"
            paths += figures.save(still(path), out, name)
            paths.append(animation(path, out / f"{name}.gif"))
    return paths


@dataclass(frozen=True)
class Drawn:
    """What is drawn of one example."""

    task: Task
    problem: list[int]
    answer: list[int]
    states: list[list[int]]
    shades: list[list[float]]
    """c; for rivals, which have none, the largest probability."""
    progress: list[float] | None
    """τ, of networks that know it."""

    @classmethod
    def of(cls, result: Result, values: dict[str, Any]) -> "Drawn":
        ours = result["network"]["objective"] == "samm"
        return cls(
            tasks.from_spec(result["task"]),
            values["problem"],
            values["answer"],
            values["states"],
            values["confidence" if result["sampler"] == "chain" else "certainty"],
            values["progress"] if ours else None,
        )


def still(path: Drawn) -> "Figure":
    """Up to twelve steps side by side."""
    from matplotlib.figure import Figure

    steps = _some(path, MOST)
    columns = min(len(steps), 4)
    rows = -(-len(steps) // columns)
    tall, wide = _size(path.task)
    figure = Figure(figsize=(columns * wide, rows * (tall + 0.3)), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.axis("off")
    for axes, step in zip(grid.flat, steps, strict=False):
        draw(axes, path, step)
    return figure


def animation(path: Drawn, file: Path) -> Path:
    """Every step, half a second each, and the last one longer; of long ones, up to sixty."""
    from matplotlib.animation import FuncAnimation, PillowWriter
    from matplotlib.figure import Figure

    tall, wide = _size(path.task)
    figure = Figure(figsize=(1.6 * wide, 1.6 * tall + 0.4), layout="constrained")
    axes = figure.subplots()

    def show(step: int) -> list[Any]:
        axes.clear()
        axes.axis("off")
        draw(axes, path, step)
        return []

    steps = [*_some(path, FRAMES), *[len(path.states) - 1] * 3]
    moving = FuncAnimation(figure, show, frames=steps, init_func=list)
    moving.save(file, writer=PillowWriter(fps=2), dpi=80)
    return file


def _some(path: Drawn, most: int) -> list[int]:
    """Up to `most` steps, evenly, the first and the last among them."""
    last = len(path.states) - 1
    count = min(last + 1, most)
    return [round(i * last / max(count - 1, 1)) for i in range(count)]


def _size(task: Task) -> tuple[float, float]:
    """Height and width of one grid in inches."""
    rows = task.layout.rows
    return max(0.5, 0.22 * len(rows)), max(1.6, 0.22 * max(map(len, rows)))


def draw(axes: "Axes", path: Drawn, step: int) -> None:
    """One state: clues grey, right tokens blue, wrong ones red, darker where c is higher."""
    from matplotlib.patches import Rectangle

    task, layout, state = path.task, path.task.layout, path.states[step]
    problem = task.problem(torch.tensor(path.problem))
    clue, pad = problem.clue.tolist(), problem.pad.tolist()
    for y, row in enumerate(layout.rows):
        for x, place in enumerate(row):
            if pad[place]:
                continue
            token, sure = state[place], path.shades[step][place]
            held = token != task.mask
            right = token == path.answer[place]
            colour = CLUE if clue[place] else _shade(RIGHT if right else WRONG, sure)
            face = colour if held else (1, 1, 1)
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=face, edgecolor="#bbbbbb", lw=0.4))
            if held:
                dark = not clue[place] and sure > 0.55
                axes.text(
                    x + 0.5, y + 0.54, task.cell(token), ha="center", va="center", fontsize=7,
                    color="white" if dark else "black",
                )  # fmt: skip
    tall, wide = len(layout.rows), max(map(len, layout.rows))
    for y in {0, tall, *layout.rules_before_rows}:
        axes.plot([0, wide], [y, y], color="#333333", lw=0.9)
    for x in {0, wide, *layout.rules_before_columns}:
        axes.plot([x, x], [0, tall], color="#333333", lw=0.9)
    axes.set(xlim=(-0.1, wide + 0.1), ylim=(tall + 0.1, -0.1), aspect="equal")
    told = f", τ = {path.progress[step]:.2f}" if path.progress else ""
    axes.set_title(f"step {step}{told}", fontsize=7)


def _shade(colour: tuple[float, float, float], sure: float) -> tuple[float, ...]:
    """From pale to full with growing confidence."""
    weight = 0.12 + 0.88 * sure
    return tuple(1 - weight * (1 - part) for part in colour)

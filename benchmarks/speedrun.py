"""Time to quality: train for some minutes, then one chain on held-out puzzles, then on the test.

    python benchmarks/speedrun.py train --name plateau --minutes 8 --data extreme_train.samm \
        --held extreme_held.samm --test extreme_test.samm --out runs/speedrun
    python benchmarks/speedrun.py table runs/speedrun

A run counts for a target (95.2 %: the paper with ten chains; 98.9 %: sotaku) if one chain of at
most 256 steps, without a verifier, solves that share of 1,000 held-out puzzles. Only then it is
scored on the test file, once. Minutes are those of the training steps; compiling and evaluating
(`wall_minutes` has them) depend on the installation, not on the method.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from samm import runtime, weights
from samm.config import Config
from samm.errors import InputError
from samm.evaluation.measure import Request, measure
from samm.training.run import train

TARGETS = (0.952, 0.989)
HELD = 1000


def training_seconds(run: Path, batch: int) -> float:
    """Sum over the log: the steps of each line at the rate that the line tells."""
    seconds, before = 0.0, 0
    for line in (run / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        if "puzzles_per_second" in row:
            seconds += (row["step"] - before) * batch / row["puzzles_per_second"]
            before = row["step"]
    return seconds


def train_and_score(arguments: argparse.Namespace) -> None:
    files = json.dumps([str(path) for path in arguments.data])
    overrides = [
        f"data.files={files}", f'data.held_out_files=["{arguments.held}"]',
        f"training.seed={arguments.seed}", *arguments.set,
    ]  # fmt: skip
    config = Config.read(arguments.config, overrides)
    run = arguments.out / f"{arguments.name}-{arguments.seed}"
    start = time.perf_counter()
    resume = (run / "checkpoints").is_dir()
    minutes = None if resume or arguments.steps else arguments.minutes
    train(config, run, minutes, arguments.steps, resume, device=arguments.device, say=print)
    wall = time.perf_counter() - start
    trained = weights.load(run, runtime.choose(arguments.device).device)
    batch = trained.config.training.batch_size
    result: dict[str, Any] = {
        "name": arguments.name, "changed": arguments.set, "seed": arguments.seed,
        "minutes": training_seconds(run, batch) / 60, "wall_minutes": wall / 60,
        "steps": trained.step, "puzzles": trained.step * batch,
        "parameters": trained.network.parameter_count,
    }  # fmt: skip
    result["held"] = score(arguments, trained, arguments.held, HELD)
    if result["held"]["accuracy"] >= TARGETS[0]:
        result["test"] = score(arguments, trained, arguments.test, None)
    (arguments.out / f"{run.name}.json").write_text(json.dumps(result, indent=1) + "\n")
    print(table(arguments.out))


def score(
    arguments: argparse.Namespace, trained: weights.Trained, data: Path, limit: int | None
) -> dict[str, Any]:
    """One chain, as `samm eval --steps 256` measures it."""
    chosen = runtime.choose(arguments.device, seed=0)
    on_gpu = chosen.device.type == "cuda"
    request = Request(trained.name, data, "chain", steps=256, limit=limit, compile=on_gpu)
    measured = measure(request, trained, chosen)
    kept = ("data", "n", "accuracy", "ci95", "stopped", "false_stops", "mean_steps")
    return {key: measured[key] for key in kept}


def table(folder: Path) -> str:
    """All runs of a folder as Markdown, the slowest first."""
    rows = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    lines = [
        "| run | seed | minutes | million puzzles | held out, % | test, % | reached |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -row["minutes"]):
        reached = [f"{100 * t:.1f}" for t in TARGETS if row["held"]["accuracy"] >= t]
        test = f"{100 * row['test']['accuracy']:.2f}" if "test" in row else "–"
        lines.append(
            f"| {row['name']} | {row['seed']} | {row['minutes']:.1f} | {row['puzzles'] / 1e6:.1f} "
            f"| {100 * row['held']['accuracy']:.1f} | {test} | {', '.join(reached) or '–'} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("--name", required=True)
    training.add_argument("--config", type=Path, default=Path("configs/sudoku.toml"))
    training.add_argument("--minutes", type=float, default=8)
    training.add_argument("--steps", type=int)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--data", type=Path, nargs="+", required=True)
    training.add_argument("--held", type=Path, required=True)
    training.add_argument("--test", type=Path, required=True)
    training.add_argument("--set", action="append", default=[])
    training.add_argument("--device")
    training.add_argument("--out", type=Path, required=True)
    training.set_defaults(command=train_and_score)
    printing = commands.add_parser("table")
    printing.add_argument("folder", type=Path)
    printing.set_defaults(command=lambda arguments: print(table(arguments.folder)))
    arguments = parser.parse_args()
    try:
        arguments.command(arguments)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()

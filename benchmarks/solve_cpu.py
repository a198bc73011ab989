"""Speed of the released Sudoku network on this CPU: load, one puzzle at a time, and many.

python benchmarks/solve_cpu.py --data extreme_test.csv.gz --single 200 --many 1000
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

import samm
from samm.data import convert

LOAD = "import time; t = time.perf_counter(); import samm; samm.load({!r}, device='cpu'); "
LOAD += "print(time.perf_counter() - t)"


def seconds_to_load(weights: str) -> float:
    """Import and load in a fresh process, without Python's own start."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD.format(weights)], capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def right(solutions: list[Any], answers: torch.Tensor) -> float:
    return statistics.mean(
        torch.equal(s.tokens, answer) for s, answer in zip(solutions, answers, strict=True)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", default="sudoku")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--single", type=int, default=200)
    parser.add_argument("--many", type=int, default=1000)
    parser.add_argument("--dtype", help="float32 or bfloat16; default: what samm solve takes")
    arguments = parser.parse_args()
    load = statistics.median(seconds_to_load(arguments.weights) for _ in range(5))
    solver = samm.load(arguments.weights, device="cpu", dtype=arguments.dtype)
    rows = max(arguments.single, arguments.many)
    data = convert.load(arguments.data, solver.task, limit=rows)
    answers = torch.from_numpy(data.answers.astype("int64"))
    texts = [solver.task.decode(torch.from_numpy(row.astype("int64"))) for row in data.tokens]
    solver.solve(texts[0], verify=False)  # warm
    single = [solver.solve(text, verify=False) for text in texts[: arguments.single]]
    latencies = sorted(1000 * (s.seconds or 0) for s in single)
    start = time.perf_counter()
    many = solver.solve(texts[: arguments.many], verify=False)
    seconds = time.perf_counter() - start
    result = {
        "weights": arguments.weights,
        "data": arguments.data.name,
        "dtype": str(solver.runtime.dtype).removeprefix("torch."),
        "threads": torch.get_num_threads(),
        "seconds_to_import_and_load": round(load, 2),
        "single": len(single),
        "median_milliseconds": round(statistics.median(latencies), 1),
        "p90_milliseconds": round(latencies[int(0.9 * len(latencies))], 1),
        "single_solved": right(single, answers[: len(single)]),
        "many": len(many),
        "puzzles_per_second": round(len(many) / seconds, 1),
        "many_solved": right(many, answers[: len(many)]),
        "mean_steps": round(statistics.mean(s.steps for s in many), 1),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

"""Train rivals and ablations for equal minutes on one trunk, and evaluate all of them.

    python benchmarks/baselines.py --arms ours dfm gidd --minutes 8 --out results \
        --data forum11_train.samm extreme_train.samm --tune held_out.samm \
        --test extreme_test.csv.gz forum11_test.csv.gz

For every arm: a run folder OUT/runs/ARM (an interrupted one goes on), its network in bfloat16 under
OUT/networks/ARM, and one JSON object per evaluation, OUT/ARM-*.json, for `samm report`. Numbers of
steps of the rivals are chosen on the tuning file alone. `--only train` or `--only test` does half.
"""

import argparse
import dataclasses
import json
import time
from pathlib import Path

from samm import runtime, tasks, weights
from samm.config import Config
from samm.data import convert
from samm.data.format import Dataset
from samm.errors import InputError
from samm.evaluation.measure import Request, measure
from samm.training.run import train

OFF_POLICY = ["states.steps=[1]", "path.blank_share=0"]
RIVALS: dict[str, list[str]] = {
    "ours": [],
    "dfm": [
        "objective.kind=cross_entropy", *OFF_POLICY, "path.exponent=2.0", "network.time=adaln",
    ],
    "gidd": ["objective.kind=gidd", "path.kind=hybrid", *OFF_POLICY, "network.time=adaln"],
    "mgdm": ["objective.kind=mgdm", *OFF_POLICY],
    "d3pm": ["objective.kind=d3pm", "path.kind=uniform", *OFF_POLICY, "network.time=adaln"],
    "paper": [],  # its own preset: configs/sudoku-paper.toml
}  # fmt: skip
"""What each rival changes of the default preset."""

ABLATIONS: dict[str, list[str]] = {
    "path-only": ["states.steps=[1]"],
    "always-commit": ["states.always_commit=true", "objective.commit_weight=0.0"],
    "no-blank": ["path.blank_share=0"],
    "no-loops": ["network.layers={depth}", "network.loops=1"],
    "as-printed": ["objective.coupled=true", "objective.weight_attached=true"],
    "adamw": ["optimizer.kind=adamw"],
    "two-steps": ["states.steps=[0, 0, 1]"],
}
"""What each ablation changes; no-loops has the same FLOPs with weights of their own."""

SAMPLERS: dict[str, list[str]] = {
    "dfm": ["euler", "top_k", "margin", "remdm"],
    "gidd": ["gidd"],
    "mgdm": ["mgdm", "top_k"],
    "d3pm": ["d3pm"],
}
"""With what rivals answer; everybody else by the chain."""

OWN_CLOCK = ["euler", "top_k"]
"""Run on our own network with τ as their time."""

STEPS = (20, 40, 81, 162, 324)
"""Numbers of steps that a rival may choose from, on the tuning file."""


def overrides(arm: str, config: Config) -> list[str]:
    depth = config.network.layers * config.network.loops
    return [text.format(depth=depth) for text in {**RIVALS, **ABLATIONS}[arm]]


class Bench:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.out = arguments, arguments.out
        self.chosen = runtime.choose(arguments.device, seed=0)
        task = tasks.from_spec(self.config("ours").task)
        wanted = [(path, arguments.limit) for path in arguments.test]
        wanted += [(arguments.tune, arguments.tune_limit)] if arguments.tune else []
        self.sets: dict[Path, Dataset] = {
            path: convert.load(path, task, limit) for path, limit in wanted
        }

    def config(self, arm: str) -> Config:
        file = self.arguments.paper_config if arm == "paper" else self.arguments.config
        base = Config.read(file, self.arguments.set)
        files = [f"data.files={json.dumps([str(path) for path in self.arguments.data])}"]
        if self.arguments.weights:
            files.append(f"data.weights={self.arguments.weights}")
        if self.arguments.tune:
            files.append(f"data.held_out_files={json.dumps([str(self.arguments.tune)])}")
        return Config.read(file, [*overrides(arm, base), *files, *self.arguments.set])

    def train(self, arm: str) -> None:
        run, start = self.out / "runs" / arm, time.perf_counter()
        resume = (run / "checkpoints").is_dir()
        steps = None if self.arguments.steps is None else self.arguments.steps
        minutes = None if steps or resume else self.arguments.minutes
        result = train(
            self.config(arm), run, minutes, steps, resume, self.arguments.device, say=print
        )
        spent = (time.perf_counter() - start) / 60
        print(f"{arm}: trained, {spent:.1f} min, {result['accuracy']:.1%}", flush=True)
        exported = self.out / "networks" / arm
        if not exported.exists():
            weights.export(run, exported)

    def test(self, arm: str) -> None:
        trained = weights.load(self.out / "networks" / arm, self.chosen.device)
        trained = dataclasses.replace(trained, name=f"{self.out}/networks/{arm}")
        names = SAMPLERS.get(arm, ["chain"])
        for name in names:
            steps = self.best_steps(trained, name) if arm in SAMPLERS else self.arguments.cap
            for data in self.arguments.test:
                chains = self.arguments.chains if name == "chain" and arm in RIVALS else 1
                self.measure(arm, Request(trained.name, data, name, steps=steps), trained)
                if chains > 1:
                    request = Request(trained.name, data, name, chains, steps=steps)
                    self.measure(arm, request, trained)
        if arm == "ours":
            for name in OWN_CLOCK:
                steps = self.best_steps(trained, name, clock="progress")
                for data in self.arguments.test:
                    options = {"clock": "progress"}
                    request = Request(trained.name, data, name, steps=steps, options=options)
                    self.measure(arm, request, trained)
            first = self.arguments.test[0]
            looked = Request(
                trained.name, first, "chain", steps=self.arguments.cap, limit=1000,
                trajectories=4, calibration=True,
            )  # fmt: skip
            self.measure(f"{arm}-looked-at", looked, trained)

    def best_steps(self, trained: weights.Trained, name: str, **options: str) -> int:
        """The number of steps that solves most of the tuning file."""
        if self.arguments.tune is None:
            raise InputError("--tune FILE: the steps of rivals are chosen there")
        found = {}
        for steps in self.arguments.rival_steps:
            request = Request(
                trained.name, self.arguments.tune, name, steps=steps, options=dict(options)
            )
            result = measure(request, trained, self.chosen, self.sets[self.arguments.tune])
            found[steps] = result["accuracy"]
        print(f"    {name} on {self.arguments.tune.name}: {found}", flush=True)
        return max(found, key=lambda steps: (found[steps], -steps))

    def measure(self, arm: str, request: Request, trained: weights.Trained) -> None:
        own = "" if "clock" not in request.options else "-own-clock"
        stem = request.data.name.split(".")[0]
        file = self.out / f"{arm}-{request.sampler}{own}-{request.chains}-{stem}.json"
        if file.exists():
            return
        limit = request.limit or self.arguments.limit
        on_gpu = self.chosen.device.type == "cuda"
        request = dataclasses.replace(request, limit=limit, compile=on_gpu)
        result = measure(request, trained, self.chosen, self.sets[request.data][:limit])
        file.write_text(json.dumps(result) + "\n")
        print(
            f"    {file.name}: {result['accuracy']:.2%} of {result['n']:,}, "
            f"{result['mean_steps']:.1f} steps, {result['seconds']:.0f} s",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arms = [*RIVALS, *ABLATIONS]
    parser.add_argument("--arms", nargs="+", choices=arms, default=list(RIVALS))
    parser.add_argument("--only", choices=["train", "test"])
    parser.add_argument("--config", type=Path, default=Path("configs/sudoku.toml"))
    parser.add_argument("--paper-config", type=Path, default=Path("configs/sudoku-paper.toml"))
    parser.add_argument("--minutes", type=float, default=8)
    parser.add_argument("--steps", type=int, help="of training, instead of minutes")
    parser.add_argument("--data", type=Path, nargs="*", default=[])
    parser.add_argument("--weights", type=json.loads, help="share of each file, e.g. [0.8,0.2]")
    parser.add_argument("--tune", type=Path, help="held out of the training data")
    parser.add_argument("--tune-limit", type=int, default=500)
    parser.add_argument("--test", type=Path, nargs="*", default=[])
    parser.add_argument("--limit", type=int, help="rows of each test file")
    parser.add_argument("--chains", type=int, default=10)
    parser.add_argument("--cap", type=int, default=256, help="of the chain")
    parser.add_argument("--rival-steps", type=int, nargs="+", default=STEPS)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, required=True)
    try:
        bench = Bench(parser.parse_args())
        for arm in bench.arguments.arms:
            if bench.arguments.only != "test":
                bench.train(arm)
            if bench.arguments.only != "train":
                bench.test(arm)
    except InputError as error:
        parser.exit(2, f"error: {error}\n")


if __name__ == "__main__":
    main()

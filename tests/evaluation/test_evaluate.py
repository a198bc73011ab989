"""An evaluation measures what it says: counted by hand, cut short, and reproduced."""

import json

import numpy as np
import pytest
import torch
from dummies import Knowing, KnowingNetwork, small_problems

from samm import tasks
from samm.data.format import Dataset
from samm.errors import InputError
from samm.evaluation.evaluate import Protocol, evaluate
from samm.evaluation.metrics import Outcome, score, wilson
from samm.process.objective import Samm
from samm.samplers import Chain, Euler
from samm.samplers.ensemble import RULES

task = tasks.get("sudoku", box_rows=2, box_cols=2)
COUNT = 30


def data(count: int = COUNT) -> Dataset:
    problems, answers = small_problems(task, count)
    ratings = np.array([[0, 1, 7, 40, 99, np.nan][i % 6] for i in range(count)], np.float32)
    tokens, known = (x.numpy().astype(np.uint8) for x in (problems.tokens, answers))
    return Dataset(task, tokens, known, ratings, {})


def network(skill: float = 0.95, commit: float = 0.9, count: int = COUNT) -> KnowingNetwork:
    problems, answers = small_problems(task, count)
    return KnowingNetwork(task, Knowing(answers, problems.clue, task.vocabulary, skill, commit))


class TestMetrics:
    def test_shares_are_of_all_problems(self) -> None:
        outcome = Outcome(
            torch.tensor([True, True, False, False]),
            torch.tensor([True, False, True, False]),
            torch.tensor([2, 4, 6, 100]),
            torch.tensor([3, 5, 7, 101]),
        )
        found = score(outcome)
        assert (found.n, found.solved, found.accuracy) == (4, 2, 0.5)
        assert (found.stopped, found.stopped_right, found.false_stops) == (0.5, 0.25, 0.25)
        assert (found.mean_steps, found.median_steps, found.p90_steps) == (28, 5, 100)
        assert found.calls_per_puzzle == 29
        rival = score(outcome, learned_stop=False)
        assert rival.stopped is rival.stopped_right is rival.false_stops is None

    @pytest.mark.parametrize(
        ("solved", "n", "low", "high"),
        [
            (0, 10, 0, 0.2775),
            (10, 10, 0.7225, 1),
            (50, 100, 0.4038, 0.5962),
            (952, 1000, 0.9370, 0.9636),
        ],
    )
    def test_wilson_has_known_values(self, solved, n, low, high) -> None:
        assert wilson(solved, n) == pytest.approx((low, high), abs=1e-4)

    def test_the_share_lies_in_its_interval(self) -> None:
        """Also where they meet, at 0 and at 1, whatever the rounding."""
        for n in range(1, 200):
            for solved in (0, 1, n // 2, n):
                low, high = wilson(solved, n)
                assert 0 <= low <= solved / n <= high <= 1


class TestEvaluate:
    def test_a_network_that_knows_scores_full_marks(self) -> None:
        result = evaluate(network(1 - 1e-7, 1 - 1e-7), data(), Protocol(Chain(steps=20)))
        assert result["accuracy"] == result["exact"] == result["oracle"] == 1
        assert result["stopped"] == result["stopped_right"] == 1
        assert result["false_stops"] == 0
        assert result["mean_steps"] == 2
        assert result["calls_per_puzzle"] == 3
        assert result["flops_per_puzzle"] == 3000
        assert result["steps_histogram"] == [[2, COUNT]]
        assert not result["partial"]

    def test_a_network_that_guesses_does_not(self) -> None:
        result = evaluate(network(0.3), data(), Protocol(Euler(steps=8)))
        assert result["accuracy"] < 0.2
        assert result["stopped"] is None

    def test_difficulties_add_up(self) -> None:
        result = evaluate(network(0.9), data(), Protocol(Chain(steps=6)))
        rows = result["by_difficulty"]
        assert [row["difficulty"] for row in rows] == list(task.difficulties)
        assert [row["n"] for row in rows] == [5] * 6
        assert sum(row["solved"] for row in rows) == result["solved"]
        weighted = sum(row["n"] * row["mean_steps"] for row in rows) / COUNT
        assert weighted == pytest.approx(result["mean_steps"])
        assert sum(count for _, count in result["steps_histogram"]) == COUNT

    def test_the_seed_decides_and_the_batch_does_not(self) -> None:
        def run(seed: int, batch: int) -> dict:
            protocol = Protocol(Chain(steps=30), 3, "vote", seed, batch)
            result = evaluate(network(0.8), data(), protocol)
            return {k: v for k, v in result.items() if k not in ("seconds", "puzzles_per_second")}

        assert run(1, 1024) == run(1, 7)
        assert run(1, 1024)["ensembles"] != run(2, 1024)["ensembles"]

    def test_an_ensemble_holds_the_smaller_ones(self) -> None:
        large = evaluate(network(0.9), data(), Protocol(Chain(steps=8), 5, "average"))
        rows = {(row["chains"], row["select"]): row for row in large["ensembles"]}
        assert {c for c, _ in rows} == {1, 2, 3, 5}
        assert {s for c, s in rows if c == 5} == set(RULES)
        assert rows[5, "average"]["solved"] == large["solved"]
        for count, rule in ((1, "first"), (3, "majority"), (3, "first"), (2, "verified")):
            small = evaluate(network(0.9), data(), Protocol(Chain(steps=8), count, rule))
            for name in ("solved", "stopped", "mean_steps", "calls_per_puzzle", "oracle"):
                assert rows[count, rule][name] == small[name], (count, rule, name)
        for (_, rule), row in rows.items():
            assert row["verifier"] == (rule == "verified")
            if rule in ("first", "residual", "confidence", "majority", "verified"):
                assert row["accuracy"] <= row["oracle"]
        verified = rows[5, "verified"]
        assert verified["accuracy"] == verified["oracle"], "it finds whatever is right"

    def test_interrupted_it_tells_what_it_knows(self) -> None:
        """The problems up to the first unfinished one, as an uninterrupted run answers them."""
        protocol = Protocol(Chain(steps=60), batch=5)
        whole = evaluate(network(0.9), data(), protocol)

        def stop(chains: int, finished: int, solved: int) -> None:
            if finished >= 12:
                raise KeyboardInterrupt

        part = evaluate(network(0.9), data(), protocol, stop)
        assert part["partial"]
        n = part["n"]
        assert 5 <= n < COUNT
        first = Dataset(task, *(x[:n] for x in (data().tokens, data().answers, data().ratings)), {})
        same = evaluate(network(0.9), first, protocol)
        assert part["solved"] == same["solved"]
        assert part["mean_steps"] == same["mean_steps"]
        assert whole["n"] == COUNT

        slow = network(0.97, 0.97)
        stuck = data().tokens[3]

        class Stuck(KnowingNetwork):
            """Never commits to anything on the fourth problem."""

            def forward(self, tokens, clue, time=None):
                seen = super().forward(tokens, clue, time)
                given = torch.from_numpy(stuck.astype(np.int64))
                here = (torch.where(clue, tokens, task.mask) == given).all(-1)
                seen.commit[here] = -30.0
                return seen

        part = evaluate(Stuck(task, slow.knowing), data(), protocol, stop)
        assert part["n"] == 3, "problems behind an unfinished one do not count"

        def at_once(chains: int, finished: int, solved: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(InputError, match="interrupted before the first problem"):
            evaluate(network(), data(), Protocol(Chain(steps=60), 2, batch=1), at_once)

    def test_trajectories_and_calibration_are_kept(self) -> None:
        protocol = Protocol(Chain(steps=30), 2, "residual", trajectories=3, calibration=Samm())
        result = json.loads(json.dumps(evaluate(network(0.88), data(), protocol)))
        assert len(result["trajectories"]) == 3
        path = result["trajectories"][1]
        assert path["states"][0] == path["problem"] == data().tokens[1].tolist()
        assert len(path["states"]) == len(path["progress"]) == len(path["confidence"])
        tables = result["calibration"]
        assert sum(tables["stop"]["count"]) == round(result["calls_per_puzzle"] * COUNT)
        for row, n in enumerate(tables["stop"]["count"]):
            if n:  # this network knows its progress
                progress, target = tables["stop"]["progress"][row], tables["stop"]["target"][row]
                assert progress == pytest.approx(target, abs=1e-4)
        commit = tables["commit"]
        (row,) = [row for row, n in enumerate(commit["count"]) if n]
        assert commit["wrong_mass"][row] == pytest.approx(0.12, abs=1e-5)
        assert commit["confidence"][row] == pytest.approx(0.9, abs=1e-5)
        c = commit["optimum"][row]
        assert (1 - c + 0.05) * (1 - 0.12 * c) == pytest.approx(0.12 * c, abs=1e-4)

    def test_what_makes_no_sense_is_refused(self) -> None:
        with pytest.raises(InputError, match="rule 'luck' is unknown"):
            evaluate(network(), data(), Protocol(Chain(), 2, "luck"))
        empty = Dataset(task, *(x[:0] for x in (data().tokens, data().answers, data().ratings)), {})
        with pytest.raises(InputError, match="no problem to evaluate on"):
            evaluate(network(), empty, Protocol(Chain()))

"""Solving: by the library and by `samm solve`, one problem and files of them."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from dummies import Knowing, KnowingNetwork, small_problems, small_task

import samm
from samm import runtime
from samm.cli import main
from samm.cli_demo import FAMOUS
from samm.config import Config
from samm.errors import InputError
from samm.solve_file import COLUMNS, Line, Options, solve_lines
from samm.solver import Solver
from samm.tasks import get
from samm.weights import Trained, installed

NETWORK = "sudoku-6x6"
task = get("sudoku", box_rows=2, box_cols=3)


def texts(count: int, seed: int = 3) -> list[str]:
    return [task.decode(task.example(seed, i).problem.tokens) for i in range(count)]


@pytest.fixture(scope="module")
def solver() -> Solver:
    return samm.load(NETWORK, device="cpu")


def knowing(skill: float, commit: float, count: int = 12) -> tuple[Solver, list[str]]:
    """A solver on a network that knows the answers so well."""
    problems, answers = small_problems(small_task, count)
    network = KnowingNetwork(
        small_task, Knowing(answers, problems.clue, small_task.vocabulary, skill, commit)
    )
    trained = Trained("dummy", network, Config(task=small_task.spec()), 0)
    found = Solver(trained, runtime.choose("cpu", seed=0))
    return found, [small_task.decode(tokens) for tokens in problems.tokens]


class TestSolver:
    def test_the_little_released_network_is_here_and_solves(self, solver: Solver) -> None:
        assert NETWORK in installed()
        solutions = solver.solve(texts(40))
        assert sum(s.solved for s in solutions) >= 39
        for solution, text in zip(solutions, texts(40), strict=True):
            assert solution.input == text
            if solution.verified:
                (answer,) = task.answers(task.encode(text))
                assert solution.output == task.decode(answer)
                assert solution.stopped
            assert len(solution.confidence) == 36

    def test_the_released_network_solves_hard_puzzles_alone(self) -> None:
        lines = (Path(__file__).parent / "hard_sudokus.txt").read_text().splitlines()
        hard = [line for line in lines if not line.startswith("#")]
        assert len(hard) == 30
        sudoku = samm.load("sudoku", device="cpu")
        for solution in sudoku.solve([*hard, *FAMOUS.values()], verify=False, steps=1000):
            (answer,) = sudoku.task.answers(solution.problem)
            assert solution.stopped
            assert torch.equal(solution.tokens, answer)

    def test_bfloat16_is_taken_by_large_networks_on_cpus_that_have_it(self, monkeypatch) -> None:
        monkeypatch.delenv("SAMM_DTYPE", raising=False)
        for able, expected in ((True, torch.bfloat16), (False, torch.float32)):
            monkeypatch.setattr(runtime, "multiplies_bfloat16", lambda able=able: able)
            assert samm.load("sudoku", device="cpu").runtime.dtype == expected
            assert samm.load(NETWORK, device="cpu").runtime.dtype == torch.float32
            asked = samm.load("sudoku", device="cpu", dtype="float32")
            assert asked.runtime.dtype == torch.float32
        monkeypatch.setattr(runtime, "multiplies_bfloat16", lambda: True)
        monkeypatch.setenv("SAMM_DTYPE", "float32")
        assert samm.load("sudoku", device="cpu").runtime.dtype == torch.float32

    def test_one_problem_gives_one_solution(self, solver: Solver) -> None:
        text = texts(1)[0]
        solution = solver.solve(text)
        assert str(solution) == solution.output == solver.solve([text])[0].output
        assert solution.seconds is not None
        assert solution.seconds > 0
        assert solver.solve([]) == []
        assert solver.solve(iter([text]))[0] == solution, "any iterable of texts"
        assert "6" in solution.render().plain

    def test_trace_keeps_every_state(self, solver: Solver) -> None:
        path = solver.solve(texts(1)[0], trace=True).trajectory
        solution = solver.solve(texts(1)[0])
        assert path is not None
        assert len(path.states) == solution.steps + 1
        assert task.decode(path.states[0]) == solution.input
        assert task.decode(path.states[-1]) == solution.output
        assert solution.trajectory is None
        with pytest.raises(InputError, match="trace follows one chain, not 2"):
            solver.solve(texts(1)[0], trace=True, chains=2)

    def test_a_stream_is_a_list_in_parts(self, solver: Solver) -> None:
        many = texts(30)
        whole = solver.solve(many, seed=4, verify=False)
        solver.chunk, before = 7, solver.chunk
        try:
            parts = list(solver.stream(iter(many), seed=4, verify=False))
        finally:
            solver.chunk = before
        assert parts == whole
        assert whole != solver.solve(many, seed=5, verify=False)

    def test_without_verify_only_the_network_speaks(self) -> None:
        solver, problems = knowing(0.9, 0.95)
        for solution in solver.solve(problems, verify=False, steps=500):
            assert solution.verified is None
            assert solution.solved == solution.stopped

    def test_a_wrong_answer_is_never_dressed_as_a_right_one(self) -> None:
        solver, problems = knowing(0.3, 0.9)
        solutions = solver.solve(problems, steps=20)
        assert not all(s.solved for s in solutions)
        for solution in solutions:
            right = small_task.verify(solution.problem[None], solution.tokens[None])
            assert solution.solved == solution.verified == bool(right)

    def test_with_verify_wrong_chains_start_again(self) -> None:
        solver, problems = knowing(0.8, 0.9)
        assert all(s.solved for s in solver.solve(problems, steps=5000))
        assert all(s.solved for s in solver.solve(problems, steps=5000, chains=3))

    def test_bad_input_names_the_problem(self, solver: Solver) -> None:
        with pytest.raises(InputError, match=r"^a 6×6 Sudoku has 36 cells, got 3"):
            solver.solve("123")
        with pytest.raises(InputError, match=r"^problem 2: a 6×6 Sudoku has 36 cells"):
            solver.solve([texts(1)[0], "123"])
        with pytest.raises(InputError, match="0 chains"):
            solver.solve(texts(1)[0], chains=0)
        with pytest.raises(InputError, match="'nothing' is no run folder"):
            samm.load("nothing")


class TestLines:
    def test_bad_lines_keep_their_place_and_change_nothing_else(self, solver: Solver) -> None:
        good = [Line(i, text) for i, text in enumerate(texts(20), 1)]
        mixed = [*good[:5], Line(6, "bad"), *good[5:9], Line(11, "", "4 columns"), *good[9:]]
        options = Options(verify=False, seed=2)
        tables = list(solve_lines(solver, mixed, options))
        assert len(tables) == len(mixed)
        assert [row for row, t in enumerate(tables) if t["error"]] == [5, 10]
        assert tables[5]["error"].startswith("line 6: ")
        assert tables[10]["error"] == "line 11: 4 columns"
        solver.chunk, before = 6, solver.chunk
        try:
            assert list(solve_lines(solver, mixed, options)) == tables
            later = list(solve_lines(solver, mixed[8:], options, first=8))
        finally:
            solver.chunk = before
        assert later == tables[8:]


def run(*words: str) -> int:
    try:
        main(["solve", "--weights", NETWORK, "--device", "cpu", *words])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


class TestCommand:
    def test_one_problem_shows_board_verdict_and_costs(self, capsys) -> None:
        assert run(texts(1)[0], "--check") == 0
        out = capsys.readouterr().out
        assert "│" in out
        assert "verified by the rules" in out
        assert "steps" in out
        assert " ms" in out
        assert "classical check: one solution exists" in out

    def test_what_is_not_solved_says_so(self, capsys) -> None:
        blank = "." * 36  # any grid would do, but two steps are too few to find one
        assert run(blank, "--steps", "2") == 1
        assert "NOT SOLVED" in capsys.readouterr().out
        assert run(blank, "--steps", "2", "--no-verify") == 1
        assert "NOT SOLVED: the steps ran out" in capsys.readouterr().out

    def test_json_and_csv_have_their_columns(self, capsys) -> None:
        assert run(*texts(3), "--json") == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [row["input"] for row in rows] == texts(3)
        assert list(rows[0]) == list(COLUMNS[:-1])
        assert run(*texts(3), "--csv") == 0
        head, *lines = capsys.readouterr().out.splitlines()
        assert head == ",".join(COLUMNS)
        assert [line.split(",")[1] for line in lines] == [row["output"] for row in rows]

    def test_watch_shows_the_way(self, capsys) -> None:
        assert run(texts(1)[0], "--watch") == 0
        out = capsys.readouterr().out
        assert "step" in out
        assert "τ" in out
        assert "verified by the rules" in out

    def test_files_keep_their_order_and_tell_bad_lines(self, tmp_path, capsys) -> None:
        source, out = tmp_path / "in.txt", tmp_path / "out.jsonl"
        source.write_text("# mine\n" + "\n".join([*texts(5), "x", *texts(3, seed=8)]) + "\n")
        assert run("--file", str(source), "--json", "--out", str(out)) == 1
        told = capsys.readouterr().err
        assert "line 7: " in told
        assert "of 9 solved, 1 lines could not be read" in told
        rows = [json.loads(line) for line in out.read_text().splitlines()]
        assert [row["input"] for row in rows] == [*texts(5), "x", *texts(3, seed=8)]
        assert "error" in rows[5]

    def test_standard_input(self, capsys, monkeypatch) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(texts(4)) + "\n"))
        assert run("--file", "-") == 0
        assert len(capsys.readouterr().out.splitlines()) == 4

    def test_parquet(self, tmp_path, capsys) -> None:
        import pyarrow.parquet as pq

        source, out = tmp_path / "in.txt", tmp_path / "out.parquet"
        source.write_text("\n".join([*texts(5), "x"]))
        assert run("--file", str(source), "--parquet", str(out)) == 1
        table = pq.read_table(out).to_pylist()
        assert [row["input"] for row in table] == [*texts(5), "x"]
        assert len(table[0]["confidence"]) == 36
        assert table[5]["error"].startswith("line 6")
        assert [path.name for path in tmp_path.iterdir() if path != source] == ["out.parquet"]
        assert run("--file", str(source), "--parquet", str(out)) == 2

    @pytest.mark.parametrize("kind", ["json", "csv"])
    def test_a_cut_file_is_gone_on_with(self, tmp_path, kind: str) -> None:
        source, whole, cut = (tmp_path / name for name in ("in.txt", "whole", "cut"))
        source.write_text("\n".join([*texts(12), "x", *texts(12, seed=9)]) + "\n")
        words = ["--file", str(source), f"--{kind}", "--no-verify"]
        run(*words, "--out", str(whole))
        content = whole.read_bytes()
        for size in (
            0,
            5,
            len(content) // 3,
            len(content) // 2 + 7,
            len(content) - 1,
            len(content),
        ):
            cut.write_bytes(content[:size])
            run(*words, "--out", str(cut), "--resume")
            assert cut.read_bytes() == content, size

    def test_other_peoples_files_are_left_alone(self, tmp_path, capsys) -> None:
        source, out = tmp_path / "in.txt", tmp_path / "out"
        source.write_text("\n".join(texts(3)) + "\n")
        foreign = json.dumps({"input": "somebody else's"}) + "\n"
        for kind, content, message in (
            ("json", "my notes", "is no json of samm solve"),
            ("json", "my notes\nand more\n", "is no json of samm solve"),
            ("csv", "a,b\n1,2\n", "is no csv of samm solve"),
            ("json", foreign, "holds answers to another input"),
            ("json", foreign + '{"inp', "holds answers to another input"),
        ):
            out.write_text(content)
            words = ["--file", str(source), f"--{kind}", "--out", str(out)]
            assert run(*words) == 2
            assert "already exists; give --resume" in capsys.readouterr().err
            assert run(*words, "--resume") == 2
            assert message in capsys.readouterr().err
            assert out.read_text() == content

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ([], "give either problems or --file"),
            (["." * 36, "--file", "x"], "give either problems or --file"),
            (["." * 36, "--json", "--csv"], "contradict each other"),
            (["." * 36, "." * 36, "--watch"], "--watch shows one chain on one problem"),
            (["." * 36, "--watch", "--json"], "--watch and --check go with problems shown"),
            (["--file", "x", "--check"], "--watch and --check go with problems shown"),
            (["." * 36, "--parquet", "x"], "--parquet goes with --file"),
            (["--file", "x", "--parquet", "y", "--out", "z"], "--parquet goes with --file"),
            (["." * 36, "--out", "x"], "--out and --resume go with --file"),
            (["--file", "x", "--resume"], "--resume goes on with what"),
            (["--file", "nowhere.txt"], "nowhere.txt does not exist"),
            (["12"], "a 6×6 Sudoku has 36 cells, got 2"),
        ],
    )
    def test_contradictions_are_refused(self, words, message, capsys) -> None:
        assert run(*words) == 2
        assert message in capsys.readouterr().err

    @pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
    def test_a_killed_run_resumes_to_the_same_file(self, tmp_path) -> None:
        source, whole, cut = (tmp_path / name for name in ("in.txt", "whole", "cut"))
        source.write_text("\n".join(texts(1100)) + "\n")
        words = ["--file", str(source), "--json", "--no-verify", "--steps", "8"]
        assert run(*words, "--out", str(whole)) == 0
        command = [sys.executable, "-m", "samm", "solve", "--weights", NETWORK, *words]
        command += ["--device", "cpu", "--out", str(cut)]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while process.poll() is None and (not cut.exists() or cut.stat().st_size == 0):
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert run(*words, "--out", str(cut), "--resume") == 0
        assert cut.read_bytes() == whole.read_bytes()


def test_confidence_is_a_probability(solver: Solver) -> None:
    solution = solver.solve(texts(1)[0])
    clue = task.encode(solution.input).clue
    sure = torch.tensor(solution.confidence)
    assert bool((sure[clue] == 1).all())
    assert bool(((sure >= 0) & (sure <= 1)).all())

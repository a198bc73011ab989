"""The command line as a person meets it: help, messages, exit codes."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from samm import __version__
from samm.data.format import open_dataset

INKALA = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."


def samm(*arguments: object, **options) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "samm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", **options)


def heed_ctrl_c() -> None:
    """Background jobs of a shell inherit a deaf ear to SIGINT, and so would their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_help_is_a_table_of_contents() -> None:
    shown = samm("--help")
    assert shown.returncode == 0
    for word in ("Start here", "demo", "info", "Data", "data"):
        assert word in shown.stdout
    assert "check" in samm("data", "--help").stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from samm.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'numba', 'numpy', 'pyarrow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_version() -> None:
    assert samm("--version").stdout.strip() == f"samm {__version__}"


def test_info_says_what_and_why() -> None:
    shown = samm("info", env={**os.environ, "SAMM_DEVICE": "cpu", "SAMM_SEED": "5"}).stdout
    for word in (__version__, "torch", "numba", "asked for by SAMM_DEVICE", "5", "sudoku"):
        assert word in shown
    bad = samm("info", env={**os.environ, "SAMM_DEVICE": "abacus"})
    assert bad.returncode == 2
    assert bad.stderr == "error: device 'abacus' is unknown; expected cuda, mps or cpu\n"


def test_demo_solves_famous_puzzles_and_one_made_here() -> None:
    shown = samm("demo", "--seed", 4, "--rating", 10)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.count("solved, checked by the rules") == 7, shown.stdout
    assert "Made just now (seed 4;" in shown.stdout


def test_check_counts_solutions() -> None:
    one = samm("data", "check", INKALA)
    assert (one.returncode, one.stdout) == (0, f"1: one solution  {INKALA}\n")
    other = samm("data", "check", INKALA, "." * 81, "12345678" + "." * 8 + "9" + "." * 64)
    assert other.returncode == 1
    verdicts = [line.split("  ")[0] for line in other.stdout.splitlines()]
    assert verdicts == ["1: one solution", "2: several solutions", "3: no solution"]


def test_bad_input_exits_with_2_and_one_line(tmp_path: Path) -> None:
    cases = [
        (["data", "check", "8"], "puzzle 1: a 9×9 Sudoku has 81 cells, got 1"),
        (["data", "check"], "give either puzzles or --file"),
        (["data", "inspect", tmp_path / "none.csv"], "does not exist"),
        (["data", "generate", "chess"], "task 'chess' is unknown"),
        (["data", "generate", "sudoku", "--out", tmp_path / "no" / "x.samm"], "does not exist"),
    ]
    for arguments, message in cases:
        done = samm(*arguments)
        assert done.returncode == 2, arguments
        assert message in done.stderr
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""
    assert samm("data", "generate", "sudoku", "--wrong").returncode == 2


def test_from_text_to_split(tmp_path: Path) -> None:
    """generate, import, inspect, split: the life of a data set."""
    made = samm("data", "generate", "sudoku", "--count", 40, "--seed", 1)
    assert made.returncode == 0
    lines = made.stdout.splitlines()
    assert (lines[0], len(lines)) == ("puzzle,solution,rating", 41)
    csv = tmp_path / "p.csv.gz"
    csv.write_bytes(gzip.compress((made.stdout + "broken\n").encode()))

    data = tmp_path / "p.samm"
    refused = samm("data", "import", csv, "--out", data)
    assert refused.returncode == 2
    assert "line 42: 1 columns, expected 3" in refused.stderr
    assert list(tmp_path.iterdir()) == [csv]
    done = samm("data", "import", csv, csv, "--out", data, "--skip-bad")
    assert (done.returncode, done.stdout) == (0, f"{data}: 80 rows\n")
    assert "skipped 2 bad rows" in done.stderr

    figure = tmp_path / "p.png"
    shown = samm("data", "inspect", data, "--figure", figure)
    assert "80 rows, 40 distinct" in shown.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")

    parts = tmp_path / "parts"
    done = samm("data", "split", data, "--out", parts, "--test", 0.3, "--exclude", csv)
    assert done.returncode == 2  # the excluded file has the bad row too
    done = samm("data", "split", data, "--out", parts, "--test", 0.3)
    assert done.returncode == 0, done.stderr
    sizes = [len(open_dataset(parts / f"{name}.samm")) for name in ("train", "test")]
    assert sum(sizes) == 80
    assert all(sizes)


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_keeps_what_was_made(tmp_path: Path) -> None:
    path = tmp_path / "x.samm"
    command = [sys.executable, "-m", "samm", "data", "generate", "sudoku"]
    command += ["--count", "500000", "--out", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heed_ctrl_c)
    state = Path(f"{path}.part.json")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if state.exists() and json.loads(state.read_text())["count"]:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "--resume" in messages
    assert "Traceback" not in messages
    assert not path.exists()
    assert json.loads(state.read_text())["count"] > 0

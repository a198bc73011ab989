"""Every task keeps the contract; the registry knows its own tasks and those of others."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from ribbon import Ribbon

from samm import tasks
from samm.errors import InputError
from samm.tasks import CannotVerify, Problem
from samm.tasks.sudoku import Sudoku
from samm.testing import TaskContract


class TestSudoku9(TaskContract):
    task = Sudoku()
    malformed = ("", "8" * 81, "." * 80, "x" + "." * 80, "\x00" * 81, "é" * 81)


class TestSudoku4(TaskContract):
    task = Sudoku(2, 2)
    malformed = ("", "5" + "." * 15, "1" * 16)


class TestSudoku6(TaskContract):
    task = Sudoku(2, 3)
    malformed = ("", "7" + "." * 35)


class TestSudoku6Upright(TaskContract):
    task = Sudoku(3, 2)


class TestSudoku16(TaskContract):
    task = Sudoku(4, 4)
    count = 2
    malformed = ("H" + "." * 255,)


class TestRibbon(TaskContract):
    task = Ribbon()
    malformed = ("", "RR", "X", "R" * 9)


def test_ribbon_has_several_answers_and_lengths() -> None:
    task = Ribbon()
    problem = task.encode("R..")
    answers = task.answers(problem)
    assert sorted(task.decode(a) for a in answers) == ["RBG", "RBR", "RGB", "RGR"]
    assert problem.pad.tolist() == [False] * 3 + [True] * 5


def test_unknown_names_and_options_are_named() -> None:
    with pytest.raises(InputError, match=r"task 'chess' is unknown; known tasks: .*sudoku"):
        tasks.get("chess")
    with pytest.raises(InputError, match="no option 'boxes'; its options: box_rows, box_cols"):
        tasks.get("sudoku", boxes=3)
    with pytest.raises(InputError, match="expected option=value, got '4x4'"):
        tasks.parse("sudoku:4x4")
    with pytest.raises(InputError, match="box_rows = 5; expected a whole number from 2 to 4"):
        tasks.parse("sudoku:box_rows=5")
    with pytest.raises(InputError, match="box_cols = 'x'"):
        tasks.parse("sudoku:box_cols=x")
    assert tasks.parse("sudoku:box_rows=2,box_cols=2") == Sudoku(2, 2)


def test_a_name_cannot_be_taken_twice() -> None:
    class Impostor(Ribbon):
        name = "ribbon"

    with pytest.raises(ValueError, match="task name 'ribbon' is taken"):
        tasks.register(Impostor)


def test_tasks_of_other_packages_are_found(tmp_path: Path) -> None:
    """An installed distribution with an entry point is all that it takes."""
    info = tmp_path / "ribbon-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ribbon\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[samm.tasks]\nribbon = ribbon:Ribbon\n")
    source = Path(__file__).parents[1] / "ribbon.py"
    (tmp_path / "ribbon.py").write_text(source.read_text().replace("@tasks.register\n", ""))
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from samm import tasks\n"
        "assert 'ribbon' in tasks.names()\n"
        "print(tasks.parse('ribbon:longest=5').length)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "5"


def test_a_task_may_say_that_it_cannot_verify() -> None:
    class Blind(Ribbon):
        can_verify = False
        verify = tasks.Task.verify

    problem = Ribbon().encode("R.")
    with pytest.raises(CannotVerify, match="cannot verify"):
        Blind().verify(problem[None], problem.tokens[None])


def test_problems_index_stack_and_move() -> None:
    task = Ribbon()
    both = Problem.stack([task.encode("R."), task.encode(".G.")])
    assert both.tokens.shape == (2, 8)
    assert torch.equal(both[1].tokens, task.encode(".G.").tokens)
    assert both.to("cpu").free.sum().item() == 3

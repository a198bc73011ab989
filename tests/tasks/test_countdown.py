"""Countdown: the contract in every form, the engine against plain Python, and the public files."""

import itertools
import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from samm import tasks
from samm.cli import main
from samm.data import convert
from samm.data import countdown_engine as engine
from samm.errors import InputError
from samm.solve_file import lines_of
from samm.tasks import Problem
from samm.tasks.countdown import HELD_OUT, Countdown
from samm.tasks.countdown_forms import LIMIT, OPERATORS, written
from samm.testing import TaskContract

PUBLIC = Path(__file__).parents[2] / "../shared/data/countdown"
public = pytest.mark.skipif(not PUBLIC.exists(), reason="the public files are not here")
MALFORMED = (
    "", "1,2,3,4", "1,2,3,4,5,6", "1,2,3,x,5", "1,2,-3,4,5", "1,2,3,4,99999", "1;2;3;4;5",
    "1,2,3,²,5", "86+28=114",
)  # fmt: skip


class TestDigits(TaskContract):
    task = Countdown()
    malformed = MALFORMED


class TestNumbers(TaskContract):
    task = Countdown(alphabet="numbers")
    malformed = MALFORMED


class TestLineOfDigits(TaskContract):
    task = Countdown(form="line")
    malformed = MALFORMED


class TestLineOfNumbers(TaskContract):
    task = Countdown(form="line", alphabet="numbers")
    malformed = MALFORMED


class TestThree(TaskContract):
    task = Countdown(numbers=3, rule="some")


class TestFive(TaskContract):
    task = Countdown(numbers=5, alphabet="numbers")
    count = 3


FORMS = [
    pytest.param(Countdown(alphabet=alphabet, form=form), id=f"{form}-of-{alphabet}")
    for alphabet in ("digits", "numbers")
    for form in ("slots", "line")
]


def by_hand(numbers: list[int], target: int, every: bool) -> set[str]:
    """All answers as text, by plain recursion."""
    found: set[str] = set()

    def go(pool: list[int], steps: list[str]) -> None:
        for i, j in itertools.permutations(range(len(pool)), 2):
            a, b = pool[i], pool[j]
            rest = [pool[k] for k in range(len(pool)) if k not in (i, j)]
            results = {"+": a + b, "-": a - b, "*": a * b}
            if b and a % b == 0:
                results["/"] = a // b
            for operator, c in results.items():
                if 0 <= c < 10_000:
                    longer = [*steps, f"{a}{operator}{b}={c}"]
                    if c == target and not (rest and every):
                        found.add(",".join(longer))
                    go([*rest, c], longer)

    go(numbers, [])
    return found


@pytest.mark.parametrize("every", [True, False])
@pytest.mark.parametrize(
    "instance",
    [
        [86, 28, 13, 31, 96], [5, 5, 5, 5, 5], [1, 1, 2, 2, 3], [4, 4, 8, 8, 0], [3, 3, 0, 3, 0],
        [7, 7, 7, 14], [99, 98, 97, 96, 10],
    ],
)  # fmt: skip
def test_all_answers_are_found_once(instance: list[int], every: bool) -> None:
    *numbers, target = instance
    texts = [written(steps) for steps in engine.all_answers(numbers, target, every).tolist()]
    assert len(texts) == len(set(texts))
    assert set(texts) == by_hand(numbers, target, every)
    assert engine.answers([numbers], [target], every)[0] == len(texts)
    steps, there = engine.first_answers([numbers], [target], every)
    assert there[0] == bool(texts)
    if texts:
        assert written(steps[0].tolist()) in texts


def test_instances_depend_on_seed_and_place_alone() -> None:
    targets = range(10, 101)
    whole = engine.instances(20, 3, 0, 4, targets)
    later = engine.instances(5, 3, 12, 4, targets)
    for a, b in zip(whole, later, strict=True):
        assert np.array_equal(a[12:17], b)
    assert not np.array_equal(whole[0], engine.instances(20, 4, 0, 4, targets)[0])


@pytest.mark.parametrize("size", [3, 4, 5])
def test_held_out_targets_never_occur(size: int) -> None:
    chosen = engine.instances(2000, 0, 0, size, Countdown(size, held_out=True).targets)[1]
    assert set(chosen.tolist()) == set(range(10, 101)) - set(HELD_OUT[size])


@pytest.mark.parametrize("task", FORMS)
def test_verify_says_what_is_wrong(task: Countdown) -> None:
    problem = task.encode("86,28,13,31,96")
    right = task.encode_answer("86+28=114, 31 - 13=18,114-18=96", problem)
    assert task.fault(problem, right) is None
    for text, message in (
        ("86+28=114,31-13=18,114-18=95", "step 3: 114-18=95 is false"),
        ("86+28=115,31-13=18,114-18=96", "step 1: 86+28=115 is false"),
        ("13-31=18,86+28=114,114-18=96", "step 1: 13-31=18 is false"),
        ("86/28=3,31-13=18,3+18=21", "step 1: 86/28=3 is false"),
        ("86+28=114,86-13=73,114-73=41", "step 2: 86 is not there"),
        ("86+28=114,31-13=18,114-28=86", "step 3: 28 is not there"),
        ("86+28=114,31-13=18,114+18=132", "the last result is 132, not 96"),
        ("86+28=114,31-13=18", "not every number is used"),
        ("86+28=114,31-13=18,114-18=96,1+1=2", "4 steps, expected 3"),
        ("86+28=114;31-13=18", "not of the form a+b=c"),
        ("86+28=11400,31-13=18,114-18=96", "numbers stay below 10,000"),
    ):
        with pytest.raises(InputError, match="solution: ") as refused:
            task.encode_answer(text, problem)
        assert message in str(refused.value)
    half = right.clone()
    half[problem.free.nonzero()[4, 0]] = task.mask
    assert "is not a whole" in str(task.fault(problem, half))
    assert "?" in task.decode(half)
    assert task.fault(task.encode("86,28,13,30,96"), right) == "a given number was changed"


def test_some_numbers_are_enough_under_that_rule() -> None:
    some, every = Countdown(rule="some"), Countdown()
    for text in ("90-10=80,80+2=82", "90-10=80,80+2=82,82*1=82"):
        problem = some.encode("90,10,2,1,82")
        answer = some.encode_answer(text, problem)
        assert some.decode(answer) == text
        assert bool(every.verify(problem[None], answer[None])) == (text.count("=") == 3)
    with pytest.raises(InputError, match="the last result is 80, not 82"):
        some.encode_answer("90-10=80", some.encode("90,10,2,1,82"))


@pytest.mark.parametrize("task", FORMS)
def test_garbled_answers_are_right_only_if_they_are_listed(task: Countdown) -> None:
    chance = random.Random(0)
    for index in range(12):
        problem, answer = (example := task.example(5, index)).problem, example.answer
        free = problem.free.nonzero()[:, 0].tolist()
        listed = {tuple(tokens.tolist()) for tokens in task.answers(problem)}
        for _ in range(30):
            state = answer.clone()
            for place in chance.sample(free, chance.choice([1, 2, 3])):
                other = int(state[chance.choice(free)])
                state[place] = chance.choice([other, chance.randrange(task.vocabulary + 1)])
            right = bool(task.verify(problem[None], state[None]))
            assert right == (tuple(state.tolist()) in listed)
            assert right == (task.fault(problem, state) is None)


@pytest.mark.parametrize("alphabet", ["digits", "numbers"])
@pytest.mark.parametrize("size", [3, 4])
def test_the_closest_answer_is_the_best_of_all(size: int, alphabet: str) -> None:
    task = Countdown(size, alphabet)
    examples = [task.example(11, index) for index in range(12)]
    answers = torch.stack([e.answer for e in examples])
    chance = torch.Generator().manual_seed(0)
    states = []
    for example in examples:  # halfway to some other answer, with masks and noise
        listed = list(task.answers(example.problem))
        state = listed[int(torch.randint(len(listed), (), generator=chance))].clone()
        spoilt = (torch.rand(task.length, generator=chance) < 0.5) & example.problem.free
        noise = torch.randint(task.vocabulary + 1, state.shape, generator=chance)
        states.append(torch.where(spoilt, noise, state))
    chosen = task.closest(torch.stack(states), answers)
    problems = Problem.stack([e.problem for e in examples])
    assert bool(task.verify(problems, chosen).all())
    assert not torch.equal(chosen, answers)
    for example, state, found in zip(examples, states, chosen, strict=True):
        best = max(int((state == answer).sum()) for answer in task.answers(example.problem))
        assert int((state == found).sum()) == best
        if int((state == example.answer).sum()) == best:
            assert torch.equal(found, example.answer), "in doubt the given one"
    blank = torch.stack([e.problem.tokens for e in examples])
    assert torch.equal(task.closest(blank, answers), answers)


def test_tasks_that_cannot_choose_say_so() -> None:
    for task in (tasks.get("sudoku"), Countdown(5), Countdown(form="line"), Countdown(rule="some")):
        example = task.example(0, 0)
        with pytest.raises(InputError, match=r"closest|choose"):
            task.closest(example.problem.tokens[None], example.answer[None])


@public
@pytest.mark.parametrize("name", ["cd3_test", "cd4_test", "cd5_test", "cd4_train_head"])
def test_public_rows_are_our_first_answers(name: str) -> None:
    rows = [json.loads(line) for line in (PUBLIC / f"{name}.jsonl").read_text().splitlines()]
    given = np.array([[int(n) for n in row["input"].split(",")] for row in rows])
    steps, there = engine.first_answers(given[:, :-1], given[:, -1])
    assert there.all()
    assert [written(s) for s in steps.tolist()] == [row["output"] for row in rows]
    targets = set(given[:, -1].tolist())
    task = Countdown(int(name[2]))
    if name == "cd4_train_head":
        assert not targets & set(HELD_OUT[4])
    else:
        assert targets == set(HELD_OUT[task.numbers])
    data = convert.load(PUBLIC / f"{name}.jsonl", task)
    answers = torch.from_numpy(data.answers.astype("int64"))
    problems = task.problem(torch.from_numpy(data.tokens.astype("int64")))
    assert len(data) == len(rows)
    assert bool(task.verify(problems, answers).all())


def test_options_are_checked() -> None:
    for options in (
        {"numbers": 6}, {"alphabet": "roman"}, {"form": "tree"}, {"rule": "none"}, {"highest": 0},
    ):  # fmt: skip
        with pytest.raises(InputError, match=f"countdown: {next(iter(options))} = "):
            tasks.get("countdown", **options)


def test_files_of_numbers_and_targets(tmp_path: Path) -> None:
    task = Countdown()
    lines = tmp_path / "some.jsonl"
    lines.write_text(
        '{"nums": [86, 28, 13, 31], "target": 96}\n\n# a comment\n'
        '{"input": "1,2,3,4,10", "output": "2+3=5,1+4=5,5+5=10"}\n'
    )
    assert len(convert.load(lines, task)) == 2  # what has no answer gets one
    lines.write_text(
        '{"nums": [86, 28, 13, 31], "target": 96}\n{"target": 5}\n[1]\n{"input": 3}\n'
        '{"input": "1,2,3,4,10", "output": ["2+3=5"]}\n{"input": "1,2,3,4,10", "rating": "x"}\n{'
    )
    bad = convert.BadRows()
    assert sum(map(len, convert.read_rows(lines, task, bad))) == 1
    assert bad.count == 6
    assert "line 2: no puzzle as text" in bad.examples[0]
    plain = tmp_path / "some.txt"
    plain.write_text("86,28,13,31,96 ; from the paper\n1,2,3,4,10\n")
    data = convert.load(plain, task)
    texts = [task.decode(torch.from_numpy(row.astype("int64"))) for row in data.tokens]
    assert texts == ["86,28,13,31,96", "1,2,3,4,10"]
    plain.write_text("1,1,1,1,99\n")
    with pytest.raises(InputError, match="line 1: no solution exists"):
        convert.load(plain, task)
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"nums": [[86, 28, 13, 31], [1, 2, 3, 4]], "target": [96, 10]})
    parquet.write_table(table, tmp_path / "some.parquet")
    assert np.array_equal(convert.load(tmp_path / "some.parquet", task).tokens, data.tokens)


def test_lists_to_solve_and_printed_examples_keep_their_commas(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = Countdown()
    plain = tmp_path / "some.txt"
    plain.write_text("86,28,13,31,96 ; from the paper\n1,2,3,4,10\n")
    texts = [line.text for line in lines_of(plain, sys.stdin, task.separators)]
    assert texts == ["86,28,13,31,96", "1,2,3,4,10"]
    with pytest.raises(SystemExit, match="0"):
        main(["data", "generate", "countdown", "--count", "5", "--seed", "1"])
    printed = tmp_path / "printed.csv"
    printed.write_text(capsys.readouterr().out)
    data = convert.load(printed, task)
    assert len(data) == 5
    for row, index in zip(data.answers, range(5), strict=True):
        expected = task.example(1, index).answer
        assert torch.equal(torch.from_numpy(row.astype("int64")), expected)


def test_several_answers_are_no_fault_here() -> None:
    for problem, code in (("86,28,13,31,96", 0), ("1,1,1,1,99", 1)):
        with pytest.raises(SystemExit) as ended:
            main(["data", "check", "--task", "countdown", problem])
        assert ended.value.code == code


def test_the_forms_agree_with_the_engine() -> None:
    assert (OPERATORS, LIMIT) == (engine.OPERATORS, engine.LIMIT)

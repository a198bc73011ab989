"""From any readable file to checked rows of a task, and the errors on the way."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from samm.data import format as data_format
from samm.data.format import Dataset
from samm.data.readers import Reader, Rows
from samm.errors import InputError
from samm.tasks import Problem, Task

Report = Callable[[int, int, int], None]
"""Called with (units done, units in all, rows so far)."""


@dataclass
class BadRows:
    """What `--skip-bad` leaves out."""

    count: int = 0
    examples: list[str] = field(default_factory=list)
    """The first of them: file, line, reason."""
    keep: int = 20

    def add(self, message: str) -> None:
        self.count += 1
        if self.count <= self.keep:
            self.examples.append(message)


def read_rows(
    path: str | Path, task: Task, bad: BadRows | None = None, report: Report | None = None
) -> Iterator[Dataset]:
    """Batches of checked rows of a file.

    Answers are checked against the clues and the rules; where the file has none, the task's
    classical solver supplies them. A bad row is an error, unless `bad` collects them.
    """
    if Path(path).is_file() and data_format.is_dataset(Path(path)):
        yield from _read_own(Path(path), task, report)
        return
    reader = Reader(path, task.separators)
    count = 0
    for rows in reader:
        batch = _check(task, rows, str(path), bad)
        count += len(batch)
        if report:
            report(reader.done, reader.size, count)
        yield batch


def load(
    path: str | Path, task: Task, limit: int | None = None, report: Report | None = None
) -> Dataset:
    """All rows of a readable file (or the first `limit`), in memory or mapped."""
    if Path(path).is_file() and data_format.is_dataset(Path(path)):
        return next(iter(_read_own(Path(path), task, None)))[:limit]
    parts: list[Dataset] = []
    for batch in read_rows(path, task, report=report):
        parts.append(batch)
        if limit is not None and sum(map(len, parts)) >= limit:
            break
    if not parts:
        raise InputError(f"{path}: no puzzle in it")
    tokens = np.concatenate([part.tokens for part in parts])
    answers = np.concatenate([part.answers for part in parts])
    ratings = np.concatenate([part.ratings for part in parts])
    return Dataset(task, tokens, answers, ratings, {"source": str(path)})[:limit]


def _read_own(path: Path, task: Task, report: Report | None) -> Iterator[Dataset]:
    dataset = data_format.open_dataset(path)
    if dataset.task != task:
        raise InputError(f"{path} holds problems of {dataset.task.spec()}, not {task.spec()}")
    if report:
        report(len(dataset), len(dataset), len(dataset))
    yield dataset


def _check(task: Task, rows: Rows, source: str, bad: BadRows | None) -> Dataset:
    """Encode and verify a batch; row by row only where something is wrong."""
    for line, reason in rows.bad:
        _refuse(f"{source}, line {line}: {reason}", bad)
    try:
        problems = task.encode_many(rows.puzzles) if rows.puzzles else None
        answers = None if problems is None else _answers(task, problems, rows)
    except InputError:
        problems = answers = None
        kept = []
        for i, line in enumerate(rows.lines):
            try:
                single = Rows([line], [rows.puzzles[i]], [rows.answers[i]], [rows.ratings[i]])
                problem = task.encode_many(single.puzzles)
                kept.append((problem, _answers(task, problem, single), rows.ratings[i]))
            except InputError as error:
                reason = str(error).removeprefix("item 1: ")
                _refuse(f"{source}, line {line}: {reason}", bad)
        if kept:
            problems = Problem.join([k[0] for k in kept])
            answers = torch.cat([k[1] for k in kept])
            rows = Rows(ratings=[k[2] for k in kept])
    token = data_format.row_type(task)["tokens"].base
    if problems is None or answers is None:
        empty = np.empty((0, task.length), token)
        return Dataset(task, empty, empty, np.empty(0, np.float32), {})
    return Dataset(
        task,
        problems.tokens.numpy().astype(token),
        answers.numpy().astype(token),
        np.array(rows.ratings, np.float32),
        {},
    )


def _answers(task: Task, problems: Problem, rows: Rows) -> Tensor:
    """Given answers, checked; missing ones from the task's classical solver.  [B, d]"""
    for rating in rows.ratings:
        if abs(rating) > 1e30:
            raise InputError(f"rating {rating:g} is out of range")
    given = [answer for answer in rows.answers if answer is not None]
    if len(given) == len(rows.puzzles):
        answers = task.encode_answers(given, problems)
        if task.can_verify and not bool(task.verify(problems, answers).all()):
            raise InputError("the solution breaks the rules")
        return answers
    if given:
        raise InputError("no solution, though other rows have one")
    solved = task.oracle(problems)
    if solved is None:
        raise InputError("no solution, and the task has no classical solver to find it")
    answers, counts = solved
    if bool((counts == 0).any()):
        raise InputError("no solution exists")
    if task.unique and bool((counts > 1).any()):
        raise InputError("several solutions")
    return answers


def _refuse(message: str, bad: BadRows | None) -> None:
    if bad is None:
        raise InputError(message)
    bad.add(message)

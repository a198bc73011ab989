"""Solving files of any size: rows stream in, answers stream out in the same order, runs resume.

Every row of the input gives one row of the output, also those that cannot be read (they carry an
`error`): so the number of complete rows tells a resumed run where to go on.
"""

import csv
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from samm.data.readers import Reader
from samm.errors import InputError
from samm.solver import Options, Solver
from samm.tasks import Problem

COLUMNS = ("input", "output", "verified", "stopped", "steps", "confidence", "error")
"""Of an answer. JSON and Parquet have the confidence of every position, CSV the least of them."""

Report = Callable[[int, int], None]
"""Called with (bytes or rows of the input done, of how many)."""


@dataclass(frozen=True)
class Line:
    """One row of the input, or why it is none."""

    number: int
    text: str
    error: str | None = None


@dataclass
class Counts:
    """What became of a file."""

    rows: int = 0
    solved: int = 0
    bad: int = 0

    def add(self, table: dict[str, Any]) -> None:
        self.rows += 1
        self.bad += table["error"] is not None
        verified = table["verified"]
        self.solved += bool(table["stopped"] if verified is None else verified)

    def __str__(self) -> str:
        bad = f", {self.bad:,} lines could not be read" if self.bad else ""
        return f"{self.solved:,} of {self.rows:,} solved{bad}"


def lines_of(
    path: Path | None, stdin: TextIO, separators: str, report: Report | None = None
) -> Iterator[Line]:
    """The problems of a file in any readable format, or of standard input, one per line."""
    if path is None:
        for number, text in enumerate(stdin, 1):
            if text.strip() and not text.startswith("#"):
                yield Line(number, text.rstrip("\r\n"))
        return
    reader = Reader(path, separators)
    for rows in reader:
        good = [Line(*row) for row in zip(rows.lines, rows.puzzles, strict=True)]
        bad = [Line(number, "", reason) for number, reason in rows.bad]
        yield from sorted(good + bad, key=lambda line: line.number)
        if report:
            report(reader.done, reader.size)


def solve_lines(
    solver: Solver, lines: Iterable[Line], options: Options, first: int = 0
) -> Iterator[dict[str, Any]]:
    """A table for every line, in order; `first` lines have been solved before."""
    rest = iter(lines)
    while some := list(islice(rest, solver.chunk)):
        yield from _solve_some(solver, some, options, first)
        first += len(some)


def _solve_some(
    solver: Solver, lines: list[Line], options: Options, first: int
) -> Iterator[dict[str, Any]]:
    tables: dict[int, dict[str, Any]] = {}
    good: list[tuple[int, Problem]] = []
    for place, line in enumerate(lines):
        try:
            if line.error:
                raise InputError(line.error)
            good.append((place, solver.task.encode(line.text)))
        except InputError as error:
            reason = f"line {line.number}: {error}"
            tables[place] = {**dict.fromkeys(COLUMNS), "input": line.text, "error": reason}
    if good:
        # Bad lines keep their numbers, so that chunks of any size draw the same randomness.
        places = [place for place, _ in good]
        problems = Problem.stack([problem for _, problem in good])
        texts, numbers = [lines[p].text for p in places], [first + p for p in places]
        found = solver.solutions(problems, texts, options, numbers=numbers)
        for place, solution in zip(places, found, strict=True):
            tables[place] = {**solution.table(), "error": None}
    for place in range(len(lines)):
        yield tables[place]


class Output:
    """Where answers go: JSON lines or CSV, to a stream or to a file that can be gone on with."""

    def __init__(self, kind: str, path: Path | None, stdout: TextIO) -> None:
        self.kind, self.path, self.file = kind, path, stdout
        self.done = 0
        """Rows that an interrupted run has written."""
        if path is None:
            self._header()

    def open(self, lines: Iterator[Line], resume: bool) -> None:
        """Open the file; to resume, cut off an unfinished row and pass over the answered lines.

        Nothing is touched unless the file holds answers to these lines.
        """
        if self.path is None:
            return
        if self.path.exists() and not resume:
            raise InputError(f"{self.path} already exists; give --resume to go on with it")
        size, self.done, last = _complete_rows(self.path, self.kind)
        passed = list(islice(lines, self.done))
        if len(passed) < self.done or (passed and passed[-1].text != last):
            raise InputError(f"{self.path} holds answers to another input: not resumed")
        if self.path.exists():
            os.truncate(self.path, size)
        self.file = self.path.open("a", encoding="utf-8", newline="")
        if size == 0:
            self._header()

    def _header(self) -> None:
        if self.kind == "csv":
            self.file.write(",".join(COLUMNS) + "\n")

    def write(self, table: dict[str, Any]) -> None:
        if self.kind == "json":
            bare = {k: v for k, v in table.items() if k != "error" or v is not None}
            self.file.write(json.dumps(bare, ensure_ascii=False) + "\n")
            return
        row = io.StringIO()
        values = [table[name] for name in COLUMNS]
        confidence = table["confidence"]
        values[COLUMNS.index("confidence")] = "" if confidence is None else min(confidence)
        csv.writer(row, lineterminator="\n").writerow(values)
        self.file.write(row.getvalue())

    def flush(self) -> None:
        self.file.flush()

    def close(self) -> None:
        self.file.flush()
        if self.path is not None:
            os.fsync(self.file.fileno())
            self.file.close()


def _complete_rows(path: Path, kind: str) -> tuple[int, int, str]:
    """Bytes and number of the complete rows of a file of answers, and the last one's input."""
    if not path.exists() or path.stat().st_size == 0:
        return 0, 0, ""
    header = (",".join(COLUMNS) + "\n").encode() if kind == "csv" else b""
    size, rows, last = 0, 0, b""
    with path.open("rb") as file:
        start = file.read(len(header))
        if start != header and header.startswith(start):
            return 0, 0, ""  # killed in its first line
        if start != header:
            raise InputError(f"{path} is no {kind} of samm solve: not resumed")
        size = len(header)
        for line in file:
            if not line.endswith(b"\n"):
                break
            size, rows, last = size + len(line), rows + 1, line
    if rows == 0:
        _refuse_foreign(path, kind, size)
        return size, 0, ""
    try:
        text = last.decode("utf-8")
        value = json.loads(text)["input"] if kind == "json" else next(csv.reader([text]))[0]
    except (ValueError, KeyError, TypeError, IndexError):
        raise InputError(f"{path} is no {kind} of samm solve: not resumed") from None
    return size, rows, str(value)


def _refuse_foreign(path: Path, kind: str, size: int) -> None:
    """An unfinished first row has to look like one of ours before it is cut off."""
    start = b'{"input": '
    with path.open("rb") as file:
        file.seek(size)
        rest = file.read(len(start))
    if kind == "json" and rest != start[: len(rest)]:
        raise InputError(f"{path} is no json of samm solve: not resumed")


def to_parquet(rows: Path, parquet: Path) -> None:
    """Turn finished JSON lines into a Parquet file, and remove them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, flag = pa.string(), pa.bool_()
    kinds = (text, text, flag, flag, pa.int32(), pa.list_(pa.float32()), text)
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)))
    unfinished = parquet.with_name(parquet.name + ".unfinished")
    with rows.open(encoding="utf-8") as file, pq.ParquetWriter(unfinished, schema) as writer:
        while some := [json.loads(line) for line in islice(file, 4096)]:
            table = [{name: row.get(name) for name in COLUMNS} for row in some]
            writer.write_table(pa.Table.from_pylist(table, schema=schema))
    unfinished.replace(parquet)
    rows.unlink()

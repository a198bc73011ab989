"""Reading puzzles that others wrote, as a stream of rows; the format is recognised by content.

Known: CSV with a header line (Sudoku-Extreme, both Kaggle sets and the like), plain lists of one
puzzle per line with comments, JSON lines (MGDM's `input` and `output` and the like), HRM's folders
of `.npy` files, Parquet, and any of the text formats through gzip. Rows come in batches, so that
files of millions of rows need little memory.
"""

import csv
import gzip
import json
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from samm.errors import InputError

BATCH = 4096
PUZZLE_NAMES = ("puzzle", "question", "quizzes", "quiz", "puzzles", "input", "inputs")
ANSWER_NAMES = ("solution", "answer", "solutions", "answers", "label", "labels", "output")
PARTS = ("nums", "target")
"""A puzzle in two columns: numbers and what to make of them."""
COMMENTS = ("#", ";", "//", "%")


@dataclass
class Rows:
    """A batch of rows as they stand in the file."""

    lines: list[int] = field(default_factory=list)
    """Line numbers (or row numbers where a format has no lines), from 1."""
    puzzles: list[str] = field(default_factory=list)
    answers: list[str | None] = field(default_factory=list)
    ratings: list[float] = field(default_factory=list)
    bad: list[tuple[int, str]] = field(default_factory=list)
    """Rows that could not even be read: line and reason."""

    def add(self, line: int, puzzle: str, answer: str | None, rating: str | float | None) -> None:
        try:
            value = float(rating) if rating not in (None, "") else math.nan
        except ValueError:
            self.bad.append((line, f"rating {rating!r} is not a number"))
            return
        self.lines.append(line)
        self.puzzles.append(puzzle)
        self.answers.append(answer or None)
        self.ratings.append(value)

    def __len__(self) -> int:
        return len(self.lines) + len(self.bad)


class Reader:
    """Iterates over the batches of one file; `done` of `size` bytes (or rows) are read so far."""

    def __init__(self, path: str | Path, separators: str) -> None:
        """`separators` end a puzzle in a plain list; the rest of its line is a comment."""
        self.path, self.separators = Path(path), separators
        if not self.path.exists():
            raise InputError(f"{self.path} does not exist")
        self.done, self.size = 0, 1
        self.format, self._batches = self._recognise()

    def __iter__(self) -> Iterator[Rows]:
        return self._batches

    def _recognise(self) -> tuple[str, Iterator[Rows]]:
        if self.path.is_dir():
            return "npy folder", self._npy_folder()
        if not self.path.is_file():
            raise InputError(f"{self.path} is a pipe or device; save it as a file first")
        self.size = max(self.path.stat().st_size, 1)
        with self.path.open("rb") as file:
            start = file.read(64)
        if start.startswith(b"PAR1"):
            return "parquet", self._parquet()
        text = self._text(gzipped=start.startswith(b"\x1f\x8b"))
        header = next((line for line in text if not _is_comment(line[1])), None)
        if header is None:
            return "list", iter(())
        if header[1].lstrip().startswith("{"):
            return "json lines", self._json_lines(header, text)
        names = [name.strip().lower() for name in header[1].split(",")]
        if any(name in PUZZLE_NAMES for name in names):
            return "csv", self._csv(names, text)
        if len(names) > 1 and all(name.replace("_", "").isalpha() for name in names):
            raise InputError(
                f"{self.path}: no column of the header {','.join(names)!r} is a puzzle; "
                f"expected one of {', '.join(PUZZLE_NAMES)}"
            )
        return "list", self._list(header, text)

    def _text(self, gzipped: bool) -> Iterator[tuple[int, str]]:
        """Numbered lines, while `done` follows the bytes of the file on disk."""
        with self.path.open("rb") as raw:
            stream: Any = gzip.GzipFile(fileobj=raw) if gzipped else raw
            number = 0
            try:
                while line := stream.readline():
                    number += 1
                    if number % BATCH == 0:
                        self.done = raw.tell()
                    yield number, self._decode(line, number)
            except (OSError, EOFError, zlib.error) as error:
                raise InputError(f"{self.path}, after line {number}: {error}") from None
            self.done = self.size

    def _decode(self, line: bytes, number: int) -> str:
        if b"\0" in line:
            raise InputError(
                f"{self.path}, line {number}: binary data, not a list or CSV of puzzles"
            )
        try:
            return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path}, line {number}: {error}") from None

    def _csv(self, names: list[str], text: Iterator[tuple[int, str]]) -> Iterator[Rows]:
        puzzle = _find(names, PUZZLE_NAMES)
        answer, rating = _find(names, ANSWER_NAMES), _find(names, ("rating",))
        assert puzzle is not None
        rows = Rows()
        for line, content in text:
            if _is_comment(content):
                continue
            try:
                values = next(csv.reader([content])) if '"' in content else content.split(",")
            except csv.Error as error:
                rows.bad.append((line, str(error)))
                continue
            if len(values) != len(names):
                rows.bad.append((line, f"{len(values)} columns, expected {len(names)}"))
            else:
                rows.add(
                    line,
                    values[puzzle],
                    None if answer is None else values[answer],
                    None if rating is None else values[rating],
                )
            if len(rows) == BATCH:
                yield rows
                rows = Rows()
        if len(rows):
            yield rows

    def _list(self, first: tuple[int, str], text: Iterator[tuple[int, str]]) -> Iterator[Rows]:
        """One puzzle per line; what follows a separator is a comment."""
        rows = Rows()
        for line, content in _chain(first, text):
            if _is_comment(content):
                continue
            puzzle = content.strip()
            for separator in self.separators:
                puzzle = puzzle.split(separator)[0]
            rows.add(line, puzzle, None, None)
            if len(rows) == BATCH:
                yield rows
                rows = Rows()
        if len(rows):
            yield rows

    def _json_lines(
        self, first: tuple[int, str], text: Iterator[tuple[int, str]]
    ) -> Iterator[Rows]:
        """One object per line, with the names that columns of CSV have."""
        rows = Rows()
        for line, content in _chain(first, text):
            if _is_comment(content):
                continue
            try:
                rows.add(line, *_fields(json.loads(content)))
            except (ValueError, RecursionError) as error:
                rows.bad.append((line, str(error)))
            if len(rows) == BATCH:
                yield rows
                rows = Rows()
        if len(rows):
            yield rows

    def _npy_folder(self) -> Iterator[Rows]:
        """HRM's layout: `*inputs.npy` and `*labels.npy` [N, d] with 1 for a blank, digit + 1."""
        inputs = sorted(self.path.rglob("*inputs.npy"))
        if not inputs:
            raise InputError(f"{self.path}: a folder without any *inputs.npy")
        pairs = []
        for path in inputs:
            labels = path.with_name(path.name.removesuffix("inputs.npy") + "labels.npy")
            if not labels.exists():
                raise InputError(f"{path} has no {labels.name} beside it")
            pairs.append((_load_npy(path), _load_npy(labels), path))
        self.size = sum(len(puzzles) for puzzles, _, _ in pairs)
        return self._npy_rows(pairs)

    def _npy_rows(self, pairs: list[tuple[Any, Any, Path]]) -> Iterator[Rows]:
        row = 0
        for puzzles, answers, path in pairs:
            if puzzles.shape != answers.shape:
                raise InputError(
                    f"{path}: shape {list(puzzles.shape)}, its labels {list(answers.shape)}"
                )
            for start in range(0, len(puzzles), BATCH):
                rows = Rows()
                block = zip(
                    puzzles[start : start + BATCH], answers[start : start + BATCH], strict=True
                )
                for question, answer in block:
                    row += 1
                    rows.add(row, _npy_text(question), _npy_text(answer), None)
                self.done = row
                yield rows

    def _parquet(self) -> Iterator[Rows]:
        try:
            import pyarrow
            import pyarrow.parquet as parquet
        except ImportError:
            raise InputError(
                f"{self.path}: reading Parquet needs pyarrow: pip install 'samm[tables]'"
            ) from None
        try:
            file = parquet.ParquetFile(self.path)
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError(f"{self.path}: {error}") from None
        names = [name.lower() for name in file.schema_arrow.names]
        columns = [_find(names, kind) for kind in (PUZZLE_NAMES, ANSWER_NAMES, ("rating",))]
        if columns[0] is None and set(PARTS) <= set(names):
            self.size = max(file.metadata.num_rows, 1)
            return self._parquet_parts(file)
        if columns[0] is None:
            raise InputError(
                f"{self.path}: no column of {', '.join(names)} is a puzzle; "
                f"expected one of {', '.join(PUZZLE_NAMES)}"
            )
        self.size = max(file.metadata.num_rows, 1)
        wanted = [None if c is None else file.schema_arrow.names[c] for c in columns]
        return self._parquet_rows(file, wanted)

    def _parquet_parts(self, file: Any) -> Iterator[Rows]:
        """Numbers and targets in columns of their own."""
        row = 0
        for batch in file.iter_batches(BATCH):
            rows = Rows()
            for table in batch.to_pylist():
                row += 1
                try:
                    rows.add(row, *_fields(table))
                except ValueError as error:
                    rows.bad.append((row, str(error)))
            self.done = row
            yield rows

    def _parquet_rows(self, file: Any, names: list[str | None]) -> Iterator[Rows]:
        row = 0
        for batch in file.iter_batches(BATCH, columns=[name for name in names if name]):
            table = batch.to_pydict()
            absent = [None] * batch.num_rows
            columns = [table[name] if name else absent for name in names]
            rows = Rows()
            for puzzle, answer, rating in zip(*columns, strict=True):
                row += 1
                if not isinstance(puzzle, str) or not isinstance(answer, str | None):
                    rows.bad.append((row, f"puzzle {puzzle!r} is not text"))
                else:
                    rows.add(row, puzzle, answer, rating)
            self.done = row
            yield rows


def _is_comment(line: str) -> bool:
    text = line.strip()
    return not text or text.startswith(COMMENTS)


def _find(names: list[str], known: tuple[str, ...]) -> int | None:
    """The column with the first known name."""
    return next((names.index(name) for name in known if name in names), None)


def _fields(table: Any) -> tuple[str, str | None, float | None]:
    """Puzzle, answer and rating of an object with named values."""
    if not isinstance(table, dict):
        raise ValueError(f"{table!r} is no object with names")
    values = {str(name).lower(): value for name, value in table.items()}

    def first(names: tuple[str, ...]) -> Any:
        return next((values[name] for name in names if values.get(name) is not None), None)

    puzzle, answer, rating = first(PUZZLE_NAMES), first(ANSWER_NAMES), first(("rating",))
    numbers = values.get(PARTS[0])
    if puzzle is None and isinstance(numbers, list):
        puzzle = ",".join(str(number) for number in [*numbers, values.get(PARTS[1])])
    if not isinstance(puzzle, str):
        raise ValueError(f"no puzzle as text; expected one of {', '.join(PUZZLE_NAMES)}")
    if not isinstance(answer, str | None):
        raise ValueError(f"the answer {answer!r} is not text")
    if isinstance(rating, bool) or not isinstance(rating, int | float | None):
        raise ValueError(f"rating {rating!r} is not a number")
    return puzzle, answer, rating


def _chain(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest


def _load_npy(path: Path) -> Any:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"{path}: {error}") from None
    if array.ndim != 2 or array.dtype.kind not in "ui":
        raise InputError(f"{path}: expected integers [N, d], got {array.dtype} {list(array.shape)}")
    return array


def _npy_text(row: Any) -> str:
    """HRM's numbers as text: 1 is a blank, 2 is the digit 1. Others become a refused character."""
    symbols = ".123456789ABCDEFG"
    return "".join(symbols[v - 1] if 1 <= v <= len(symbols) else "?" for v in row.tolist())

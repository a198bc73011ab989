"""The project's own data file: fixed-size rows, memory-mapped, with a JSON header and checksums.

    bytes 0..4095   "samm data 1\\n", JSON, "\\n", SHA-256 of the JSON, "\\n", spaces
    then            `count` rows of: tokens [length], answers [length] (uint8 or uint16, little
                    endian), rating (float32, nan where unknown)

The JSON holds the task, the number of rows and the SHA-256 of all rows: a truncated or altered
file is refused. A file appears under its name only when it is complete.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from samm import tasks
from samm.errors import InputError
from samm.tasks import Task

MAGIC = b"samm data 1\n"
HEADER = 4096
BUFFER = 1 << 24


@dataclass(frozen=True)
class Dataset:
    """Puzzles of one task with their answers, in memory or mapped from a file."""

    task: Task
    tokens: NDArray[Any]
    """[N, d] clues, and the mask at free positions."""
    answers: NDArray[Any]
    """[N, d]"""
    ratings: NDArray[np.float32]
    """[N] nan where unknown."""
    about: dict[str, Any]
    """Where the rows come from."""

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, rows: Any) -> "Dataset":
        """A slice, mask or index array of rows."""
        return Dataset(
            self.task, self.tokens[rows], self.answers[rows], self.ratings[rows], self.about
        )


def row_type(task: Task) -> np.dtype[Any]:
    """One row of the file."""
    token = "u1" if task.vocabulary < 256 else "<u2"
    fields = [("tokens", token, task.length), ("answers", token, task.length), ("rating", "<f4")]
    return np.dtype(fields)


def is_dataset(path: Path) -> bool:
    """Does the file start like one of ours?"""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open_dataset(path: str | Path) -> Dataset:
    """Map a data file, after checking that every byte is what was written."""
    path = Path(path)
    with path.open("rb") as file:
        header = _read_header(path, file)
        task = tasks.from_spec(header["task"])
        rows = row_type(task)
        size, expected = path.stat().st_size, HEADER + header["count"] * rows.itemsize
        if size != expected:
            verdict = "is truncated" if size < expected else "has bytes behind its last row"
            raise InputError(f"{path} {verdict}: {size:,} bytes, expected {expected:,}")
        if hash_rows(file).hexdigest() != header["sha256"]:
            raise InputError(f"{path} was altered: its rows do not match the checksum")
    if header["count"] == 0:
        table = np.empty(0, rows)
    else:
        table = np.memmap(path, rows, "r", HEADER, (header["count"],))
    return Dataset(task, table["tokens"], table["answers"], table["rating"], header["about"])


def _read_header(path: Path, file: BinaryIO) -> dict[str, Any]:
    block = file.read(HEADER)
    if not block.startswith(MAGIC):
        raise InputError(f"{path} is not a samm data file")
    if len(block) < HEADER:
        raise InputError(f"{path} is truncated: {len(block)} bytes, not even its header is whole")
    text, _, rest = block[len(MAGIC) :].partition(b"\n")
    if rest.rstrip(b" ") != hashlib.sha256(text).hexdigest().encode() + b"\n":
        raise InputError(f"{path} was altered: its header does not match the checksum")
    header: dict[str, Any] = json.loads(text)
    return header


def hash_rows(file: BinaryIO) -> Any:
    """SHA-256 over everything from the file's position on."""
    digest = hashlib.sha256()
    while block := file.read(BUFFER):
        digest.update(block)
    return digest


class Writer:
    """Append rows to a file that replaces `path` once complete.

    Used as a context manager it commits at the end and leaves nothing behind after an error.
    With `keep` the unfinished file stays (as `path` + ".part", with its number of rows and the
    caller's `mark` in a JSON beside it), and a writer opened with `resume` goes on with it.
    """

    def __init__(
        self,
        path: str | Path,
        task: Task,
        about: dict[str, Any],
        keep: bool = False,
        resume: bool = False,
    ) -> None:
        self.path, self.task, self.about, self.keep = Path(path), task, about, keep
        self.part = self.path.with_name(self.path.name + ".part")
        self.state = self.path.with_name(self.path.name + ".part.json")
        self.rows = row_type(task)
        self.count, self.mark = 0, 0
        if not self.path.parent.is_dir():
            raise InputError(f"folder {self.path.parent} does not exist")
        if resume and self.part.exists() and self.state.exists():
            self._resume()
        else:
            self.file = self.part.open("w+b")
            self.file.write(b" " * HEADER)

    def _resume(self) -> None:
        state = json.loads(self.state.read_text())
        if state["task"] != self.task.spec() or state["about"] != self.about:
            raise InputError(
                f"{self.part} was begun with other settings: {state['about']}; "
                "delete it, or repeat those"
            )
        self.count, self.mark = state["count"], state["mark"]
        self.file = self.part.open("r+b")
        end = HEADER + self.count * self.rows.itemsize
        if self.file.seek(0, os.SEEK_END) < end:
            raise InputError(f"{self.part} is shorter than {self.state} says; delete both")
        self.file.truncate(end)
        self.file.seek(end)

    def append(
        self, tokens: NDArray[Any], answers: NDArray[Any], ratings: NDArray[np.float32]
    ) -> None:
        """Add rows [n, d], [n, d], [n]."""
        table = np.empty(len(tokens), self.rows)
        table["tokens"], table["answers"], table["rating"] = tokens, answers, ratings
        self.file.write(table.tobytes())
        self.count += len(table)

    def checkpoint(self, mark: int) -> None:
        """From here on a resumed writer continues with these rows and this mark."""
        self.file.flush()
        os.fsync(self.file.fileno())
        state = {"count": self.count, "mark": mark, "task": self.task.spec(), "about": self.about}
        fresh = self.state.with_name(self.state.name + ".new")
        fresh.write_text(json.dumps(state))
        fresh.replace(self.state)
        self.mark = mark

    def commit(self) -> None:
        """Write the header and give the file its name."""
        self.file.flush()
        self.file.seek(HEADER)
        header = {
            "task": self.task.spec(),
            "count": self.count,
            "sha256": hash_rows(self.file).hexdigest(),
            "about": self.about,
        }
        text = json.dumps(header).encode()
        block = MAGIC + text + b"\n" + hashlib.sha256(text).hexdigest().encode() + b"\n"
        if len(block) > HEADER:
            raise ValueError(f"the header takes {len(block)} bytes of {HEADER}: shorten `about`")
        self.file.seek(0)
        self.file.write(block.ljust(HEADER))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.part.replace(self.path)
        self.state.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()
            return
        self.file.close()
        if not self.keep:
            self.part.unlink(missing_ok=True)
            self.state.unlink(missing_ok=True)


def save_dataset(path: str | Path, dataset: Dataset) -> None:
    """Write a whole data set at once."""
    with Writer(path, dataset.task, dataset.about) as writer:
        writer.append(dataset.tokens, dataset.answers, dataset.ratings)

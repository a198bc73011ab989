"""Malformed texts and files: an answer or an InputError, never anything else.

`make test` throws some hundreds of each; `make test-all` ten thousand.
"""

import gzip
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from samm import tasks
from samm.data import convert
from samm.data.convert import BadRows
from samm.data.format import open_dataset, save_dataset
from samm.errors import InputError
from samm.tasks.sudoku import Sudoku

task = Sudoku()
few = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
many = settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))

PUZZLE = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
ANSWER = "812753649943682175675491283154237896369845721287169534521974368438526917796318452"
near_puzzle = st.text("123456789.0_", min_size=79, max_size=83)
grid_like = st.text("123456789.0_|-+ \n│─┼", max_size=200)
puzzle_text = st.one_of(st.text(max_size=200), near_puzzle, grid_like)
cell = st.one_of(st.just(PUZZLE), st.just(ANSWER), near_puzzle, st.text(max_size=20))
row = st.lists(cell, min_size=1, max_size=4).map(",".join)
header = st.sampled_from(
    ["puzzle,solution", "source,question,answer,rating", "quizzes,solutions", "a,b", "# x", ""]
)
csv_file = st.tuples(header, st.lists(row, max_size=6)).map(
    lambda parts: "\n".join([parts[0], *parts[1]]).encode("utf-8", "surrogatepass")
)
magic = st.sampled_from(
    [b"", b"PAR1", b"\x1f\x8b", b"samm data 1\n", b"\x93NUMPY", b"\xef\xbb\xbf"]
)
any_file = st.one_of(
    csv_file,
    csv_file.map(gzip.compress),
    st.tuples(magic, st.binary(max_size=300)).map(b"".join),
)


def read_text(text: str) -> None:
    try:
        problem = task.encode(text)
    except InputError as error:
        assert str(error)
        return
    assert task.encode(task.decode(problem.tokens)).tokens.equal(problem.tokens)


def read_file(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fuzz"
        path.write_bytes(content)
        for bad in (None, BadRows()):
            try:
                for batch in convert.read_rows(path, task, bad):
                    assert len(batch.tokens) == len(batch.answers) == len(batch.ratings)
            except InputError as error:
                assert os.fspath(path) in str(error)


def read_spec(text: str) -> None:
    try:
        tasks.parse(text)
    except InputError as error:
        assert str(error)


@few
@given(puzzle_text)
def test_texts(text: str) -> None:
    read_text(text)


@few
@given(any_file)
def test_files(content: bytes) -> None:
    read_file(content)


@few
@given(st.one_of(st.text(max_size=40), st.from_regex(r"sudoku:(box_(rows|cols)=.{0,6},?){0,3}")))
def test_task_specs(text: str) -> None:
    read_spec(text)


@few
@given(st.data())
def test_damaged_data_files(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.samm"
        text = Path(folder) / "x.txt"
        text.write_text(PUZZLE)
        save_dataset(path, convert.load(text, task))
        content = bytearray(path.read_bytes())
        start = data.draw(st.integers(0, len(content) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=20))
        damaged = bytes(content[:start]) + patch + bytes(content[start + len(patch) :])
        path.write_bytes(damaged)
        if damaged != bytes(content):
            with pytest.raises(InputError):
                open_dataset(path)


@pytest.mark.slow
@many
@given(puzzle_text)
def test_ten_thousand_texts(text: str) -> None:
    read_text(text)


@pytest.mark.slow
@many
@given(any_file)
def test_ten_thousand_files(content: bytes) -> None:
    read_file(content)

"""Readers, the data format, import, generation, splitting: what is read is right or refused."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from samm import tasks
from samm.data import convert, generate
from samm.data import format as data_format
from samm.data import inspect as inspector
from samm.data import split as splitter
from samm.data.convert import BadRows
from samm.data.format import Dataset, Writer, open_dataset, save_dataset
from samm.errors import InputError

task = tasks.get("sudoku")


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    tokens, answers, ratings = task.make(0, 0)
    return Dataset(task, tokens.astype(np.uint8), answers.astype(np.uint8), ratings, {"by": "us"})


def texts(dataset: Dataset) -> list[tuple[str, str]]:
    def text(row: np.ndarray) -> str:
        return "".join(".123456789"[(t + 1) % 10] for t in row.astype(int))

    return [(text(t), text(a)) for t, a in zip(dataset.tokens, dataset.answers, strict=True)]


def write(path: Path, form: str, dataset: Dataset) -> Path:
    rows = texts(dataset)
    if form == "extreme":
        lines = ["source,question,answer,rating"]
        lines += [f"made,{p},{a},{r:g}" for (p, a), r in zip(rows, dataset.ratings, strict=True)]
    elif form == "shared":
        lines = ["puzzle,solution,source,rating"] + [f"{p},{a},made," for p, a in rows]
    elif form == "kaggle":
        lines = ["quizzes,solutions"] + [f"{p.replace('.', '0')},{a}" for p, a in rows]
    elif form == "radcliffe":
        lines = ["id,puzzle,solution,clues,difficulty"]
        lines += [f"{i},{p},{a},{81 - p.count('.')},2.2" for i, (p, a) in enumerate(rows)]
    elif form == "list":
        lines = ["# hard ones", ""] + [
            f"{p};ED=9.0" if i % 2 else p for i, (p, _) in enumerate(rows)
        ]
    elif form == "windows":
        path.write_bytes(
            "\r\n".join(["﻿puzzle,solution"] + [f'"{p}",{a}' for p, a in rows]).encode()
        )
        return path
    elif form == "parquet":
        import pyarrow
        import pyarrow.parquet

        columns = {"question": [p for p, _ in rows], "answer": [a for _, a in rows]}
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
        return path
    else:
        folder = path / "train"
        folder.mkdir(parents=True)
        np.save(folder / "all__inputs.npy", (dataset.tokens.astype(np.int64) + 1) % 10 + 1)
        np.save(folder / "all__labels.npy", dataset.answers.astype(np.int64) + 2)
        return path
    path.write_text("\n".join(lines) + "\n")
    return path


FORMS = ["extreme", "shared", "kaggle", "radcliffe", "list", "windows", "parquet", "npy"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_format_reads_the_same(
    form: str, zipped: bool, dataset: Dataset, tmp_path: Path
) -> None:
    path = write(tmp_path / "file", form, dataset)
    if zipped and path.is_file() and form != "parquet":
        path.write_bytes(gzip.compress(path.read_bytes()))
    read = convert.load(path, task)
    assert (read.tokens == dataset.tokens).all()
    assert (read.answers == dataset.answers).all()
    assert read.tokens.dtype == np.uint8
    if form == "extreme":
        assert (read.ratings == dataset.ratings.astype("f4")).all()
    else:
        assert np.isnan(read.ratings).all()
    assert len(convert.load(path, task, limit=7)) == 7


def test_grids_of_other_sizes(tmp_path: Path) -> None:
    large = tasks.get("sudoku", box_rows=4, box_cols=4)
    example = large.example(0, 0)
    path = tmp_path / "large.txt"
    path.write_text(large.decode(example.problem.tokens) + "\n")
    read = convert.load(path, large)
    assert (read.tokens[0] == example.problem.tokens.numpy()).all()


GOOD = "puzzle,solution\n"
P, A = (
    "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..",
    "812753649943682175675491283154237896369845721287169534521974368438526917796318452",
)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"{GOOD}{P},{A}\n{P[:-1]},{A}\n", "line 3: a 9×9 Sudoku has 81 cells, got 80"),
        (f"{GOOD}{P},{A[:-1]}1\n", "line 2: two 1s in row 9"),
        (f"{GOOD}{P},{A[1:]}{A[0]}\n", "line 2: solution: row 1 column 1 is 1, but the clue"),
        (f"{GOOD}{P},{A},x\n", "line 2: 3 columns, expected 2"),
        (f"puzzle,solution,rating\n{P},{A},hard\n", "line 2: rating 'hard' is not a number"),
        (f"puzzle,solution,rating\n{P},{A},inf\n", "line 2: rating inf is out of range"),
        (f"{'.' * 81}\n", "line 1: several solutions"),
        (f"{P}\n12345678{'.' * 8}9{'.' * 64}\n", "line 2: no solution exists"),
        ("name,age\nx,3\n", "no column of the header 'name,age' is a puzzle"),
        ("", "no puzzle in it"),
        ("# only a comment\n", "no puzzle in it"),
        ("\x00\x01\x02", "line 1: binary data"),
        ("hello\n", r"line 1: character 1: 'h' is neither a digit"),
    ],
)
def test_bad_files_name_line_and_reason(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message) as error:
        convert.load(path, task)
    assert str(path) in str(error.value)


@pytest.mark.skipif(os.name != "posix", reason="makes a named pipe")
def test_pipes_are_refused_before_a_row_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with pytest.raises(InputError, match="is a pipe or device; save it as a file first"):
        convert.load(path, task)


def test_bad_bytes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_bytes(b"puzzle\n\xff\xfe\n")
    with pytest.raises(InputError, match="line 2: 'utf-8' codec"):
        convert.load(path, task)
    path.write_bytes(gzip.compress(b"puzzle\n" + P.encode() * 5000)[:-20])
    with pytest.raises(InputError, match="after line"):
        convert.load(path, task)
    path.write_bytes(b"PAR1 but not really")
    with pytest.raises(InputError, match=r"Parquet|parquet"):
        convert.load(path, task)
    with pytest.raises(InputError, match="does not exist"):
        convert.load(tmp_path / "nowhere", task)
    with pytest.raises(InputError, match=r"without any \*inputs.npy"):
        convert.load(tmp_path, task)


def test_pickled_arrays_are_never_loaded(tmp_path: Path) -> None:
    for name in ("all__inputs.npy", "all__labels.npy"):
        np.save(tmp_path / name, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="Python objects"):
        convert.load(tmp_path, task)


def test_bad_rows_can_be_skipped_and_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    path.write_text(f"{GOOD}{P},{A}\nnonsense,{A}\n{P},{A},{A}\n{P},{A}\n")
    bad = BadRows()
    rows = sum(len(batch) for batch in convert.read_rows(path, task, bad))
    assert (rows, bad.count) == (2, 2)
    assert sorted(line.split(": ")[0][-6:] for line in bad.examples) == ["line 3", "line 4"]


def test_data_files_round_trip_and_map(dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "a.samm"
    save_dataset(path, dataset)
    read = open_dataset(path)
    assert isinstance(read.tokens.base, np.memmap)
    assert (read.task, read.about) == (task, {"by": "us"})
    for field in ("tokens", "answers", "ratings"):
        assert (getattr(read, field) == getattr(dataset, field)).all()
    header = json.loads(path.read_bytes()[:4096].split(b"\n")[1])
    assert header["count"] == len(dataset)
    assert [p.name for p in tmp_path.iterdir()] == ["a.samm"]


def test_every_altered_byte_and_every_cut_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "a.samm"
    save_dataset(path, dataset[:3])
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    places = [*range(0, 700, 3), *random.integers(0, len(whole), 300), len(whole) - 1]
    for place in places:
        changed = bytearray(whole)
        changed[place] ^= 1 << int(random.integers(8))
        path.write_bytes(changed)
        with pytest.raises(InputError, match=r"altered|not a samm data file"):
            open_dataset(path)
    for end in [0, 5, 100, 4095, 4096, 4097, len(whole) - 1]:
        path.write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"truncated|not a samm data file"):
            open_dataset(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(InputError, match="has bytes behind its last row"):
        open_dataset(path)


def test_a_failed_write_leaves_the_old_file(dataset: Dataset, tmp_path: Path) -> None:
    path = tmp_path / "a.samm"
    save_dataset(path, dataset[:3])

    def fail() -> None:
        with Writer(path, task, {}) as writer:
            writer.append(dataset.tokens, dataset.answers, dataset.ratings)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert len(open_dataset(path)) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.samm"]


def test_wrong_task_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    save_dataset(tmp_path / "a.samm", dataset)
    with pytest.raises(InputError, match="holds problems of"):
        convert.load(tmp_path / "a.samm", tasks.get("sudoku", box_rows=2, box_cols=2))


def test_generation_is_the_same_after_kill(tmp_path: Path) -> None:
    """Killed with SIGKILL in the middle and resumed, the file is byte for byte the same."""
    whole = tmp_path / "whole.samm"
    generate.generate(task, whole, 3000, seed=5)
    path = tmp_path / "killed.samm"
    command = [sys.executable, "-m", "samm", "data", "generate", "sudoku", "--count", "3000"]
    command += ["--seed", "5", "--out", str(path)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    state = Path(f"{path}.part.json")
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and process.poll() is None:
        if state.exists() and json.loads(state.read_text())["count"] >= 256:
            break
    process.send_signal(signal.SIGKILL if os.name == "posix" else signal.SIGTERM)
    process.wait()
    assert not path.exists()
    assert 256 <= json.loads(state.read_text())["count"] < 3000
    with pytest.raises(InputError, match="was begun with other settings"):
        generate.generate(task, path, 3000, seed=6, resume=True)
    assert generate.generate(task, path, 3000, seed=5, resume=True) == 3000
    assert path.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["killed.samm", "whole.samm"]


def test_generated_hard_puzzles_are_rated(tmp_path: Path) -> None:
    path = tmp_path / "hard.samm"
    generate.generate(task, path, 5, seed=1, min_rating=4, threads=1)
    read = open_dataset(path)
    assert len(read) == 5
    assert (read.ratings >= 4).all()


def test_impossible_ratings_end_with_an_error(tmp_path: Path) -> None:
    from ribbon import Ribbon

    with pytest.raises(InputError, match="does not rate its problems"):
        generate.generate(Ribbon(), tmp_path / "r.samm", 5, seed=1, min_rating=4)


def test_any_task_generates(tmp_path: Path) -> None:
    from ribbon import Ribbon

    path = tmp_path / "r.samm"
    generate.generate(Ribbon(), path, 300, seed=1)
    read = open_dataset(path)
    assert read.task == Ribbon()
    assert (read.tokens[299] == Ribbon().example(1, 299).problem.tokens.numpy()).all()


@pytest.mark.parametrize("box", [(3, 3), (2, 2), (4, 4)])
def test_no_split_leaks(box: tuple[int, int], tmp_path: Path) -> None:
    """A set with two images of every puzzle: both images always land on the same side."""
    import torch

    board = tasks.get("sudoku", box_rows=box[0], box_cols=box[1])
    examples = [board.example(0, i) for i in range(60 if box != (4, 4) else 8)]
    tokens = torch.stack([e.problem.tokens for e in examples])
    answers = torch.stack([e.answer for e in examples])
    images = board.augment(tokens, answers, torch.Generator().manual_seed(0))
    both = Dataset(
        board,
        torch.cat([tokens, images[0]]).numpy().astype(np.uint8),
        torch.cat([answers, images[1]]).numpy().astype(np.uint8),
        np.arange(2 * len(examples), dtype=np.float32) % len(examples),
        {},
    )
    counts = splitter.split(both, tmp_path, {"train": 0.5, "test": 0.5}, seed=1)
    parts = {name: open_dataset(tmp_path / f"{name}.samm") for name in ("train", "test")}
    assert counts == {**{name: len(part) for name, part in parts.items()}, "excluded": 0}
    assert sum(counts.values()) == len(both)
    sides = [set(part.ratings.tolist()) for part in parts.values()]
    assert not sides[0] & sides[1]
    assert all(sides) or box == (2, 2)

    one = Dataset(board, both.tokens[:5], both.answers[:5], both.ratings[:5], {})
    counts = splitter.split(both, tmp_path, {"train": 0.5, "test": 0.5}, 1, exclude=[one])
    assert counts["excluded"] >= 10


def test_shares_of_a_split(dataset: Dataset, tmp_path: Path) -> None:
    counts = splitter.split(dataset, tmp_path, {"train": 0.7, "valid": 0.1, "test": 0.2}, seed=0)
    assert counts["train"] / len(dataset) == pytest.approx(0.7, abs=0.1)
    assert counts["test"] / len(dataset) == pytest.approx(0.2, abs=0.1)
    for shares in ({}, {"train": 1.5, "test": -0.5}, {"train": 0.5, "test": 0.4}):
        with pytest.raises(InputError, match="share"):
            splitter.split(dataset, tmp_path, shares, seed=0)


def test_summary_and_figure(dataset: Dataset, tmp_path: Path) -> None:
    twice = Dataset(
        task,
        *(np.concatenate([a, a[:6]]) for a in (dataset.tokens, dataset.answers, dataset.ratings)),
        {},
    )
    summary = inspector.summarise(twice)
    assert (summary.rows, summary.distinct) == (262, 256)
    assert sum(summary.clues.values()) == sum(summary.difficulties.values()) == 262
    assert min(summary.clues) >= 17
    for suffix in ("png", "svg"):
        path = tmp_path / f"figure.{suffix}"
        inspector.figure(summary, "ours", path)
        assert path.stat().st_size > 5000
    with pytest.raises(InputError, match="docx"):
        inspector.figure(summary, "ours", tmp_path / "figure.docx")


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "extreme_train",
        "extreme_test",
        "forum11_train",
        "forum11_test",
        "clue17_train",
        "kaggle_radcliffe_test",
        "kaggle_mgdm_test",
    ],
)
def test_the_engine_agrees_with_every_stored_solution(name: str, puzzles_folder: Path) -> None:
    from samm.data import sudoku_engine as engine

    read = convert.load(puzzles_folder / f"{name}.csv.gz", task)
    solved, counts = engine.solve_and_count((read.tokens + 1) % 10)
    assert (counts == 1).all()
    assert (solved == read.answers + 1).all()


def test_the_engine_agrees_with_stored_solutions(puzzles_folder: Path) -> None:
    from samm.data import sudoku_engine as engine

    read = convert.load(puzzles_folder / "extreme_test.csv.gz", task, limit=2000)
    solved, counts = engine.solve_and_count((read.tokens + 1) % 10)
    assert (counts == 1).all()
    assert (solved == read.answers + 1).all()
    assert data_format.row_type(task).itemsize == 81 * 2 + 4

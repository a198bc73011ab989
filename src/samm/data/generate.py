"""Making data: chunks of a task's stream, in parallel, in order, resumable."""

import os
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count as count_from
from pathlib import Path
from typing import Any

from samm.data.format import Dataset, Writer, row_type
from samm.errors import InputError
from samm.tasks import Task


def chunks(
    task: Task, seed: int, min_rating: float = 0.0, first: int = 0, threads: int | None = None
) -> Generator[Dataset, None, None]:
    """Chunks `first`, `first + 1`, ... of the stream: the same whatever the number of threads."""
    token = row_type(task)["tokens"].base
    workers = threads or os.cpu_count() or 1

    def make(number: int) -> Dataset:
        tokens, answers, ratings = task.make(seed, number, min_rating)
        return Dataset(task, tokens.astype(token), answers.astype(token), ratings, {})

    pool = ThreadPoolExecutor(workers)
    pending: deque[Future[Dataset]] = deque()
    try:
        for number in count_from(first):
            pending.append(pool.submit(make, number))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def generate(
    task: Task,
    path: str | Path,
    rows: int,
    seed: int,
    min_rating: float = 0.0,
    resume: bool = False,
    threads: int | None = None,
    report: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write `rows` rows of the stream to a data file; returns how many there are.

    Interrupted at any moment, it continues with `resume` to the very same file.
    """
    about: dict[str, Any] = {"generated": rows, "seed": seed, "min_rating": min_rating}
    with Writer(path, task, about, keep=True, resume=resume) as writer:
        writer.checkpoint(writer.mark)
        report(writer.count)
        barren = 0
        stream = chunks(task, seed, min_rating, first=writer.mark, threads=threads)
        while writer.count < rows:
            chunk = next(stream)
            barren = 0 if len(chunk) else barren + 1
            if barren == 3:
                raise InputError(f"found no problem of {task.spec()} rated {min_rating:g} or more")
            chunk = chunk[: rows - writer.count]
            writer.append(chunk.tokens, chunk.answers, chunk.ratings)
            writer.checkpoint(writer.mark + 1)
            report(writer.count)
        stream.close()
    return writer.count

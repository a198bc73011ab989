"""Tables and figures of saved results: `samm report`."""

from collections.abc import Callable, Iterable
from pathlib import Path

from samm.errors import InputError
from samm.evaluation import drawings, figures
from samm.evaluation.results import read
from samm.evaluation.tables import all_tables

START, END = "<!-- tables -->", "<!-- end of tables -->"


def report(
    sources: Iterable[Path],
    out: Path,
    into: Path | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> list[Path]:
    """Write tables.md, tables.tex and all figures into the folder `out`; returns what it wrote.

    `into` is a Markdown file whose text between two markers the tables replace.
    """
    results = read(sources)
    if into is not None:
        _refuse_without_markers(into)
    out.mkdir(parents=True, exist_ok=True)
    tables = all_tables(results)
    markdown = "\n".join(table.markdown() for table in tables)
    paths = [out / "tables.md", out / "tables.tex"]
    paths[0].write_text(markdown, encoding="utf-8")
    paths[1].write_text("\n".join(table.latex() for table in tables), encoding="utf-8")
    say(f"{len(results)} results, {len(tables)} tables")
    paths += figures.all_figures(results, out)
    paths += drawings.draw_all(results, out)
    if into is not None:
        text = into.read_text(encoding="utf-8")
        head, tail = text.split(START)[0], text.split(END)[1]
        into.write_text(f"{head}{START}\n\n{markdown}\n{END}{tail}", encoding="utf-8")
        paths.append(into)
    return paths


def _refuse_without_markers(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    if text.count(START) != 1 or text.count(END) != 1 or text.index(START) > text.index(END):
        raise InputError(f"{file}: expected the lines '{START}' and '{END}' once each, in order")

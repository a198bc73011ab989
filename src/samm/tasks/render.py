"""Showing a state: positions in rows with rules between them, for a terminal or as HTML."""

from dataclasses import dataclass
from html import escape
from itertools import pairwise

from rich.style import Style
from rich.text import Text


@dataclass(frozen=True)
class Cell:
    """One position on screen."""

    text: str
    clue: bool
    confidence: float | None = None


@dataclass(frozen=True)
class Layout:
    """Rows of positions; a rule is drawn before the rows and columns listed."""

    rows: tuple[tuple[int, ...], ...]
    rules_before_rows: frozenset[int] = frozenset()
    rules_before_columns: frozenset[int] = frozenset()

    @classmethod
    def line(cls, length: int) -> "Layout":
        return cls((tuple(range(length)),))


def shade(confidence: float) -> str:
    """Background of a free position: from red (doubt) over amber to green (sure)."""
    low, middle, high = (214, 84, 78), (222, 186, 92), (96, 168, 110)
    confidence = min(max(confidence, 0.0), 1.0)
    part = confidence * 2
    start, end = (low, middle) if part < 1 else (middle, high)
    part = part if part < 1 else part - 1
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(start, end, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


def terminal(cells: list[Cell], layout: Layout) -> Text:
    """Clues bold, free positions shaded by their confidence."""
    width = max((len(cell.text) for cell in cells), default=1)
    columns = max(len(row) for row in layout.rows)
    rule = "┼".join("─" * ((width + 1) * count + 1) for count in _spans(columns, layout))
    out = Text()
    for r, row in enumerate(layout.rows):
        if r in layout.rules_before_rows:
            out.append(rule + "\n", Style(dim=True))
        for c, position in enumerate(row):
            if c in layout.rules_before_columns:
                out.append(" │", Style(dim=True))
            out.append(" ")
            out.append(cells[position].text.rjust(width), style(cells[position]))
        out.append("\n")
    out.rstrip()
    return out


def _spans(columns: int, layout: Layout) -> list[int]:
    """How many columns stand between one rule and the next."""
    edges = [0, *sorted(layout.rules_before_columns), columns]
    return [b - a for a, b in pairwise(edges)]


def style(cell: Cell) -> Style:
    if cell.clue:
        return Style(bold=True)
    if cell.confidence is None:
        return Style(color="cyan")
    return Style(color="#000000", bgcolor=shade(cell.confidence))


def html(cells: list[Cell], layout: Layout) -> str:
    """A table; its styles are inline, so that it can stand in any page."""
    lines = ['<table class="samm-state" style="border-collapse:collapse;font-family:monospace">']
    for r, row in enumerate(layout.rows):
        tds = "".join(
            _td(cells[position], r in layout.rules_before_rows, c in layout.rules_before_columns)
            for c, position in enumerate(row)
        )
        lines.append(f"<tr>{tds}</tr>")
    return "\n".join([*lines, "</table>"])


def _td(cell: Cell, rule_above: bool, rule_left: bool) -> str:
    style = "border:1px solid #bbb;min-width:1.8em;height:1.8em;text-align:center"
    if rule_above:
        style += ";border-top:2px solid #000"
    if rule_left:
        style += ";border-left:2px solid #000"
    if cell.clue:
        style += ";font-weight:bold"
    elif cell.confidence is not None:
        style += f";background:{shade(cell.confidence)};color:#000"
    title = "" if cell.confidence is None else f' title="confidence {cell.confidence:.2f}"'
    kind = "clue" if cell.clue else "free"
    return f'<td class="{kind}"{title} style="{style}">{escape(cell.text)}</td>'

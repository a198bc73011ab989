"""Sudoku on boards of any box shape: 9×9 by default, and 4×4, 6×6, 16×16 and others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from samm.errors import InputError
from samm.tasks.base import Coordinates, Example, Problem, Symbols, Task, Tokenizer
from samm.tasks.render import Layout

DIGITS = "123456789ABCDEFG"
BLANKS = ".0_"
RULES = frozenset("|-+=│─┼┃━╋║═╬┌┐└┘├┤┬┴╔╗╚╝╠╣╦╩┏┓┗┛┣┫┳┻ \t\r\n")


@dataclass(frozen=True)
class Sudoku(Task):
    """Fill the board so that every row, column and box holds every digit once.

    Tokens are digit - 1; on boards above 9×9 the digits go on with A, B, C and so on.
    """

    box_rows: int = 3
    box_cols: int = 3

    name: ClassVar[str] = "sudoku"
    difficulties: ClassVar[tuple[str, ...]] = ("0", "1–2", "3–10", "11–50", "51+", "unrated")

    def __post_init__(self) -> None:
        for option in ("box_rows", "box_cols"):
            size = getattr(self, option)
            if not (isinstance(size, int) and 2 <= size <= 4):
                raise InputError(
                    f"sudoku: {option} = {size!r}; expected a whole number from 2 to 4"
                )

    @property
    def side(self) -> int:
        """n, the number of digits, rows and columns."""
        return self.box_rows * self.box_cols

    @property
    def box(self) -> tuple[int, int]:
        return self.box_rows, self.box_cols

    @property
    def length(self) -> int:
        return self.side**2

    @property
    def tokenizer(self) -> Tokenizer:
        return Symbols(DIGITS[: self.side])

    @cached_property
    def coordinates(self) -> Coordinates:
        row, column = np.divmod(np.arange(self.length), self.side)
        box = row // self.box_rows * self.box_rows + column // self.box_cols
        axes, groups = np.stack([row, column], 1), np.stack([row, column, box], 1)
        return Coordinates(torch.from_numpy(axes), torch.from_numpy(groups))

    @cached_property
    def units(self) -> Tensor:
        """The positions of every row, column and box.  [3n, n]"""
        groups = self.coordinates.groups
        members = [(groups[:, g] == i).nonzero()[:, 0] for g in range(3) for i in range(self.side)]
        return torch.stack(members)

    # --- text

    def encode(self, text: str) -> Problem:
        """81 characters with `.`, `0` or `_` for blanks, or a grid of 9 lines, rules allowed."""
        cells = self._cells_of(text)
        tokens = torch.tensor(cells)
        self._refuse_clashes(cells)
        return self.problem(tokens)

    def encode_answer(self, text: str, problem: Problem) -> Tensor:
        cells = self._cells_of(text)
        for position, (token, clue) in enumerate(zip(cells, problem.tokens.tolist(), strict=True)):
            if token == self.mask:
                raise InputError(f"solution: {self._place(position)} is blank")
            if clue != self.mask and token != clue:
                raise InputError(
                    f"solution: {self._place(position)} is {DIGITS[token]}, "
                    f"but the clue there is {DIGITS[clue]}"
                )
        self._refuse_clashes(cells)
        return torch.tensor(cells)

    def encode_many(self, texts: Sequence[str]) -> Problem:
        tokens = self._tokens_of_lines(texts)
        if tokens is None or not bool(self._consistent(tokens).all()):
            return super().encode_many(texts)  # slower, but it can say what is wrong and where
        return self.problem(tokens)

    def encode_answers(self, texts: Sequence[str], problems: Problem) -> Tensor:
        tokens = self._tokens_of_lines(texts)
        if tokens is None or not bool(self.verify(problems, tokens).all()):
            return super().encode_answers(texts, problems)
        return tokens

    def decode(self, tokens: Tensor) -> str:
        return "".join("." if t == self.mask else DIGITS[t] for t in tokens.tolist())

    def _cells_of(self, text: str) -> list[int]:
        """The tokens of a puzzle or answer in any text form; blanks are the mask."""
        digits = DIGITS[: self.side]
        values = {c: i for i, c in enumerate(digits)} | dict.fromkeys(BLANKS, self.mask)
        values |= {c.lower(): i for c, i in values.items()}
        lines = [line for line in text.splitlines() if not RULES.issuperset(line)]
        cells: list[int] = []
        for number, line in enumerate(lines, 1):
            before = len(cells)
            for column, character in enumerate(line, 1):
                if character in values:
                    cells.append(values[character])
                elif character not in RULES:
                    where = f"character {column}" + (f" of line {number}" * (len(lines) > 1))
                    raise InputError(
                        f"{where}: {character!r} is neither a digit "
                        f"{digits[0]}–{digits[-1]} nor a blank (. 0 _)"
                    )
            if len(lines) == self.side and len(cells) - before != self.side:
                raise InputError(
                    f"line {number} has {len(cells) - before} cells, expected {self.side}"
                )
        if len(cells) != self.length:
            raise InputError(
                f"a {self.side}×{self.side} Sudoku has {self.length} cells, got {len(cells)}"
            )
        return cells

    def _refuse_clashes(self, cells: list[int]) -> None:
        names = [f"{kind} {i + 1}" for kind in ("row", "column", "box") for i in range(self.side)]
        for name, unit in zip(names, self.units.tolist(), strict=True):
            seen: dict[int, int] = {}
            for position in unit:
                token = cells[position]
                if token != self.mask and token in seen:
                    raise InputError(
                        f"two {DIGITS[token]}s in {name}: "
                        f"{self._place(seen[token])} and {self._place(position)}"
                    )
                seen[token] = position

    def _place(self, position: int) -> str:
        return f"row {position // self.side + 1} column {position % self.side + 1}"

    def _tokens_of_lines(self, texts: Sequence[str]) -> Tensor | None:
        """Many single-line texts at once, or None if one of them is anything else.  [B, d]"""
        joined = "".join(texts)
        if not joined.isascii() or any(len(text) != self.length for text in texts):
            return None
        table = np.full(128, 255, np.uint8)
        for i, character in enumerate(DIGITS[: self.side]):
            table[ord(character)] = table[ord(character.lower())] = i
        for character in BLANKS:
            table[ord(character)] = self.mask
        tokens = table[np.frombuffer(joined.encode("ascii"), np.uint8)]
        if (tokens == 255).any():
            return None
        return torch.from_numpy(tokens.reshape(len(texts), self.length)).long()

    # --- truth

    def _consistent(self, tokens: Tensor) -> Tensor:
        """No digit twice in a unit, blanks aside.  [B, d] -> [B]"""
        units = tokens[:, self.units.to(tokens.device)].sort(-1).values  # [B, 3n, n]
        twice = (units[..., 1:] == units[..., :-1]) & (units[..., 1:] != self.mask)
        return ~twice.any((-1, -2))

    def verify(self, problem: Problem, tokens: Tensor) -> Tensor:
        """Clues kept, no blank, no digit twice in a unit."""
        kept = ((tokens == problem.tokens) | problem.free).all(-1)
        full = ((tokens >= 0) & (tokens < self.vocabulary)).all(-1)
        return kept & full & self._consistent(tokens)

    def fault(self, problem: Problem, tokens: Tensor) -> str | None:
        """The first clue changed, cell left blank, or digit that stands twice."""
        cells = tokens.tolist()
        changed = ((tokens != problem.tokens) & problem.clue).nonzero()[:, 0].tolist()
        if changed:
            return f"the clue in {self._place(changed[0])} was changed"
        if self.mask in cells:
            return f"{self._place(cells.index(self.mask))} is blank"
        try:
            self._refuse_clashes(cells)
        except InputError as clash:
            return str(clash)
        return None

    def answers(self, problem: Problem) -> Iterator[Tensor]:
        """All solutions, at most 10,000 of them."""
        from samm.data import sudoku_engine as engine

        for grid in engine.solutions(self.to_board(problem.tokens), 10_000, self.box):
            yield self.from_board(grid)

    def oracle(self, problems: Problem) -> tuple[Tensor, Tensor]:
        from samm.data import sudoku_engine as engine

        boards, counts = engine.solve_and_count(self.to_board(problems.tokens), 2, self.box)
        return self.from_board(boards), torch.from_numpy(counts)

    # --- examples

    def example(self, seed: int, index: int) -> Example:
        """A random minimal puzzle (above 9×9 nearly minimal), unrated."""
        from samm.data import sudoku_engine as engine

        puzzles, grids = engine.random_puzzles(1, seed, index, self.box)
        return Example(self.problem(self.from_board(puzzles[0])), self.from_board(grids[0]))

    def make(
        self, seed: int, chunk: int, min_rating: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random minimal puzzles, or one walk of the search for hard ones; rated by guesses."""
        from samm.data import sudoku_engine as engine

        if min_rating > 0:
            puzzles, grids, ratings = engine.hard_puzzles(chunk, seed, min_rating, box=self.box)
        else:
            puzzles, grids = engine.random_puzzles(256, seed, chunk * 256, self.box, threads=1)
            ratings = engine.rate(puzzles, 8, seed, self.box, threads=1)
        tokens, answers = (self.from_board(boards).numpy() for boards in (puzzles, grids))
        return tokens, answers, ratings

    def to_board(self, tokens: Tensor) -> np.ndarray:
        """Tokens as the engine writes them: 0 blank, 1..n."""
        board: np.ndarray = ((tokens + 1) % (self.side + 1)).numpy().astype(np.uint8)
        return board

    def from_board(self, board: np.ndarray) -> Tensor:
        """The engine's 0 for blank and 1..n as tokens."""
        return (torch.from_numpy(board.astype(np.int64)) - 1) % (self.side + 1)

    def augment(
        self, tokens: Tensor, answers: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """A random one of all 2·6⁸·9! symmetries for every problem of the batch."""
        from samm.data import symmetries

        cells = symmetries.random_cells(len(tokens), self.box, generator)
        digits = symmetries.random_relabelling(len(tokens), self.side, generator)
        return (
            symmetries.apply(tokens, cells, digits),
            symmetries.apply(answers, cells, digits),
        )

    def split_keys(self, tokens: np.ndarray, answers: np.ndarray) -> list[bytes]:
        """The canonical solution grid; up to 6×6 there are too few grids: the canonical puzzle.

        Beyond 12×12 a fingerprint that equivalent grids share.
        """
        from samm.data import sudoku_canonical, sudoku_engine

        grids = (answers + 1).astype(np.uint8)
        if self.side > sudoku_canonical.LARGEST_SIDE:
            return [key.tobytes() for key in sudoku_engine.fingerprint(grids, self.box)]
        puzzles = ((tokens.astype(np.int64) + 1) % (self.side + 1)).astype(np.uint8)
        canonical, forms = sudoku_engine.canonical_puzzles(puzzles, grids, self.box)
        keys = np.concatenate([forms, canonical], 1) if self.side <= 6 else forms
        return [key.tobytes() for key in keys]

    # --- reports and display

    def difficulty(self, ratings: np.ndarray) -> np.ndarray:
        """Buckets by number of guesses, as the `rating` of Sudoku-Extreme counts them."""
        buckets = np.searchsorted([0, 2, 10, 50], ratings, side="left")
        return np.where(np.isnan(ratings), len(self.difficulties) - 1, buckets)

    @property
    def layout(self) -> Layout:
        n = self.side
        return Layout(
            tuple(tuple(range(r * n, r * n + n)) for r in range(n)),
            frozenset(range(self.box_rows, n, self.box_rows)),
            frozenset(range(self.box_cols, n, self.box_cols)),
        )

"""Countdown as a line of text, from left to right, as the paper and MGDM write it."""

from collections.abc import Sequence

import torch
from torch import Tensor

from samm.tasks.base import Coordinates
from samm.tasks.countdown_forms import DIGITS, Chains, Form, Step, written


class Line(Form):
    """`n1,n2,n3,n4,target=a op b=c,...` from left to right; the end sign fills the rest."""

    @property
    def length(self) -> int:
        if not self.alphabet.digits:
            return 40  # the paper's
        return (self.size + 1) * (self.width + 1) + self.steps * (3 * DIGITS + 3) - 1

    @property
    def coordinates(self) -> Coordinates:
        return Coordinates.line(self.length)

    @property
    def rows(self) -> tuple[tuple[int, ...], ...]:
        return (tuple(range(self.length)),)

    def pieces(self, tokens: list[int]) -> list[list[tuple[str, list[int]]]]:
        decode = self.alphabet.decode
        return [[(decode([token]), [place]) for place, token in enumerate(tokens)]]

    @property
    def places(self) -> list[range] | None:
        if self.alphabet.digits:
            return None  # numbers of different widths cannot change places
        return [range(2 * k, 2 * k + 1) for k in range(self.size)]

    def write(self, numbers: Sequence[int], target: int, steps: Sequence[Step] | None) -> list[int]:
        text = ",".join(map(str, (*numbers, target))) + "="
        if steps is not None:
            text += written(steps)
        tokens = self.alphabet.encode(text)
        fill = self.alphabet.size if steps is None else self.alphabet.end
        return tokens + [fill] * (self.length - len(tokens))

    def question(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        alphabet, last = self.alphabet, self.size
        values = torch.zeros(len(tokens), last + 1, dtype=torch.long, device=tokens.device)
        field = torch.zeros(len(tokens), 1, dtype=torch.long, device=tokens.device)
        for token in tokens[:, : (last + 1) * (self.width + 1), None].unbind(1):
            index = field.clamp(max=last)
            before = values.gather(1, index)
            longer = before * 10 + token if alphabet.digits else token
            digit = (token < alphabet.base) & (field <= last)
            values.scatter_(1, index, torch.where(digit, longer, before))
            field = field + ((token == alphabet.comma) | (token == alphabet.equals)).long()
        return values[:, :-1], values[:, -1]

    def chains(self, tokens: Tensor) -> Chains:
        """A state machine over the positions, for all rows at once."""
        alphabet, rows = self.alphabet, len(tokens)
        start = (tokens == alphabet.equals).long().argmax(1) + 1  # behind the question
        # What is written so far: field number 4 · step + (0 a, 1 op, 2 b, 3 c), and its digits.
        found = torch.full((rows, 4 * self.steps), -1, device=tokens.device)
        field, count, value = (torch.zeros_like(start) for _ in range(3))
        broken = torch.zeros(rows, dtype=torch.bool, device=tokens.device)
        ended = broken.clone()
        last = 4 * self.steps - 1
        for place, token in enumerate(tokens.unbind(1)):
            active = (place >= start) & ~broken
            part = field % 4
            digit = token < alphabet.base
            sign = (token >= alphabet.operator) & (token < alphabet.equals) & (part == 0)
            equals = (token == alphabet.equals) & (part == 2)
            comma = (token == alphabet.comma) & (part == 3) & (field < last)
            end = token == alphabet.end
            closing = (sign | equals | comma | (end & ~ended & (part == 3))) & (count > 0)
            most = DIGITS if alphabet.digits else 1
            leading_zero = (count > 0) & (value == 0)
            growing = digit & (count < most) & ~leading_zero
            fine = torch.where(ended, end, closing | growing)
            broken |= active & ~fine
            active &= fine & ~ended
            grown = torch.where(digit, value * alphabet.base + token, value)
            done = active & closing
            _put(found, field.clamp(max=last), value, done)
            # An operator is one token: its field is written together with a.
            _put(found, (field + 1).clamp(max=last), token - alphabet.operator, done & sign)
            field = torch.where(done, field + 1 + sign.long(), field)
            value = torch.where(done, 0, torch.where(active & growing, grown, value))
            count = torch.where(done, 0, torch.where(active & growing, count + 1, count))
            ended |= done & end
        # A line that is full to its last position needs no end.
        full = ~ended & ~broken & (field % 4 == 3) & (count > 0)
        _put(found, field.clamp(max=last), value, full)
        parts = found.view(rows, self.steps, 4)
        unused = (parts == -1).all(-1)
        sound = ((parts >= 0).all(-1) | unused) & (~broken & (ended | full))[:, None]
        return Chains(parts[..., 0], parts[..., 1], parts[..., 2], parts[..., 3], sound)

    def text(self, tokens: list[int]) -> str:
        rest = tokens[tokens.index(self.alphabet.equals) + 1 :]
        while rest and rest[-1] == self.alphabet.end:
            rest.pop()
        return "" if all(t == self.alphabet.size for t in rest) else self.alphabet.decode(rest)


def _put(table: Tensor, column: Tensor, value: Tensor, where: Tensor) -> None:
    """table[row, column[row]] = value[row] in the rows `where`."""
    index = column[:, None]
    table.scatter_(1, index, torch.where(where, value, table.gather(1, index)[:, 0])[:, None])

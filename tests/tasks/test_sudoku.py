"""Sudoku's text forms, error messages, difficulty labels and rendering."""

import numpy as np
import pytest
import torch

from samm.errors import InputError
from samm.tasks.sudoku import Sudoku

INKALA = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
SOLVED = "812753649943682175675491283154237896369845721287169534521974368438526917796318452"
LINES = [INKALA[i : i + 9] for i in range(0, 81, 9)]
task = Sudoku()


@pytest.mark.parametrize(
    "text",
    [
        INKALA,
        INKALA.replace(".", "0"),
        INKALA.replace(".", "_"),
        "\n".join(LINES),
        "\n".join(" ".join(line) for line in LINES) + "\n",
        "\r\n".join(LINES),
        "\n".join(
            ["+---+---+---+"]
            + [f"|{line[:3]}|{line[3:6]}|{line[6:]}|" for line in LINES]
            + ["+---+---+---+"]
        ),
        "\n".join(f"{line[:3]} │ {line[3:6]} │ {line[6:]}" for line in LINES),
    ],
)
def test_text_forms(text: str) -> None:
    assert task.decode(task.encode(text).tokens) == INKALA


def test_what_it_shows_can_be_read_again() -> None:
    problem = task.encode(INKALA)
    shown = task.render(problem, problem.tokens).plain.replace("·", ".")
    assert torch.equal(task.encode(shown).tokens, problem.tokens)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (INKALA[:-1], "a 9×9 Sudoku has 81 cells, got 80"),
        (INKALA + "1", "a 9×9 Sudoku has 81 cells, got 82"),
        (INKALA.replace("36", "3x"), r"character 13: 'x' is neither a digit 1–9 nor a blank"),
        ("\n".join(LINES).replace("36", "3x"), r"character 4 of line 2: 'x'"),
        ("\n".join([LINES[0][:-1], LINES[1] + ".", *LINES[2:]]), "line 1 has 8 cells, expected 9"),
        ("8" + "........8" + "." * 71, "two 8s in column 1|two 8s in box 1"),
        ("8...8" + "." * 76, "two 8s in row 1: row 1 column 1 and row 1 column 5"),
        ("8" + "." * 35 + "8" + "." * 44, "two 8s in column 1: row 1 column 1 and row 5 column 1"),
        ("8" + "." * 9 + "8" + "." * 70, "two 8s in box 1: row 1 column 1 and row 2 column 2"),
    ],
)
def test_errors_say_what_and_where(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        task.encode(text)


def test_wrong_answers_say_where() -> None:
    problem = task.encode(INKALA)
    with pytest.raises(InputError, match="row 1 column 1 is 9, but the clue there is 8"):
        task.encode_answer("9" + SOLVED[1:], problem)
    with pytest.raises(InputError, match="solution: row 1 column 2 is blank"):
        task.encode_answer(SOLVED[0] + "." + SOLVED[2:], problem)
    swapped = SOLVED[0] + SOLVED[2] + SOLVED[1] + SOLVED[3:]
    with pytest.raises(InputError, match="two 2s in column 2"):
        task.encode_answer(swapped, problem)


def test_the_first_bad_item_of_many_is_named() -> None:
    with pytest.raises(InputError, match="item 2: two 1s in row 1"):
        task.encode_many([INKALA, "11" + "." * 79])


def test_sixteen_uses_letters_in_either_case() -> None:
    large = Sudoku(4, 4)
    example = large.example(1, 0)
    text = large.decode(example.answer)
    assert set(text) == set("123456789ABCDEFG")
    assert torch.equal(large.encode(text.lower()).tokens, example.answer)


def test_verify_is_exact_on_every_single_change() -> None:
    """Each of the 81 × 9 one-cell changes of a solution but the original is refused."""
    blank = task.encode("." * 81)
    answer = task.encode(SOLVED).tokens
    changed = answer.repeat(81 * 9, 1)
    index = torch.arange(81 * 9)
    changed[index, index // 9] = index % 9
    problems = blank[None].map(lambda field: field.expand(len(changed), -1))
    verdict = task.verify(problems, changed)
    assert torch.equal(verdict, (changed == answer).all(-1))


def test_verify_refuses_latin_squares_with_wrong_boxes() -> None:
    rows = (torch.arange(9)[:, None] + torch.arange(9)) % 9
    assert not task.verify(task.encode("." * 81)[None], rows.flatten()[None]).item()


def test_difficulty_buckets_are_those_of_the_reports() -> None:
    ratings = np.array([0, 1, 2, 3, 10, 11, 50, 51, 900, np.nan], np.float32)
    labels = [task.difficulties[i] for i in task.difficulty(ratings)]
    expected = ["0", "1–2", "1–2", "3–10", "3–10", "11–50", "11–50", "51+", "51+", "unrated"]
    assert labels == expected


def test_coordinates_are_row_column_box() -> None:
    position = 4 * 9 + 7  # row 5, column 8: the middle right box
    assert task.coordinates.axes[position].tolist() == [4, 7]
    assert task.coordinates.groups[position].tolist() == [4, 7, 5]
    assert task.coordinates.group_sizes == (9, 9, 9)
    wide = Sudoku(2, 3).coordinates.groups
    assert [int((wide[:, 2] == box).sum()) for box in range(6)] == [6] * 6
    assert wide[2 * 6 + 3].tolist() == [2, 3, 3]


def test_confidence_shades_free_cells_only() -> None:
    problem = task.encode(INKALA)
    answer = task.encode(SOLVED).tokens
    page = task.render_html(problem, answer, torch.zeros(81))
    assert page.count("background:") == int(problem.free.sum())
    assert "confidence 0.00" in page
    assert page.count("border-left:2px") == 18
    shaded = task.render(problem, answer, torch.ones(81))
    assert sum(span.style.bgcolor is not None for span in shaded.spans) == 60


def test_a_fault_is_named() -> None:
    problem = task.encode(INKALA)
    solved = task.encode_answer(SOLVED, problem)
    assert task.fault(problem, solved) is None
    assert task.fault(problem, problem.tokens) == "row 1 column 2 is blank"
    for place, digit, message in (
        (0, 5, "the clue in row 1 column 1 was changed"),
        (1, 2, "two 2s in row 1: row 1 column 2 and row 1 column 3"),
    ):
        wrong = solved.clone()
        wrong[place] = digit - 1
        assert task.fault(problem, wrong) == message

"""Where the real puzzles are, and what every test may use."""

from pathlib import Path

import pytest

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def puzzles_folder() -> Path:
    """The folder of real public puzzles; tests that need it skip where it is absent."""
    folder = SHARED / "sudoku"
    if not folder.is_dir():
        pytest.skip(f"the public puzzles are not at {folder}")
    return folder

"""Where the real puzzles are, and what every test may use."""

import os
from pathlib import Path

import pytest
import torch

if "PYTEST_XDIST_WORKER" in os.environ:
    # Workers share the cores: torch's own threads on top of them would wait for one another.
    torch.set_num_threads(1)

SHARED = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def puzzles_folder() -> Path:
    """The folder of real public puzzles; tests that need it skip where it is absent."""
    folder = SHARED / "sudoku"
    if not folder.is_dir():
        pytest.skip(f"the public puzzles are not at {folder}")
    return folder

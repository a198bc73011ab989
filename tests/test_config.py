"""Configurations: every shipped one loads, and a mistake is named with its key."""

import ast
from itertools import pairwise
from pathlib import Path

import pytest

from samm import config as config_module
from samm.config import Config
from samm.errors import InputError

CONFIGS = Path(__file__).parents[1] / "configs"


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda p: p.stem)
def test_shipped_configurations_survive_the_round_trip(path: Path) -> None:
    config = Config.read(path)
    assert Config.build(config.table()) == config


def test_the_default_configuration_is_the_default() -> None:
    assert Config.read(CONFIGS / "sudoku.toml") == Config()


def test_every_key_is_described() -> None:
    """A docstring stands under every field."""
    tree = ast.parse(Path(config_module.__file__).read_text(encoding="utf-8"))
    keys = 0
    for section in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        for node, after in pairwise([*section.body, ast.Pass()]):
            if isinstance(node, ast.AnnAssign):
                keys += 1
                described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                assert described, f"{section.name}: {ast.unparse(node)}"
    assert keys > 50


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("training.batch=8", "unknown key 'training.batch'; known: batch_size"),
        ("networks.width=8", "unknown key 'networks'; known: task, network"),
        ("training.batch_size=many", "training.batch_size = 'many': expected int"),
        ("training.batch_size=0", "training.batch_size = 0: expected more than 0"),
        ("training.batch_size=8.5", "training.batch_size = 8.5: expected int"),
        ("network.rotary=round", "network.rotary = 'round': expected axes or line"),
        ("network.width=100", "network.width = 100 is not a multiple of 2 · heads = 8"),
        ("network.fewest_loops=9", "network.fewest_loops = 9: expected 1 to loops = 8"),
        ("network.dropout=1", "network.dropout = 1.0: expected 0 to 0.999"),
        ("optimizer.rate=nan", "optimizer.rate = nan: expected more than 0"),
        ("optimizer.betas=[0.9]", r"optimizer.betas = \[0.9\]: expected two numbers"),
        ("optimizer.ema=1.5", "optimizer.ema = 1.5: expected 0 to 1"),
        ("path.blank_share=2", "path.blank_share = 2.0: expected 0 to 1"),
        ("path.kind=hybrid", "it belongs to the masking path"),
        ("objective.kind=cross_entropy", "only samm has a commit head"),
        ("objective.epsilon=0", "objective.epsilon = 0.0: expected more than 0"),
        ("objective.stop_norm=l3", "objective.stop_norm = 'l3': expected mse or l1 or bce"),
        ("states.steps=[]", r"states.steps = \[\]: expected weights"),
        ("states.steps=[0, -1]", "expected weights"),
        ("data.weights=[1]", "data.weights has 1 numbers for 0 data.files"),
        ("data.files=x.csv", "data.files = 'x.csv': expected a list"),
        ("training.precision=float8", "expected bfloat16 or float32"),
        ("task=3", "task = 3: expected a section"),
        ("network=3", "network = 3: expected a section"),
        ("task.name.x=3", "name is no section"),
        ("width", "expected section.key=value"),
    ],
)
def test_mistakes_are_named(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Config.read(CONFIGS / "sudoku.toml", [override])


def test_overrides_of_every_type() -> None:
    config = Config.read(
        CONFIGS / "sudoku.toml",
        [
            "network.fewest_loops=4",
            "optimizer.rate=1",
            "states.steps=[0, 1, 1]",
            "data.augment=false",
            'data.files=["a b.csv"]',
            "objective.kind=samm",
            "task.box_rows=2",
        ],
    )
    assert config.network.fewest_loops == 4
    assert config.optimizer.rate == 1.0
    assert config.states.steps == (0.0, 1.0, 1.0)
    assert config.data.augment is False
    assert config.data.files == ("a b.csv",)
    assert config.task == {"name": "sudoku", "box_rows": 2}


def test_files_that_are_no_toml_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text("[network\n")
    with pytest.raises(InputError, match=r"x\.toml: "):
        Config.read(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"x\.toml: "):
        Config.read(path)

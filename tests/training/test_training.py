"""The real trainer: it learns, every preset takes a step, and a run folder holds what it should."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from ribbon import Ribbon
from tiny_runs import TINY

from samm import tasks, weights
from samm.config import Config
from samm.data import sudoku_engine
from samm.data.format import Dataset, save_dataset
from samm.errors import InputError
from samm.evaluation.metrics import Outcome, score
from samm.samplers import Chain, sample
from samm.tasks import Problem
from samm.training.checkpoint import load
from samm.training.log import refuse_missing
from samm.training.run import datasets, train
from samm.training.trainer import Trainer

CONFIGS = Path(__file__).parents[2] / "configs"


def tiny(*overrides: str, folder: Path) -> Config:
    path = folder / "tiny.toml"
    path.write_text(TINY)
    return Config.read(path, overrides)


def dataset(task: tasks.Task, count: int, seed: int = 0) -> Dataset:
    examples = [task.example(seed, i) for i in range(count)]
    tokens = torch.stack([e.problem.tokens for e in examples]).numpy().astype(np.uint8)
    answers = torch.stack([e.answer for e in examples]).numpy().astype(np.uint8)
    return Dataset(task, tokens, answers, np.full(count, np.nan, np.float32), {})


def test_4x4_is_learned_from_nothing(tmp_path: Path) -> None:
    """≥ 99 % of held-out puzzles, with the real trainer, kernel and stop, in under two minutes."""
    result = train(Config.read(CONFIGS / "sudoku-4x4.toml"), tmp_path, device="cpu")
    assert result["accuracy"] >= 0.99
    assert result["stopped"] >= 0.99
    network = weights.load(tmp_path).network
    puzzles, grids = sudoku_engine.random_puzzles(500, seed=123_456, box=(2, 2))
    task = network.task
    problems = task.problem(task.from_board(puzzles))
    answer = sample(network, problems, torch.Generator().manual_seed(0), Chain(steps=32))
    right = task.verify(problems, answer.tokens)
    report = score(Outcome(right, answer.stopped, answer.steps, answer.steps + 1))
    assert report.accuracy >= 0.99
    assert torch.equal(task.right(problems, answer.tokens, task.from_board(grids)),
                       task.verify(problems, answer.tokens))  # fmt: skip
    assert report.false_stops is not None
    assert report.false_stops <= 0.01
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.toml")), ids=lambda p: p.stem)
def test_every_preset_takes_a_step(path: Path) -> None:
    overrides = ["training.batch_size=4", "training.steps=2", "training.evaluation_steps=3"]
    config = Config.read(path, overrides)
    data = dataset(tasks.from_spec(config.task), 12)
    trainer = Trainer(config, [data[2:]], data[:2], device="cpu")
    before = [p.clone() for p in trainer.network.parameters()]
    terms = trainer.train_step()
    assert terms.shape == (len(trainer.term_names),)
    assert bool(terms.isfinite().all())
    moved = [
        not torch.equal(a, b) for a, b in zip(before, trainer.network.parameters(), strict=True)
    ]
    assert any(moved)
    assert 0 <= trainer.evaluate()["accuracy"] <= 1


def test_the_papers_models_have_the_papers_size() -> None:
    for name in ("sudoku-paper", "sudoku-dfm"):
        config = Config.read(CONFIGS / f"{name}.toml")
        assert (config.network.width, config.network.layers, config.network.heads) == (512, 8, 8)
        assert (config.network.dropout, config.network.logit_clip) == (0.05, 50.0)
        trunk = 8 * 12 * 512**2
        assert trunk == pytest.approx(25.2e6, rel=0.01)


def test_gidd_trains_on_the_same_harness(tmp_path: Path) -> None:
    overrides = [
        "path.kind=hybrid", "path.blank_share=0", "objective.kind=gidd", "states.steps=[1]",
        "network.time=adaln", "data.generated=4000", "training.steps=100",
        "training.evaluate_every=100",
    ]  # fmt: skip
    config = Config.read(CONFIGS / "sudoku-4x4.toml", overrides)
    train(config, tmp_path / "run", device="cpu")
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [row["elbo"] for row in rows if "elbo" in row]
    assert losses[-1] < 0.5 * losses[0]


def test_a_task_with_padding_and_several_answers_trains_without_another_line(
    tmp_path: Path,
) -> None:
    config = tiny(
        'task.name="ribbon"', "training.steps=120", "training.batch_size=32", "network.width=32",
        "data.generated=2000", "network.dropout=0", "training.evaluation_steps=16",
        "training.evaluate_every=120", folder=tmp_path,
    )  # fmt: skip
    del config.task["box_rows"], config.task["box_cols"]
    result = train(config, tmp_path / "run", device="cpu")
    network, task = weights.load(tmp_path / "run").network, Ribbon()
    problems = task.encode_many(["R..G", "...", "G.......", "B"])
    answer = sample(network, problems, torch.Generator().manual_seed(0), Chain(steps=16))
    assert torch.equal(answer.tokens[problems.clue], problems.tokens[problems.clue])
    assert result["accuracy"] > 0.2, "judged by the rules: several answers are right"


def test_an_autoregressive_model_learns_from_true_tokens(tmp_path: Path) -> None:
    causal = ["network.causal=true", "objective.kind=cross_entropy", "states.steps=[1]"]
    with pytest.raises(InputError, match="belongs to the answer path"):
        tiny(*causal, folder=tmp_path)
    with pytest.raises(InputError, match=r"network\.causal = true contradicts"):
        tiny("network.causal=true", folder=tmp_path)
    config = tiny(
        *causal, "path.kind=answer", "network.dropout=0", "network.width=32", folder=tmp_path
    )
    data = dataset(tasks.from_spec(config.task), 200)
    trainer = Trainer(config, [data], data[:5], device="cpu")
    state, _, _ = trainer.draw_states()
    assert torch.equal(state.tokens, state.answers)
    losses = [float(trainer.train_step().sum()) for _ in range(80)]
    assert sum(losses[-20:]) < 0.8 * sum(losses[:20])
    options = replace(config.training, evaluation_steps=16)
    trainer.config = replace(config, training=options)
    assert trainer.evaluate()["stopped"] == 1, "one step for every free position"


def test_states_are_held_against_their_closest_answer(tmp_path: Path) -> None:
    overrides = ["network.dropout=0", "states.steps=[0, 0, 1]", "training.batch_size=64"]
    config = tiny(*overrides, folder=tmp_path)
    task = tasks.get("countdown", numbers=3)
    data = dataset(task, 64)
    drawn = []
    for target in ("given", "closest"):
        states = replace(config.states, target=target)
        chosen = replace(config, task=task.spec(), states=states)
        trainer = Trainer(chosen, [data], data[:5], device="cpu")
        state, _, _ = trainer.draw_states()
        drawn.append(state)
        problems = task.problem(torch.where(state.clue, state.tokens, task.mask))
        assert bool(task.verify(problems, state.answers).all())
        assert torch.isfinite(trainer.descend(*trainer.draw_states())).all()
    given, closest = drawn
    assert torch.equal(given.tokens, closest.tokens)
    agreement = [(s.tokens == s.answers).sum(1) for s in drawn]
    assert bool((agreement[1] >= agreement[0]).all())
    assert bool((agreement[1] > agreement[0]).any())


def test_a_run_folder_holds_what_it_should(tmp_path: Path) -> None:
    config = tiny("training.steps=10", "training.evaluate_every=5", folder=tmp_path)
    told: list[str] = []
    train(config, tmp_path / "run", device="cpu", say=told.append)
    assert "nothing equivalent in both" in told[0]
    assert "parameters" in told[1]
    rows = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows if "loss" in row] == [4, 6, 8, 10]
    assert [row["step"] for row in rows if "held_out_accuracy" in row] == [5, 10]
    for row in rows:
        if "loss" in row:
            assert row["loss"] == pytest.approx(row["ce"] + row["commit"] + row["stop"])
            assert row["puzzles_per_second"] > 0
    assert load(tmp_path / "run").config.training.steps == 10


def test_minutes_become_steps_that_can_be_repeated(tmp_path: Path) -> None:
    config = tiny(folder=tmp_path)
    told: list[str] = []
    train(config, tmp_path / "run", minutes=0.02, device="cpu", say=told.append)
    fixed = load(tmp_path / "run").config.training.steps
    assert fixed != 60
    assert f"{fixed:,} steps fit into 0.02 minutes" in told
    train(config, tmp_path / "again", steps=fixed, device="cpu")
    one, two = load(tmp_path / "run"), load(tmp_path / "again")
    assert all(torch.equal(one.train_state[k], two.train_state[k]) for k in one.train_state)


def test_a_logger_that_is_missing_is_named_before_anything_begins() -> None:
    refuse_missing(json=True, no_such_logger=False)
    with pytest.raises(InputError, match=r"--no_such_logger needs .*samm\[logging\]"):
        refuse_missing(json=True, no_such_logger="project")


def test_how_long_must_be_said(tmp_path: Path) -> None:
    config = Config.read(CONFIGS / "sudoku.toml")
    with pytest.raises(InputError, match="how long"):
        train(config, tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def test_held_out_rows_touch_no_training_row(tmp_path: Path) -> None:
    task = tasks.get("sudoku", box_rows=2, box_cols=2)
    for name, seed in (("a", 0), ("b", 1)):
        save_dataset(tmp_path / f"{name}.samm", dataset(task, 300, seed))
    files = [str(tmp_path / "a.samm"), str(tmp_path / "b.samm")]
    config = tiny(f"data.files={json.dumps(files)}", "data.weights=[1, 3]", folder=tmp_path)
    kept, held = datasets(config, lambda text: None)
    assert len(held) == 20
    forbidden = set(task.split_keys(held.tokens, held.answers))
    for part in kept:
        assert not forbidden & set(task.split_keys(part.tokens, part.answers))
        assert len(part) > 150
    again, same = datasets(config, lambda text: None)
    assert np.array_equal(same.tokens, held.tokens)
    assert np.array_equal(again[0].tokens, kept[0].tokens)


def test_held_out_files_leave_the_training_files_whole(tmp_path: Path) -> None:
    task = tasks.get("sudoku", box_rows=2, box_cols=2)
    for name, seed in (("a", 0), ("v", 1), ("w", 2)):
        save_dataset(tmp_path / f"{name}.samm", dataset(task, 50, seed))
    config = tiny(
        f'data.files=["{(tmp_path / "a.samm").as_posix()}"]',
        f'data.held_out_files=["{(tmp_path / "v.samm").as_posix()}", '
        f'"{(tmp_path / "w.samm").as_posix()}"]',
        folder=tmp_path,
    )
    kept, held = datasets(config, lambda text: None)
    assert [len(part) for part in kept] == [50]
    assert np.array_equal(held.tokens[:10], dataset(task, 10, 1).tokens)
    assert np.array_equal(held.tokens[10:], dataset(task, 10, 2).tokens)


def test_too_few_rows_are_refused(tmp_path: Path) -> None:
    task = tasks.get("sudoku", box_rows=2, box_cols=2)
    save_dataset(tmp_path / "a.samm", dataset(task, 5))
    path = (tmp_path / "a.samm").as_posix()
    with pytest.raises(InputError, match="5 rows to train on"):
        datasets(tiny(f'data.files=["{path}"]', folder=tmp_path), lambda text: None)


def test_a_loss_that_is_no_number_ends_the_run_before_a_checkpoint_is_spoilt(
    tmp_path: Path,
) -> None:
    config = tiny("optimizer.kind=adamw", "optimizer.rate=1e30", folder=tmp_path)
    with pytest.raises(InputError, match="the loss is no longer a number at step"):
        train(config, tmp_path / "run", device="cpu")
    for tensor in load(tmp_path / "run").train_state.values():
        assert bool(tensor.isfinite().all())


def test_steps_leave_no_trace_when_measured(tmp_path: Path) -> None:
    config = tiny("training.steps=5", folder=tmp_path)
    data = dataset(tasks.from_spec(config.task), 40)
    measured, fresh = (Trainer(config, [data], data[:5], device="cpu") for _ in range(2))
    assert measured.steps_for(0.1) >= 1
    measured.set_steps(5)
    for _ in range(3):
        assert torch.equal(measured.train_step(), fresh.train_step())


def test_states_come_from_the_live_network_without_dropout(tmp_path: Path) -> None:
    config = tiny("network.dropout=0.5", folder=tmp_path)
    data = dataset(tasks.from_spec(config.task), 40)
    trainer = Trainer(config, [data], data[:5], device="cpu")
    modes: list[tuple[bool, bool]] = []
    forward = trainer.network.forward

    def spy(*arguments, **options):
        modes.append((trainer.network.training, torch.is_grad_enabled()))
        return forward(*arguments, **options)

    trainer.network.forward = spy
    trainer.averaged.forward = None  # would fail if it were asked
    for _ in range(5):
        trainer.train_step()
    assert set(modes) == {(False, False), (True, True)}


def test_bfloat16_trains(tmp_path: Path) -> None:
    config = tiny(
        "training.precision=bfloat16", "network.dropout=0", "network.width=32",
        "training.steps=120", folder=tmp_path,
    )  # fmt: skip
    data = dataset(tasks.from_spec(config.task), 200)
    trainer = Trainer(config, [data], data[:5], device="cpu")
    losses = [float(trainer.train_step().sum()) for _ in range(120)]
    assert sum(losses[-20:]) < 0.8 * sum(losses[:20])
    assert all(p.dtype == torch.float32 for p in trainer.network.parameters())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # torch's own
def test_compiled_steps_are_the_same_steps(tmp_path: Path) -> None:
    data = None
    results = []
    for compiled in ("step", "loop", "graph", "off"):
        config = tiny(f"training.compile={compiled}", "network.dropout=0", folder=tmp_path)
        data = data or dataset(tasks.from_spec(config.task), 40)
        trainer = Trainer(config, [data], data[:5], device="cpu")
        results.append(torch.stack([trainer.train_step() for _ in range(4)]))
    for compiled in results[:-1]:
        assert torch.allclose(compiled, results[-1], rtol=0.02)


def test_problems_are_rebuilt_from_their_tokens() -> None:
    task = Ribbon()
    problem = task.encode("R..G")
    assert all(
        torch.equal(getattr(task.problem(problem.tokens), name), getattr(problem, name))
        for name in Problem.__dataclass_fields__
    )

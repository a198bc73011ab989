"""From trained networks over saved results to tables and figures, by the commands of the README."""

import json
import shlex
import shutil
from pathlib import Path

import pytest
import torch

from samm import weights
from samm.cli import main
from samm.config import Config
from samm.errors import InputError
from samm.evaluation.measure import Request
from samm.evaluation.report import END, START, report
from samm.evaluation.results import read
from samm.training.run import train

CONFIG = Path(__file__).parents[2] / "configs" / "sudoku-4x4.toml"
SHORT = [
    "network.width=32", "network.loops=2", "training.steps=60", "training.evaluate_every=60",
    "training.batch_size=64", "data.generated=2000", "data.held_out=50", "optimizer.warmup=10",
    "training.evaluation_steps=8",
]  # fmt: skip
DFM = [
    "objective.kind=cross_entropy",
    "states.steps=[1]",
    "path.blank_share=0",
    "network.time=adaln",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, a little trained, and a file of puzzles."""
    folder = tmp_path_factory.mktemp("results")
    for name, more in (("ours", []), ("dfm", DFM)):
        train(Config.read(CONFIG, [*SHORT, *more]), folder / name, device="cpu")
    code = run("data", "generate", "sudoku:box_rows=2,box_cols=2", "--count", "60", "--seed", "9",
               "--out", str(folder / "puzzles.samm"))  # fmt: skip
    assert code == 0
    return folder


def run(*words: str) -> int:
    """The exit code of a command line."""
    try:
        main(list(words))
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def evaluated(home: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    capsys.readouterr()
    data = ["--data", str(home / "puzzles.samm"), "--device", "cpu"]
    assert run("eval", *data, *words, "--json") == 0
    out = capsys.readouterr().out
    assert out.count("\n") == 1, "one object, and nothing else on stdout"
    return json.loads(out)


def ours(home: Path) -> list[str]:
    return ["--weights", str(home / "ours")]


def test_the_json_has_what_was_asked_and_what_was_measured(home, capsys) -> None:
    result = evaluated(
        home, capsys, *ours(home), "--steps", "20", "--chains", "3", "--select", "majority",
        "--limit", "40", "--seed", "5", "--option", "token_temperature=0.8",
    )  # fmt: skip
    asked = {
        "n": 40, "seed": 5, "weights": str(home / "ours"), "data": "puzzles.samm",
        "sampler": "chain", "chains": 3, "select": "majority", "steps_cap": 20,
        "verifier": False, "limit": 40, "partial": False,
    }  # fmt: skip
    assert {name: result[name] for name in asked} == asked
    assert result["options"]["token_temperature"] == 0.8
    assert result["accuracy"] == result["solved"] / 40
    low, high = result["ci95"]
    assert 0 <= low <= result["accuracy"] <= high <= 1
    assert result["network"]["training_steps"] == 60
    assert result["flops_per_puzzle"] == pytest.approx(
        result["calls_per_puzzle"] * result["network"]["flops_per_call"]
    )


def test_the_command_in_a_result_makes_it_again(home, capsys) -> None:
    for words in (
        ["--steps", "9", "--option", "commit_temperature=0.5", "--seed", "3"],
        ["--sampler", "euler", "--option", "revisit=true", "--steps", "7", "--limit", "30"],
        ["--option", "always_commit=false", "--steps", "5"],
        ["--chains", "2", "--select", "verified", "--trajectories", "1", "--calibration"],
    ):
        first = evaluated(home, capsys, *ours(home), *words)
        command = shlex.split(first["command"])
        assert command[0] == "samm"
        assert run(*command[1:]) == 0
        again = json.loads(capsys.readouterr().out)
        for timed in ("seconds", "puzzles_per_second"):
            first.pop(timed), again.pop(timed)
        assert again == first


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_a_compiled_network_answers_as_it_does_uncompiled(home, capsys) -> None:
    """Full batches by the compiled one, the rest as it is: all but rounding is the same."""
    words = [*ours(home), "--steps", "8", "--batch", "16", "--chains", "2", "--select", "vote"]
    plain, compiled = (evaluated(home, capsys, *words, *more) for more in ([], ["--compile"]))
    assert abs(plain["solved"] - compiled["solved"]) <= 3
    assert plain["mean_steps"] == pytest.approx(compiled["mean_steps"], rel=0.05)
    assert "--compile" in compiled["command"]


def test_without_json_it_speaks_to_people(home, capsys) -> None:
    capsys.readouterr()
    data = ["--data", str(home / "puzzles.samm"), "--device", "cpu", "--limit", "20"]
    assert run("eval", *ours(home), *data, "--chains", "2") == 0
    text = capsys.readouterr().out
    assert "20 problems" in text
    assert "2 chains, average" in text
    assert "false stops" in text
    assert "no verifier" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--weights", "nowhere"], "'nowhere' is no run folder and no released network"),
        (["--weights", "{dfm}", "--sampler", "chain"], "does not suit a network trained with"),
        (["--weights", "{dfm}", "--calibration"], "has no heads to hold against the truth"),
        (["--weights", "{ours}", "--sampler", "gidd"], "expected chain or restart or euler"),
        (["--weights", "{ours}", "--select", "luck"], "rule 'luck' is unknown"),
        (["--weights", "{ours}", "--option", "speed=3"], "unknown key 'chain.speed'"),
        (["--weights", "{ours}", "--option", "speed"], "--option speed: expected name=value"),
        (["--weights", "{ours}", "--option", "stop_epsilon=2"], "stop_epsilon 2"),
        (["--weights", "{ours}", "--steps", "1"], "least_steps 2: expected 0 to the cap of 1"),
    ],
)
def test_bad_requests_are_refused(home, capsys, words, message: str) -> None:
    words = [word.format(ours=home / "ours", dfm=home / "dfm") for word in words]
    assert run("eval", "--data", str(home / "puzzles.samm"), "--device", "cpu", *words) == 2
    assert message in capsys.readouterr().err


@pytest.fixture(scope="module")
def saved(home: Path) -> Path:
    """Results of both networks."""
    from samm import runtime
    from samm.evaluation.measure import measure

    folder = home / "saved"
    folder.mkdir()
    chosen = runtime.choose("cpu", seed=0)
    for number, (name, options) in enumerate(
        (
            ("ours", {"chains": 3, "steps": 12, "trajectories": 2, "calibration": True}),
            ("ours", {"chains": 2, "select": "verified"}),
            ("ours", {"sampler": "top_k", "steps": 6, "options": {"clock": "progress"}}),
            ("dfm", {"sampler": "euler", "steps": 6, "trajectories": 1}),
        )
    ):
        request = Request(str(home / name), home / "puzzles.samm", **options)
        result = measure(request, weights.load(home / name), chosen)
        (folder / f"{number}.json").write_text(json.dumps(result))
    # the same numbers as if they were of a public file: published rows and points join in
    result["data"] = "extreme_test.csv.gz"
    (folder / "public.json").write_text(json.dumps(result))
    return folder


def test_one_command_makes_every_table_and_figure(saved: Path, tmp_path: Path, capsys) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text(f"# Results\n\nread me\n\n{START}\nold\n{END}\n\nthe end\n")
    out = tmp_path / "out"
    assert run("report", str(saved), "--out", str(out), "--into", str(page)) == 0
    told = capsys.readouterr().out
    tables = (out / "tables.md").read_text()
    values = json.loads((saved / "0.json").read_text())
    assert f"| {100 * values['accuracy']:.1f} (" in tables
    assert values["command"] in tables
    assert "### Solved with the verifier, %" in tables
    plain = tables.split("### Solved with the verifier")[0]
    assert "verified" not in plain, "never mixed into a table without one"
    assert "the paper's own, as published" in plain
    assert "ours, Top-K (6 steps, own clock)" in tables
    assert "DFM, Euler (6 steps)" in tables
    assert tables.count("### Ensembles on puzzles") == 1, "the widest holds the others"
    text = page.read_text()
    assert text.startswith("# Results\n\nread me\n\n")
    assert text.endswith(f"{END}\n\nthe end\n")
    assert tables in text
    assert "old" not in text
    latex = (out / "tables.tex").read_text()
    assert latex.count(r"\begin{tabular}") == tables.count("### ")
    lines = [line for line in latex.splitlines() if not line.startswith("% ")]
    assert not any("%" in line.replace(r"\%", "") for line in lines), "percent signs are escaped"
    pictures = {path.name for path in out.iterdir()}
    for name in ("compute-puzzles", "compute-extreme_test", "chains-puzzles", "calibration-1",
                 "trajectory-ours-chain-1", "trajectory-dfm-euler-1"):  # fmt: skip
        assert {f"{name}.png", f"{name}.svg"} <= pictures
        assert str(out / f"{name}.png") in told
    for path in out.iterdir():
        magic = {".png": b"\x89PNG", ".svg": b"<?xml", ".gif": b"GIF8"}.get(path.suffix)
        assert magic is None or path.read_bytes().startswith(magic)
    moving = out / "trajectory-ours-chain-1.gif"
    from PIL import Image

    with Image.open(moving) as image:
        steps = len(values["trajectories"][0]["states"])
        assert 1 < image.n_frames <= steps + 3


def test_the_same_results_give_the_same_files(saved: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        report([saved], tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_the_repositorys_tables_are_those_of_its_results() -> None:
    """RESULTS.md is what `samm report` makes of the JSON beside it."""
    from samm.evaluation.tables import all_tables

    experiments = Path(__file__).parents[2] / "experiments"
    made = "\n".join(t.markdown() for t in all_tables(read([experiments / "six-by-six"])))
    text = (experiments / "RESULTS.md").read_text(encoding="utf-8")
    assert text.split(START)[1].split(END)[0].strip() == made.strip()


@pytest.mark.parametrize("arm", ["ours", "dfm"])
def test_a_row_of_the_results_can_be_made_again(arm: str, capsys) -> None:
    """By its own command, cut to its first puzzles: about as many are solved."""
    home = Path(__file__).parents[2]
    sampler = {"ours": "chain", "dfm": "top_k"}[arm]
    file = home / f"experiments/six-by-six/{arm}-{sampler}-1-sudoku-6x6-test.json"
    command = shlex.split(json.loads(file.read_text())["command"])
    words = [str(home / word) if word.startswith("experiments/") else word for word in command]
    words[words.index("--limit") + 1] = "100"
    assert run(*words[1:], "--device", "cpu") == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] >= 0.96


def test_what_is_no_result_is_refused(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no result \(\*\.json\) in"):
        read([tmp_path])
    bad = tmp_path / "bad.json"
    for text, message in (
        ("{", "not JSON"),
        ("[]", "n is missing"),
        ('{"n": 3}', "solved is missing"),
    ):
        bad.write_text(text)
        with pytest.raises(InputError, match=message):
            read([bad])
    values = json.loads((saved / "0.json").read_text())
    bad.write_text(json.dumps({**values, "sampler": "dice"}))
    with pytest.raises(InputError, match="sampler 'dice'"):
        read([bad])
    page = tmp_path / "page.md"
    page.write_text("no markers")
    with pytest.raises(InputError, match="expected the lines"):
        report([saved / "0.json"], tmp_path / "out", page)
    assert not (tmp_path / "out").exists(), "nothing half-written"


class TestWeights:
    def test_an_exported_network_is_the_averaged_one_of_its_run(self, home, tmp_path) -> None:
        out = tmp_path / "small"
        assert run("export", str(home / "ours"), str(out), "--dtype", "float32") == 0
        assert {p.name for p in out.iterdir()} == {"model.safetensors", "config.json"}
        one, two = weights.load(home / "ours"), weights.load(out)
        assert (one.config, one.step) == (two.config, two.step)
        for name, value in one.network.state_dict().items():
            assert torch.equal(value, two.network.state_dict()[name])

    def test_half_precision_is_close_and_small(self, home, tmp_path) -> None:
        small, full = tmp_path / "small", tmp_path / "full"
        sizes = [weights.export(home / "ours", out, dtype)
                 for out, dtype in ((small, "bfloat16"), (full, "float32"))]  # fmt: skip
        assert sizes[0] < 0.6 * sizes[1]
        state = weights.load(small).network.state_dict()
        for name, value in weights.load(full).network.state_dict().items():
            assert torch.allclose(value, state[name], rtol=0.01, atol=1e-3)

    def test_damage_is_refused(self, home, tmp_path, capsys) -> None:
        out = tmp_path / "small"
        weights.export(home / "ours", out)
        with pytest.raises(InputError, match="already exists"):
            weights.export(home / "ours", out)
        with pytest.raises(InputError, match="dtype 'int3' is unknown"):
            weights.export(home / "ours", tmp_path / "other", "int3")
        content = (out / "model.safetensors").read_bytes()
        broken = tmp_path / "broken"
        for name, change in (
            ("model.safetensors", lambda: content[: len(content) // 2]),
            ("config.json", lambda: b"{"),
            ("config.json", lambda: b'{"step": 1}'),
            ("config.json", lambda: (out / "config.json").read_bytes().replace(b": 32", b": 64")),
        ):
            shutil.copytree(out, broken)
            (broken / name).write_bytes(change())
            with pytest.raises(InputError):
                weights.load(broken)
            shutil.rmtree(broken)

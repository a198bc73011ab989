"""What the README shows, works: its commands are run, or at least parsed, its Python executed.

A block after `<!-- long -->` is parsed by the real command line and not run.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from samm.cli import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"(<!-- long -->\n)?```(\w+)\n(.*?)```", README, re.DOTALL)
ELSEWHERE = ("git clone", "cd ", "pip install", "pre-commit ", "export ", "#")


def commands(long: bool) -> list[str]:
    lines = []
    for mark, language, body in BLOCKS:
        if language == "sh" and bool(mark) == long:
            lines += [line.strip() for line in body.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line and not line.startswith(ELSEWHERE)]


def parse(line: str) -> None:
    """Raise if the command line does not know this command or one of its options."""
    words = shlex.split(line, comments=True)
    if ">" in words:  # what the shell does with the output is its own affair
        words = words[: words.index(">")]
    if words[0] == "torchrun":
        words = words[words.index("-m") + 1 :]
    assert words[0] == "samm", line
    command, name, rest, parent = typer.main.get_command(app), "samm", words[1:], None
    try:
        while True:
            context = command.make_context(name, rest, parent=parent)
            rest = [*getattr(context, "_protected_args", []), *context.args]
            if not (hasattr(command, "resolve_command") and rest):
                return
            parent = context
            name, command, rest = command.resolve_command(context, rest)
    except typer.Exit as done:  # --help and --version
        assert done.exit_code == 0


def test_there_are_blocks_of_each_kind() -> None:
    assert commands(long=False)
    assert any(language == "python" for _, language, _ in BLOCKS)


@pytest.mark.parametrize("line", commands(long=True))
def test_long_commands_parse(line: str) -> None:
    parse(line)


def test_short_commands_run_in_order(tmp_path: Path) -> None:
    for line in commands(long=False):
        words = shlex.split(line, comments=True)
        if words[0] == "make":
            assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(), line
            continue
        parse(line)
        command = [sys.executable, "-m", "samm", *words[1:]]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"


def test_python_blocks_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for _, language, body in BLOCKS:
        if language == "python":
            monkeypatch.chdir(ROOT)
            exec(compile(body, "README.md", "exec"), {})


def test_unknown_options_would_be_noticed() -> None:
    with pytest.raises(Exception, match=r"[Nn]o such option"):
        parse("samm data generate sudoku --no-such-option 3")
    with pytest.raises(Exception, match="No such command"):
        parse("samm data nonsense")


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)]+)\)", README):
        assert (ROOT / target.split("#")[0]).exists(), target

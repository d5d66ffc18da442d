"""The man page has every command and every option, and troff prints it unchanged."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

import click
import pytest

from mast_tui.cli.command_line import COMMANDS
from mast_tui.cli.dispatch import load_command
from scripts.man_page import man_page

pytestmark = pytest.mark.slow  # every command is imported

ROOT: Final = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def page() -> str:
    return man_page()


def options(command: click.Command) -> set[str]:
    """Return all options of a command and of its subcommands."""
    names = {option.opts[0] for option in command.params if isinstance(option, click.Option)}
    subcommands = command.commands.values() if isinstance(command, click.Group) else ()
    return names.union(*map(options, subcommands))


def test_every_command_has_its_options(page: str) -> None:
    for name in COMMANDS:
        section = page.partition(f"\n.SS {name}\n")[2]
        section = re.split(rf"\n\.SH |\n\.SS (?!{name} )", section)[0].replace("\\-", "-")
        missing = [option for option in options(load_command(name)) if option not in section]
        assert missing == [], name


def test_it_has_the_terms_of_the_page_on_commands(page: str) -> None:
    commands = (ROOT / "docs" / "commands.md").read_text("utf-8")
    for heading in ("What they share", "Exit codes"):
        section = commands.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        _, *terms = re.findall(r"^\| (.+?) \|", section.replace("|---", ""), re.MULTILINE)
        assert len(terms) >= 5
        plain = page.replace("\\-", "-")
        missing = [term for term in terms if f"\\fB{term.replace('`', '')}\\fR\n" not in plain]
        assert missing == []


def test_groff_accepts_the_page(page: str) -> None:
    program = shutil.which("groff")
    if program is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [program, "-Kutf8", "-man", "-ww", "-z"],
        input=page,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_no_line_of_text_is_taken_for_a_request(page: str) -> None:
    requests = set(re.findall(r"^[.'](\S*)", page, re.MULTILINE))
    assert requests == {"TH", "SH", "SS", "PP", "TP", "br"}

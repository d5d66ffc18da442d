"""``config``: every setting with its value, and what is wrong."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from msgspec.structs import replace

from mast_tui.configuration import configuration_path, read_configuration, setting_fields
from mast_tui.ui.actions.registry import ACTIONS
from tests.cli.conftest import Cli, configure

ALL = """
annotator = "zoë"
theme = "nord"

[keys]
preset = "plain"
"annotate.note" = ["ctrl+n", "f4"]

[judge]
model = "small"
base_url = "http://127.0.0.1:8000/v1"
concurrency = 4
key_variable = "LAB_KEY"
redact = "names.txt"
allow_http = true

[judge.prices."a \\"b\\""]
input = 0.25
output = 2
"""


SETTING = re.compile(r'(# )?([\w".]+ = |\[)')


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("text", ["", ALL], ids=["nothing set", "all set"])
def test_the_printed_configuration_has_the_same_settings(cli: Cli, text: str) -> None:
    configure(text)
    before = read_configuration()
    done = cli("config")
    assert (done.code, done.err) == (0, "")
    assert str(configuration_path()) in done.out
    for field in setting_fields():
        assert f"# {field.setting.about}" in done.out
    assert all(f'"{action.id}" = ' in done.out for action in ACTIONS)
    configure(done.out)
    after = read_configuration()
    assert after.problems == before.problems == ()
    assert replace(after, lines={}) == replace(before, lines={})


def test_commented_settings_are_valid(cli: Cli) -> None:
    lines = cli("config").out.splitlines()
    settings = [line.removeprefix("# ") for line in lines if SETTING.match(line)]
    said = tomllib.loads("\n".join(settings))
    assert said["keys"]["annotate.accept"] == ["a"]
    assert said["judge"]["concurrency"] == 8
    assert said["judge"]["prices"]["gpt-oss-120b"] == {"input": 0.25, "output": 2.0}


def test_the_document_has_every_value(cli: Cli) -> None:
    configure(ALL)
    found = cli("config", "--json").json
    assert found["path"] == str(configuration_path())
    assert found["found"] is True
    assert (found["annotator"], found["theme"]) == ("zoë", "nord")
    assert found["keys"]["preset"] == "plain"
    assert found["keys"]["actions"]["annotate.note"] == ["ctrl+n", "f4"]
    assert found["keys"]["actions"]["annotate.accept"] == ["a"]
    assert found["judge"]["model"] == "small"
    assert found["judge"]["redact"] == str(configuration_path().parent / "names.txt")
    assert found["judge"]["prices"] == {'a "b"': {"input": 0.25, "output": 2.0}}
    assert found["problems"] == []


def test_problems_are_reported_and_set_the_exit_code(cli: Cli) -> None:
    configure('annotator = "zoë"\ntheem = "nord"\n')
    done = cli("config")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert f"{configuration_path()}:2: there is no setting theem; did you mean theme?" in done.err
    assert 'annotator = "zoë"' in done.out
    (problem,) = cli.refused("config", "--json").json["problems"]
    assert (problem["name"], problem["line"]) == ("theem", 2)
    cli.refused("config", "--blind", code=2)

"""``config``: every setting with its value, and problems of the file."""

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
def temporary_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("text", ["", ALL], ids=["nothing set", "all set"])
def test_the_printed_configuration_has_the_same_settings(cli: Cli, text: str) -> None:
    configure(text)
    original = read_configuration()
    result = cli("config")
    assert (result.code, result.err) == (0, "")
    assert str(configuration_path()) in result.out
    for field in setting_fields():
        assert f"# {field.setting.about}" in result.out
    assert all(f'"{action.id}" = ' in result.out for action in ACTIONS)
    configure(result.out)
    printed = read_configuration()
    assert printed.problems == original.problems == ()
    assert replace(printed, lines={}) == replace(original, lines={})


def test_commented_settings_are_valid(cli: Cli) -> None:
    lines = cli("config").out.splitlines()
    settings = [line.removeprefix("# ") for line in lines if SETTING.match(line)]
    values = tomllib.loads("\n".join(settings))
    assert values["keys"]["annotate.accept"] == ["a"]
    assert values["judge"]["concurrency"] == 8
    assert values["judge"]["prices"]["gpt-oss-120b"] == {"input": 0.25, "output": 2.0}


def test_the_document_has_every_value(cli: Cli) -> None:
    configure(ALL)
    document = cli("config", "--json").json
    assert document["path"] == str(configuration_path())
    assert document["found"] is True
    assert (document["annotator"], document["theme"]) == ("zoë", "nord")
    assert document["keys"]["preset"] == "plain"
    assert document["keys"]["actions"]["annotate.note"] == ["ctrl+n", "f4"]
    assert document["keys"]["actions"]["annotate.accept"] == ["a"]
    assert document["judge"]["model"] == "small"
    assert document["judge"]["redact"] == str(configuration_path().parent / "names.txt")
    assert document["judge"]["prices"] == {'a "b"': {"input": 0.25, "output": 2.0}}
    assert document["problems"] == []


def test_problems_are_reported_and_set_the_exit_code(cli: Cli) -> None:
    configure('annotator = "zoë"\ntheem = "nord"\n')
    result = cli("config")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert f"{configuration_path()}:2: there is no setting theem; did you mean theme?" in result.err
    assert 'annotator = "zoë"' in result.out
    (problem,) = cli.refused("config", "--json").json["problems"]
    assert (problem["name"], problem["line"]) == ("theem", 2)
    cli.refused("config", "--blind", code=2)

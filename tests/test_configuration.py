"""``config.toml``: its settings, its problems and its page; TOML that is nested too deeply."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from mast_tui.configuration import (
    DEFAULT_BASE_URL,
    ConfigurationError,
    JudgeConfiguration,
    Prices,
    prices_to_write,
    read_configuration,
    read_judge_configuration,
    setting_fields,
    with_theme,
)
from mast_tui.errors import MastError
from mast_tui.exchange.crosswalk import read_crosswalk
from mast_tui.exchange.exporters.datasheet import read_datasheet
from mast_tui.taxonomy.loader import load_taxonomy
from mast_tui.toml_text import MOST_LEVELS, parse_toml
from mast_tui.ui.actions.registry import checked

ROOT = Path(__file__).resolve().parent.parent


def written(folder: Path, text: str) -> Path:
    path = folder / "config.toml"
    path.write_text(text, "utf-8")
    return path


def test_settings_that_are_left_out_have_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert read_judge_configuration(path) == JudgeConfiguration()
    written(tmp_path, 'annotator = "alice"\n[keys]\n"annotate.accept" = "y"\n')
    assert read_judge_configuration(path).model is None
    # Mistakes in other settings do not matter to a judge, and bytes are an error.
    written(tmp_path, 'theme = 3\nkees = 1\n[judge]\nmodel = "m"\n')
    assert read_judge_configuration(path).model == "m"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match=r"config\.toml"):
        read_judge_configuration(path)


def test_all_settings_of_a_judge_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[judge]\nmodel = "small"\nbase_url = "http://127.0.0.1:8000/v1"\nconcurrency = 4\n'
        'key_variable = "LAB_KEY"\nredact = "names.txt"\nallow_http = true\n'
        "temperature = 0\nsamples = 3\nwindow_tokens = 9000\nanswer_tokens = 16000\ntimeout = 90\n"
        "[judge.body]\nreasoning_effort = 'low'\nnested = {a = [1, true]}\n"
        '[judge.headers]\nx-team = "sre"\nx-token = "$LAB_TOKEN"\n\n'
        '[judge.prices."small"]\ninput = 0.25\noutput = 2\n',
    )
    configuration = read_judge_configuration(path)
    assert configuration.model == "small"
    assert configuration.base_url == "http://127.0.0.1:8000/v1"
    assert (configuration.concurrency, configuration.key_variable) == (4, "LAB_KEY")
    assert configuration.allow_http
    assert configuration.redact == tmp_path / "names.txt", "a file beside the configuration"
    assert (configuration.temperature, configuration.samples, configuration.timeout) == (
        0.0,
        3,
        90.0,
    )
    assert (configuration.window_tokens, configuration.answer_tokens) == (9_000, 16_000)
    assert configuration.body == {"reasoning_effort": "low", "nested": {"a": [1, True]}}
    assert configuration.prices["small"] == Prices(0.25, 2.0)
    assert configuration.prices["small"].cost(1_000_000, 500_000) == pytest.approx(1.25)


def test_a_header_takes_its_secret_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = JudgeConfiguration(headers={"x-team": "sre", "x-token": "$LAB_TOKEN"})
    with pytest.raises(ConfigurationError, match="LAB_TOKEN, which is not set"):
        configuration.sent_headers()
    monkeypatch.setenv("LAB_TOKEN", "t-1")
    assert configuration.sent_headers() == {"x-team": "sre", "x-token": "t-1"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[judge\n", "config.toml"),
        ("judge = 3\n", "not a table"),
        ("[judge]\nmodel = 3\n", "model must be text"),
        ("[judge]\nconcurrency = 0\n", "concurrency"),
        ("[judge]\nconcurrency = true\n", "concurrency"),
        ('[judge]\nkey_variable = "sk-123"\n', "environment variable"),
        ('[judge]\napi_key = "sk-123"\n', "environment variable"),
        ("[judge]\nanswer_tokens = 1\n", "answer_tokens must be a number of tokens from 200"),
        ("[judge]\ntemperature = 3\n", "temperature must be a number from 0 to 2"),
        ("[judge]\ntimeout = true\n", "timeout must be a number"),
        ("[judge]\nbody = 3\n", "body must be a table"),
        ('[judge.body]\nmodel = "x"\n', "body.model must be left out: it is always sent"),
        ("[judge.body]\nday = 2026-01-01\n", "dates"),
        ("[judge.headers]\nx-team = 3\n", "headers.x-team must be text"),
        ('[judge.headers]\nx-team = "a\\nb"\n', "headers.x-team must be text"),
        ('[judge.prices."m"]\ninput = 1\n', "output"),
        ('[judge.prices."m"]\ninput = -1\noutput = 2\n', "input"),
        ('[judge.prices."m"]\ninput = nan\noutput = 2\n', "input"),
        ('[judge]\nallow_http = "yes"\n', "allow_http"),
        ("[judge]\nprices = 2\n", "prices must be a table"),
    ],
)
def test_mistakes_in_judge_settings_are_reported_with_the_file(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_judge_configuration(written(tmp_path, text))
    assert message in str(caught.value)
    assert "config.toml" in str(caught.value)
    assert "sk-123" not in str(caught.value)


def test_the_address_comes_from_the_option_the_environment_or_the_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    table = JudgeConfiguration(base_url="http://file/v1")
    assert JudgeConfiguration().address() == DEFAULT_BASE_URL
    assert table.address() == "http://file/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://environment/v1")
    assert table.address() == "http://environment/v1"
    assert table.address("http://given/v1") == "http://given/v1"


@pytest.mark.parametrize("model", ["gpt-small", 'a "b" \\ c', "org/model:tag"])
def test_the_suggested_lines_of_a_price_are_valid(tmp_path: Path, model: str) -> None:
    configuration = read_judge_configuration(written(tmp_path, prices_to_write(model)))
    assert configuration.prices.keys() == {model}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('\ntheem = "textual-light"\n', 2, "did you mean theme?"),
        ("answer = 42\n", 1, "there are annotator, judge"),
        ('annotator = "a"\n\n[judge]\nmodle = "m"\n', 4, "did you mean model?"),
        ('[judge]\nmodel = "m"\nconcurrency = 0\n', 3, "concurrency"),
        ('[judge]\n\n[judge.prices."a.b"]\ninput = 1\noutput = -1\n', 5, "output"),
        ('judge.model = "m"\njudge.concurrency = 0\n', 2, "concurrency"),
        ('judge = { model = "m", concurrency = 0 }\n', 1, "concurrency"),
        ('keys = "plane"\n', 1, "did you mean plain?"),
        ('[keys]\npreset = "emacs"\n', 2, "there are plain, vim"),
        ('annotator = "a"\ntheme = \n', 2, "the file is not used"),
    ],
)
def test_mistakes_are_reported_with_their_line_and_a_remedy(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    path = written(tmp_path, text)
    (problem,) = read_configuration(path).problems
    assert problem.line == line
    assert message in problem.text
    assert (read_configuration(path).problem or "").startswith(f"{path}:{line}: ")


def test_several_mistakes_are_reported_in_order(tmp_path: Path) -> None:
    configuration = read_configuration(
        written(tmp_path, "[judge]\nmodel = 3\nredact = 3\n[kees]\n")
    )
    assert [problem.line for problem in configuration.problems] == [2, 3, 4]
    assert "; line 3: [judge] redact must be text" in (configuration.problem or "")


def test_the_page_describes_every_setting_and_its_examples_are_valid(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "configuration.md").read_text("utf-8")
    for field in setting_fields():
        about = field.setting.about.replace("|", "\\|")
        default = f"`{field.example}`" if field.has_default else ""
        assert f"| `{'.'.join(field.dotted_key)}` | {default} | {about} |" in page
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(examples) > 1
    for example in examples:
        configuration = read_configuration(written(tmp_path, example))
        assert configuration.problems == checked(configuration).problems == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 'theme = "nord"\n'),
        ('annotator = "a"\n', 'annotator = "a"\ntheme = "nord"\n'),
        ('theme = "x"  # mine\n[keys]\n', 'theme = "nord"\n[keys]\n'),
        ('# a\n[judge]\nmodel = "m"\n', '# a\ntheme = "nord"\n\n[judge]\nmodel = "m"\n'),
        ('[judge]\ntheme = "no"\n', 'theme = "nord"\n\n[judge]\ntheme = "no"\n'),
        ("a = [\n[1],\n]\n[keys]\n", 'a = [\n[1],\n]\ntheme = "nord"\n\n[keys]\n'),
    ],
)
def test_a_theme_is_added_to_the_file(text: str, expected: str) -> None:
    assert with_theme(text, "nord") == expected


DEEP = {
    "brackets": f"x = {'[' * 20_000}",
    "closed": f"x = {'[' * 3000}{']' * 3000}",
    "braces": f"x = {'{a = ' * 3000}1{'}' * 3000}",
    "key": f"{'.'.join('a' * 20_000)} = 1",
    "table": f"[{'.'.join('a' * 300)}]",
    "lists": f"x = {'[' * 60}{']' * 60}",
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_nesting_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(tomllib.TOMLDecodeError, match="nested more than 50 deep"):
        parse_toml(text)
    file = tmp_path / "x.toml"
    file.write_text(text)
    for read in (load_taxonomy, read_crosswalk, read_datasheet):
        with pytest.raises(MastError, match=r"x\.toml.*nested more than 50 deep"):
            read(file)
    (problem,) = read_configuration(file).problems
    assert "nested more than 50 deep" in str(problem)
    with pytest.raises(MastError, match="nested more than 50 deep"):
        with_theme(text, "nord")


def test_ordinary_nesting_is_read() -> None:
    levels = MOST_LEVELS - 1
    assert parse_toml(f"x = {'[' * levels}{']' * levels}")
    prose = "a.b.c. " * 100
    assert parse_toml(f'x = """\n{prose}\n"""') == {"x": f"{prose}\n"}


def test_a_crosswalk_in_deep_json_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text("[" * 200_000)
    with pytest.raises(MastError, match="nested too deeply"):
        read_crosswalk(file)

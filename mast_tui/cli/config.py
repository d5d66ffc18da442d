"""``mast-tui config``: print all settings, and report problems of the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import asdict

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import print_json
from mast_tui.configuration import (
    Configuration,
    ConfigurationError,
    DottedKey,
    prices_to_write,
    read_configuration,
    setting_fields,
)

if TYPE_CHECKING:
    from mast_tui.ui.actions.registry import KeySetting

_NO_LABELS_REFUSAL: Final = "it shows the configuration, not labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRequest:
    """The options of ``mast-tui config``."""

    common: CommonOptions = options.common(
        **dict.fromkeys(CommonOptions._fields, _NO_LABELS_REFUSAL)
    )
    as_json: bool = options.as_json()


@click.command()
@options.takes(ConfigRequest)
def config_command(request: ConfigRequest) -> None:
    """Print every setting with its value, and the path of config.toml.

    The output is a valid configuration file: defaults and examples are comments. A wrong setting is
    reported with its line, and the exit code is 1; the app still starts and uses the default of a
    wrong setting.

    Example: mast-tui config
    """
    configuration, keys = settings_in_use()
    if request.as_json:
        print_json(_configuration_json(configuration, keys))
    else:
        click.echo("\n".join(_configuration_lines(configuration, keys)))
    if configuration.problem is not None:
        raise ConfigurationError(configuration.problem)


def settings_in_use() -> tuple[Configuration, Sequence[KeySetting]]:
    """Read and check the configuration, and return it with the keys of all actions."""
    # This imports Textual, so it is slow.
    from mast_tui.ui.actions.registry import checked, key_settings

    configuration = checked(read_configuration())
    return configuration, key_settings(configuration)


def _setting_value(configuration: Configuration, path: DottedKey) -> Any:
    (*table, name) = path
    return getattr(configuration.judge if table == ["judge"] else configuration, name)


def _configuration_json(
    configuration: Configuration, keys: Sequence[KeySetting]
) -> dict[str, object]:
    judge = asdict(configuration.judge)
    redact = configuration.judge.redact
    prices = {
        model: {"input": price.input, "output": price.output}
        for model, price in configuration.judge.prices.items()
    }
    dotted_keys = (field.dotted_key for field in setting_fields())
    settings_outside_tables = {
        dotted_key[0]: _setting_value(configuration, dotted_key)
        for dotted_key in dotted_keys
        if len(dotted_key) == 1
    }
    return {
        "path": str(configuration.path),
        "found": configuration.path.exists(),
        **settings_outside_tables,
        "keys": {
            "preset": configuration.preset,
            "actions": {setting.name: setting.keys for setting in keys},
        },
        "judge": {**judge, "redact": None if redact is None else str(redact), "prices": prices},
        "problems": [
            {"name": ".".join(problem.dotted_key), "line": problem.line, "message": problem.text}
            for problem in configuration.problems
        ],
    }


def _configuration_lines(configuration: Configuration, keys: Sequence[KeySetting]) -> Iterator[str]:
    """Yield the lines of a configuration file, with a comment on each setting."""
    missing_text = "" if configuration.path.exists() else " (this file does not exist yet)"
    yield f"# {configuration.path}{missing_text}"
    current_table = ""
    for field in setting_fields():
        # A setting is in one table or in none, so there is at most one table name.
        (*tables, name) = field.dotted_key
        table = "".join(tables)
        if table != current_table:
            yield f"\n[{table}]"
            current_table = table
        explanation = field.setting.about
        value = _setting_value(configuration, field.dotted_key)
        if name == "prices":
            yield from _price_lines(configuration, explanation)
            continue
        yield f"# {explanation}{'' if field.has_default else ' For example:'}"
        is_default = value == field.default
        yield f"# {name} = {field.example}" if is_default else f"{name} = {_toml_text(value)}"
        if field.dotted_key == ("keys", "preset"):
            yield from map(_key_line, keys)


def _key_line(setting: KeySetting) -> str:
    comment = "" if setting.is_custom else "# "
    return f'{comment}"{setting.name}" = {_toml_text(list(setting.keys))}  # {setting.help}'


def _price_lines(configuration: Configuration, explanation: str) -> Iterator[str]:
    """Yield the price of each model as a TOML table; an example if there is none."""
    yield f"\n# {explanation}"
    for model, price in configuration.judge.prices.items():
        yield f"[judge.prices.{_toml_text(model)}]"
        yield f"input = {price.input}\noutput = {price.output}"
    if not configuration.judge.prices:
        yield from (f"# {line}" for line in prices_to_write("gpt-oss-120b").splitlines())


def _toml_text(value: object) -> str:
    """Return a value as TOML, with escapes for characters that could control a terminal.

    Except for tables and these escapes, TOML and JSON write these values alike.
    """
    if isinstance(value, Mapping):
        entries = (f"{_toml_text(name)} = {_toml_text(item)}" for name, item in value.items())
        return f"{{ {', '.join(entries)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_text, value))}]"
    text = json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08X}" for char in text)

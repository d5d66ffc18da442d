"""``mast-tui config``: every setting with its value, and what is wrong in the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.common import print_json
from mast_tui.configuration import (
    Configuration,
    ConfigurationError,
    Place,
    prices_to_write,
    read_configuration,
    setting_fields,
)

if TYPE_CHECKING:
    from mast_tui.ui.actions.keymap import KeySetting

_NOT_LABELS: Final = "it looks at the configuration, not at labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRequest:
    """The options of ``mast-tui config``."""

    common: CommonOptions = options.common(**dict.fromkeys(CommonOptions._fields, _NOT_LABELS))
    as_json: bool = options.as_json()


@click.command()
@options.takes(ConfigRequest)
def config_command(request: ConfigRequest) -> None:
    """Print every setting with its value, and where the file lies.

    What is printed is a file of its own: what has its default, or only an example, is behind a #.
    Where something in the file is wrong it is told, with its line, and the exit code is 1; the app
    starts all the same and uses the defaults of what is wrong.
    """
    found, keys = settings_in_use()
    if request.as_json:
        print_json(_document(found, keys))
    else:
        click.echo("\n".join(_lines(found, keys)))
    if found.problem is not None:
        raise ConfigurationError(found.problem)


def settings_in_use() -> tuple[Configuration, Sequence[KeySetting]]:
    """Read the configuration, with the names of keys and themes checked, and the keys that hold."""
    # It brings Textual, of which it knows the keys and themes; other commands do without.
    from mast_tui.ui.actions.keymap import checked, key_settings

    found = checked(read_configuration())
    return found, key_settings(found)


def _value(found: Configuration, place: Place) -> Any:
    (*table, name) = place
    return getattr(found.judge if table == ["judge"] else found, name)


def _document(found: Configuration, keys: Sequence[KeySetting]) -> dict[str, object]:
    judge = found.judge._asdict()
    redact = found.judge.redact
    prices = {
        model: {"input": price.input, "output": price.output}
        for model, price in found.judge.prices.items()
    }
    return {
        "path": str(found.path),
        "found": found.path.exists(),
        "annotator": found.annotator,
        "theme": found.theme,
        "keys": {"preset": found.preset, "actions": {one.name: one.keys for one in keys}},
        "judge": {**judge, "redact": None if redact is None else str(redact), "prices": prices},
        "problems": [
            {"name": ".".join(one.place), "line": one.line, "message": one.text}
            for one in found.problems
        ],
    }


def _lines(found: Configuration, keys: Sequence[KeySetting]) -> Iterator[str]:
    """The configuration as a file, with a comment on each setting."""
    yield f"# {found.path}{'' if found.path.exists() else ' (there is no such file yet)'}"
    table = ""
    for field in setting_fields():
        (*around, name) = field.place
        if (head := "".join(around)) != table:
            yield f"\n[{head}]"
            table = head
        about = field.setting.about
        value = _value(found, field.place)
        if name == "prices":
            yield from _price_lines(found, about)
            continue
        yield f"# {about}{'' if field.has_default else ' For example:'}"
        is_default = value == field.default
        yield f"# {name} = {field.example}" if is_default else f"{name} = {_toml(value)}"
        if field.place == ("keys", "preset"):
            yield from map(_key_line, keys)


def _key_line(one: KeySetting) -> str:
    return f'{"" if one.is_custom else "# "}"{one.name}" = {_toml(list(one.keys))}  # {one.help}'


def _price_lines(found: Configuration, about: str) -> Iterator[str]:
    yield f"\n# {about}"
    for model, price in found.judge.prices.items():
        yield prices_to_write(model).partition("\n")[0]
        yield f"input = {price.input}\noutput = {price.output}"
    if not found.judge.prices:
        yield from (f"# {line}" for line in prices_to_write("gpt-oss-120b").splitlines())


def _toml(value: object) -> str:
    """A value in TOML: that of JSON, but for tables."""
    if isinstance(value, Mapping):
        inner = (f"{json.dumps(name)} = {_toml(one)}" for name, one in value.items())
        return f"{{ {', '.join(inner)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)

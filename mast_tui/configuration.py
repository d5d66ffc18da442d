"""The settings in ``config.toml``, and their reader.

The fields of ``Configuration`` and ``JudgeConfiguration`` describe each setting once: its type, its
purpose and its default. The names of actions, keys and themes are checked in
mast_tui/ui/actions/registry.py.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, structs

from mast_tui.errors import MastError
from mast_tui.toml_text import parse_toml

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
BASE_URL_VARIABLE: Final = "OPENAI_BASE_URL"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
CONCURRENCY: Final = 8
WINDOW_TOKENS: Final = 24_000
ANSWER_TOKENS: Final = 4_000
TIMEOUT: Final = 600.0
BATCH_PRICE: Final = 0.5
"""The defaults of the settings. The price of a batch is a share of the usual price."""

PRESETS: Final = MappingProxyType(
    {
        "vim": "arrows and letters such as j, k, g and G (the default)",
        "plain": "arrows, page keys, Home and End; no letter moves anything",
    }
)
"""The descriptions of the sets of keys, by name."""

_PRESETS_ABOUT: Final = (
    f"{'; '.join(f'{name}: {about}' for name, about in PRESETS.items())}. "
    'If you set no keys of your own, you can write keys = "plain".'
)


class ConfigurationError(MastError):
    """A configuration that cannot be used; the message names the line and the correction."""


class Setting(Struct, frozen=True):
    """The description of one setting.

    Attributes:
        about: The purpose, in a line.
        expected: The valid values, for messages; empty for a table.
        example: A value in TOML, if the default is not one.
        dotted_key: The key in the file, if it is in another table than the settings around it. It
            ends with the name of the field.
        is_default: True if the example is the default.
        item: The valid values in a table.
    """

    about: str
    expected: str
    example: str = ""
    dotted_key: tuple[str, ...] = ()
    is_default: bool = False
    item: str = ""


_BodyName = Annotated[str, Meta(pattern=r"^(?!(?:model|messages|response_format|stream)\Z)")]
_HeaderName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,100}\Z")]
_HeaderValue = Annotated[str, Meta(pattern=r"^[\x20-\x7e]{1,8000}\Z")]
_Text = Annotated[str, Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=1)]
_Tokens = Annotated[int, Meta(ge=200, le=2_000_000)]
_Price = Annotated[float, Meta(ge=0, lt=1e9)]

_TEXT: Final = 'text in quotes, such as "x"'
_COUNT: Final = "a whole number from 1, such as 8"
_TOKENS: Final = "a number of tokens from 200 to 2,000,000"
_FLAG: Final = "true or false"


class Prices(Struct, frozen=True):
    """The prices of a model per million input and output tokens, in the user's currency.

    ``cached`` is the price of input tokens that the server has kept from an earlier request; None
    if they cost the same as other input tokens.
    """

    input: _Price
    output: _Price
    cached: _Price | None = None

    def cost(self, tokens_in: int, tokens_out: int, tokens_cached: int = 0) -> float:
        """Return the cost of a number of tokens.

        Args:
            tokens_in: The input tokens, with the cached ones.
            tokens_out: The output tokens.
            tokens_cached: The cached input tokens.
        """
        cached_price = self.input if self.cached is None else self.cached
        tokens_uncached = tokens_in - tokens_cached
        cost = tokens_uncached * self.input + tokens_cached * cached_price
        return (cost + tokens_out * self.output) / 1e6

    def times(self, factor: float) -> Prices:
        """Return the prices multiplied by a factor."""
        cached = None if self.cached is None else self.cached * factor
        return Prices(self.input * factor, self.output * factor, cached)


class JudgeConfiguration(Struct, frozen=True):
    """The ``[judge]`` table."""

    model: Annotated[
        _Text | None, Setting("The model that J and mast-tui judge ask.", _TEXT, '"gpt-oss-120b"')
    ] = None
    base_url: Annotated[
        _Text | None,
        Setting(
            f"The address of its server; {BASE_URL_VARIABLE} overrides it.",
            _TEXT,
            f'"{DEFAULT_BASE_URL}"',
            is_default=True,
        ),
    ] = None
    concurrency: Annotated[_Count, Setting("The number of requests at a time.", _COUNT)] = (
        CONCURRENCY
    )
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Setting("The temperature. Default: the server's.", "a number from 0 to 2", "0.0"),
    ] = None
    samples: Annotated[_Count, Setting("Answers for each trace.", _COUNT)] = 1
    window_tokens: Annotated[_Tokens, Setting("Tokens of a trace in one request.", _TOKENS)] = (
        WINDOW_TOKENS
    )
    answer_tokens: Annotated[
        _Tokens,
        Setting(
            "The most tokens of an answer; a retry after a cut answer gets more.",
            _TOKENS,
        ),
    ] = ANSWER_TOKENS
    timeout: Annotated[
        Annotated[float, Meta(ge=1, le=86_400)],
        Setting(
            "The seconds to wait for an answer.",
            "a number from 1 to 86400",
            f"{TIMEOUT:g}",
            is_default=True,
        ),
    ] = TIMEOUT
    hints: Annotated[
        bool,
        Setting("Send the model the findings of the rules, such as repeated calls.", _FLAG),
    ] = True
    verify: Annotated[
        bool,
        Setting(
            "Ask the model again about each finding; drop findings that it does not confirm.",
            _FLAG,
        ),
    ] = False
    artefacts: Annotated[
        bool,
        Setting("Send the model the final patch and the test results.", _FLAG),
    ] = False
    body: Annotated[
        Mapping[_BodyName, Any],
        Setting(
            "Further fields of each request: [judge.body] with lines such as seed = 7.",
            "",
            item="left out: it is always sent as the judge needs it",
        ),
    ] = {}
    headers: Annotated[
        Mapping[_HeaderName, _HeaderValue],
        Setting(
            'Headers of each request: [judge.headers]; "$NAME" is an environment variable.',
            "",
            item='text, such as "x" or "$VARIABLE"',
        ),
    ] = {}
    key_variable: Annotated[
        Annotated[str, Meta(pattern=r"^[^\W\d]\w*\Z")],
        Setting(
            "The environment variable with the key, never the key itself.",
            f"the name of an environment variable, such as {KEY_VARIABLE}",
        ),
    ] = KEY_VARIABLE
    redact: Annotated[
        Path | None,
        Setting(
            "A file with patterns to mask in requests, one per line; its path is relative to "
            "config.toml.",
            _TEXT,
            '"patterns.txt"',
        ),
    ] = None
    allow_http: Annotated[
        bool, Setting("Allow http:// to another machine, without encryption.", _FLAG)
    ] = False
    batch_price: Annotated[
        Annotated[float, Meta(ge=0, le=10)],
        Setting(
            "The price of a request in a batch, as a share of the normal price.",
            "a number from 0 to 10",
        ),
    ] = BATCH_PRICE
    prices: Annotated[
        Mapping[str, Prices],
        Setting(
            'The prices of models per million tokens: [judge.prices."MODEL"] with input and '
            "output, and cached for cached input.",
            "",
            item="a table of prices per million tokens, such as input = 0.25 and output = 2",
        ),
    ] = {}

    def sent_headers(self) -> dict[str, str]:
        """Return the headers; a value such as ``$TOKEN`` is read from the environment.

        Raises:
            ConfigurationError: A variable is not set.
        """
        headers = {}
        for name, value in self.headers.items():
            if value.startswith("$"):
                secret = os.environ.get(value[1:], "").strip()
                if not secret:
                    raise ConfigurationError(
                        f"[judge.headers] {name} takes its value from {value[1:]}, which is not set"
                    )
                value = secret
            headers[name] = value
        return headers

    def address(self, option: str | None = None) -> str:
        """Return the address of the model's server: the option, the environment or this table."""
        address = option or os.environ.get(BASE_URL_VARIABLE, "").strip() or self.base_url
        return address or DEFAULT_BASE_URL


DottedKey = tuple[str, ...]
"""A key of the file as a path, such as ``("judge", "model")``; empty for the file itself."""


class SettingProblem(Struct, frozen=True):
    """An unusable value in the file; ``line`` counts from 1, or is None if unknown."""

    dotted_key: DottedKey
    text: str
    line: int | None


class Configuration(Struct, frozen=True):
    """The values of ``config.toml``, with defaults for missing and wrong ones.

    Attributes:
        path: The path of the file, which need not exist.
        annotator: The name offered at the first start of a workspace.
        theme: The name of a theme of Textual.
        preset: One of ``PRESETS``.
        keys: Keys by the id of their action.
        judge: The judge that asks a model.
        problems: The unusable values, in the order of the file.
        lines: The line of each dotted key, from 1.
    """

    path: Path
    annotator: Annotated[
        _Text | None,
        Setting("The name offered at the first start of a workspace.", _TEXT, '"alice"'),
    ] = None
    theme: Annotated[
        _Text | None,
        Setting(
            "The colours; F9 in the app shows and saves themes.",
            _TEXT,
            '"textual-dark"',
            is_default=True,
        ),
    ] = None
    preset: Annotated[
        str,
        Setting(
            _PRESETS_ABOUT,
            "the name of a preset, or a table: write [keys] and below it one line per action",
            dotted_key=("keys", "preset"),
        ),
    ] = "vim"
    keys: Mapping[str, tuple[str, ...]] = {}
    judge: JudgeConfiguration = JudgeConfiguration()
    problems: tuple[SettingProblem, ...] = ()
    lines: Mapping[DottedKey, int] = {}

    @property
    def problem(self) -> str | None:
        """All problems in one line, with the path of the file; None if there are none."""
        return _problem_text(self.path, self.problems) if self.problems else None

    def line_of(self, dotted_key: DottedKey) -> int | None:
        """Return the line of a key, or of its table if the key is not in the file."""
        while dotted_key and dotted_key not in self.lines:
            dotted_key = dotted_key[:-1]
        return self.lines.get(dotted_key)

    def with_problems(
        self, texts_by_key: Iterable[tuple[DottedKey, str]], **values: Any
    ) -> Configuration:
        """Return a copy with additional problems, sorted by line, and with new values.

        Args:
            texts_by_key: The dotted key and the text of each new problem.
            values: The new values of other fields.
        """
        added = [SettingProblem(key, text, self.line_of(key)) for key, text in texts_by_key]
        problems = sorted([*self.problems, *added], key=lambda problem: problem.line or 0)
        return structs.replace(self, problems=tuple(problems), **values)


class SettingField(Struct, frozen=True):
    """A setting with its key in the file, its type and its default."""

    dotted_key: DottedKey
    type: Any
    setting: Setting
    default: Any

    @property
    def example(self) -> str:
        """The default in TOML, or an example if there is no default."""
        return self.setting.example or ("{}" if self.default == {} else json.dumps(self.default))

    @property
    def has_default(self) -> bool:
        """True if the example is the default."""
        return self.setting.is_default or not self.setting.example


@cache
def setting_fields() -> Sequence[SettingField]:
    """Return all settings except the keys of actions; top-level settings come first."""
    tables: tuple[tuple[Struct, DottedKey], ...] = (
        (Configuration(Path()), ()),
        (JudgeConfiguration(), ("judge",)),
    )
    fields = []
    for defaults, table_key in tables:
        for name, field_type in get_type_hints(type(defaults), include_extras=True).items():
            for setting in getattr(field_type, "__metadata__", ()):
                if isinstance(setting, Setting):
                    dotted_key = setting.dotted_key or (*table_key, name)
                    default = getattr(defaults, name)
                    fields.append(SettingField(dotted_key, field_type, setting, default))
    return sorted(fields, key=lambda field: len(field.dotted_key) > 1)


class _InvalidValueError(Exception):
    """An invalid value; ``inner_key`` is its key inside the table of the setting."""

    def __init__(self, text: str, *inner_key: str) -> None:
        super().__init__(text)
        self.inner_key = inner_key


def _converted_value(field: SettingField, value: object) -> Any:
    """Convert a value of the file to the type of its setting.

    Raises:
        _InvalidValueError: The value cannot be used.
    """
    name = field.dotted_key[-1]
    setting = field.setting
    if isinstance(value, str):
        value = value.strip()
    # Only the setting of a table has an ``item``.
    if setting.item and isinstance(value, dict):
        return {key: _converted_item(field, key, item) for key, item in value.items()}
    if field.dotted_key == ("keys", "preset") and isinstance(value, str) and value not in PRESETS:
        raise _InvalidValueError(f'there is no preset "{value}"{name_hint(value, PRESETS)}')
    try:
        return convert(value, field.type, dec_hook=_convert_path)
    except ValidationError:
        head = ".".join(field.dotted_key)
        expected = setting.expected or f"a table: write [{head}] and a line for each value"
        raise _InvalidValueError(f"{name} must be {expected}") from None


def _converted_item(field: SettingField, key: str, item: object) -> Any:
    """Convert an item of a table to the type that its setting requires.

    Raises:
        _InvalidValueError: The item cannot be used.
    """
    name = f"{field.dotted_key[-1]}.{key}"
    try:
        ((_, value),) = convert({key: item}, field.type).items()
        json.dumps(item)  # raises TypeError for a date or time
    except ValidationError as error:
        # The message ends in "field `name`", or in a path such as "`$[...].name`".
        field_match = re.search(r"(?:field `|\[\.\.\.\]\.)(\w+)`", str(error))
        field_key = [field_match[1]] if field_match else []
        text = f"{name} must be {field.setting.item}"
        raise _InvalidValueError(text, key, *field_key) from None
    except TypeError as error:
        text = f"{name} must not contain dates or times, which JSON does not support"
        raise _InvalidValueError(text, key) from error
    return value


def _convert_path(kind: type, value: object) -> Path:
    return Path(convert(value, _Text)).expanduser()


def configuration_path() -> Path:
    """Return the path of ``config.toml`` in the user's configuration folder."""
    from platformdirs import user_config_path  # start-up: only this function needs it

    return user_config_path("mast-tui") / "config.toml"


def read_configuration(path: Path | None = None) -> Configuration:
    """Read the configuration. Missing and wrong values get defaults; wrong ones become problems.

    Args:
        path: The file; None for the user's own.
    """
    path = configuration_path() if path is None else path
    empty = Configuration(path)
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return empty
    except (OSError, UnicodeDecodeError) as error:
        return empty.with_problems([((), f"{error}; the file is not used")])
    import tomllib  # start-up: a user without settings does not need it

    try:
        data = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        line_match = re.search(r"at line (\d+)", str(error))
        lines: dict[DottedKey, int] = {(): int(line_match[1])} if line_match else {}
        return structs.replace(empty, lines=lines).with_problems(
            [((), f"{error}; the file is not used")]
        )
    return _configuration_from(structs.replace(empty, lines=_lines_by_key(text)), data)


def with_theme(text: str, theme: str) -> str:
    """Change the theme in the text of a ``config.toml``, and nothing else.

    Args:
        text: The text of the file; empty if there is none.
        theme: The theme's name.

    Raises:
        ConfigurationError: The text is not valid TOML.
    """
    import tomllib  # start-up: as in ``read_configuration``

    try:
        settings = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"config.toml is not valid; correct it first: {error}") from error
    lines = text.splitlines()
    setting = f'theme = "{theme}"'
    theme_line = _lines_by_key(text).get(("theme",))
    if theme_line is not None:
        lines[theme_line - 1] = setting
        return "\n".join([*lines, ""])
    # The new line must come before the heading of a table, or it would belong to that table. A line
    # that begins with a bracket may also be part of a value, so the result is parsed.
    headings = [index for index, line in enumerate(lines) if line.lstrip().startswith("[")]
    for heading in headings:
        new_text = "\n".join([*lines[:heading], setting, "", *lines[heading:], ""])
        if _parses_as(new_text, settings | {"theme": theme}):
            return new_text
    return "\n".join([*lines, setting, ""])


def _parses_as(text: str, settings: Mapping[str, object]) -> bool:
    """Return whether a text is TOML with exactly these settings."""
    import tomllib  # start-up: a start without a change of the theme does not need it

    try:
        return parse_toml(text) == settings
    except tomllib.TOMLDecodeError:
        return False


def read_judge_configuration(path: Path | None = None) -> JudgeConfiguration:
    """Read the ``[judge]`` table; a missing file or table gives the defaults.

    Raises:
        ConfigurationError: The file cannot be read, or a value of the table is wrong.
    """
    configuration = read_configuration(path)
    # A problem of the whole file has an empty key.
    problems = [
        problem for problem in configuration.problems if problem.dotted_key[:1] in {(), ("judge",)}
    ]
    if problems:
        raise ConfigurationError(_problem_text(configuration.path, problems))
    return configuration.judge


def prices_to_write(model: str) -> str:
    """Return example prices of a model as lines for ``config.toml``."""
    quoted = model.replace("\\", "\\\\").replace('"', '\\"')
    return f'[judge.prices."{quoted}"]\ninput = 0.25   # per million tokens\noutput = 2.00'


def _problem_text(path: Path, problems: Iterable[SettingProblem]) -> str:
    """Join problems to one line, after the path and the line of the first problem."""
    (first, *later_problems) = problems
    first_line = "" if first.line is None else f":{first.line}"
    texts = [
        f"line {problem.line}: {problem.text}" if problem.line else problem.text
        for problem in later_problems
    ]
    return f"{path}{first_line}: {'; '.join([first.text, *texts])}"


def name_hint(name: str, valid_names: Iterable[str], otherwise: str | None = None) -> str:
    """Return a hint for a message about an unknown name: a similar valid name, or all of them.

    Args:
        name: The unknown name.
        valid_names: The valid names.
        otherwise: The hint if no valid name is similar; None lists all names.
    """
    from difflib import get_close_matches  # start-up: only messages need it

    names = sorted(valid_names)
    near_names = get_close_matches(name, names, n=1)
    if near_names:
        return f"; did you mean {near_names[0]}?"
    return f"; {otherwise or 'there are ' + ', '.join(names)}"


def _configuration_from(empty: Configuration, data: Mapping[str, object]) -> Configuration:
    """Return a configuration with the valid values of a parsed file, and the problems of others."""
    problems: list[tuple[DottedKey, str]] = []
    values: dict[DottedKey, Any] = {}
    tables: dict[str, Mapping[str, object]] = {"": data}  # "" for settings outside of tables
    for name in ("keys", "judge"):
        table = data.get(name, {})
        if name == "keys" and not isinstance(table, dict):
            table = {"preset": table}
        if not isinstance(table, dict):
            problems.append(((name,), f"{name} is not a table; write [{name}] and lines below it"))
            table = {}
        tables[name] = table

    for field in setting_fields():
        (*table_key, name) = field.dotted_key
        table = tables["".join(table_key)]
        if name in table:
            try:
                values[field.dotted_key] = _converted_value(field, table[name])
            except _InvalidValueError as error:
                table_name = f"[{table_key[0]}] " if table_key else ""
                dotted_key = (*field.dotted_key, *error.inner_key)
                problems.append((dotted_key, f"{table_name}{error}"))

    setting_names = {field.dotted_key[0] for field in setting_fields()}
    for name in data.keys() - setting_names:
        problems.append(((name,), f"there is no setting {name}{name_hint(name, setting_names)}"))
    judge_names = set(JudgeConfiguration.__struct_fields__)
    for name in tables["judge"].keys() - judge_names:
        hint = "; put a key into an environment variable, never here" if "key" in name else ""
        text = f"[judge] has no setting {name}{hint or name_hint(name, judge_names)}"
        problems.append((("judge", name), text))

    keys: dict[str, tuple[str, ...]] = {}
    for action_key, value in _action_keys(tables["keys"]):
        action = ".".join(action_key)
        pressed = [value] if isinstance(value, str) else value
        if isinstance(pressed, list) and pressed and all(isinstance(key, str) for key in pressed):
            keys[action] = tuple(pressed)
        else:
            text = f'{action} needs a key such as "m" or "ctrl+n", or a list of keys'
            problems.append((("keys", *action_key), text))

    judge_values = {key[-1]: value for key, value in values.items() if key[0] == "judge"}
    other_values = {key[-1]: value for key, value in values.items() if key[0] != "judge"}
    if "redact" in judge_values:
        judge_values["redact"] = empty.path.parent / judge_values["redact"]
    return empty.with_problems(
        problems, keys=keys, judge=JudgeConfiguration(**judge_values), **other_values
    )


def _action_keys(table: Mapping[str, object]) -> Iterable[tuple[DottedKey, object]]:
    """Yield the dotted key of each action in ``[keys]``, and its value."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from (((name, inner_name), keys) for inner_name, keys in value.items())
        elif name != "preset":
            yield (name,), value


_NAME: Final = r"""(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_LINE: Final = rf"\s*(\[*)\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*[\]=]"


def _lines_by_key(text: str) -> dict[DottedKey, int]:
    """Find the first line of each dotted key and table in valid TOML."""
    lines: dict[DottedKey, int] = {}
    table: DottedKey = ()
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(_LINE, line)
        if match is None:
            continue
        brackets, name_text = match.groups()
        names = tuple(name.strip("\"'") for name in re.findall(_NAME, name_text))
        if brackets:
            table = names
        dotted_key = names if brackets else (*table, *names)
        # The first line of a key is also that of the tables around it.
        for length in range(1, len(dotted_key) + 1):
            lines.setdefault(dotted_key[:length], number)
    return lines

"""The settings of ``config.toml`` and their reader; cheap to import.

The fields of ``Configuration`` and ``JudgeConfiguration`` describe each setting once: its type, its
purpose and its default. Names of actions, keys and themes are known to the screens only;
mast_tui/ui/actions/keymap.py checks them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert

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
"""The defaults: concurrent requests, the tokens of a trace in a request and of an answer, seconds
for an answer, and the price of a batch as a share of the normal price."""

PRESETS: Final = MappingProxyType(
    {
        "vim": "arrows and letters: hjkl, g and G, d and b (the default)",
        "plain": "arrows, page keys, Home and End; no letter moves anything",
    }
)
"""Sets of keys by their names."""

_PRESETS_ABOUT: Final = (
    f"{'; '.join(f'{name}: {about}' for name, about in PRESETS.items())}. "
    'Without own keys also keys = "plain".'
)


class ConfigurationError(MastError):
    """The configuration cannot be used; the message says where it is wrong and what to write."""


class Setting(NamedTuple):
    """The description of one setting.

    Attributes:
        about: Its purpose, in one line.
        expected: The description of a valid value, for messages; empty for a table.
        example: A value in TOML, if the default is None.
        key_path: Its name with its table, if that is not the name of the field.
        is_default: Whether the example has the effect of the default.
        item: The description of a valid value in a table.
    """

    about: str
    expected: str
    example: str = ""
    key_path: tuple[str, ...] = ()
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
    """The prices of a model per million tokens, in and out, in the currency of the bill.

    ``cached`` is the price of input tokens that the server has cached, None if it is the same.
    """

    input: _Price
    output: _Price
    cached: _Price | None = None

    def cost(self, tokens_in: int, tokens_out: int, tokens_cached: int = 0) -> float:
        """Return the cost of a number of tokens.

        Args:
            tokens_in: The tokens in, including cached ones.
            tokens_out: The tokens out.
            tokens_cached: The cached ones of the tokens in.
        """
        cached_price = self.input if self.cached is None else self.cached
        new = tokens_in - tokens_cached
        cost = new * self.input + tokens_cached * cached_price + tokens_out * self.output
        return cost / 1e6

    def times(self, factor: float) -> Prices:
        """Return the prices multiplied by a factor."""
        cached = None if self.cached is None else self.cached * factor
        return Prices(self.input * factor, self.output * factor, cached)


class JudgeConfiguration(NamedTuple):
    """The ``[judge]`` table."""

    model: Annotated[
        _Text | None, Setting("The model that J and judge ask.", _TEXT, '"gpt-oss-120b"')
    ] = None
    base_url: Annotated[
        _Text | None,
        Setting(
            f"The address of its server; {BASE_URL_VARIABLE} goes before it.",
            _TEXT,
            f'"{DEFAULT_BASE_URL}"',
            is_default=True,
        ),
    ] = None
    concurrency: Annotated[_Count, Setting("Requests at a time.", _COUNT)] = CONCURRENCY
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Setting("The temperature; default: that of the server.", "a number from 0 to 2", "0.0"),
    ] = None
    samples: Annotated[_Count, Setting("Answers for each trace.", _COUNT)] = 1
    window_tokens: Annotated[_Tokens, Setting("Tokens of a trace in one request.", _TOKENS)] = (
        WINDOW_TOKENS
    )
    answer_tokens: Annotated[
        _Tokens,
        Setting(
            "Tokens of an answer at first; models that think get more.",
            _TOKENS,
        ),
    ] = ANSWER_TOKENS
    timeout: Annotated[
        Annotated[float, Meta(ge=1, le=86_400)],
        Setting(
            "Seconds to wait for an answer.",
            "a number from 1 to 86400",
            f"{TIMEOUT:g}",
            is_default=True,
        ),
    ] = TIMEOUT
    hints: Annotated[
        bool,
        Setting("Show the model what the rules counted, such as repeated calls.", _FLAG),
    ] = True
    verify: Annotated[
        bool,
        Setting(
            "Ask the model again about each finding, and drop what it takes back.",
            _FLAG,
        ),
    ] = False
    artefacts: Annotated[
        bool,
        Setting("Show the model the final patch and the test results.", _FLAG),
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
            "A file with patterns to mask in what is sent, one a line; relative to this file.",
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
            "The price of requests in batches, as a share of the usual one.",
            "a number from 0 to 10",
        ),
    ] = BATCH_PRICE
    prices: Annotated[
        Mapping[str, Prices],
        Setting(
            'What models cost per million tokens: [judge.prices."MODEL"] with input and output, '
            "and cached for cached input.",
            "",
            item="a table of prices per million tokens, such as input = 0.25 and output = 2",
        ),
    ] = {}

    def sent_headers(self) -> dict[str, str]:
        """Return the headers with the values of variables that they name, such as ``$TOKEN``.

        Raises:
            ConfigurationError: A variable is not set.
        """
        sent = {}
        for name, value in self.headers.items():
            if value.startswith("$"):
                secret = os.environ.get(value[1:], "").strip()
                if not secret:
                    raise ConfigurationError(
                        f"[judge.headers] {name} takes its value from {value[1:]}, which is not set"
                    )
                value = secret
            sent[name] = value
        return sent

    def address(self, requested: str | None = None) -> str:
        """Return the address of the model: the requested one, or from environment or table."""
        address = requested or os.environ.get(BASE_URL_VARIABLE, "").strip() or self.base_url
        return address or DEFAULT_BASE_URL


KeyPath = tuple[str, ...]
"""A name in the file, such as ``("judge", "model")``; empty for the file itself."""


class SettingProblem(NamedTuple):
    """A value in the file that is not used, with the reason; ``line`` counts from 1."""

    key_path: KeyPath
    text: str
    line: int | None


class Configuration(NamedTuple):
    """The values of ``config.toml``, with defaults for missing and wrong ones.

    Attributes:
        path: The path of the file, even if there is none.
        annotator: The name offered at the first start of a workspace.
        theme: The name of a theme of Textual.
        preset: One of ``PRESETS``.
        keys: Keys by the id of their action.
        judge: The judge that asks a model.
        problems: The problems in the order of the file.
        lines: The line of each key, from 1.
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
            "the name of a preset, or a table: write [keys] and below it one line an action",
            key_path=("keys", "preset"),
        ),
    ] = "vim"
    keys: Mapping[str, tuple[str, ...]] = {}
    judge: JudgeConfiguration = JudgeConfiguration()
    problems: tuple[SettingProblem, ...] = ()
    lines: Mapping[KeyPath, int] = {}

    @property
    def problem(self) -> str | None:
        """The path of the file and its problems in one line; None without problems."""
        return _problem_text(self.path, self.problems) if self.problems else None

    def line_of(self, key_path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest table around it; None if it has none."""
        while key_path and key_path not in self.lines:
            key_path = key_path[:-1]
        return self.lines.get(key_path)

    def without(self, wrong: Iterable[tuple[KeyPath, str]], **right: Any) -> Configuration:
        """Return the configuration with more problems, and with other values.

        Args:
            wrong: The key and the text of each problem.
            right: The new values by the names of fields.
        """
        more = [SettingProblem(path, text, self.line_of(path)) for path, text in wrong]
        problems = sorted([*self.problems, *more], key=lambda problem: problem.line or 0)
        return self._replace(problems=tuple(problems), **right)


class SettingField(NamedTuple):
    """A setting with its name in the file, its type and its default."""

    key_path: KeyPath
    type: Any
    setting: Setting
    default: Any

    @property
    def example(self) -> str:
        """The default in TOML, or an example if the default is None."""
        return self.setting.example or ("{}" if self.default == {} else json.dumps(self.default))

    @property
    def has_default(self) -> bool:
        """True if the example is the default."""
        return self.setting.is_default or not self.setting.example


@cache
def setting_fields() -> Sequence[SettingField]:
    """Return every setting except the actions in ``[keys]``."""
    tables: tuple[tuple[type[Any], KeyPath], ...] = (
        (Configuration, ()),
        (JudgeConfiguration, ("judge",)),
    )
    return [
        SettingField(
            setting.key_path or (*table, name), field_type, setting, kind._field_defaults[name]
        )
        for kind, table in tables
        for name, field_type in get_type_hints(kind, include_extras=True).items()
        for setting in getattr(field_type, "__metadata__", ())
        if isinstance(setting, Setting)
    ]


class _WrongError(Exception):
    """A value that cannot be used; ``key_path`` is its path below the setting."""

    def __init__(self, text: str, *key_path: str) -> None:
        super().__init__(text)
        self.key_path = key_path


def _value_of(field: SettingField, value: object) -> Any:
    """Return the value of a setting; raise ``_WrongError`` if it cannot be used."""
    name = field.key_path[-1]
    setting = field.setting
    if isinstance(value, str):
        value = value.strip()
    if setting.item and isinstance(value, dict):
        return {key: _item_of(field, key, item) for key, item in value.items()}
    if field.key_path == ("keys", "preset") and isinstance(value, str) and value not in PRESETS:
        raise _WrongError(f'there is no preset "{value}"{name_hint(value, PRESETS)}')
    try:
        return convert(value, field.type, dec_hook=_path_of)
    except ValidationError:
        head = ".".join(field.key_path)
        expected = setting.expected or f"a table: write [{head}] and a line for each value"
        raise _WrongError(f"{name} must be {expected}") from None


def _item_of(field: SettingField, key: str, item: object) -> Any:
    text = f"{field.key_path[-1]}.{key} must be {field.setting.item}"
    try:
        ((_, value),) = convert({key: item}, field.type).items()
        json.dumps(item)
    except ValidationError as error:
        inner = re.search(r"(?:field `|\[\.\.\.\]\.)(\w+)`", str(error))
        raise _WrongError(text, key, *([inner[1]] if inner else [])) from None
    except TypeError as error:
        text = f"{field.key_path[-1]}.{key} must not hold dates or times, which JSON does not know"
        raise _WrongError(text, key) from error
    return value


def _path_of(kind: type, value: object) -> Path:
    return Path(convert(value, _Text)).expanduser()


def configuration_path() -> Path:
    """Return the path of ``config.toml`` in the user's configuration folder."""
    from platformdirs import user_config_path  # nothing before the first frame needs it but this

    return user_config_path("mast-tui") / "config.toml"


def read_configuration(path: Path | None = None) -> Configuration:
    """Read the configuration; a missing file gives the defaults.

    Args:
        path: The file; None for the user's own.

    Returns:
        The configuration; whatever is wrong in the file is among its problems.
    """
    path = configuration_path() if path is None else path
    empty = Configuration(path)
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return empty
    except (OSError, UnicodeDecodeError) as error:
        return empty.without([((), f"{error}; nothing of it is used")])
    import tomllib  # start-up: a user without settings does not need it

    try:
        data = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        lines: dict[KeyPath, int] = {(): int(line[1])} if line else {}
        return empty._replace(lines=lines).without([((), f"{error}; nothing of it is used")])
    return _read(empty._replace(lines=_lines(text)), data)


def with_theme(text: str, theme: str) -> str:
    """Return the text of a ``config.toml`` with another theme and no other change.

    Args:
        text: The text of the file, empty if there is none.
        theme: The name of the theme.

    Raises:
        ConfigurationError: The text is no valid TOML.
    """
    import tomllib  # as above

    try:
        parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"config.toml has to be mended first: {error}") from error
    lines = text.splitlines()
    setting = f'theme = "{theme}"'
    number = _lines(text).get(("theme",))
    if number is not None:
        lines[number - 1] = setting
    else:
        heads = (index for index, line in enumerate(lines) if line.lstrip().startswith("["))
        head = next(heads, None)
        if head is None:
            lines.append(setting)
        else:
            lines[head:head] = [setting, ""]
    return "\n".join([*lines, ""])


def read_judge_configuration(path: Path | None = None) -> JudgeConfiguration:
    """Read the ``[judge]`` table; a missing file or table gives the defaults.

    Raises:
        ConfigurationError: The file cannot be read, or a value in the table is wrong.
    """
    configuration = read_configuration(path)
    wrong = [
        problem for problem in configuration.problems if problem.key_path[:1] in {(), ("judge",)}
    ]
    if wrong:
        raise ConfigurationError(_problem_text(configuration.path, wrong))
    return configuration.judge


def prices_to_write(model: str) -> str:
    """Return the lines of ``config.toml`` for the prices of a model, with example prices."""
    quoted = model.replace("\\", "\\\\").replace('"', '\\"')
    return f'[judge.prices."{quoted}"]\ninput = 0.25   # per million tokens\noutput = 2.00'


def _problem_text(path: Path, problems: Iterable[SettingProblem]) -> str:
    (first, *more) = problems
    line = "" if first.line is None else f":{first.line}"
    further = (
        f"line {problem.line}: {problem.text}" if problem.line else problem.text for problem in more
    )
    return f"{path}{line}: {'; '.join([first.text, *further])}"


def name_hint(name: str, valid: Iterable[str], otherwise: str | None = None) -> str:
    """Return a hint for the end of a message on an unknown name: the nearest valid name.

    Args:
        name: The unknown name.
        valid: All valid names.
        otherwise: The hint if no valid name is near; None to list all valid names.
    """
    from difflib import get_close_matches  # start-up: only a wrong name needs it

    names = sorted(valid)
    if near := get_close_matches(name, names, n=1):
        return f"; did you mean {near[0]}?"
    return f"; {otherwise or 'there are ' + ', '.join(names)}"


def _read(empty: Configuration, data: Mapping[str, object]) -> Configuration:
    wrong: list[tuple[KeyPath, str]] = []
    values: dict[KeyPath, Any] = {}
    tables: dict[str, Mapping[str, object]] = {"": data}
    for name in ("keys", "judge"):
        table = data.get(name, {})
        if name == "keys" and not isinstance(table, dict):
            table = {"preset": table}
        if not isinstance(table, dict):
            wrong.append(((name,), f"{name} is no table; write [{name}] and lines below it"))
            table = {}
        tables[name] = table
    for field in setting_fields():
        (*parents, name) = field.key_path
        table = tables["".join(parents)]
        if name in table:
            try:
                values[field.key_path] = _value_of(field, table[name])
            except _WrongError as error:
                head = f"[{parents[0]}] " if parents else ""
                wrong.append(((*field.key_path, *error.key_path), f"{head}{error}"))
    names = {field.key_path[0] for field in setting_fields()}
    for name in data.keys() - names:
        wrong.append(((name,), f"there is no setting {name}{name_hint(name, names)}"))
    judge_names = set(JudgeConfiguration._fields)
    for name in tables["judge"].keys() - judge_names:
        hint = "; a key stands in an environment variable, never here" if "key" in name else ""
        wrong.append(
            (("judge", name), f"[judge] knows no {name}{hint or name_hint(name, judge_names)}")
        )
    keys: dict[str, tuple[str, ...]] = {}
    for key_path, value in _flat(tables["keys"]):
        name = ".".join(key_path)
        listed = [value] if isinstance(value, str) else value
        if isinstance(listed, list) and listed and all(isinstance(key, str) for key in listed):
            keys[name] = tuple(listed)
        else:
            text = f'{name} wants a key such as "m" or "ctrl+n", or a list of keys'
            wrong.append((("keys", *key_path), text))
    judge = {key_path[1]: value for key_path, value in values.items() if key_path[0] == "judge"}
    if "redact" in judge:
        judge["redact"] = empty.path.parent / judge["redact"]
    return empty.without(
        wrong,
        annotator=values.get(("annotator",)),
        theme=values.get(("theme",)),
        preset=values.get(("keys", "preset"), "vim"),
        keys=keys,
        judge=JudgeConfiguration(**judge),
    )


def _flat(table: Mapping[str, object]) -> Iterable[tuple[KeyPath, object]]:
    """Yield each action with its keys; ``annotate.note`` without quotes is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from (((name, inner), keys) for inner, keys in value.items())
        elif name != "preset":
            yield (name,), value


_NAME: Final = r"""(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_LINE: Final = re.compile(rf"\s*(\[*)\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*[\]=]")


def _lines(text: str) -> dict[KeyPath, int]:
    """Return the line of each key, and of the head of each table, in a valid document."""
    numbers: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _LINE.match(line):
            is_head = bool(match[1])
            names = tuple(name.strip("\"'") for name in re.findall(_NAME, match[2]))
            key_path = names if is_head else (*table, *names)
            table = names if is_head else table
            for length in range(1, len(key_path) + 1):
                numbers.setdefault(key_path[:length], number)
    return numbers

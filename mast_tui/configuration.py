"""``config.toml``: every setting that there is, and one reader; cheap to import.

What a setting is stands in ``SETTINGS`` once: how it is read, told of and printed follows. Names
of actions, keys and themes are the screens' to know; mast_tui/ui/actions/keymap.py checks them.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

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
"""Requests under way at once, what one may show, what its answer may take, the seconds for it,
and what a batch costs of the price, unless somebody says otherwise."""

PRESETS: Final = MappingProxyType(
    {
        "vim": "arrows and letters: hjkl, g and G, d and b (the default)",
        "plain": "arrows, page keys, Home and End; no letter moves anything",
    }
)
"""Whole sets of keys, by the name that ``keys`` may have."""


class ConfigurationError(MastError):
    """The configuration cannot be used; the message says where it is wrong and what to write."""


class Prices(NamedTuple):
    """What a model costs per million tokens, in and out, in whatever currency it is paid in.

    ``cached`` is for those in that the server knows from an earlier request, None where they cost
    what others do.
    """

    input: float
    output: float
    cached: float | None = None

    def cost(self, tokens_in: int, tokens_out: int, tokens_cached: int = 0) -> float:
        """What so many tokens cost, of which some of those in are cached."""
        known = self.input if self.cached is None else self.cached
        new = tokens_in - tokens_cached
        return (new * self.input + tokens_cached * known + tokens_out * self.output) / 1e6

    def times(self, factor: float) -> Prices:
        """The same, so many times as high."""
        cached = None if self.cached is None else self.cached * factor
        return Prices(self.input * factor, self.output * factor, cached)


class JudgeConfiguration(NamedTuple):
    """The ``[judge]`` table; None where it says nothing.

    ``base_url`` is where the model is asked; ``key_variable`` names the environment variable that
    holds the key, never the key itself. ``redact`` is a file of patterns; ``allow_http`` says that
    another machine may be asked in the clear. ``prices`` are by model; a batch costs
    ``batch_price`` times as much. ``body`` and ``headers`` are
    sent with each request, beside what is always sent.
    """

    model: str | None = None
    base_url: str | None = None
    concurrency: int = CONCURRENCY
    temperature: float | None = None
    samples: int = 1
    window_tokens: int = WINDOW_TOKENS
    answer_tokens: int = ANSWER_TOKENS
    timeout: float = TIMEOUT
    hints: bool = True
    verify: bool = False
    body: Mapping[str, object] = {}
    headers: Mapping[str, str] = {}
    key_variable: str = KEY_VARIABLE
    redact: Path | None = None
    allow_http: bool = False
    prices: Mapping[str, Prices] = {}
    batch_price: float = BATCH_PRICE

    def sent_headers(self) -> dict[str, str]:
        """Put what the environment says into the headers that name a variable, such as ``$TOKEN``.

        Raises:
            ConfigurationError: A variable is not set.
        """
        sent = {}
        for name, value in self.headers.items():
            if value.startswith("$"):
                found = os.environ.get(value[1:], "").strip()
                if not found:
                    raise ConfigurationError(
                        f"[judge.headers] {name} takes its value from {value[1:]}, which is not set"
                    )
                value = found
            sent[name] = value
        return sent

    def address(self, given: str | None = None) -> str:
        """Where the model is asked: as given, else as the environment or this table says."""
        said = given or os.environ.get(BASE_URL_VARIABLE, "").strip() or self.base_url
        return said or DEFAULT_BASE_URL


_SENT: Final = frozenset({"model", "messages", "response_format", "stream"})
_HEADER: Final = re.compile(r"[A-Za-z0-9_-]{1,100}: [\x20-\x7e]{1,8000}")

Place = tuple[str, ...]
"""A name in the file, such as ``("judge", "model")``; empty for the file itself."""


class Problem(NamedTuple):
    """Something in the file that is not used, and why; ``line`` is from 1, where it is known."""

    place: Place
    text: str
    line: int | None


class Configuration(NamedTuple):
    """What ``config.toml`` says, with defaults where it says nothing or something wrong.

    Attributes:
        path: Where it lies, or would lie.
        annotator: The name that the first start of a workspace offers.
        theme: The name of a theme of Textual.
        preset: One of ``PRESETS``.
        keys: Keys by the id of their action.
        judge: The judge that asks a model.
        problems: What is wrong, in the order of the file.
        lines: Where each name stands, from 1.
    """

    path: Path
    annotator: str | None = None
    theme: str | None = None
    preset: str = "vim"
    keys: Mapping[str, tuple[str, ...]] = {}
    judge: JudgeConfiguration = JudgeConfiguration()
    problems: tuple[Problem, ...] = ()
    lines: Mapping[Place, int] = {}

    @property
    def problem(self) -> str | None:
        """All that is wrong in one line, with the file; None where nothing is."""
        return _told(self.path, self.problems) if self.problems else None

    def line_of(self, place: Place) -> int | None:
        """The line of a name, or of the table around it."""
        while place and place not in self.lines:  # what is not written has none of its own
            place = place[:-1]
        return self.lines.get(place)

    def without(self, wrong: Iterable[tuple[Place, str]], **right: Any) -> Configuration:
        """The same with more problems, each by its place, and what is right in their stead."""
        more = [Problem(place, text, self.line_of(place)) for place, text in wrong]
        problems = sorted([*self.problems, *more], key=lambda one: one.line or 0)
        return self._replace(problems=tuple(problems), **right)


class _WrongError(Exception):
    """A value cannot be used; the message says so, ``place`` is where below the setting."""

    def __init__(self, text: str, *place: str) -> None:
        super().__init__(text)
        self.place = place


class Setting(NamedTuple):
    """One line of the file.

    Attributes:
        place: Its name, with its table before it.
        read: Makes the value of what the file says, or raises ``_WrongError``.
        example: The default as it may be written, in TOML; where there is none, an example.
        about: What it is for, in a line.
        has_default: Whether that is the default.
    """

    place: Place
    read: Callable[[str, object], Any]
    example: str
    about: str
    has_default: bool = True


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _WrongError(f'{name} is no text; write {name} = "…"')
    return value.strip()


def _count(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _WrongError(f"{name} is no whole number from 1; 8 is one")
    return value


def _tokens(name: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 200 <= value <= 2_000_000:
        raise _WrongError(f"{name} is no number of tokens from 200 to 2,000,000")
    return value


def _number(name: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise _WrongError(f"{name} is no number from {least:g} to {most:g}")
    return float(value)


def _temperature(name: str, value: object) -> float:
    return _number(name, value, 0.0, 2.0)


def _factor(name: str, value: object) -> float:
    return _number(name, value, 0.0, 10.0)


def _seconds(name: str, value: object) -> float:
    return _number(name, value, 1.0, 86_400.0)


def _body(name: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise _WrongError(f"{name} is no table; write [judge.{name}] and a line each below it")
    for own in value.keys() & _SENT:
        raise _WrongError(f"{name}.{own} is always sent as the judge needs it", own)
    try:
        json.dumps(value)
    except TypeError as error:
        raise _WrongError(f"{name} holds what JSON does not know: dates and times") from error
    return value


def _headers(name: str, value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise _WrongError(f"{name} is no table; write [judge.{name}] and a line each below it")
    for header, said in value.items():
        if not isinstance(said, str) or not _HEADER.fullmatch(f"{header}: {said}"):
            raise _WrongError(f'{name}.{header} wants a text, such as "x" or "$VARIABLE"', header)
    return value


def _variable(name: str, value: object) -> str:
    text = _text(name, value)
    if not text.isidentifier():
        raise _WrongError(f"{name} is no name of an environment variable, such as OPENAI_API_KEY")
    return text


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _WrongError(f"{name} is neither true nor false")
    return value


def _file(name: str, value: object) -> Path:
    return Path(_text(name, value)).expanduser()


def _prices(name: str, value: object) -> Mapping[str, Prices]:
    if not isinstance(value, dict):
        raise _WrongError(f'{name} is no table; write [judge.{name}."MODEL"]')
    prices = {}
    for model, row in value.items():
        if not isinstance(row, dict):
            raise _WrongError(f'{name}."{model}" is no table with input and output', model)
        prices[model] = Prices(
            _price(row, "input", model),
            _price(row, "output", model),
            _price(row, "cached", model) if "cached" in row else None,
        )
    return prices


def _price(row: Mapping[str, object], name: str, model: str) -> float:
    value = row.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    raise _WrongError(
        f'prices."{model}" wants {name} = a price per million tokens, such as 0.25', model, name
    )


def _preset(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise _WrongError(
            f"{name} is neither a preset nor a table; write [keys] and below it one line an action"
        )
    if value not in PRESETS:
        raise _WrongError(f'there is no preset "{value}"{meant(value, PRESETS)}')
    return value


SETTINGS: Final = (
    Setting(
        ("annotator",),
        _text,
        '"alice"',
        "The name that the first start of a workspace offers.",
        has_default=False,
    ),
    Setting(
        ("theme",),
        _text,
        '"textual-dark"',
        "The colours; F9 in the app shows all themes and keeps the one that is taken.",
    ),
    Setting(
        ("keys", "preset"),
        _preset,
        '"vim"',
        f"{'; '.join(f'{name}: {about}' for name, about in PRESETS.items())}. "
        'Without own keys also keys = "plain".',
    ),
    Setting(
        ("judge", "model"),
        _text,
        '"gpt-oss-120b"',
        "The model that J and judge ask.",
        has_default=False,
    ),
    Setting(
        ("judge", "base_url"),
        _text,
        f'"{DEFAULT_BASE_URL}"',
        f"Where it is asked, unless {BASE_URL_VARIABLE} says so.",
    ),
    Setting(("judge", "concurrency"), _count, str(CONCURRENCY), "Requests under way at a time."),
    Setting(
        ("judge", "temperature"),
        _temperature,
        "0.0",
        "The temperature, where not the server's own.",
        has_default=False,
    ),
    Setting(("judge", "samples"), _count, "1", "How often each trace is asked about."),
    Setting(
        ("judge", "window_tokens"),
        _tokens,
        str(WINDOW_TOKENS),
        "The most of a trace that one request shows.",
    ),
    Setting(
        ("judge", "answer_tokens"),
        _tokens,
        str(ANSWER_TOKENS),
        "The most that an answer may take at first; a model that thinks gets more by itself.",
    ),
    Setting(("judge", "timeout"), _seconds, f"{TIMEOUT:g}", "Seconds that one answer may take."),
    Setting(
        ("judge", "hints"),
        _flag,
        "true",
        "Whether the model is shown what the rules have counted, such as repeated calls.",
    ),
    Setting(
        ("judge", "verify"),
        _flag,
        "false",
        "Whether each finding is put before the model once more; what does not hold is dropped.",
    ),
    Setting(
        ("judge", "body"),
        _body,
        "{}",
        "What else is sent with each request: [judge.body] with lines such as seed = 7.",
    ),
    Setting(
        ("judge", "headers"),
        _headers,
        "{}",
        'Headers of each request: [judge.headers]; "$NAME" takes what the environment says.',
    ),
    Setting(
        ("judge", "key_variable"),
        _variable,
        f'"{KEY_VARIABLE}"',
        "The environment variable that holds the key; never the key itself.",
    ),
    Setting(
        ("judge", "redact"),
        _file,
        '"patterns.txt"',
        "A file of patterns, one a line, to take out of what is sent; beside this file.",
        has_default=False,
    ),
    Setting(
        ("judge", "allow_http"), _flag, "false", "Whether another machine is asked in the clear."
    ),
    Setting(
        ("judge", "batch_price"),
        _factor,
        f"{BATCH_PRICE:g}",
        "What requests in batches cost: so many times the price.",
    ),
    Setting(
        ("judge", "prices"),
        _prices,
        "{}",
        'What models cost per million tokens: [judge.prices."MODEL"] with input and output, and '
        "cached for what the server knows already.",
    ),
)
"""Every setting; ``[keys]`` takes the ids of actions beside its preset."""


def configuration_path() -> Path:
    """``config.toml`` in the user's configuration folder for mast_tui."""
    from platformdirs import user_config_path  # nothing before the first frame needs it but this

    return user_config_path("mast-tui") / "config.toml"


def read_configuration(path: Path | None = None) -> Configuration:
    """Read the file; a missing one says nothing, and what is wrong in one is among its problems.

    Args:
        path: Another file than the user's own.
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
        at: dict[Place, int] = {(): int(line[1])} if line else {}
        return empty._replace(lines=at).without([((), f"{error}; nothing of it is used")])
    return _read(empty._replace(lines=_lines(text)), data)


def with_theme(text: str, theme: str) -> str:
    """The text of a ``config.toml`` with another theme in it, all else as it is.

    Args:
        text: What the file holds, nothing where there is none.
        theme: The theme's name.

    Raises:
        ConfigurationError: The file cannot be read, and so not be changed either.
    """
    import tomllib  # as above

    try:
        parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"config.toml has to be mended first: {error}") from error
    lines, setting = text.splitlines(), f'theme = "{theme}"'
    place = _lines(text).get(("theme",))
    if place is not None:
        lines[place - 1] = setting
    else:
        heads = (number for number, line in enumerate(lines) if line.lstrip().startswith("["))
        head = next(heads, None)
        if head is None:
            lines.append(setting)
        else:
            lines[head:head] = [setting, ""]
    return "\n".join([*lines, ""])


def read_judge_configuration(path: Path | None = None) -> JudgeConfiguration:
    """The ``[judge]`` table; a missing file or table says nothing.

    Raises:
        ConfigurationError: The file cannot be read, or something in the table is wrong.
    """
    found = read_configuration(path)
    wrong = [problem for problem in found.problems if problem.place[:1] in {(), ("judge",)}]
    if wrong:
        raise ConfigurationError(_told(found.path, wrong))
    return found.judge


def prices_to_write(model: str) -> str:
    """The lines of ``config.toml`` that say what a model costs, the figures left to fill in."""
    quoted = model.replace("\\", "\\\\").replace('"', '\\"')
    return f'[judge.prices."{quoted}"]\ninput = 0.25   # per million tokens\noutput = 2.00'


def _told(path: Path, problems: Iterable[Problem]) -> str:
    (first, *more) = problems
    at = "" if first.line is None else f":{first.line}"
    rest = (f"line {one.line}: {one.text}" if one.line else one.text for one in more)
    return f"{path}{at}: {'; '.join([first.text, *rest])}"


def meant(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """What to write in the place of a name that does not exist, to put behind a message.

    Args:
        name: What was written.
        known: All names that there are.
        otherwise: What to say where none of them is near; all names, where it is None.
    """
    from difflib import get_close_matches  # only where something is wrong

    names = sorted(known)
    if near := get_close_matches(name, names, n=1):
        return f"; did you mean {near[0]}?"
    return f"; {otherwise or 'there are ' + ', '.join(names)}"


def _read(empty: Configuration, data: Mapping[str, object]) -> Configuration:
    wrong: list[tuple[Place, str]] = []
    values: dict[Place, Any] = {}
    tables: dict[str, Mapping[str, object]] = {"": data}
    for name in ("keys", "judge"):
        table = data.get(name, {})
        if name == "keys" and not isinstance(table, dict):
            table = {"preset": table}
        if not isinstance(table, dict):
            wrong.append(((name,), f"{name} is no table; write [{name}] and lines below it"))
            table = {}
        tables[name] = table
    for setting in SETTINGS:
        (*around, name) = setting.place
        table = tables["".join(around)]
        if name in table:
            try:
                values[setting.place] = setting.read(name, table[name])
            except _WrongError as error:
                within = f"[{around[0]}] " if around else ""
                wrong.append(((*setting.place, *error.place), f"{within}{error}"))
    known = {setting.place[0] for setting in SETTINGS}
    for name in data.keys() - known:
        wrong.append(((name,), f"there is no setting {name}{meant(name, known)}"))
    known = {setting.place[1] for setting in SETTINGS if setting.place[0] == "judge"}
    for name in tables["judge"].keys() - known:
        hint = "; a key stands in an environment variable, never here" if "key" in name else ""
        wrong.append((("judge", name), f"[judge] knows no {name}{hint or meant(name, known)}"))
    keys: dict[str, tuple[str, ...]] = {}
    for place, pressed in _flat(tables["keys"]):
        name = ".".join(place)
        listed = [pressed] if isinstance(pressed, str) else pressed
        if isinstance(listed, list) and listed and all(isinstance(key, str) for key in listed):
            keys[name] = tuple(listed)
        else:
            text = f'{name} wants a key such as "m" or "ctrl+n", or a list of keys'
            wrong.append((("keys", *place), text))
    judge = {place[1]: value for place, value in values.items() if place[0] == "judge"}
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


def _flat(table: Mapping[str, object]) -> Iterable[tuple[Place, object]]:
    """Each action with its keys: ``annotate.note`` without quotes is a table in a table."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from (((name, inner), keys) for inner, keys in value.items())
        elif name != "preset":
            yield (name,), value


_NAME: Final = r"""(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_LINE: Final = re.compile(rf"\s*(\[*)\s*({_NAME}(?:\s*\.\s*{_NAME})*)\s*[\]=]")


def _lines(text: str) -> dict[Place, int]:
    """The line of each name of a document that could be read, and of each table's head."""
    found: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.splitlines(), 1):
        if at := _LINE.match(line):
            names = tuple(name.strip("\"'") for name in re.findall(_NAME, at[2]))
            table = names if at[1] else table
            place = names if at[1] else (*table, *names)
            for length in range(1, len(place) + 1):
                found.setdefault(place[:length], number)
    return found

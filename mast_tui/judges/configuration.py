"""What a person's ``config.toml`` says of a judge that asks a model; cheap to import."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from mast_tui.errors import MastError

DEFAULT_BASE_URL: Final = "https://api.openai.com/v1"
BASE_URL_VARIABLE: Final = "OPENAI_BASE_URL"
KEY_VARIABLE: Final = "OPENAI_API_KEY"
CONCURRENCY: Final = 8


class ConfigurationError(MastError):
    """The configuration cannot be used; the message says where it is wrong and what to write."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What a model costs per million tokens, in and out, in whatever currency it is paid in."""

    input: float
    output: float

    def cost(self, tokens_in: int, tokens_out: int) -> float:
        """What so many tokens cost."""
        return (tokens_in * self.input + tokens_out * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class JudgeConfiguration:
    """The ``[judge]`` table; None where it says nothing.

    ``base_url`` is where the model is asked; ``key_variable`` names the environment variable that
    holds the key, never the key itself. ``redact`` is a file of patterns; ``allow_http`` says that
    another machine may be asked in the clear. ``prices`` are by model.
    """

    model: str | None = None
    base_url: str | None = None
    concurrency: int = CONCURRENCY
    key_variable: str = KEY_VARIABLE
    redact: Path | None = None
    allow_http: bool = False
    prices: Mapping[str, Prices] = field(default_factory=dict)

    def address(self, given: str | None = None) -> str:
        """Where the model is asked: as given, else as the environment or this table says."""
        said = given or os.environ.get(BASE_URL_VARIABLE, "").strip() or self.base_url
        return said or DEFAULT_BASE_URL


def configuration_path() -> Path:
    """``config.toml`` in the user's configuration folder for mast_tui."""
    from platformdirs import user_config_path

    return user_config_path("mast-tui") / "config.toml"


def read_judge_configuration(path: Path | None = None) -> JudgeConfiguration:
    """The ``[judge]`` table of ``config.toml``; a missing file or table says nothing.

    Raises:
        ConfigurationError: the file cannot be read, or something in the table is wrong.
    """
    path = configuration_path() if path is None else path
    try:
        text = path.read_text("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return JudgeConfiguration()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: {error}") from error
    import tomllib

    try:
        table = tomllib.loads(text).get("judge", {})
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path}: {error}") from error
    try:
        return _read(table, path.parent)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: [judge] {error}") from None


def prices_to_write(model: str) -> str:
    """The lines of ``config.toml`` that say what a model costs, the figures left to fill in."""
    quoted = model.replace("\\", "\\\\").replace('"', '\\"')
    return f'[judge.prices."{quoted}"]\ninput = 0.25   # per million tokens\noutput = 2.00'


def _read(table: object, folder: Path) -> JudgeConfiguration:
    if not isinstance(table, dict):
        raise ConfigurationError("is no table; write [judge] and below it one line a setting")
    known = {"model", "base_url", "concurrency", "key_variable", "redact", "allow_http", "prices"}
    for name in sorted(table.keys() - known):
        hint = "; a key stands in an environment variable, never here" if "key" in name else ""
        raise ConfigurationError(f"knows no {name!r}{hint}; there are {', '.join(sorted(known))}")
    found = JudgeConfiguration(
        model=_text(table, "model"), base_url=_text(table, "base_url"), prices=_prices(table)
    )
    concurrency = table.get("concurrency", CONCURRENCY)
    if not isinstance(concurrency, int) or isinstance(concurrency, bool) or concurrency < 1:
        raise ConfigurationError("concurrency is no whole number from 1; 8 is one")
    variable = _text(table, "key_variable") or KEY_VARIABLE
    if not variable.isidentifier():
        raise ConfigurationError(
            "key_variable is no name of an environment variable, such as OPENAI_API_KEY"
        )
    redact = _text(table, "redact")
    allow_http = table.get("allow_http", False)
    if not isinstance(allow_http, bool):
        raise ConfigurationError("allow_http is neither true nor false")
    return replace(
        found,
        concurrency=concurrency,
        key_variable=variable,
        redact=None if redact is None else folder / Path(redact).expanduser(),
        allow_http=allow_http,
    )


def _text(table: Mapping[str, object], name: str) -> str | None:
    value = table.get(name)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ConfigurationError(f'{name} is no text; write {name} = "…"')
    return value.strip() if isinstance(value, str) else None


def _prices(table: Mapping[str, object]) -> Mapping[str, Prices]:
    by_model = table.get("prices", {})
    if not isinstance(by_model, dict):
        raise ConfigurationError('prices is no table; write [judge.prices."MODEL"]')
    prices = {}
    for model, row in by_model.items():
        where = f'prices."{model}"'
        if not isinstance(row, dict):
            raise ConfigurationError(f"{where} is no table with input and output")
        prices[model] = Prices(_price(row, "input", where), _price(row, "output", where))
    return prices


def _price(row: Mapping[str, object], name: str, where: str) -> float:
    value = row.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    raise ConfigurationError(f"{where} wants {name} = a price per million tokens, such as 0.25")

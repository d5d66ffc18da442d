"""What a run of a judge that asks a model is made of, but for the traces and the workspace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from mast_tui.configuration import (
    CONCURRENCY,
    KEY_VARIABLE,
    TIMEOUT,
    ConfigurationError,
    JudgeConfiguration,
    Prices,
    prices_to_write,
)
from mast_tui.judges.llm.client.hosts import host_of, is_this_machine
from mast_tui.judges.llm.model import Parameters, Way
from mast_tui.judges.llm.prompt.example import Example
from mast_tui.judges.llm.prompt.prompt import Prompt
from mast_tui.judges.llm.prompt.redaction import Redaction
from mast_tui.judges.quote_anchoring import CHECKING
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import JUDGE_PREFIX
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import RunSettings

CHECKED_BY: Final = "checking"
"""The parameter of a run that names the rules by which its quotes were checked."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a run may spend, in tokens or in money; None is without bounds."""

    tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class Setup:
    """Which model judges by which taxonomy, where it is asked, with what, and for how much.

    ``key_variable`` names the environment variable with the key. ``timeout`` is in seconds;
    ``allow_http`` says that another machine may be asked in the clear.
    ``noted`` is what the record of the run says beside the parameters, by name. ``headers`` go
    with each request.
    """

    taxonomy: Taxonomy
    parameters: Parameters
    base_url: str
    redaction: Redaction = field(default_factory=Redaction.default)
    examples: tuple[Example, ...] = ()
    prices: Prices | None = None
    key_variable: str = KEY_VARIABLE
    concurrency: int = CONCURRENCY
    timeout: float = TIMEOUT
    allow_http: bool = False
    allowance: Allowance = Allowance()
    noted: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def prompt(self) -> Prompt:
        """The words that the model is asked with; its hash is a part of the judge's name."""
        redaction = self.redaction.identity
        extra = "" if redaction == "default" else f"redaction {redaction}"
        return Prompt(self.taxonomy, self.parameters, self.examples, extra=extra)

    @property
    def judge(self) -> str:
        """The annotator under which suggestions are kept."""
        return f"{JUDGE_PREFIX}{self.parameters.model}@{self.prompt.hash}"

    @property
    def host(self) -> str:
        """Where requests go, by name."""
        return host_of(self.base_url)

    @property
    def stays_here(self) -> bool:
        """Whether requests go to this machine."""
        return is_this_machine(self.base_url)

    def settings(self) -> RunSettings:
        """The record of a run with this setup."""
        return RunSettings(
            model=self.parameters.model,
            prompt=self.prompt.hash,
            host=self.host,
            parameters=(
                *self.parameters.values(),
                ("redaction", self.redaction.identity),
                (CHECKED_BY, CHECKING),
                *self.noted,
            ),
            examples=tuple(dict.fromkeys(example.trace_id for example in self.examples)),
            price_in=None if self.prices is None else self.prices.input,
            price_out=None if self.prices is None else self.prices.output,
            price_cached=None if self.prices is None else self.prices.cached,
        )


def configured_parameters(
    configuration: JudgeConfiguration,
    *,
    model: str | None = None,
    temperature: float | None = None,
    samples: int | None = None,
    window_tokens: int | None = None,
    answer_tokens: int | None = None,
    hints: bool = True,
    verify: bool = False,
    decisive: Way = "",
) -> Parameters:
    """Take what shapes the answers from a configuration, but for what is given beside it.

    Args:
        configuration: The ``[judge]`` table.
        model: The model's name.
        temperature: None is as configured, there the server's own.
        samples: How often each trace is asked about.
        window_tokens: The most that the data of one request may take.
        answer_tokens: The most that an answer may take.
        hints: Whether what the rules find is shown as facts.
        verify: Whether each finding is put before the model once more.
        decisive: How the decisive step is asked for, empty for all modes.

    Returns:
        The parameters; the model is empty where none is named.
    """
    return Parameters(
        model=(model or configuration.model or "").strip(),
        temperature=configuration.temperature if temperature is None else temperature,
        samples=samples or configuration.samples,
        window_tokens=window_tokens or configuration.window_tokens,
        answer_tokens=answer_tokens or configuration.answer_tokens,
        hints=RulesJudge().name if hints and configuration.hints else "",
        verify=(verify or configuration.verify) and not decisive,
        decisive=decisive,
        extra_body=tuple(configuration.body.items()),
    )


def configured_setup(
    taxonomy: Taxonomy,
    configuration: JudgeConfiguration,
    *,
    parameters: Parameters | None = None,
    base_url: str | None = None,
    allowance: Allowance = Allowance(),
    redact: Path | None = None,
    no_redact: bool = False,
) -> Setup:
    """The setup that a configuration describes, where nothing else is said.

    Without ``parameters`` the configured model is asked. The key in the environment is taken out
    of everything that is sent, unless ``no_redact``.

    Raises:
        ConfigurationError: no model is named, its name cannot be a judge's, or money is limited
            and nobody has said what the model costs.
        RedactionError: the file of patterns cannot be used.
    """
    if parameters is None:
        parameters = configured_parameters(configuration)
    model = parameters.model
    _check_model(model)
    prices = configuration.prices.get(model)
    if allowance.cost is not None and prices is None:
        lines = ", then ".join(prices_to_write(model).splitlines())
        raise ConfigurationError(
            f"nobody has said what {model} costs; write into config.toml, a line each: {lines}"
        )
    redaction = Redaction.none() if no_redact else Redaction.default()
    patterns = redact or (None if no_redact else configuration.redact)
    if patterns is not None:
        redaction = redaction.with_file(patterns)
    if not no_redact:
        redaction = redaction.with_secret(os.environ.get(configuration.key_variable, "").strip())
    return Setup(
        taxonomy=taxonomy,
        parameters=parameters,
        base_url=configuration.address(base_url),
        redaction=redaction,
        prices=prices,
        key_variable=configuration.key_variable,
        concurrency=configuration.concurrency,
        timeout=configuration.timeout,
        allow_http=configuration.allow_http,
        allowance=allowance,
        headers=configuration.sent_headers(),
    )


def _check_model(model: str) -> None:
    if not model:
        raise ConfigurationError(
            'no model is named; give one, or write into config.toml: [judge] model = "…"'
        )
    if not model.isprintable() or "," in model or "|" in model or len(model) > 200:
        raise ConfigurationError(
            f"{model!r} can be no judge's name: it may hold neither ',' nor '|', which separate "
            "names, and at most 200 printable characters"
        )

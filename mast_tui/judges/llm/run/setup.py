"""The settings of a run of a model judge, and the notice of what it sends to a server."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from mast_tui.judges.llm.client.budget import UNBOUNDED, Allowance
from mast_tui.judges.llm.client.endpoint import (
    Endpoint,
    check_address,
    find_key,
    host_of,
    is_this_machine,
)
from mast_tui.judges.llm.prompt.prompt import Example, Prompt
from mast_tui.judges.llm.request import Parameters, Way
from mast_tui.judges.quote_anchoring import SEARCH_VERSION
from mast_tui.judges.rules import RulesJudge
from mast_tui.labels import JUDGE_PREFIX
from mast_tui.redaction.engine import Redaction
from mast_tui.safe_text import one_line
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import RunSettings, Workspace


@dataclass(frozen=True)
class Setup:
    """The settings of a model judge: taxonomy, model, server, redaction and allowance.

    Attributes:
        taxonomy: The taxonomy of the modes.
        parameters: The model and its settings.
        base_url: The address of the server.
        redaction: The redaction of all texts.
        examples: The examples in the prompt.
        guidelines: Pairs of a mode's slug and a guideline of the team.
        prices: The prices of tokens, if they are known.
        key_variable: The name of the environment variable with the key.
        concurrency: The number of concurrent requests.
        timeout: The most seconds of a request.
        allow_http: True to allow unencrypted requests to another machine.
        allowance: The limits of tokens and money of the run.
        noted: Further settings for the record of the run, as names and values.
        headers: The headers of each request.
        chosen: The ids of the traces that the judge gets because an earlier judge was wrong there.
        chosen_from: The judge from whose traces they were chosen.
    """

    taxonomy: Taxonomy
    parameters: Parameters
    base_url: str
    redaction: Redaction = field(default_factory=Redaction.default)
    examples: tuple[Example, ...] = ()
    guidelines: tuple[tuple[str, str], ...] = ()
    prices: Prices | None = None
    key_variable: str = KEY_VARIABLE
    concurrency: int = CONCURRENCY
    timeout: float = TIMEOUT
    allow_http: bool = False
    allowance: Allowance = UNBOUNDED
    noted: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    chosen: tuple[str, ...] = ()
    chosen_from: str | None = None

    @cached_property
    def prompt(self) -> Prompt:
        """The prompt; its hash is a part of the judge's name."""
        redaction_name = self.redaction.identity
        # The default redaction leaves the hash unchanged.
        extra = "" if redaction_name == "default" else f"redaction {redaction_name}"
        guidelines_by_mode: dict[str, list[str]] = {}
        for mode, text in self.guidelines:
            redacted_text = self.redaction.apply(text).text
            guidelines_by_mode.setdefault(mode, []).append(redacted_text)
        return Prompt(
            self.taxonomy, self.parameters, self.examples, guidelines_by_mode, extra=extra
        )

    @property
    def judge(self) -> str:
        """The annotator of the suggestions."""
        return f"{JUDGE_PREFIX}{self.parameters.model}@{self.prompt.hash}"

    @property
    def host(self) -> str:
        """The host and port of the server."""
        return host_of(self.base_url)

    @property
    def stays_here(self) -> bool:
        """True if requests go to this machine."""
        return is_this_machine(self.base_url)

    @property
    def receiver(self) -> str:
        """The host of the server, with a remark if it is this machine."""
        return f"{self.host}, this machine" if self.stays_here else self.host

    def endpoint(self) -> Endpoint:
        """Return the server with its key.

        Raises:
            RunStops: The address is not allowed, or there is no key for it.
        """
        check_address(self.base_url, allow_http=self.allow_http)
        return Endpoint(
            self.base_url,
            find_key(self.base_url, self.key_variable),
            self.key_variable,
            self.timeout,
            self.allow_http,
            self.headers,
        )

    def deciding(self, way: Way) -> Setup:
        """Return a setup that asks for the decisive step instead of the modes."""
        return replace(self, parameters=replace(self.parameters, decisive=way, verify=False))

    def settings(self) -> RunSettings:
        """Return the settings for the record of a run."""
        return RunSettings(
            model=self.parameters.model,
            prompt=self.prompt.hash,
            host=self.host,
            parameters=(
                *self.parameters.values(),
                ("redaction", self.redaction.identity),
                ("checking", SEARCH_VERSION),
                *self.noted,
            ),
            examples=tuple(dict.fromkeys(example.trace_id for example in self.examples)),
            price_in=None if self.prices is None else self.prices.input,
            price_out=None if self.prices is None else self.prices.output,
            price_cached=None if self.prices is None else self.prices.cached,
            chosen=self.chosen,
            chosen_from=self.chosen_from,
        )


def configured_setup(
    taxonomy: Taxonomy,
    configuration: JudgeConfiguration,
    *,
    base_url: str | None = None,
    allowance: Allowance = UNBOUNDED,
    no_redact: bool = False,
) -> Setup:
    """Make the setup of a configuration.

    Args:
        taxonomy: The taxonomy of the modes.
        configuration: The ``[judge]`` table, with the options of the command applied.
        base_url: The address of the server; None for that of the configuration.
        allowance: The limits of tokens and money of the run.
        no_redact: True to send texts without redaction, even of the key.

    Raises:
        ConfigurationError: The model is missing or cannot name a judge, or an allowance in money
            has no prices.
        RedactionError: The file of patterns cannot be used.
    """
    model = (configuration.model or "").strip()
    _check_model(model)
    prices = configuration.prices.get(model)
    if allowance.cost is not None and prices is None:
        lines = ", then ".join(prices_to_write(model).splitlines())
        raise ConfigurationError(f"{model} has no price; add it to config.toml: {lines}")
    return Setup(
        taxonomy=taxonomy,
        parameters=Parameters(
            model=model,
            temperature=configuration.temperature,
            samples=configuration.samples,
            window_tokens=configuration.window_tokens,
            answer_tokens=configuration.answer_tokens,
            hints=RulesJudge().name if configuration.hints else "",
            verify=configuration.verify,
            artefacts=configuration.artefacts,
            extra_body=tuple(configuration.body.items()),
        ),
        base_url=configuration.address(base_url),
        redaction=Redaction.none() if no_redact else _configured_redaction(configuration),
        prices=prices,
        key_variable=configuration.key_variable,
        concurrency=configuration.concurrency,
        timeout=configuration.timeout,
        allow_http=configuration.allow_http,
        allowance=allowance,
        headers=configuration.sent_headers(),
    )


def _configured_redaction(configuration: JudgeConfiguration) -> Redaction:
    """Return the default redaction with the key in the environment and the file of patterns.

    Raises:
        RedactionError: The file of patterns cannot be used.
    """
    secret = os.environ.get(configuration.key_variable, "").strip()
    redaction = Redaction.default().with_secret(secret)
    if configuration.redact is None:
        return redaction
    return redaction.with_file(configuration.redact)


def _check_model(model: str) -> None:
    """Check that the name of the model can be a part of a judge's name.

    Raises:
        ConfigurationError: There is no name, or it cannot be used.
    """
    if not model:
        raise ConfigurationError(
            'no model is set; add to config.toml: [judge] model = "…" (or use judge --model)'
        )
    if not model.isprintable() or "," in model or "|" in model or len(model) > 200:
        raise ConfigurationError(
            f"{model!r} cannot be a judge's name; use at most 200 printable characters, "
            "without ',' and '|'"
        )


_CONSENT_SETTING: Final = "judge.told"


def sending_notice(setup: Setup) -> str:
    """Return the notice of the texts that are sent, their redaction, and the origin of the key."""
    return (
        f"The texts of the traces, their tasks{_artefacts_phrase(setup)} and the names of agents "
        f"and tools are sent to {setup.receiver}; labels, notes, outcomes, pictures and file names "
        f"are not. {redaction_notice(setup)} The key comes from {setup.key_variable}."
    )


def file_notice(setup: Setup) -> str:
    """Return the notice of the texts in a file of requests, and of their redaction."""
    return (
        "Nothing is sent: the file contains the texts of the traces, their "
        f"tasks{_artefacts_phrase(setup)} and the names of agents and tools, for everyone who "
        "gets it; labels, notes, outcomes, pictures and file names are not in it. "
        f"{redaction_notice(setup)}"
    )


def _artefacts_phrase(setup: Setup) -> str:
    """Return the artefacts as a part of an enumeration, or an empty text if they are not sent."""
    return ", final patches, test results" if setup.parameters.artefacts else ""


def redaction_notice(setup: Setup) -> str:
    """Return a sentence on the secrets that the redaction removes."""
    names = list(dict.fromkeys(one_line(rule.name, 40) for rule in setup.redaction.rules))
    if not names:
        return "Nothing is masked (--no-redact)."
    return f"Masked where patterns match: {', '.join(names)}."


def is_notice_seen(workspace: Workspace, setup: Setup) -> bool:
    """Check whether the user has seen the notice for a server; this machine needs none.

    Args:
        workspace: The workspace with the record.
        setup: The judge and its server.
    """
    return setup.stays_here or workspace.get_setting(_setting_name(setup)) is not None


def record_notice(workspace: Workspace, setup: Setup) -> None:
    """Record that the user has seen the notice for the judge's server.

    Args:
        workspace: The workspace with the record.
        setup: The judge and its server.
    """
    workspace.set_setting(_setting_name(setup), "yes")


def _setting_name(setup: Setup) -> str:
    content = "+artefacts" if setup.parameters.artefacts else ""
    return f"{_CONSENT_SETTING}{content}:{setup.host}"

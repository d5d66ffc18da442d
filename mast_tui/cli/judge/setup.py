"""From the options of ``mast-tui judge --judge llm`` and the configuration to what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from mast_tui.adjudication import SpanOrders, words_by_trace
from mast_tui.configuration import JudgeConfiguration, read_judge_configuration
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.prompt.few_shot import (
    EXAMPLES,
    ChosenExamples,
    FewShotError,
    GoldCase,
    TraceLookup,
    built_in_examples,
    choice_parameters,
    choose_examples,
    recorded_choices,
    repeat_examples,
    traces_in_files,
)
from mast_tui.judges.llm.request import Way
from mast_tui.judges.llm.run.setup import Setup, configured_setup
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.registers.hold_out import held_out

BUILT_IN: Final = "built-in"

_CONFIGURED: Final = (
    "model",
    "concurrency",
    "samples",
    "window_tokens",
    "answer_tokens",
    "timeout",
    "verify",
    "redact",
    "allow_http",
)
"""The options that have the name of what they take the place of."""


@dataclass(frozen=True, slots=True)
class SetupRequest:
    """The options, as given; None where nothing was said."""

    model: str | None
    base_url: str | None
    allow_http: bool
    concurrency: int | None
    samples: int | None
    temperature: float | None
    window_tokens: int | None
    answer_tokens: int | None
    max_tokens_total: int | None
    max_cost: float | None
    timeout: float | None
    few_shot: str | None
    examples: int | None
    hold_out: float | None
    redact: Path | None
    no_redact: bool
    no_hints: bool
    verify: bool
    decisive: bool
    step_by_step: bool
    mode_order: int
    first_number: int
    record: Path | None
    replay: Path | None
    batch: bool
    write_batch: Path | None
    read_batch: tuple[Path, ...]
    dry_run: bool

    @property
    def by_files(self) -> bool:
        """Whether requests and answers go through files that somebody else carries."""
        return self.write_batch is not None or bool(self.read_batch)

    @property
    def way(self) -> Way:
        """How the decisive step is asked for; empty where the modes are."""
        if self.step_by_step:
            return "step by step"
        return "whole run" if self.decisive else ""

    def over(self, configuration: JudgeConfiguration) -> JudgeConfiguration:
        """A configuration with what was given in the place of its values."""
        given: dict[str, Any] = {name: getattr(self, name) or None for name in _CONFIGURED}
        given["temperature"] = self.temperature  # 0 is one
        given["hints"] = False if self.no_hints else None
        return configuration._replace(
            **{name: value for name, value in given.items() if value is not None}
        )

    @classmethod
    def of(cls, asked: Mapping[str, Any]) -> SetupRequest:
        """The options by name; raises ``click.UsageError`` where they do not go together."""
        request = cls(**asked)
        if request.examples is not None and request.few_shot != "gold":
            raise click.UsageError("--examples goes with --few-shot gold")
        if request.redact is not None and request.no_redact:
            raise click.UsageError("--redact and --no-redact exclude each other; give one of them")
        if request.record is not None and request.replay is not None:
            raise click.UsageError("--record and --replay exclude each other; give one of them")
        if request.batch and request.by_files:
            raise click.UsageError(
                "--batch sends and collects by itself; leave out --write-batch and --read-batch"
            )
        if (request.by_files or request.batch) and (
            request.record is not None or request.replay is not None
        ):
            raise click.UsageError(
                "--record and --replay are for what is asked directly, not for batches"
            )
        if request.way and (request.verify or request.few_shot is not None):
            raise click.UsageError(
                "--decisive asks for one step, not for modes: leave out --verify and --few-shot"
            )
        return request


def made_setup(request: SetupRequest, taxonomy: Taxonomy) -> Setup:
    """The setup that the options and the configuration describe, still without examples."""
    configuration = request.over(read_judge_configuration())
    if not (configuration.model or "").strip():
        raise click.UsageError(
            '--judge llm wants a model: give --model M, or write [judge] model = "M" into '
            "config.toml"
        )
    setup = configured_setup(
        taxonomy,
        configuration,
        base_url=request.base_url,
        allowance=Allowance(request.max_tokens_total, request.max_cost),
        no_redact=request.no_redact,
    )
    if request.way:
        setup = setup.deciding(request.way)
    if (request.by_files or request.batch) and setup.prices is not None:
        setup = replace(setup, prices=setup.prices.times(configuration.batch_price))
    parameters = replace(
        setup.parameters, mode_order=request.mode_order, first_number=request.first_number
    )
    return replace(setup, parameters=parameters)


def with_examples(setup: Setup, request: SetupRequest, place: Workspace | None) -> Setup:
    """The setup with the examples that were asked for.

    A run with the same options that was broken off goes on with the examples that it began with,
    as long as the gold still says so.
    """
    if request.few_shot is None:
        return setup
    if request.few_shot == BUILT_IN:
        examples = built_in_examples(setup.taxonomy, setup.redaction)
        return replace(setup, examples=examples, noted=(("few_shot", BUILT_IN),))
    if place is None:
        raise FewShotError("there is no workspace here yet, so there is no gold to show")
    count = request.examples or EXAMPLES
    setup = replace(setup, noted=(("few_shot", "gold"), ("examples", str(count))))
    order_of, at_hand = SpanOrders(place), traces_in_files(place)
    cases = [
        GoldCase(trace_id, words.gold(setup.taxonomy, order_of(trace_id)), words.sides)
        for trace_id, words in words_by_trace(place, setup.taxonomy).items()
    ]
    begun = _begun_with(setup, place, cases, at_hand)
    if begun is not None:
        return begun
    chosen = choose_examples(
        cases,
        setup.taxonomy,
        at_hand,
        setup.redaction,
        count=count,
        may_use=lambda trace_id: not held_out(place, trace_id),
    )
    return _shown(setup, chosen)


def _shown(setup: Setup, chosen: ChosenExamples) -> Setup:
    examples = tuple(example for _, example in chosen)
    return replace(setup, examples=examples, noted=(*setup.noted, *choice_parameters(chosen)))


def _begun_with(
    setup: Setup, place: Workspace, cases: list[GoldCase], at_hand: TraceLookup
) -> Setup | None:
    """The setup of the last run that was broken off with the same options, if it can go on."""
    wanted = {*setup.parameters.values(), *setup.noted}
    ours = setup.parameters.model, setup.host, setup.taxonomy.ref
    for run in reversed(place.runs()):
        told = run.settings
        if run.finished_at is not None or told is None or not wanted <= set(told.parameters):
            continue
        if (told.model, told.host, run.taxonomy) != ours:
            continue
        choices = recorded_choices(told.parameters)
        chosen = repeat_examples(choices, cases, setup.taxonomy, at_hand, setup.redaction)
        if chosen is None:
            continue
        again = _shown(setup, chosen)
        if again.prompt.hash == told.prompt:
            return again
    return None

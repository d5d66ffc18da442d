"""From the options of ``mast-tui judge --judge llm`` and the configuration to what is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import click

from mast_tui.adjudication import SpanOrders, words_by_trace
from mast_tui.cli.judge.options import ModelRequest
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


def _configured(request: ModelRequest) -> JudgeConfiguration:
    """Return the configuration with the options in place of its values."""
    given: dict[str, Any] = {name: getattr(request, name) or None for name in _CONFIGURED}
    given["temperature"] = request.temperature  # 0 is one
    given["hints"] = False if request.no_hints else None
    return read_judge_configuration()._replace(
        **{name: value for name, value in given.items() if value is not None}
    )


def made_setup(request: ModelRequest, taxonomy: Taxonomy) -> Setup:
    """The setup that the options and the configuration describe, still without examples."""
    configuration = _configured(request)
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


def with_examples(setup: Setup, request: ModelRequest, place: Workspace | None) -> Setup:
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

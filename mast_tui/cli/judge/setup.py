"""The setup of a model judge, from the options and the configuration."""

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

_OVERRIDES: Final = (
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
"""The options that have the name of the setting that they override."""


def _configured(request: ModelRequest) -> JudgeConfiguration:
    """Return the configuration with the options in place of its values."""
    options: dict[str, Any] = {name: getattr(request, name) or None for name in _OVERRIDES}
    options["temperature"] = request.temperature  # 0 is a value
    options["hints"] = False if request.no_hints else None
    return read_judge_configuration()._replace(
        **{name: value for name, value in options.items() if value is not None}
    )


def build_setup(request: ModelRequest, taxonomy: Taxonomy) -> Setup:
    """Build the setup from the options and the configuration, without examples.

    Args:
        request: The options for the model.
        taxonomy: The taxonomy to judge by.

    Raises:
        click.UsageError: No model is named.
    """
    configuration = _configured(request)
    if not (configuration.model or "").strip():
        raise click.UsageError(
            '--judge llm needs a model: give --model M, or write [judge] model = "M" into '
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


def with_examples(setup: Setup, request: ModelRequest, workspace: Workspace | None) -> Setup:
    """Return the setup with the examples that the options request.

    An interrupted run with the same options keeps its examples, as long as the gold still confirms
    them.

    Args:
        setup: The setup.
        request: The options for the model.
        workspace: The workspace with the gold; None if there is none.

    Raises:
        FewShotError: There is no gold to take examples from.
    """
    if request.few_shot is None:
        return setup
    if request.few_shot == BUILT_IN:
        examples = built_in_examples(setup.taxonomy, setup.redaction)
        return replace(setup, examples=examples, noted=(("few_shot", BUILT_IN),))
    if workspace is None:
        raise FewShotError("there is no workspace yet, so there is no gold to show")
    count = request.examples or EXAMPLES
    setup = replace(setup, noted=(("few_shot", "gold"), ("examples", str(count))))
    order_of = SpanOrders(workspace)
    find_trace = traces_in_files(workspace)
    cases = [
        GoldCase(trace_id, positions.gold(setup.taxonomy, order_of(trace_id)), positions.sides)
        for trace_id, positions in words_by_trace(workspace, setup.taxonomy).items()
    ]
    interrupted = _interrupted_setup(setup, workspace, cases, find_trace)
    if interrupted is not None:
        return interrupted
    chosen = choose_examples(
        cases,
        setup.taxonomy,
        find_trace,
        setup.redaction,
        count=count,
        may_use=lambda trace_id: not held_out(workspace, trace_id),
    )
    return _add_examples(setup, chosen)


def _add_examples(setup: Setup, chosen: ChosenExamples) -> Setup:
    examples = tuple(example for _, example in chosen)
    return replace(setup, examples=examples, noted=(*setup.noted, *choice_parameters(chosen)))


def _interrupted_setup(
    setup: Setup, workspace: Workspace, cases: list[GoldCase], find_trace: TraceLookup
) -> Setup | None:
    """Return the setup of the last interrupted run with the same options, if it can continue."""
    parameters = {*setup.parameters.values(), *setup.noted}
    identity = setup.parameters.model, setup.host, setup.taxonomy.ref
    for run in reversed(workspace.runs()):
        settings = run.settings
        if (
            run.finished_at is not None
            or settings is None
            or not parameters <= set(settings.parameters)
        ):
            continue
        if (settings.model, settings.host, run.taxonomy) != identity:
            continue
        choices = recorded_choices(settings.parameters)
        chosen = repeat_examples(choices, cases, setup.taxonomy, find_trace, setup.redaction)
        if chosen is None:
            continue
        resumed = _add_examples(setup, chosen)
        if resumed.prompt.hash == settings.prompt:
            return resumed
    return None

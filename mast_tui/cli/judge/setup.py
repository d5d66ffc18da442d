"""The setup of a model judge, from the options and the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from mast_tui.adjudication import SpanOrders, words_by_trace
from mast_tui.cli.judge.options import ModelRequest
from mast_tui.configuration import JudgeConfiguration, read_judge_configuration
from mast_tui.exchange.csv_files import CsvRow, read_rows
from mast_tui.exchange.csv_labels import COLUMNS
from mast_tui.judges.llm.answer.parsing import find_mode
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.prompt.few_shot import (
    EXAMPLES,
    ExampleChoice,
    FewShotError,
    GoldCase,
    TraceLookup,
    built_in_examples,
    choose_examples,
    recorded_choices,
    repeat_examples,
    traces_in_files,
)
from mast_tui.judges.llm.run.setup import Setup, configured_setup
from mast_tui.judges.llm.teaching import (
    JudgeError,
    examples_of,
    guidelines_of,
    with_chosen,
    with_guidelines,
)
from mast_tui.labels import Target, VerdictValue
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
    "artefacts",
    "redact",
    "allow_http",
)
"""The options that have the name of the setting that they override."""


def _configuration_with_options(request: ModelRequest) -> JudgeConfiguration:
    """Return the configuration, with the options of the command in place of its values."""
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
    configuration = _configuration_with_options(request)
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
    """Return the setup with the examples and guidelines that the options request.

    An interrupted run with the same options keeps its examples, as long as the gold still confirms
    them.

    Args:
        setup: The setup without examples.
        request: The options for the model.
        workspace: The workspace with the gold; None if there is none.

    Raises:
        FewShotError: There are no examples, or no guidelines.
    """
    if request.guidelines:
        agreed = () if workspace is None else guidelines_of(workspace, setup.taxonomy.ref)
        if not agreed:
            raise FewShotError(
                f"no one has written a guideline on a mode of {setup.taxonomy.ref} yet; write one "
                "on the page of the mode in the app"
            )
        setup = with_guidelines(setup, agreed)
    if isinstance(request.examples, Path):
        return _with_own_examples(setup, request.examples, workspace)
    if request.few_shot is None:
        return setup
    if request.few_shot == BUILT_IN:
        examples = built_in_examples(setup.taxonomy, setup.redaction)
        return replace(setup, examples=examples, noted=(*setup.noted, ("few_shot", BUILT_IN)))
    if workspace is None:
        raise FewShotError("there is no workspace yet, so there is no gold to show")
    count = request.examples or EXAMPLES
    noted = (*setup.noted, ("few_shot", "gold"), ("examples", str(count)))
    setup = replace(setup, noted=noted)
    order_of = SpanOrders(workspace)
    find_trace = traces_in_files(workspace)
    cases = [
        GoldCase(trace_id, positions.gold(setup.taxonomy, order_of(trace_id)), positions.sides)
        for trace_id, positions in words_by_trace(workspace, setup.taxonomy).items()
    ]
    interrupted = _interrupted_setup(setup, workspace, cases, find_trace)
    if interrupted is not None:
        return interrupted
    chosen_examples = choose_examples(
        cases,
        setup.taxonomy,
        find_trace,
        setup.redaction,
        count=count,
        may_use=lambda trace_id: not held_out(workspace, trace_id),
    )
    return with_chosen(setup, chosen_examples)


def _with_own_examples(setup: Setup, path: Path, workspace: Workspace | None) -> Setup:
    """Return the setup with the examples of a file.

    Raises:
        FewShotError: There is no workspace, or an example cannot be used.
    """
    if workspace is None:
        raise FewShotError("there is no workspace here yet, so there are no traces to show")
    rows = list(_examples_in(path, setup.taxonomy))
    for row, error in rows:
        if held_out(workspace, error.trace_id):
            raise FewShotError(
                str(row.problem(f"{error.trace_id} is set aside; no prompt may show it"))
            )
    examples = examples_of(
        (error for _, error in rows),
        traces_in_files(workspace),
        setup.redaction,
        count=len(rows),
        may_use=lambda _: True,
    )
    usable = {choice for choice, _ in examples}
    for row, error in rows:
        if ExampleChoice(error.mode, error.right, error.trace_id) not in usable:
            raise FewShotError(
                str(row.problem("the trace, its spans or the quote in them were not found"))
            )
    setup = replace(setup, noted=(*setup.noted, ("examples", path.name)))
    return with_chosen(setup, examples)


_NEEDED: Final = ("trace_id", "mode", "value", "span_first")
"""The columns of a table of examples that must be there."""


def _examples_in(path: Path, taxonomy: Taxonomy) -> Iterator[tuple[CsvRow, JudgeError]]:
    """Yield each row of a table with its example.

    Raises:
        FewShotError: A row has no valid mode, value or span.
    """
    for row in read_rows(path, allowed=COLUMNS, needed=_NEEDED):
        cells = row.cells
        mode = find_mode(taxonomy, cells["mode"].strip())
        if mode is None:
            raise FewShotError(str(row.problem(f"{taxonomy.ref} has no mode {cells['mode']!r}")))
        if cells["value"] not in (VerdictValue.PRESENT, VerdictValue.ABSENT):
            raise FewShotError(str(row.problem("the value of an example is present or absent")))
        first = cells["span_first"]
        if not first:
            raise FewShotError(str(row.problem("an example needs a span in span_first")))
        last = cells.get("span_last", "") or first
        yield (
            row,
            JudgeError(
                cells["trace_id"].strip(),
                mode.slug,
                VerdictValue(cells["value"]),
                Target(first, last),
                cells.get("note", ""),
                cells.get("quote", "") or None,
            ),
        )


def _interrupted_setup(
    setup: Setup, workspace: Workspace, cases: list[GoldCase], find_trace: TraceLookup
) -> Setup | None:
    """Return the setup of the last interrupted run with the same options, if it can continue."""
    parameters = {*setup.parameters.values(), *setup.noted}
    identity = setup.parameters.model, setup.host, setup.taxonomy.ref
    for run in reversed(workspace.runs()):
        settings = run.settings
        if run.finished_at is not None or settings is None:
            continue
        if not parameters <= set(settings.parameters):
            continue
        if (settings.model, settings.host, run.taxonomy) != identity:
            continue
        choices = recorded_choices(settings.parameters)
        examples = repeat_examples(choices, cases, setup.taxonomy, find_trace, setup.redaction)
        if examples is None:
            continue
        resumed = with_chosen(setup, examples)
        if resumed.prompt.hash == settings.prompt:
            return resumed
    return None

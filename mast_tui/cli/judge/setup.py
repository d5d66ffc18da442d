"""From the options of ``mast-tui judge --judge llm`` and the configuration to what is asked."""

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
from mast_tui.exchange.csv_long import COLUMNS
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
    """Return the setup with the examples and guidelines that were asked for.

    A run with the same options that was broken off goes on with the examples that it began with,
    as long as the gold still says so.

    Args:
        setup: The setup without examples.
        request: The options.
        place: The workspace; None if there is none yet.

    Raises:
        FewShotError: There are no examples, or no guidelines.
    """
    if request.guidelines:
        agreed = () if place is None else guidelines_of(place, setup.taxonomy.ref)
        if not agreed:
            raise FewShotError(
                f"nobody has written a guideline on a mode of {setup.taxonomy.ref} yet; the page "
                "of a mode in the app is the place for them"
            )
        setup = with_guidelines(setup, agreed)
    if isinstance(request.examples, Path):
        return _with_own_examples(setup, request.examples, place)
    if request.few_shot is None:
        return setup
    if request.few_shot == BUILT_IN:
        examples = built_in_examples(setup.taxonomy, setup.redaction)
        return replace(setup, examples=examples, noted=(*setup.noted, ("few_shot", BUILT_IN)))
    if place is None:
        raise FewShotError("there is no workspace here yet, so there is no gold to show")
    count = request.examples or EXAMPLES
    noted = (*setup.noted, ("few_shot", "gold"), ("examples", str(count)))
    setup = replace(setup, noted=noted)
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
    return with_chosen(setup, chosen)


def _with_own_examples(setup: Setup, path: Path, place: Workspace | None) -> Setup:
    """Return the setup with the examples of a file, each of which has to be usable."""
    if place is None:
        raise FewShotError("there is no workspace here yet, so there are no traces to show")
    rows = list(_examples_in(path, setup.taxonomy))
    for row, error in rows:
        if held_out(place, error.trace_id):
            raise FewShotError(
                str(row.problem(f"{error.trace_id} is set aside; no prompt may show it"))
            )
    chosen = examples_of(
        (error for _, error in rows),
        traces_in_files(place),
        setup.redaction,
        count=len(rows),
        may_use=lambda _: True,
    )
    made = {choice for choice, _ in chosen}
    for row, error in rows:
        if ExampleChoice(error.mode, error.right, error.trace_id) not in made:
            raise FewShotError(
                str(row.problem("the trace, its spans or the quote in them were not found"))
            )
    setup = replace(setup, noted=(*setup.noted, ("examples", path.name)))
    return with_chosen(setup, chosen)


_NEEDED: Final = ("trace_id", "mode", "value", "span_first")
"""The columns of a table of examples that must be there."""


def _examples_in(path: Path, taxonomy: Taxonomy) -> Iterator[tuple[CsvRow, JudgeError]]:
    """Yield the examples of a table, each with its row."""
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
        again = with_chosen(setup, chosen)
        if again.prompt.hash == told.prompt:
            return again
    return None

"""``mast-tui judge --judge llm``: setup, estimate and run of a model judge."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from msgspec import structs

from mast_tui.adjudication import (
    SpanOrders,
    keep_missing_indices,
    read_work_by_trace,
    traces_from_files,
)
from mast_tui.cli.judge.command import JudgeRequest, ModelRequest, traces_under
from mast_tui.cli.judge.output import (
    BarProgress,
    Document,
    EstimateProgress,
    LineProgress,
    estimate_document,
    model_document,
    print_estimate,
    print_run,
    report_failures,
    run_progress,
    say_estimate,
)
from mast_tui.cli.shared.asking import command_viewer
from mast_tui.cli.shared.common import (
    load_taxonomy_or_mast,
    open_workspace,
    print_json,
    say,
    working_taxonomy,
)
from mast_tui.configuration import JudgeConfiguration, read_judge_configuration
from mast_tui.exchange.csv_files import CsvRow, read_rows
from mast_tui.exchange.csv_labels import COLUMNS
from mast_tui.judges.llm.answer.parsing import find_mode
from mast_tui.judges.llm.client.budget import Allowance
from mast_tui.judges.llm.client.endpoint import check_address, find_key
from mast_tui.judges.llm.prompt.few_shot import (
    EXAMPLES,
    ExampleChoice,
    ExampleSource,
    FewShotError,
    GoldCase,
    TraceLookup,
    built_in_examples,
    choose_examples,
    recorded_choices,
    repeat_examples,
)
from mast_tui.judges.llm.run.batch_files import AnswerFiles, Batch, RequestFiles
from mast_tui.judges.llm.run.estimate import RunEstimate, estimate_run
from mast_tui.judges.llm.run.recording import open_record, recording, replaying
from mast_tui.judges.llm.run.running import (
    Connect,
    ModelRunSummary,
    Watch,
    connect_to_server,
    run_model_judge,
)
from mast_tui.judges.llm.run.setup import (
    Setup,
    configured_setup,
    file_notice,
    is_notice_seen,
    record_notice,
    sending_notice,
)
from mast_tui.judges.llm.run.vendor_batches import VendorBatches
from mast_tui.judges.llm.teaching import (
    examples_of,
    guidelines_of,
    with_chosen_examples,
    with_guidelines,
)
from mast_tui.labels import Target, VerdictValue
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import FileReport
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import find_workspace, is_url
from mast_tui.workspace.registers.hold_out import held_out, set_aside

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
"""The options with the same name as the setting that they override."""


def _configuration_with_options(request: ModelRequest) -> JudgeConfiguration:
    """Return the configuration, overridden by the options."""
    options: dict[str, Any] = {name: getattr(request, name) or None for name in _OVERRIDES}
    options["temperature"] = request.temperature  # None means not given, since 0 is a temperature
    options["hints"] = False if request.no_hints else None
    return structs.replace(
        read_judge_configuration(),
        **{name: value for name, value in options.items() if value is not None},
    )


def build_setup(request: ModelRequest, taxonomy: Taxonomy) -> Setup:
    """Build the setup (model, server and prompt without examples) from options and configuration.

    Args:
        request: The options for the model.
        taxonomy: The taxonomy of the prompt.

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
    # Batches have a lower price.
    if (request.by_files or request.batch) and setup.prices is not None:
        setup = replace(setup, prices=setup.prices.times(configuration.batch_price))
    parameters = replace(
        setup.parameters, mode_order=request.mode_order, first_number=request.first_number
    )
    return replace(setup, parameters=parameters)


def with_examples(setup: Setup, request: ModelRequest, workspace: Workspace | None) -> Setup:
    """Add the requested examples and guidelines to the setup.

    An example is a trace with its right verdict, shown in the prompt. An interrupted run with the
    same options keeps its examples, if they still agree with the gold.

    Args:
        setup: The setup without examples.
        request: The options for the model.
        workspace: The workspace with the gold; None if there is none.

    Raises:
        FewShotError: There are no examples or guidelines, or an example cannot be used.
    """
    if request.guidelines:
        guidelines = () if workspace is None else guidelines_of(workspace, setup.taxonomy.ref)
        if not guidelines:
            raise FewShotError(
                f"no one has written a guideline on a mode of {setup.taxonomy.ref} yet; write one "
                "on the page of the mode in the app"
            )
        setup = with_guidelines(setup, guidelines)
    if isinstance(request.examples, Path):
        return _with_own_examples(setup, request.examples, workspace)
    if request.few_shot is None:
        return setup
    if request.few_shot == BUILT_IN:
        return replace(
            setup,
            examples=built_in_examples(setup.taxonomy, setup.redaction),
            noted=(*setup.noted, ("few_shot", BUILT_IN)),
        )
    return _with_gold_examples(setup, request.examples or EXAMPLES, workspace)


def _with_gold_examples(setup: Setup, count: int, workspace: Workspace | None) -> Setup:
    """Add examples from the gold to the setup.

    Raises:
        FewShotError: There is no workspace, or no gold for examples.
    """
    if workspace is None:
        raise FewShotError("there is no workspace yet, so there is no gold for examples")
    setup = replace(setup, noted=(*setup.noted, ("few_shot", "gold"), ("examples", str(count))))
    order_of = SpanOrders(workspace)
    find_trace = traces_from_files(workspace)
    cases = [
        GoldCase(trace_id, work.gold(setup.taxonomy, order_of(trace_id)), work.sides)
        for trace_id, work in read_work_by_trace(workspace, setup.taxonomy).items()
    ]
    interrupted = _interrupted_setup(setup, workspace, cases, find_trace)
    if interrupted is not None:
        return interrupted
    examples = choose_examples(
        cases,
        setup.taxonomy,
        find_trace,
        setup.redaction,
        count=count,
        may_use=lambda trace_id: not held_out(workspace, trace_id),
    )
    return with_chosen_examples(setup, examples)


def _with_own_examples(setup: Setup, path: Path, workspace: Workspace | None) -> Setup:
    """Add the examples of a file to the setup.

    Raises:
        FewShotError: There is no workspace, or an example cannot be used.
    """
    if workspace is None:
        raise FewShotError("there is no workspace yet, so there are no traces for examples")
    rows = list(_examples_in(path, setup.taxonomy))
    for row, requested in rows:
        trace_id = requested.choice.trace_id
        if held_out(workspace, trace_id):
            raise FewShotError(
                str(
                    row.problem(
                        f"{trace_id} is set aside and cannot be an example; choose another trace"
                    )
                )
            )
    examples = examples_of(
        (requested for _, requested in rows),
        traces_from_files(workspace),
        setup.redaction,
        count=len(rows),
        may_use=lambda _: True,  # the rows are checked above
    )
    usable_choices = set(map(ExampleChoice.from_example, examples))
    for row, requested in rows:
        if requested.choice not in usable_choices:
            raise FewShotError(
                str(row.problem("the trace, its spans or the quote in them were not found"))
            )
    setup = replace(setup, noted=(*setup.noted, ("examples", path.name)))
    return with_chosen_examples(setup, examples)


_NEEDED: Final = ("trace_id", "mode", "value", "span_first")
"""The required columns of a table of examples."""


def _examples_in(path: Path, taxonomy: Taxonomy) -> Iterator[tuple[CsvRow, ExampleSource]]:
    """Yield each row of a table of examples with its verdict.

    Raises:
        FewShotError: A row has no valid mode, value or span.
    """
    for row in read_rows(path, allowed=COLUMNS, needed=_NEEDED):
        cells = row.cells
        mode = find_mode(taxonomy, cells["mode"].strip())
        if mode is None:
            raise FewShotError(str(row.problem(f"{taxonomy.ref} has no mode {cells['mode']!r}")))
        if cells["value"] not in (VerdictValue.PRESENT, VerdictValue.ABSENT):
            raise FewShotError(
                str(row.problem("the value of an example must be present or absent"))
            )
        first = cells["span_first"]
        if not first:
            raise FewShotError(str(row.problem("an example needs a span in span_first")))
        last = cells.get("span_last", "") or first
        yield (
            row,
            ExampleSource(
                ExampleChoice(mode.slug, VerdictValue(cells["value"]), cells["trace_id"].strip()),
                Target(first, last),
                cells.get("note", ""),
                cells.get("quote", "") or None,
            ),
        )


def _interrupted_setup(
    setup: Setup, workspace: Workspace, cases: list[GoldCase], find_trace: TraceLookup
) -> Setup | None:
    """Return the setup of the newest interrupted run with the same options; None if none fits."""
    required_parameters = {*setup.parameters.values(), *setup.noted}
    identity = setup.parameters.model, setup.host, setup.taxonomy.ref
    for run in reversed(workspace.runs()):
        settings = run.settings
        if run.finished_at is not None or settings is None:
            continue
        # A run records more parameters than the options. The hash of the prompt covers the others.
        if not required_parameters <= set(settings.parameters):
            continue
        if (settings.model, settings.host, run.taxonomy) != identity:
            continue
        examples = repeat_examples(
            recorded_choices(settings.parameters),
            cases,
            setup.taxonomy,
            find_trace,
            setup.redaction,
        )
        if examples is None:
            continue
        resumed = with_chosen_examples(setup, examples)
        if resumed.prompt.hash == settings.prompt:
            return resumed
    return None


BY_SIGNAL: Final = 128
"""The base of the exit code for a run that a signal ended."""

_END_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def judge_with_model(request: JudgeRequest) -> int:
    """Judge traces with a model, and return the exit code."""
    model = request.model
    setup = build_setup(model, load_taxonomy_or_mast(request.common.taxonomy))
    asks_directly = model.replay is None and not model.by_files
    if asks_directly:
        check_address(setup.base_url, allow_http=setup.allow_http)
    if asks_directly and not model.dry_run:
        find_key(setup.base_url, setup.key_variable)  # fails before the estimate if there is no key
    workspace = _open_workspace(request)
    if model.hold_out is not None and workspace is not None and not model.dry_run:
        set_aside(workspace, model.hold_out)
    if workspace is not None:
        setup = replace(setup, taxonomy=working_taxonomy(workspace, request.common.taxonomy))
    setup = with_examples(setup, model, workspace)
    if model.dry_run:
        return dry_run(request, setup, workspace)
    assert workspace is not None
    with ExitStack() as files:
        run = _ModelRun(request, setup, workspace)
        if model.replay is not None:
            run.connect = replaying(model.replay)
            return run.judge_traces()
        if model.by_files:
            run.batch = _open_batch(model, setup, workspace, files, judges_again=request.again)
            run.connect = run.batch.connect
        elif model.batch:
            report = (lambda _: None) if request.quiet else say
            run.vendor = VendorBatches(setup, workspace, again=request.again, say=report)
        elif model.record is not None:
            run.connect = recording(files.enter_context(open_record(model.record)))
        run.announce()
        return run.judge_traces()


def _open_workspace(request: JudgeRequest) -> Workspace | None:
    """Open the workspace; None for a dry run without one, since it creates no file."""
    common = request.common
    dry_run = request.model.dry_run
    if not dry_run or (common.workspace is not None and is_url(common.workspace)):
        return open_workspace(common, create=not dry_run)
    return open_workspace(common) if find_workspace(common.workspace).exists() else None


def _run_estimate(
    request: JudgeRequest, setup: Setup, workspace: Workspace | None, reports: list[FileReport]
) -> RunEstimate:
    """Estimate a run, and append reports on files without traces to ``reports``."""
    with EstimateProgress(request.quiet) as counting:
        return estimate_run(
            setup,
            traces_under(request.paths, reports),
            workspace,
            again=request.again,
            on_trace=counting.on_trace,
        )


def dry_run(request: JudgeRequest, setup: Setup, workspace: Workspace | None) -> int:
    """Print the requests and cost of a run, and return the exit code.

    Args:
        request: The options of the command.
        setup: The model, its server and its prompt.
        workspace: The workspace with earlier answers; None if there is none.
    """
    reports: list[FileReport] = []
    estimate = _run_estimate(request, setup, workspace, reports)
    document = estimate_document(estimate, setup, sending_notice(setup), reports)
    if request.as_json:
        print_json(document)
    else:
        print_estimate(document, estimate, setup)
    report_failures(document)
    return 0  # unreadable files do not fail a dry run


class _ModelRun:
    """A run of a model judge, from its announcement to its summary.

    Attributes:
        connect: Opens the connection to the server or to recorded answers.
        batch: The batch files of the user; None for direct requests.
        vendor: The batches at a vendor; None for direct requests.
    """

    def __init__(self, request: JudgeRequest, setup: Setup, workspace: Workspace) -> None:
        self.connect: Connect = connect_to_server
        self.batch: Batch | None = None
        self.vendor: VendorBatches | None = None
        self._request = request
        self._setup = setup
        self._workspace = workspace
        self._estimate: RunEstimate | None = None
        self._reports: list[FileReport] = []
        self._hides_findings = command_viewer(
            workspace, setup.taxonomy.ref, request.common, allow_unknown=True
        ).judges_hidden
        self._ended_by: signal.Signals | None = None
        self._summary: ModelRunSummary | None = None
        """The result so far of a run that a signal ended."""

    def announce(self) -> None:
        """Report the estimate, and the notice on what is sent.

        A quiet run reports only the notice on sending. This notice is reported once per workspace.
        """
        only_reads_files = self.batch is not None and self.batch.requests is None
        if only_reads_files or (self.vendor is not None and self.vendor.is_pending):
            return
        if not self._request.quiet:  # An estimate reads every trace, which takes long.
            # The run itself reports unread files.
            self._estimate = _run_estimate(self._request, self._setup, self._workspace, reports=[])
            say_estimate(self._estimate, self._setup)
            if not self._estimate.to_judge:
                return
        if self.batch is not None:
            if not self._request.quiet:
                say(file_notice(self._setup))
        elif not is_notice_seen(self._workspace, self._setup):
            say(sending_notice(self._setup))
            record_notice(self._workspace, self._setup)

    def judge_traces(self) -> int:
        """Run the judge on all traces, print a summary, and return the exit code."""
        progress: LineProgress | BarProgress = LineProgress(
            self._request.quiet, hides_findings=self._hides_findings
        )
        if self.batch is None and self.vendor is None:
            progress = run_progress(
                self._estimate, self._setup.prices, hides_findings=self._hides_findings
            )
        start_run = partial(self._run_judge, progress)
        try:
            with progress:
                if self.vendor is not None:
                    run = self.vendor.run(
                        lambda vendor_batch: start_run(vendor_batch.connect, answers_deferred=True)
                    )
                else:
                    run = start_run(self.connect, answers_deferred=self.batch is not None)
                summary = asyncio.run(self._await_until_signal(run))
            keep_missing_indices(self._workspace)
            if self.batch is not None and self.batch.requests is not None:
                self.batch.requests.finish()
        except asyncio.CancelledError:
            if self._ended_by is None:
                raise
            if self._summary is not None:
                self._print_summary(self._summary)
            saved_text = "the answers so far are saved"
            if self.vendor is not None and self.vendor.is_pending:
                saved_text = f"sent requests continue at {self._setup.host}"
            say(
                f"mast-tui judge: ended by {self._ended_by.name}; {saved_text}, and the same "
                "command continues the run"
            )
            return BY_SIGNAL + self._ended_by
        finally:
            self._workspace.close()
        return report_failures(self._print_summary(summary))

    def _print_summary(self, summary: ModelRunSummary) -> Document:
        document = model_document(summary, self._setup, self._estimate, self._reports)
        batch = self.batch if self.vendor is None else self.vendor.batch
        if batch is not None:
            document["batch"] = _batch_document(batch, summary, self.vendor)
        return print_run(
            document,
            self._setup.taxonomy,
            hides_findings=self._hides_findings,
            as_json=self._request.as_json,
        )

    async def _await_until_signal(
        self, run: Coroutine[Any, Any, ModelRunSummary]
    ) -> ModelRunSummary:
        """Await a run, and cancel it at Ctrl-C or SIGTERM."""
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        assert task is not None

        def end(name: signal.Signals) -> None:
            self._ended_by = self._ended_by or name
            task.cancel()

        for name in _END_SIGNALS:
            loop.add_signal_handler(name, end, name)
        try:
            return await run
        finally:
            for name in _END_SIGNALS:
                loop.remove_signal_handler(name)

    async def _run_judge(
        self, progress: LineProgress | BarProgress, connect: Connect, *, answers_deferred: bool
    ) -> ModelRunSummary:
        """Run the judge on all traces, and keep the result so far if it is cancelled."""

        def keep_summary(summary: ModelRunSummary) -> None:
            self._summary = summary

        self._reports.clear()  # with batches, the judge runs several times
        return await run_model_judge(
            self._setup,
            traces_under(self._request.paths, self._reports),
            self._workspace,
            again=self._request.again,
            watch=Watch(
                progress.on_trace, progress.on_use, progress.on_wait, on_cancelled=keep_summary
            ),
            connect=connect,
            answers_deferred=answers_deferred,
        )


def _open_batch(
    options: ModelRequest,
    setup: Setup,
    workspace: Workspace,
    at_end: ExitStack,
    *,
    judges_again: bool,
) -> Batch:
    """Open the batch files that the options name.

    ``at_end`` closes them, and deletes incomplete ones.
    """
    answers = AnswerFiles(options.read_batch, at_end) if options.read_batch else None
    requests = None
    if options.write_batch is not None:
        requests = RequestFiles(options.write_batch)
        at_end.callback(requests.give_up)
    return Batch(setup, workspace, again=judges_again, answers=answers, requests=requests)


def _batch_document(
    batch: Batch, summary: ModelRunSummary, vendor: VendorBatches | None
) -> Document:
    """Return the counts of requests and answers in batches."""
    answers = batch.answers
    request_files = batch.requests if vendor is None else None  # a vendor receives no files
    return {
        "written": 0 if request_files is None else sum(request_files.counts),
        "files": [] if request_files is None else [str(path) for path in request_files.paths],
        "submitted": 0 if vendor is None else vendor.submitted,
        "batches": None if vendor is None else vendor.ids,
        "answers": 0 if answers is None else len(answers),
        "read": batch.read_count,
        "troubles": dict(batch.troubles.most_common()),
        "strangers": batch.count_strangers(),  # answers without a request of this run
        "broken": 0 if answers is None else answers.broken_count,
        "waiting": summary.waiting,
    }

"""``mast-tui judge --judge llm``: what it would cost, the run itself, and how it ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mast_tui.cli.judge.files import traces_under
from mast_tui.cli.judge.progress import BarLines, Counting, Lines, run_progress
from mast_tui.cli.judge.setup import SetupRequest, made_setup, with_examples
from mast_tui.cli.judge.summary import (
    Document,
    estimate_document,
    failed_files,
    model_document,
    print_estimate,
    print_summary,
    say_estimate,
    without_findings,
)
from mast_tui.cli.shared.asking import Asks
from mast_tui.cli.shared.common import (
    load_chosen_taxonomy,
    open_workspace,
    print_json,
    say,
    working_taxonomy,
)
from mast_tui.gc_tuning import seldom_collecting
from mast_tui.judges.llm.client.hosts import check_address
from mast_tui.judges.llm.client.keys import find_key
from mast_tui.judges.llm.run.batch_files import AnswerFiles, Batch, RequestFiles
from mast_tui.judges.llm.run.consent import is_told, note_told, what_is_sent, what_is_written
from mast_tui.judges.llm.run.estimate import estimate_run
from mast_tui.judges.llm.run.recording import open_record, recording, replaying
from mast_tui.judges.llm.run.running import Watch, connect_to_server, run_model_judge
from mast_tui.judges.llm.run.vendor_batches import VendorBatches
from mast_tui.workspace.paths import find_workspace, is_url
from mast_tui.workspace.registers.hold_out import set_aside

if TYPE_CHECKING:
    from mast_tui.judges.llm.run.estimate import Estimate
    from mast_tui.judges.llm.run.running import Connect, ModelRunSummary
    from mast_tui.judges.llm.run.setup import Setup
    from mast_tui.traces.model import FileReport
    from mast_tui.workspace import Workspace


BY_SIGNAL: Final = 128
"""Added to a signal's number where one ended the run."""

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, slots=True)
class ModelCommand:
    """What was asked for on the command line, and who asks; ``asked`` holds the options of the
    model by name."""

    paths: tuple[Path, ...]
    workspace: str | None
    taxonomy: Path | None
    again: bool
    quiet: bool
    as_json: bool
    asked: Mapping[str, Any]
    asks: Asks


@dataclass(slots=True)
class Ended:
    """By which signal a run was ended, and what had come of it; None where nothing was begun."""

    by: signal.Signals | None = None
    summary: ModelRunSummary | None = None

    def on_cancelled(self, summary: ModelRunSummary) -> None:
        """The run was cancelled."""
        self.summary = summary


def judge_with_model(command: ModelCommand) -> int:
    """Estimate, tell what is sent where, run, and sum up; the exit code."""
    request = SetupRequest.of(command.asked)
    setup = made_setup(request, load_chosen_taxonomy(command.taxonomy))
    asks_now = request.replay is None and not request.by_files
    if asks_now:
        check_address(setup.base_url, allow_http=setup.allow_http)
    if asks_now and not request.dry_run:
        find_key(setup.base_url, setup.key_variable)  # rather missed now than after the estimate
    place = _workspace(command, request)
    if request.hold_out is not None and place is not None and not request.dry_run:
        set_aside(place, request.hold_out)
    if place is not None:
        setup = replace(setup, taxonomy=working_taxonomy(place, command.taxonomy))
    setup = with_examples(setup, request, place)
    reports: list[FileReport] = []
    if request.dry_run:
        estimate = _estimate(command, setup, place, reports)
        return _dry_run(command, setup, estimate, reports)
    assert place is not None
    if request.replay is not None:
        return _run(command, setup, place, None, replaying(request.replay))
    with ExitStack() as files:
        if request.by_files:
            batch = opened_batch(request, setup, place, files, again=command.again)
            return _ask(command, setup, place, batch.connect, batch)
        connect: Connect = connect_to_server
        if request.batch:
            tell = (lambda _: None) if command.quiet else say
            vendor = VendorBatches(setup, place, again=command.again, say=tell)
            return _ask(command, setup, place, connect, vendor=vendor)
        if request.record is not None:
            connect = recording(files.enter_context(open_record(request.record)))
        return _ask(command, setup, place, connect)


def _ask(
    command: ModelCommand,
    setup: Setup,
    place: Workspace,
    connect: Connect,
    batch: Batch | None = None,
    vendor: VendorBatches | None = None,
) -> int:
    """Tell first what it takes and what is sent."""
    reports: list[FileReport] = []
    if batch is not None and batch.requests is None:  # nothing is sent, and nothing more to pay
        return _run(command, setup, place, None, connect, batch)
    if vendor is not None and vendor.under_way:  # it was told when that was sent
        return _run(command, setup, place, None, connect, vendor=vendor)
    if command.quiet:  # nobody would read the estimate, which costs reading every trace
        if batch is None:
            _tell_once(setup, place)
        return _run(command, setup, place, None, connect, batch, vendor)
    estimate = _estimate(command, setup, place, reports)
    say_estimate(estimate, setup)
    if estimate.to_judge and batch is not None:
        say(what_is_written(setup))
    elif estimate.to_judge:
        _tell_once(setup, place)
    return _run(command, setup, place, estimate, connect, batch, vendor)


def _workspace(command: ModelCommand, request: SetupRequest) -> Workspace | None:
    """The workspace; a dry run makes none, and does without where there is none."""
    if not request.dry_run or (command.workspace is not None and is_url(command.workspace)):
        return open_workspace(command.workspace, create=not request.dry_run)
    path = find_workspace(command.workspace)
    return open_workspace(command.workspace, create=False) if path.exists() else None


def _estimate(
    command: ModelCommand, setup: Setup, place: Workspace | None, reports: list[FileReport]
) -> Estimate:
    with Counting(command.quiet) as counting:
        return estimate_run(
            setup,
            traces_under(command.paths, reports),
            place,
            again=command.again,
            on_trace=counting.on_trace,
        )


def _dry_run(
    command: ModelCommand, setup: Setup, estimate: Estimate, reports: list[FileReport]
) -> int:
    document = estimate_document(estimate, setup, reports)
    if command.as_json:
        print_json(document)
    else:
        print_estimate(document, estimate, setup)
    failed_files(document)
    return 0


def _tell_once(setup: Setup, place: Workspace) -> None:
    """Say what is sent where before the first request to another machine, once a workspace."""
    if not is_told(place, setup):
        say(what_is_sent(setup))
        note_told(place, setup)


def _run(
    command: ModelCommand,
    setup: Setup,
    place: Workspace,
    estimate: Estimate | None,
    connect: Connect,
    batch: Batch | None = None,
    vendor: VendorBatches | None = None,
) -> int:
    reports: list[FileReport] = []
    ended = Ended()
    hidden = command.asks.hides_judges(place, setup.taxonomy)

    def sum_up(summary: ModelRunSummary) -> Document:
        document = model_document(summary, setup, estimate, reports)
        had = batch if vendor is None else vendor.batch
        if had is not None:
            document["batch"] = batch_document(had, summary, vendor)
        return without_findings(document) if hidden else document

    shown: Lines | BarLines = Lines(command.quiet, hidden=hidden)
    if batch is None and vendor is None:
        shown = run_progress(estimate, setup.prices, hidden=hidden)
    over = partial(_over_traces, command, setup, place, shown, reports, ended)
    try:
        with shown:
            if vendor is not None:
                run = vendor.run(lambda one: over(one.connect, deferred=True))
            else:
                run = over(connect, deferred=batch is not None)
            summary = asyncio.run(_until_signal(run, ended))
        if batch is not None and batch.requests is not None:
            batch.requests.done()
    except asyncio.CancelledError:
        if ended.by is None:
            raise
        waits = vendor is not None and vendor.under_way
        if ended.summary is not None:
            _sum_up(command, setup, sum_up(ended.summary))
        kept = (
            f"what was sent is under way at {setup.host}" if waits else "what was answered is kept"
        )
        say(
            f"mast-tui judge: ended by {ended.by.name}; {kept}, and the same command goes on where "
            "it stopped"
        )
        return BY_SIGNAL + ended.by
    finally:
        place.close()
    document = sum_up(summary)
    _sum_up(command, setup, document)
    return failed_files(document)


def _sum_up(command: ModelCommand, setup: Setup, document: Document) -> None:
    if command.as_json:
        print_json(document)
    else:
        print_summary(document, setup.taxonomy)


async def _until_signal(run: Coroutine[Any, Any, ModelRunSummary], ended: Ended) -> ModelRunSummary:
    with _ended_by_signals(ended), seldom_collecting():
        return await run


async def _over_traces(
    command: ModelCommand,
    setup: Setup,
    place: Workspace,
    shown: Lines | BarLines,
    reports: list[FileReport],
    ended: Ended,
    connect: Connect,
    *,
    deferred: bool,
) -> ModelRunSummary:
    reports.clear()  # of an earlier time that the same command went over them
    return await run_model_judge(
        setup,
        traces_under(command.paths, reports),
        place,
        again=command.again,
        watch=Watch(shown.on_trace, shown.on_use, shown.on_wait, on_cancelled=ended.on_cancelled),
        connect=connect,
        deferred=deferred,
    )


@contextmanager
def _ended_by_signals(ended: Ended) -> Iterator[None]:
    """Within, Ctrl-C and SIGTERM cancel the task, and the first stands in ``ended``."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def end(name: signal.Signals) -> None:
        ended.by = ended.by or name
        task.cancel()

    for name in _ENDING:
        loop.add_signal_handler(name, end, name)
    try:
        yield
    finally:
        for name in _ENDING:
            loop.remove_signal_handler(name)


def opened_batch(
    request: SetupRequest, setup: Setup, place: Workspace, files: ExitStack, *, again: bool
) -> Batch:
    """Open the files that are named.

    Args:
        request: Names them.
        setup: Who is asked what.
        place: What was answered before.
        files: Closes them; what was not finished is taken away.
        again: Whether everything is asked anew.

    Raises:
        BatchFileError: A file cannot be used.
    """
    answers = AnswerFiles(request.read_batch, files) if request.read_batch else None
    requests = None
    if request.write_batch is not None:
        requests = RequestFiles(request.write_batch)
        files.callback(requests.give_up)
    return Batch(setup, place, again=again, answers=answers, requests=requests)


def batch_document(
    batch: Batch, summary: ModelRunSummary, vendor: VendorBatches | None = None
) -> dict[str, Any]:
    """Tell what went through files.

    Args:
        batch: The files.
        summary: What came of the run.
        vendor: Who carried them, where it was not a person.
    """
    answers, requests = batch.answers, batch.requests
    return {
        "written": 0 if requests is None or vendor is not None else requests.requests,
        "files": [str(path) for path in requests.paths] if requests and vendor is None else [],
        "submitted": 0 if vendor is None else vendor.submitted,
        "batches": None if vendor is None else vendor.ids,
        "answers": 0 if answers is None else len(answers),
        "read": batch.news.read,
        "troubles": dict(batch.news.troubles.most_common()),
        "strangers": batch.strangers(),
        "broken": 0 if answers is None else answers.broken,
        "waiting": summary.waiting,
    }

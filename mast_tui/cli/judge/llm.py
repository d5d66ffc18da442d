"""``mast-tui judge --judge llm``: what it would cost, the run itself, and how it ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mast_tui.adjudication import keep_missing_indices
from mast_tui.cli.judge.options import JudgeRequest, ModelRequest, traces_under
from mast_tui.cli.judge.progress import BarLines, Counting, Lines, run_progress
from mast_tui.cli.judge.setup import made_setup, with_examples
from mast_tui.cli.judge.summary import (
    Document,
    estimate_document,
    failed_files,
    model_document,
    print_estimate,
    print_run,
    say_estimate,
)
from mast_tui.cli.shared.asking import asked_by
from mast_tui.cli.shared.common import (
    load_chosen_taxonomy,
    open_workspace,
    print_json,
    say,
    working_taxonomy,
)
from mast_tui.judges.llm.client.hosts import check_address
from mast_tui.judges.llm.client.keys import find_key
from mast_tui.judges.llm.run.batch_files import AnswerFiles, Batch, RequestFiles
from mast_tui.judges.llm.run.consent import is_told, note_told, what_is_sent, what_is_written
from mast_tui.judges.llm.run.estimate import Estimate, estimate_run
from mast_tui.judges.llm.run.recording import open_record, recording, replaying
from mast_tui.judges.llm.run.running import (
    Connect,
    ModelRunSummary,
    Watch,
    connect_to_server,
    run_model_judge,
)
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.judges.llm.run.vendor_batches import VendorBatches
from mast_tui.traces.model import FileReport
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import find_workspace, is_url
from mast_tui.workspace.registers.hold_out import set_aside

BY_SIGNAL: Final = 128
"""Added to a signal's number where one ended the run."""

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)


def judge_with_model(request: JudgeRequest) -> int:
    """Estimate, report what is sent where, run, and sum up; return the exit code."""
    model = request.model
    setup = made_setup(model, load_chosen_taxonomy(request.common.taxonomy))
    asks_now = model.replay is None and not model.by_files
    if asks_now:
        check_address(setup.base_url, allow_http=setup.allow_http)
    if asks_now and not model.dry_run:
        find_key(setup.base_url, setup.key_variable)  # rather missed now than after the estimate
    place = _workspace(request)
    if model.hold_out is not None and place is not None and not model.dry_run:
        set_aside(place, model.hold_out)
    if place is not None:
        setup = replace(setup, taxonomy=working_taxonomy(place, request.common.taxonomy))
    setup = with_examples(setup, model, place)
    if model.dry_run:
        return dry_run(request, setup, place)
    assert place is not None
    with ExitStack() as files:
        run = _ModelRun(request, setup, place)
        if model.replay is not None:
            run.connect = replaying(model.replay)
            return run.over_traces()
        if model.by_files:
            run.batch = _opened_batch(model, setup, place, files, again=request.again)
            run.connect = run.batch.connect
        elif model.batch:
            tell = (lambda _: None) if request.quiet else say
            run.vendor = VendorBatches(setup, place, again=request.again, say=tell)
        elif model.record is not None:
            run.connect = recording(files.enter_context(open_record(model.record)))
        run.tell_before()
        return run.over_traces()


def _workspace(request: JudgeRequest) -> Workspace | None:
    """The workspace; a dry run makes none, and does without where there is none."""
    common = request.common
    dry_run = request.model.dry_run
    if not dry_run or (common.workspace is not None and is_url(common.workspace)):
        return open_workspace(common, create=not dry_run)
    return open_workspace(common) if find_workspace(common.workspace).exists() else None


def _estimate(
    request: JudgeRequest, setup: Setup, place: Workspace | None, reports: list[FileReport]
) -> Estimate:
    with Counting(request.quiet) as counting:
        return estimate_run(
            setup,
            traces_under(request.paths, reports),
            place,
            again=request.again,
            on_trace=counting.on_trace,
        )


def dry_run(request: JudgeRequest, setup: Setup, place: Workspace | None) -> int:
    """Print what a run would send and cost, and return the exit code.

    Args:
        request: The options of the request.
        setup: The model, and how it is asked.
        place: The workspace, which has earlier answers; None where there is none.
    """
    reports: list[FileReport] = []
    estimate = _estimate(request, setup, place, reports)
    document = estimate_document(estimate, setup, what_is_sent(setup), reports)
    if request.as_json:
        print_json(document)
    else:
        print_estimate(document, estimate, setup)
    failed_files(document)
    return 0


class _ModelRun:
    """One run, from what is told before it to its summary.

    ``batch`` are files that somebody carries, ``vendor`` carries them itself, and with neither
    ``connect`` says whom to ask.
    """

    def __init__(self, request: JudgeRequest, setup: Setup, place: Workspace) -> None:
        self.connect: Connect = connect_to_server
        self.batch: Batch | None = None
        self.vendor: VendorBatches | None = None
        self._request = request
        self._setup = setup
        self._place = place
        self._estimate: Estimate | None = None
        self._reports: list[FileReport] = []
        viewer = asked_by(place, setup.taxonomy.ref, request.common, anybody=True)
        self._hidden = viewer.judges_hidden
        self._ended_by: signal.Signals | None = None
        self._summary: ModelRunSummary | None = None
        """What had come of it when it was ended by a signal."""

    def tell_before(self) -> None:
        """Tell what it takes, and once a workspace what is sent where."""
        reads_only = self.batch is not None and self.batch.requests is None
        if reads_only or (self.vendor is not None and self.vendor.is_pending):
            return
        if not self._request.quiet:  # else nobody reads it, and it costs reading every trace
            self._estimate = _estimate(self._request, self._setup, self._place, [])
            say_estimate(self._estimate, self._setup)
            if not self._estimate.to_judge:
                return
        if self.batch is not None:
            if not self._request.quiet:
                say(what_is_written(self._setup))
        elif not is_told(self._place, self._setup):
            say(what_is_sent(self._setup))
            note_told(self._place, self._setup)

    def over_traces(self) -> int:
        """Run, and sum up; the exit code."""
        shown: Lines | BarLines = Lines(self._request.quiet, hidden=self._hidden)
        if self.batch is None and self.vendor is None:
            shown = run_progress(self._estimate, self._setup.prices, hidden=self._hidden)
        judge = partial(self._judge, shown)
        try:
            with shown:
                if self.vendor is not None:
                    work = self.vendor.run(lambda one: judge(one.connect, deferred=True))
                else:
                    work = judge(self.connect, deferred=self.batch is not None)
                summary = asyncio.run(self._until_signal(work))
            keep_missing_indices(self._place)
            if self.batch is not None and self.batch.requests is not None:
                self.batch.requests.done()
        except asyncio.CancelledError:
            if self._ended_by is None:
                raise
            if self._summary is not None:
                self._print(self._summary)
            kept = "what was answered is kept"
            if self.vendor is not None and self.vendor.is_pending:
                kept = f"what was sent is under way at {self._setup.host}"
            say(
                f"mast-tui judge: ended by {self._ended_by.name}; {kept}, and the same command "
                "goes on where it stopped"
            )
            return BY_SIGNAL + self._ended_by
        finally:
            self._place.close()
        return failed_files(self._print(summary))

    def _print(self, summary: ModelRunSummary) -> Document:
        document = model_document(summary, self._setup, self._estimate, self._reports)
        had = self.batch if self.vendor is None else self.vendor.batch
        if had is not None:
            document["batch"] = _batch_document(had, summary, self.vendor)
        as_json = self._request.as_json
        return print_run(document, self._setup.taxonomy, hidden=self._hidden, as_json=as_json)

    async def _until_signal(self, run: Coroutine[Any, Any, ModelRunSummary]) -> ModelRunSummary:
        """What comes of a run; Ctrl-C and SIGTERM cancel it."""
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None

        def end(name: signal.Signals) -> None:
            self._ended_by = self._ended_by or name
            task.cancel()

        for name in _ENDING:
            loop.add_signal_handler(name, end, name)
        try:
            return await run
        finally:
            for name in _ENDING:
                loop.remove_signal_handler(name)

    async def _judge(
        self, shown: Lines | BarLines, connect: Connect, *, deferred: bool
    ) -> ModelRunSummary:
        def cancelled(summary: ModelRunSummary) -> None:
            self._summary = summary

        self._reports.clear()  # of an earlier time that the same command went over them
        return await run_model_judge(
            self._setup,
            traces_under(self._request.paths, self._reports),
            self._place,
            again=self._request.again,
            watch=Watch(shown.on_trace, shown.on_use, shown.on_wait, on_cancelled=cancelled),
            connect=connect,
            deferred=deferred,
        )


def _opened_batch(
    model: ModelRequest, setup: Setup, place: Workspace, files: ExitStack, *, again: bool
) -> Batch:
    """The files that are named; they are closed with ``files``, and unfinished ones taken away."""
    answers = AnswerFiles(model.read_batch, files) if model.read_batch else None
    requests = None
    if model.write_batch is not None:
        requests = RequestFiles(model.write_batch)
        files.callback(requests.give_up)
    return Batch(setup, place, again=again, answers=answers, requests=requests)


def _batch_document(
    batch: Batch, summary: ModelRunSummary, vendor: VendorBatches | None
) -> Document:
    """What went through files, which a person carried or a vendor."""
    answers, requests = batch.answers, batch.requests
    return {
        "written": 0 if requests is None or vendor is not None else sum(requests.counts),
        "files": [str(path) for path in requests.paths] if requests and vendor is None else [],
        "submitted": 0 if vendor is None else vendor.submitted,
        "batches": None if vendor is None else vendor.ids,
        "answers": 0 if answers is None else len(answers),
        "read": batch.read,
        "troubles": dict(batch.troubles.most_common()),
        "strangers": batch.strangers(),
        "broken": 0 if answers is None else answers.broken,
        "waiting": summary.waiting,
    }

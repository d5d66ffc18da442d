"""``mast-tui convert``: write traces in one format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from secrets import token_bytes
from typing import Final

import click

from mast_tui.cli.command_line import CommonOptions
from mast_tui.cli.shared import options
from mast_tui.cli.shared.asking import existing_workspace, hides_outcomes
from mast_tui.cli.shared.common import open_workspace, say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.output_files import Outputs, ReplacementRules
from mast_tui.redaction.masked_trace import Masks, requested_masks
from mast_tui.traces.atif_format import ATIF_OPENING, atif_line
from mast_tui.traces.io.json_values import dump_line
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.readers.converted import OPENING, line_of
from mast_tui.traces.scan.each_trace import each_trace
from mast_tui.traces.times import iso_time
from mast_tui.workspace.outputs import never_replaced, reason_to_keep, reason_to_protect
from mast_tui.workspace.paths import find_workspace
from mast_tui.workspace.registers.pseudonyms import mask_key

AGENTDEBUGX_OPENING: Final = b'{"framework":"mast-tui convert",'
"""The first bytes of an AgentDebugX file by this command."""

_KINDS: Final = {
    SpanKind.TOOL_CALL: "tool.call",
    SpanKind.TOOL_RESULT: "tool.result",
    SpanKind.REASONING: "reflection",
}
_ROLES: Final = {Role.SYSTEM: "run.start", Role.USER: "observation", Role.LOG: "observation"}

_MAX_ERROR_LENGTH: Final = 500


def agentdebugx_line(trace: Trace) -> bytes:
    """Return a trace as one line of JSON.

    The trace must be read to its end.
    """
    trace_id = trace.identity.trace_id
    events = [
        _agentdebugx_event(trace_id, trace.span(index), trace.text(index))
        for index in range(len(trace))
    ]
    record = {
        "framework": "mast-tui convert",
        "trace_id": trace_id,
        "task_id": trace.meta.task_id,
        "goal": trace.meta.task,
        "events": events,
    }
    return dump_line(record)


def _agentdebugx_event(trace_id: str, span: Span, text: str) -> dict[str, object]:
    event: dict[str, object] = {
        "event_id": span.key,
        "trace_id": trace_id,
        "agent_name": span.agent,
        "event_type": _KINDS.get(span.kind) or _ROLES.get(span.role, "agent.step"),
        "step_index": span.index,
    }
    timestamp = None if span.start is None else iso_time(span.start)
    if timestamp is not None:
        event["timestamp"] = timestamp
    if span.kind is SpanKind.TOOL_CALL:
        event["input"] = {"tool": span.name or "", "args": text}
    else:
        event["output"] = text
    if span.status is SpanStatus.ERROR:
        event["error"] = text[:_MAX_ERROR_LENGTH] or "error"
    return event


OWN: Final = "mast-tui"
ATIF: Final = "atif"
AGENTDEBUGX: Final = "agentdebugx"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRequest:
    """The options of ``mast-tui convert``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    output: Path = options.output(
        help="The file to write; an earlier output is replaced once everything has been read.",
        required=True,
    )
    text_format: str = options.option(
        "--to",
        type=click.Choice((OWN, ATIF, AGENTDEBUGX)),
        default=OWN,
        show_default=True,
        help="The project's own format, which loses nothing; ATIF, which many tools read; or the "
        "format of AgentDebugX.",
    )
    redact: bool = options.redact()
    redact_file: Path | None = options.redact_file()
    force: bool = options.force()
    workers: str | None = options.workers()
    common: CommonOptions = options.common(taxonomy=options.NO_LABELS)


@click.command()
@options.takes(ConvertRequest)
def convert_command(request: ConvertRequest) -> int:
    """Write traces as JSON lines, one trace per line.

    Each line holds the trace's id, the run's metadata (task, system, model, benchmark, outcome,
    score) and its spans in reading order with their whole texts. Ids and span keys are those of the
    original, so labels fit both. Blind annotators do not get outcome, score, reward, ground truth
    or labels carried in the files.

    With --to atif each line is a trajectory; a single trace is one JSON document. It never contains
    outcome, score or answer key, and values without an ATIF field are in extra. --to agentdebugx
    writes the format of AgentDebugX, also without them. 'mast-tui import' reads the findings of
    such tools.

    Example: mast-tui convert runs/ -o traces.jsonl
    """
    hide_outcomes = hides_outcomes(request.common)
    key = partial(_mask_key, request.common)
    masks = requested_masks(request.redact, request.redact_file, key)
    convert = partial(_converted_line, request.text_format, hide_outcomes, masks)
    outputs = Outputs(
        ReplacementRules(
            _reasons_to_keep(request.paths, request.force), reason_to_protect, request.force
        )
    )
    with WorkerPool(request.workers) as pool:
        conversion = _Conversion(convert, pool)
        outputs.add(request.output, conversion.lines(request), ours=_is_converted)
        outputs.commit()
    noun = "trace" if conversion.traces == 1 else "traces"
    say(f"{conversion.traces} {noun} written to {request.output}")
    return 1 if conversion.failed else 0


@dataclass(slots=True)
class _Conversion:
    """The conversion of traces, with its counts so far.

    Attributes:
        convert: Returns a trace as a line; None for a trace without the steps that the format
            needs.
        pool: The processes that read the traces.
        traces: The number of converted traces.
        failed: The number of files that could not be read.
    """

    convert: Callable[[Trace], bytes | None]
    pool: WorkerPool
    traces: int = 0
    failed: int = 0

    def lines(self, request: ConvertRequest) -> Iterator[bytes]:
        """Yield the converted traces, and report on stderr what cannot be converted.

        Raises:
            click.ClickException: There are no traces.
        """
        reports = each_trace(
            self.pool.reachable(request.paths),
            self.convert,
            self.pool.workers,
            without=(request.output,),
            tell=self.pool.show_progress,
        )
        for report, trace_lines in reports:
            if report.failed is not None:
                self.failed += 1
                say(f"mast-tui convert: {report.path}: {report.failed}")
            for line in trace_lines:
                self.pool.on_trace()
                if line is None:
                    say(f"mast-tui convert: {report.path}: no steps to judge; left out")
                    continue
                yield line
                self.traces += 1
        if self.traces == 0:
            raise click.ClickException("there are no traces to write; see 'mast-tui inspect'")


def _mask_key(common: CommonOptions) -> bytes:
    """Return the key for masks of the workspace; a random one without a workspace."""
    workspace = existing_workspace(common)
    return token_bytes() if workspace is None else mask_key(workspace)


def _converted_line(
    text_format: str, hide_outcomes: bool, masks: Masks | None, trace: Trace
) -> bytes | None:
    """Return a trace as a line; None for a trace without the steps that the format needs."""
    read_fully(trace)
    if masks is not None:
        trace = trace.with_masks(masks)
    if text_format == OWN:
        return line_of(trace, hides_outcomes=hide_outcomes)
    if not len(trace):
        return None
    return atif_line(trace) if text_format == ATIF else agentdebugx_line(trace)


def _is_converted(head: bytes) -> bool:
    return head.startswith((OPENING, ATIF_OPENING, AGENTDEBUGX_OPENING))


def _reasons_to_keep(paths: tuple[Path, ...], force: bool) -> Callable[[Path], str | None]:
    """Return a function that gives the reason to keep a file; None if it may be replaced.

    An earlier output of this command may be replaced, even if the workspace knows it as a trace.
    """

    def reason(target: Path) -> str | None:
        """Return the reason to keep the target; None if it may be replaced."""
        if target.is_file():
            with target.open("rb") as file:
                if _is_converted(file.read(len(ATIF_OPENING))):
                    return None
        # Without ``--force`` no existing file is replaced, so the workspace's traces do not matter.
        own_reason = reason_to_keep(paths, "convert", target)
        if own_reason or not force or not find_workspace(None).is_file():
            return own_reason
        workspace = open_workspace(CommonOptions(), announce=False)
        try:
            return never_replaced(workspace)(target)
        finally:
            workspace.close()

    return reason

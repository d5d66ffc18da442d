"""``mast-tui convert``: traces of any known format as one documented format, or as other tools'."""

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
from mast_tui.cli.shared.asking import hides_outcomes, workspace_there
from mast_tui.cli.shared.common import open_workspace, say
from mast_tui.cli.shared.workers import WorkerPool
from mast_tui.output_files import Outputs, Rules
from mast_tui.redaction.masked_trace import Masks, requested_masks
from mast_tui.traces.atif_format import ATIF_OPENING, atif_line
from mast_tui.traces.io.json_values import dump_line
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Role, Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.native_format import OPENING, line_of
from mast_tui.traces.scan.each_trace import each_trace
from mast_tui.traces.times import iso_time
from mast_tui.workspace.outputs import database_files, never_replaced, protected_kind
from mast_tui.workspace.paths import find_workspace
from mast_tui.workspace.registers.pseudonyms import mask_key

AGENTDEBUGX_OPENING: Final = b'{"framework":"mast-tui convert",'
"""What every trajectory begins with that is written here."""

_KINDS: Final = {
    SpanKind.TOOL_CALL: "tool.call",
    SpanKind.TOOL_RESULT: "tool.result",
    SpanKind.REASONING: "reflection",
}
_ROLES: Final = {Role.SYSTEM: "run.start", Role.USER: "observation", Role.LOG: "observation"}

_MOST_OF_AN_ERROR: Final = 500


def agentdebugx_line(trace: Trace) -> bytes:
    """Write a trace as one trajectory on one line, with its line feed.

    Args:
        trace: The trace; its index must be complete.
    """
    own_id = trace.identity.trace_id
    spans = [_event(own_id, trace.span(index), trace.text(index)) for index in range(len(trace))]
    record = {
        "framework": "mast-tui convert",
        "trace_id": own_id,
        "task_id": trace.meta.task_id,
        "goal": trace.meta.task,
        "events": spans,
    }
    return dump_line(record)


def _event(trace_id: str, span: Span, text: str) -> dict[str, object]:
    event: dict[str, object] = {
        "event_id": span.key,
        "trace_id": trace_id,
        "agent_name": span.agent,
        "event_type": _KINDS.get(span.kind) or _ROLES.get(span.role, "agent.step"),
        "step_index": span.index,
    }
    if span.start is not None and (told := iso_time(span.start)) is not None:
        event["timestamp"] = told
    if span.kind is SpanKind.TOOL_CALL:
        event["input"] = {"tool": span.name or "", "args": text}
    else:
        event["output"] = text
    if span.status is SpanStatus.ERROR:
        event["error"] = text[:_MOST_OF_AN_ERROR] or "error"
    return event


OWN: Final = "mast-tui"
ATIF: Final = "atif"
AGENTDEBUGX: Final = "agentdebugx"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertRequest:
    """The options of ``mast-tui convert``."""

    paths: tuple[Path, ...] = options.paths(required=True)
    output: Path = options.output(
        help="The file to write; one of an earlier run is replaced once everything has been read.",
        required=True,
    )
    text_format: str = options.option(
        "--to",
        type=click.Choice((OWN, ATIF, AGENTDEBUGX)),
        default=OWN,
        show_default=True,
        help="The project's own format, which loses nothing; ATIF, which many tools read; or what "
        "AgentDebugX reads.",
    )
    redact: bool = options.redact()
    redact_file: Path | None = options.redact_file()
    force: bool = options.force()
    workers: str | None = options.workers()
    common: CommonOptions = options.common(taxonomy=options.NO_LABELS)


@click.command()
@options.takes(ConvertRequest)
def convert_command(request: ConvertRequest) -> int:
    """Write traces as JSON lines, one trace a line.

    Each line holds the trace's id, what is known of the run (task, system, model, benchmark,
    outcome, score) and its spans in reading order with their whole texts. Ids and span keys are
    those of the original, so labels of the one fit the other. Blind annotators do not get outcome,
    score, reward, ground truth and labels carried in the files.

    With --to atif each line is a trajectory; of one trace the file is one JSON document. It never
    has outcome, score or answer key, and what ATIF has no field for stands in extra. --to
    agentdebugx writes what AgentDebugX diagnoses, without them too. What tools find in these files
    comes back by mast-tui import.
    """
    veiled = hides_outcomes(request.common)
    key = partial(_mask_key, request.common)
    masks = requested_masks(request.redact, request.redact_file, key)
    failed = traces = 0

    def lines() -> Iterator[bytes]:
        nonlocal failed, traces
        write = partial(_line, request.text_format, veiled, masks)
        found = each_trace(
            pool.reachable(request.paths),
            write,
            pool.workers,
            without=(request.output,),
            tell=pool.tell,
        )
        for report, written in found:
            if report.failed is not None:
                failed += 1
                say(f"mast-tui convert: {report.path}: {report.failed}")
            for line in written:
                pool.on_trace()
                if line is None:
                    say(f"mast-tui convert: {report.path}: no steps to judge; left out")
                    continue
                yield line
                traces += 1
        if traces == 0:
            raise click.ClickException(
                "there are no traces to write; 'mast-tui inspect' says what the files are"
            )

    outputs = Outputs(
        Rules(_never_replaced(request.paths, request.force), protected_kind, request.force)
    )
    with WorkerPool(request.workers) as pool:
        outputs.add(request.output, lines(), ours=_is_converted)
        outputs.commit()
    say(f"{traces} {'trace' if traces == 1 else 'traces'} written to {request.output}")
    return 1 if failed else 0


def _mask_key(common: CommonOptions) -> bytes:
    """Return the key of the workspace's masks, or a new one where there is no workspace."""
    workspace = workspace_there(common)
    return token_bytes() if workspace is None else mask_key(workspace)


def _line(text_format: str, veiled: bool, masks: Masks | None, trace: Trace) -> bytes | None:
    """Return a trace as a line; None where that needs steps and it has none."""
    read_fully(trace)
    if masks is not None:
        trace = masks.trace(trace)
    if text_format == OWN:
        return line_of(trace, veiled=veiled)
    if not len(trace):
        return None
    return atif_line(trace) if text_format == ATIF else agentdebugx_line(trace)


def _is_converted(head: bytes) -> bool:
    return head.startswith((OPENING, ATIF_OPENING, AGENTDEBUGX_OPENING))


def _never_replaced(paths: tuple[Path, ...], force: bool) -> Callable[[Path], str | None]:
    """Tell of a file why it stays: it is to be converted, or is the workspace or a trace there.

    What this command has written may be a trace that the workspace knows, and is replaced.
    """

    def reason(target: Path) -> str | None:
        workspace = find_workspace(None)
        if target in database_files(workspace):
            return "the labels are kept in this file"
        if not target.is_file():
            return None
        with target.open("rb") as file:
            if _is_converted(file.read(len(ATIF_OPENING))):
                return None
        if any(path.is_file() and path.samefile(target) for path in paths):
            return "this is a trace to convert, and traces are never written to"
        if not force or not workspace.is_file():
            return None
        place = open_workspace(CommonOptions(), announce=False)
        try:
            return never_replaced(place)(target)
        finally:
            place.close()

    return reason

"""One conversation to one trace, and what its record tells about the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.index.document import DocumentTrace, Step, StepList
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.model import Outcome, Trace, TraceMeta
from mast_tui.traces.readers.chat.containers import Conversation, Messages
from mast_tui.traces.readers.chat.messages import MessageMapper, speaks_by_name
from mast_tui.traces.readers.run_facts import facts_of_record, task_of

NAME: Final = "message-list"
KEY_SCHEME: Final = 1

_FLAVOURS: Final = {"tau-bench": "tau-bench", "Who&When": "who-and-when"}


def trace_of(
    path: Path, conversation: Conversation, record: int | None, content: bytes, prefix: str
) -> DocumentTrace:
    """The trace of a conversation with this content; ``prefix`` is the record's place."""
    steps = StepList()
    by_name = speaks_by_name([message for _key, message in conversation.messages])
    mapper = MessageMapper(steps, by_name=by_name, prefix=prefix)
    for key, message in conversation.messages:
        mapper.add(message, key)
    mapper.count_tokens(conversation.usage)
    identity = identity_by_content(path, record, content, reader=NAME, key_scheme=KEY_SCHEME)
    meta = _facts(conversation.record, conversation.messages, steps.steps)
    model = conversation.model or meta.model or mapper.model
    return DocumentTrace(
        identity,
        path,
        steps.steps,
        record=record,
        meta=replace(meta, model=model),
        problems=mapper.problems,
    )


def format_of(traces: Sequence[Trace]) -> str:
    """The name of the set that all traces of a file belong to, else the reader's own."""
    formats = {_FLAVOURS.get(trace.meta.benchmark or "", NAME) for trace in traces}
    return formats.pop() if len(formats) == 1 else NAME


def _facts(record: Mapping[str, object], messages: Messages, steps: Sequence[Step]) -> TraceMeta:
    meta = facts_of_record(record, steps)
    system = meta.system or _system(messages)
    if "history" in record and "mistake_agent" in record:
        # A correct answer is no success here: the set holds runs that failed.
        outcome = Outcome.FAILED if meta.outcome is Outcome.FAILED else Outcome.UNKNOWN
        return replace(meta, system=system, benchmark="Who&When", outcome=outcome)
    if "traj" in record and "reward" in record:
        hidden = meta.hidden
        info = record.get("info")
        if isinstance(info, Mapping) and info.get("task") is not None:
            hidden += (("task", dump_text(info["task"])),)
        task = task_of(steps=steps)
        return replace(meta, task=task, system=system, benchmark="tau-bench", hidden=hidden)
    return replace(meta, system=system)


def _system(messages: Messages) -> str | None:
    """The framework that the speakers give away."""
    speakers = set()
    for _key, message in messages:
        if isinstance(message, Mapping):
            speakers.add(as_text(message.get("role")))
            speakers.add(as_text(message.get("name")))
    if any(speaker and speaker.startswith("Orchestrator (") for speaker in speakers):
        return "Magentic-One"
    return "AG2" if "Computer_terminal" in speakers else None

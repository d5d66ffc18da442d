"""mini-swe-agent's trajectories: chat messages whose commands stand in the text or in tool calls.

Since release 1 a file is ``{"info", "messages", "trajectory_format"}``; before that it was the bare
list of messages, which is known by the code blocks that hold the commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from mast_tui.traces.identity import identity_by_content
from mast_tui.traces.index.document import DocumentTrace, Step, StepList
from mast_tui.traces.io.decoding import as_utf8
from mast_tui.traces.io.json_values import as_text, dump_text
from mast_tui.traces.io.source import Source
from mast_tui.traces.model import FileReport, Role, SpanKind, TraceMeta
from mast_tui.traces.readers.json_documents import json_lines_head, read_document
from mast_tui.traces.readers.run_facts import facts_of_record
from mast_tui.traces.readers.swe_agent.mini_messages import MiniMessages

_FORMAT: Final = "mini-swe-agent"
_MARKS: Final = (b'"mini_version"', b'"trajectory_format"', b'"messages"')
_OWN_BLOCK: Final = "```mswea_bash_command\n"
_BLOCK: Final = re.compile(r"```bash[ \t]*\n")
_OBSERVED: Final = re.compile(r"\s*<returncode>-?\d{1,9}</returncode>\s*<output")
_LOOKED_AT: Final = 12


@dataclass(frozen=True, slots=True)
class MiniSweAgentReader:
    """Reads mini-swe-agent's files; span keys are JSON pointers, tool calls go by their id."""

    name: ClassVar[str] = "mini-swe-agent"
    key_scheme: ClassVar[int] = 1

    def recognises(self, source: Source) -> bool:
        """Whether the file names the format, or its messages hold commands as only it has them."""
        head = as_utf8(source.head)
        begin = head.lstrip()[:1]
        if begin == b"[":
            if b"```mswea_bash_command" not in head and b"<returncode>" not in head:
                return False
        elif begin != b"{" or not any(mark in head for mark in _MARKS):
            return False
        if len(json_lines_head(source)) > 1:
            return False
        return _messages(read_document(source)) is not None

    def read(self, source: Source) -> FileReport:
        """The file's one trace."""
        document = read_document(source)
        record: Mapping[str, object] = document if isinstance(document, Mapping) else {}
        steps = StepList()
        messages = MiniMessages(steps)
        pointer = "/messages" if record else ""
        for number, message in enumerate(_messages(document) or ()):
            messages.add(message, f"{pointer}/{number}")
        info = record.get("info")
        facts: Mapping[str, object] = info if isinstance(info, Mapping) else {}
        _add_ending(steps, facts)
        identity = identity_by_content(
            source.path, None, source.data, reader=self.name, key_scheme=self.key_scheme
        )
        trace = DocumentTrace(
            identity,
            source.path,
            steps.steps,
            meta=_meta(facts, steps.steps),
            problems=messages.problems,
        )
        return FileReport(source.path, format=self.name, traces=(trace,))


READER: Final = MiniSweAgentReader()


def _messages(document: object) -> list[object] | None:
    """The messages of a file of this format; None where it is of another."""
    if isinstance(document, list):
        return document if _is_bare_run(document) else None
    if not isinstance(document, Mapping):
        return None
    messages, info = document.get("messages"), document.get("info")
    if not isinstance(messages, list):
        return None
    named = as_text(document.get("trajectory_format")) or ""
    if named.startswith(_FORMAT) or (isinstance(info, Mapping) and "mini_version" in info):
        return messages
    return None


def _is_bare_run(messages: list[object]) -> bool:
    """Whether the first messages are texts with commands in code blocks, and what came of them.

    The name of the block is the format's own; of the older ``bash`` blocks each must be answered
    by the format's own return code.
    """
    asked = answered = 0
    for message in messages[:_LOOKED_AT]:
        if not isinstance(message, Mapping):
            return False
        role, content = message.get("role"), message.get("content")
        if role not in ("system", "user", "assistant") or not isinstance(content, str):
            return False
        if role == "assistant":
            if _OWN_BLOCK in content:
                return True
            asked += len(_BLOCK.findall(content)) == 1
        elif role == "user" and _OBSERVED.match(content):
            answered += 1
    return answered > 0 and asked - 1 <= answered <= asked


def _add_ending(steps: StepList, info: Mapping[str, object]) -> None:
    """How the run ended, and its submission unless a message shows just that."""
    shown = {step.text.strip() for step in steps.steps[-2:]}
    for field in ("exit_status", "submission"):
        text = dump_text(info.get(field))
        if text.strip() and text.strip() not in shown:
            pointer = f"/info/{field}"
            steps.add(pointer, SpanKind.LOG, Role.LOG, "log", text, place=pointer, name=field)


def _meta(info: Mapping[str, object], steps: Sequence[Step]) -> TraceMeta:
    meta = facts_of_record(info, steps)
    config = info.get("config")
    model = config.get("model") if isinstance(config, Mapping) else None
    name = as_text(model.get("model_name")) if isinstance(model, Mapping) else None
    return replace(meta, system=_FORMAT, model=name or meta.model)

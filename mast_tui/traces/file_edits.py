"""The changes that a run made to files, and files as of a span, rebuilt from its tool calls.

What a shell command does to a file is not known, but for texts that it writes with ``<<``. So a
file is known as a whole only if the run wrote all of it, and later edits fit.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import ndiff
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import SpanKind, SpanStatus, Trace

_MAX_CHARS: Final = 1 << 20
"""The longest text of a call that is looked at."""

_MAX_COMPARED_LINES: Final = 400
"""The most lines of a text that is compared line by line."""

_PATHS: Final = ("file_path", "filePath", "path", "filename", "target_file", "notebook_path")
_WHOLE: Final = ("file_text", "content", "contents", "new_source")
_OLD: Final = ("old_string", "old_str", "oldString", "oldText", "old_text")
_NEW: Final = ("new_string", "new_str", "newString", "newText", "new_text", "insert_text")
_WRITERS: Final = re.compile(r"write|create|save|notebook", re.IGNORECASE)
_PATCH_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+)")
_DIFF_FILE: Final = re.compile(r"^--- (?:a/)?(\S+).*\n\+\+\+ (?:b/)?(\S+).*$", re.MULTILINE)
_HEREDOC: Final = re.compile(
    r"(?:cat|tee)\b(?P<before>[^\n|;&]*?)<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)"
    r"(?P<after>[^\n]*)\n(?P<text>.*?)^(?P=end)\s*$",
    re.DOTALL | re.MULTILINE,
)
_REDIRECTION: Final = re.compile(r"(>{1,2})\s*([^\s<>|;&]+)")
_OPEN_FILE: Final = re.compile(r"\[File: (.{1,1000}?) \(\d+ lines total\)\]")
_LINES: Final = re.compile(r"edit (\d+):(\d+)\s*\n(.*)", re.DOTALL)
_REFUSED: Final = ("Your proposed edit has introduced", "No replacement was performed")
_EDITOR: Final = "str_replace_editor"


class Hunk(NamedTuple):
    """A text in place of another, or of the lines ``first`` to ``last``.

    ``last`` is 0 where the text is inserted after the line ``first``.
    """

    old: str
    new: str
    first: int | None = None
    last: int = 0

    def lines(self) -> Iterator[str]:
        """Yield the lines of the change, each with ``-``, ``+`` or a space before it."""
        old = self.old.splitlines()
        new = self.new.splitlines()
        if self.first is not None:
            range_text = (
                f"lines {self.first} to {self.last}" if self.last else f"after {self.first}"
            )
            yield f"@@ {range_text} @@"
        if len(old) + len(new) > _MAX_COMPARED_LINES:
            yield from (f"-{line}" for line in old)
            yield from (f"+{line}" for line in new)
            return
        for line in ndiff(old, new):
            if not line.startswith("?"):
                yield f"{line[0]}{line[2:]}"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change of one file by one call.

    ``index`` is that of the call's span. ``whole`` is the text of the file afterwards if the call
    gives all of it. ``failed`` says that the result of the call is an error, or refuses the edit.
    """

    index: int
    path: str
    hunks: tuple[Hunk, ...] = ()
    whole: str | None = None
    deleted: bool = False
    failed: bool = False

    def lines(self) -> Iterator[str]:
        """Yield the lines of the change, each with ``-``, ``+`` or a space before it."""
        if self.deleted:
            yield "@@ deleted @@"
        if self.whole is not None:
            yield "@@ all of it @@"
            yield from (f"+{line}" for line in self.whole.splitlines())
        for hunk in self.hunks:
            yield from hunk.lines()

    def applied_to(self, text: str | None) -> str | None:
        """Return the text of the file after the edit; None if that is unknown."""
        if self.failed:
            return text
        if self.deleted:
            return None
        if self.whole is not None:
            text = self.whole
        for hunk in self.hunks:
            text = None if text is None else _replaced(text, hunk)
        return text


def file_edits(trace: Trace, end: int) -> list[FileEdit]:
    """Return the changes of files in the order of the calls.

    Args:
        trace: The trace.
        end: The span up to which calls are looked at, exclusive.

    Raises:
        OSError: A text cannot be read any more.
    """
    edits: list[FileEdit] = []
    by_call: dict[str, list[int]] = {}
    open_file = ""
    for index in range(end):
        span = trace.span(index)
        if span.kind is SpanKind.TOOL_CALL:
            text = trace.text(index)
            if len(text) <= _MAX_CHARS:
                call_edits = [replace(edit, index=index) for edit in _edits_of(span.name, text)]
                by_call[span.key] = list(range(len(edits), len(edits) + len(call_edits)))
                edits += call_edits
        elif span.parent in by_call and span.kind is SpanKind.TOOL_RESULT:
            positions = by_call.pop(span.parent)
            if positions:
                result = trace.text(index)
                failed = span.status is SpanStatus.ERROR or result.startswith(_REFUSED)
                named = _OPEN_FILE.search(result)
                open_file = open_file if named is None else named[1]
                for position in positions:
                    edit = edits[position]
                    if edit.path in ("", _base_name(open_file)):
                        edit = replace(edit, path=open_file)
                    edits[position] = replace(edit, failed=failed)
    return [edit for edit in edits if edit.path]


def edits_by_file(edits: Sequence[FileEdit]) -> dict[str, list[FileEdit]]:
    """Return the edits of each file, the file that was changed last first.

    A relative path is that of the one absolute path that ends with it.
    """
    absolute = {edit.path for edit in edits if edit.path.startswith("/")}
    files: dict[str, list[FileEdit]] = {}
    for edit in edits:
        same = [path for path in absolute if path.endswith(f"/{edit.path.removeprefix('./')}")]
        path = same[0] if len(same) == 1 else edit.path
        files.setdefault(path, []).append(edit)
    return dict(sorted(files.items(), key=lambda item: -item[1][-1].index))


def file_text(edits: Sequence[FileEdit]) -> str | None:
    """Return the text of a file after its edits; None if it is not known."""
    text: str | None = None
    for edit in edits:
        text = edit.applied_to(text)
    return text


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _replaced(text: str, hunk: Hunk) -> str | None:
    """Return a text with a hunk in it; None if the hunk does not fit."""
    if hunk.first is not None:
        lines = text.splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        new = [f"{line}\n" for line in hunk.new.splitlines()]
        if hunk.last:
            lines[hunk.first - 1 : hunk.last] = new
        else:
            lines[hunk.first : hunk.first] = new
        return "".join(lines)
    if not hunk.old:
        return text + hunk.new if text else hunk.new
    return text.replace(hunk.old, hunk.new, 1) if hunk.old in text else None


def _edits_of(name: str | None, text: str) -> Iterator[FileEdit]:
    """Yield the edits of a call; their index and outcome are added later."""
    arguments: object = None
    if text[:1] in ("{", "["):
        with suppress(InvalidJSON):
            arguments = load_json(text)
    strings = [text] if arguments is None else list(_strings(arguments))
    has_edits = False
    for string in strings:
        for edit in (*_patch_edits(string), *_diff_edits(string), *_heredoc_edits(string)):
            has_edits = True
            yield edit
    if has_edits:
        return
    if isinstance(arguments, Mapping):
        yield from _argument_edits(name or "", arguments)
    elif arguments is None:
        yield from _command_edits(text)


def _strings(value: object) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for held in value.values():
            yield from _strings(held)
    elif isinstance(value, list):
        for held in value:
            yield from _strings(held)


def _first(arguments: Mapping[str, object], names: Sequence[str]) -> str | None:
    values = (arguments.get(name) for name in names)
    return next((value for value in values if isinstance(value, str)), None)


def _argument_edits(name: str, arguments: Mapping[str, object]) -> Iterator[FileEdit]:
    """Yield the edits that the arguments of a call describe by the names of their fields."""
    path = _first(arguments, _PATHS)
    if not path:
        return
    listed = arguments.get("edits")
    changes = listed if isinstance(listed, list) else [arguments]
    hunks = [
        hunk
        for change in changes
        if isinstance(change, Mapping) and (hunk := _hunk_of(change)) is not None
    ]
    whole = _first(arguments, _WHOLE)
    if hunks and not hunks[0].old and hunks[0].first is None:  # a new file, as Claude Code has it
        yield FileEdit(0, path, tuple(hunks[1:]), whole=hunks[0].new)
    elif hunks:
        yield FileEdit(0, path, tuple(hunks))
    elif whole is not None and (_WRITERS.search(name) or arguments.get("command") == "create"):
        yield FileEdit(0, path, whole=whole)


def _hunk_of(change: Mapping[str, object]) -> Hunk | None:
    new = _first(change, _NEW)
    old = _first(change, _OLD)
    line = change.get("insert_line")
    if isinstance(line, int) and new is not None:
        return Hunk("", new, line)
    return None if old is None else Hunk(old, new or "")


def _patch_edits(text: str) -> Iterator[FileEdit]:
    """Yield the edits of a patch as Codex writes it, ``*** Begin Patch``."""
    start = text.find("*** Begin Patch")
    if start < 0:
        return
    files: list[tuple[str, str, list[str]]] = []
    for line in text[start:].splitlines()[1:]:
        match = _PATCH_FILE.fullmatch(line.rstrip())
        if match is not None:
            files.append((match[1], match[2], []))
        elif line.startswith("*** End Patch"):
            break
        elif files and not line.startswith("*** "):
            files[-1][2].append(line)
    for action, path, lines in files:
        if action == "Add":
            added = [line[1:] for line in lines if line.startswith("+")]
            yield FileEdit(0, path, whole="".join(f"{line}\n" for line in added))
        else:
            yield FileEdit(0, path, tuple(_hunks_of(lines)), deleted=action == "Delete")


def _diff_edits(text: str) -> Iterator[FileEdit]:
    """Yield the edits of a unified diff."""
    matches = list(_DIFF_FILE.finditer(text))
    for number, match in enumerate(matches, 1):
        end = matches[number].start() if number < len(matches) else len(text)
        lines = text[match.end() : end].splitlines()
        hunks = tuple(_hunks_of(lines))
        if hunks:
            deleted = match[2] == "/dev/null"
            yield FileEdit(0, match[1] if deleted else match[2], hunks, deleted=deleted)


def _hunks_of(lines: Sequence[str]) -> Iterator[Hunk]:
    """Yield the hunks of lines with ``-``, ``+`` or a space before them, apart at ``@@``."""
    old: list[str] = []
    new: list[str] = []
    for line in (*lines, "@@"):
        if line.startswith("@@"):
            if old or new:
                yield Hunk("".join(old), "".join(new))
            old = []
            new = []
        elif line[:1] in ("-", "+", " "):
            if line[0] != "+":
                old.append(f"{line[1:]}\n")
            if line[0] != "-":
                new.append(f"{line[1:]}\n")


def _heredoc_edits(text: str) -> Iterator[FileEdit]:
    """Yield the files that a shell command writes with ``cat > FILE <<'EOF'`` or the like."""
    for match in _HEREDOC.finditer(text):
        redirections = f"{match['before']} {match['after']}"
        target = _REDIRECTION.search(redirections)
        if target is not None:
            path = target[2].strip("'\"")
            if target[1] == ">>":
                yield FileEdit(0, path, (Hunk("", match["text"]),))
            elif not path.startswith("/dev/"):
                yield FileEdit(0, path, whole=match["text"])


def _command_edits(text: str) -> Iterator[FileEdit]:
    """Yield the edit of a command of SWE-agent: ``create``, ``edit``, ``insert`` or its editor.

    The file of ``edit`` and ``insert`` is the open one, which their result names.
    """
    command = text.split(None, 1)[0] if text.strip() else ""
    if command not in ("create", "edit", "insert", _EDITOR):
        return
    by_lines = _LINES.match(text)
    if by_lines is not None:
        new = by_lines[3].removesuffix("\n").removesuffix("end_of_edit")
        yield FileEdit(0, "", (Hunk("", new, int(by_lines[1]), int(by_lines[2])),))
        return
    try:
        tokens = shlex.split(text)
    except ValueError:
        return
    match tokens:
        case ["create", path]:
            yield FileEdit(0, path, whole="")
        case ["edit", old, new]:
            yield FileEdit(0, "", (Hunk(old, new),))
        case ["insert", new, line] if line.isdigit():
            yield FileEdit(0, "", (Hunk("", new, int(line)),))
        case ["insert", new]:
            yield FileEdit(0, "", (Hunk("", new),))
        case [_, action, path, *options]:
            names = [option.removeprefix("--") for option in options[::2]]
            arguments = dict(zip(names, options[1::2], strict=False))
            line = arguments.pop("insert_line", "")
            insert_line = {"insert_line": int(line)} if line.isdigit() else {}
            yield from _argument_edits(
                action, {"command": action, "path": path, **arguments, **insert_line}
            )
        case _:
            return

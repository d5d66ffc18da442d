"""The changes of a run to files, and the texts of files after them, rebuilt from tool calls.

Shell commands that write a text with ``<<`` or delete files are followed. After another command
that changes a file, such as ``sed -i``, the text of the file is unknown. The text is known only if
the run wrote the whole file, and all later edits fit.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from difflib import ndiff
from itertools import chain, pairwise
from typing import Final, NamedTuple

from mast_tui.traces.io.json_values import InvalidJSON, load_json
from mast_tui.traces.model import Span, SpanKind, SpanStatus, Trace
from mast_tui.traces.result_status import REFUSED

_MAX_CHARS: Final = 1 << 20
"""The longest text of a call that is examined."""

_MAX_SCRIPT_CHARS: Final = 20_000
"""The longest shell script whose commands are followed."""

_MAX_COMPARED_LINES: Final = 400
"""The most lines of a text that is compared line by line."""

_PATH_KEYS: Final = ("file_path", "filePath", "path", "filename", "target_file", "notebook_path")
_FULL_TEXT_KEYS: Final = ("file_text", "content", "contents")
_OLD_TEXT_KEYS: Final = ("old_string", "old_str", "oldString", "oldText", "old_text")
_NEW_TEXT_KEYS: Final = ("new_string", "new_str", "newString", "newText", "new_text", "insert_text")
_REPLACE_ALL_KEYS: Final = ("replace_all", "replaceAll", "allow_multiple")
_WRITERS: Final = re.compile(r"write|create|save", re.IGNORECASE)
_PATCH_FILE: Final = re.compile(r"\*\*\* (Add|Update|Delete|Move)(?: File| to): (.+)")
_DIFF_FILE: Final = re.compile(r"^--- (?:a/)?(\S+).*\n\+\+\+ (?:b/)?(\S+).*$", re.MULTILINE)
_HEREDOC: Final = re.compile(
    r"(?:cat|tee)\b(?P<before>[^\n|;&]*?)<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)"
    r"(?P<after>[^\n]*)\n(?P<text>.*?)^(?P=end)\s*$",
    re.DOTALL | re.MULTILINE,
)
_INPUT_TEXT: Final = re.compile(
    r"<<-?\s*['\"]?(?P<end>\w+)['\"]?[^\n]*\n.*?^(?P=end)\s*$", re.DOTALL | re.MULTILINE
)
"""A text after ``<<`` that a shell command reads."""

_COMMAND_KEYS: Final = ("command", "cmd", "script", "keystrokes")
"""The arguments that hold a shell command, as text or as a list of words."""

_SEPARATORS: Final = frozenset({";", "&&", "||", "|", "&", "(", ")"})
"""The tokens between the commands of a line."""

_BEFORE_COMMANDS: Final = frozenset({"then", "do", "else", "{", "!", "sudo", "time"})
"""The words that may precede a command."""

_IN_PLACE_OPTION: Final = re.compile(r"-[a-zA-Z]*i|--in-place")
"""``-i`` of sed and perl, alone or as in ``-pi.bak`` and ``-Ei``."""

_REDIRECTION: Final = re.compile(r"""(>{1,2})\s*('[^'\n]+'|"[^"\n]+"|[^\s<>|;&]+)""")
_OPEN_FILE: Final = re.compile(r"\[File: (.{1,1000}?) \(\d+ lines total\)\]")
_LINES: Final = re.compile(r"edit (\d+):(\d+)\s*\n(.*)", re.DOTALL)
_EDITING_WORDS: Final = ("create ", "edit ", "insert ", "str_replace_editor ")
"""The beginnings of SWE-agent's commands that edit files."""

_PATCH_START: Final = "*** Begin Patch"


class Hunk(NamedTuple):
    """A change of one part of a file.

    Attributes:
        old: The text that is replaced; empty for an insertion or a change by line numbers.
        new: The text after the change.
        first: The first line that is replaced, or the line before the insertion; None for a change
            without line numbers.
        last: The last line that is replaced; 0 for an insertion.
        everywhere: True if each occurrence of the old text is replaced, not only the first.
    """

    old: str
    new: str
    first: int | None = None
    last: int = 0
    everywhere: bool = False

    def lines(self) -> Iterator[str]:
        """Yield the lines of a diff: a heading, then lines with ``-``, ``+`` or a space."""
        old_lines = self.old.splitlines()
        new_lines = self.new.splitlines()
        if self.first is not None:
            is_insertion = self.last == 0
            lines = f"after {self.first}" if is_insertion else f"lines {self.first} to {self.last}"
            yield f"@@ {lines} @@"
        if self.everywhere:
            yield "@@ each occurrence @@"
        if len(old_lines) + len(new_lines) > _MAX_COMPARED_LINES:
            yield from (f"-{line}" for line in old_lines)
            yield from (f"+{line}" for line in new_lines)
            return
        for line in ndiff(old_lines, new_lines):
            if not line.startswith("?"):  # ndiff marks the changed characters on such lines
                yield f"{line[0]}{line[2:]}"


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change of one file by one call.

    Attributes:
        path: The path of the file; empty if the call does not name it.
        index: The index of the call's span; 0 until ``file_edits`` sets it.
        hunks: The changes in their order.
        full_text: The text of the file after the call; None if the call changes only parts.
        deleted: True if the call deletes the file.
        failed: True if the result of the call is an error, or refuses the edit.
        command: A command with an unknown effect on the text; else empty.
        from_shell: True if a shell command has deleted or changed the file.
    """

    path: str
    index: int = 0
    hunks: tuple[Hunk, ...] = ()
    full_text: str | None = None
    deleted: bool = False
    failed: bool = False
    command: str = ""
    from_shell: bool = False

    def lines(self) -> Iterator[str]:
        """Yield the lines of a diff of the file."""
        if self.deleted:
            yield "@@ deleted @@"
        if self.command:
            yield f"@@ changed by: {self.command} @@"
        if self.full_text is not None:
            yield "@@ all of it @@"
            yield from (f"+{line}" for line in self.full_text.splitlines())
        for hunk in self.hunks:
            yield from hunk.lines()

    def applied_to(self, text: str | None) -> str | None:
        """Return the text of the file after the edit; None if it is unknown or the file is deleted.

        Args:
            text: The text before the edit; None if it is unknown.
        """
        if self.failed:
            return text
        if self.deleted or self.command:
            return None
        if self.full_text is not None:
            text = self.full_text
        for hunk in self.hunks:
            if text is not None:
                text = _text_with_hunk(text, hunk)
        return text


def file_edits(trace: Trace, end: int) -> list[FileEdit]:
    """Return the changes of files in the order of the calls.

    An edit is left out if neither its call nor a result names the file.

    Args:
        trace: The trace.
        end: The index after the last call to examine. Its result may follow.

    Raises:
        OSError: A text cannot be read any more.
    """
    edits_by_call: dict[str, list[FileEdit]] = {}
    unanswered_calls: set[str] = set()
    file_in_editor = ""
    for index in range(len(trace)):
        if index >= end and not unanswered_calls:
            break
        span = trace.span(index)
        if span.kind is SpanKind.TOOL_CALL and index < end:
            edits = _edits_of_call(trace, span)
            if edits:
                edits_by_call[span.key] = edits
                unanswered_calls.add(span.key)
        elif span.kind is SpanKind.TOOL_RESULT and span.parent in unanswered_calls:
            unanswered_calls.remove(span.parent)
            result = trace.text(index)
            # Results of SWE-agent name the file that is open in its editor.
            file_match = _OPEN_FILE.search(result)
            file_in_editor = file_in_editor if file_match is None else file_match[1]
            failed = span.status is SpanStatus.ERROR or REFUSED.match(result) is not None
            edits_by_call[span.parent] = [
                _with_result(edit, failed, file_in_editor) for edit in edits_by_call[span.parent]
            ]
    return list(_with_known_files(chain.from_iterable(edits_by_call.values())))


def _edits_of_call(trace: Trace, span: Span) -> list[FileEdit]:
    """Return the edits of a call, none if the call is very long."""
    text = trace.text(span.index)
    if len(text) > _MAX_CHARS:
        return []
    return [replace(edit, index=span.index) for edit in _call_edits(span.name, text)]


def _with_result(edit: FileEdit, failed: bool, file_in_editor: str) -> FileEdit:
    """Return an edit with facts from the result of its call: failure, and the path of the file."""
    is_in_editor = edit.path in ("", _base_name(file_in_editor))
    return replace(edit, failed=failed, path=file_in_editor if is_in_editor else edit.path)


def _with_known_files(edits: Iterable[FileEdit]) -> Iterator[FileEdit]:
    """Yield the edits that have a path.

    A shell command counts only for a file with an earlier edit, because commands also change other
    files, such as logs.
    """
    known_names: set[str] = set()
    for edit in edits:
        if edit.from_shell and _base_name(edit.path) not in known_names:
            continue
        if edit.path:
            known_names.add(_base_name(edit.path))
            yield edit


def edits_by_file(edits: Sequence[FileEdit]) -> dict[str, list[FileEdit]]:
    """Group edits by the path of their file, the most recently changed file first.

    A relative path joins the absolute path that ends with it, if there is exactly one.
    """
    absolute_paths = {edit.path for edit in edits if edit.path.startswith("/")}
    files: dict[str, list[FileEdit]] = {}
    for edit in edits:
        suffix = f"/{edit.path.removeprefix('./')}"
        candidates = [path for path in absolute_paths if path.endswith(suffix)]
        path = candidates[0] if len(candidates) == 1 else edit.path
        files.setdefault(path, []).append(edit)
    paths = sorted(files, key=lambda path: files[path][-1].index, reverse=True)
    return {path: files[path] for path in paths}


def file_text(edits: Sequence[FileEdit]) -> str | None:
    """Return the text of a file after all its edits; None if it is unknown."""
    text: str | None = None
    for edit in edits:
        text = edit.applied_to(text)
    return text


def _base_name(path: str) -> str:
    return path.rpartition("/")[2]


def _text_with_hunk(text: str, hunk: Hunk) -> str | None:
    """Return a text after the change of a hunk; None if the text to replace is missing."""
    if hunk.first is not None:  # the hunk has line numbers, from 1 on
        lines = text.splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        new_lines = [f"{line}\n" for line in hunk.new.splitlines()]
        is_insertion = hunk.last == 0  # then ``first`` is the line before the new ones
        if is_insertion:
            lines[hunk.first : hunk.first] = new_lines
        else:
            lines[hunk.first - 1 : hunk.last] = new_lines
        return "".join(lines)
    if not hunk.old:
        return text + hunk.new
    count = -1 if hunk.everywhere else 1
    return text.replace(hunk.old, hunk.new, count) if hunk.old in text else None


def _call_edits(name: str | None, text: str) -> Iterator[FileEdit]:
    """Yield the edits of a call, without ``index`` and ``failed``.

    ``text`` is the arguments in JSON, or a command.
    """
    arguments: object = None
    if text[:1] in ("{", "["):
        with suppress(InvalidJSON):
            arguments = load_json(text)
    texts = [text] if arguments is None else list(_texts_in(arguments))
    scripts = _scripts(text, arguments)
    # Any text of the call can hold a patch, a diff or a shell script.
    has_edits = False
    for part in texts:
        script_edits = _script_edits(part, is_script=part in scripts)
        for edit in (*_patch_edits(part), *_diff_edits(part), *script_edits):
            has_edits = True
            yield edit
    if has_edits:
        return
    if isinstance(arguments, Mapping):
        yield from _argument_edits(name or "", arguments)
    elif arguments is None:
        yield from _swe_agent_edits(text)


def _texts_in(value: object) -> Iterator[str]:
    """Yield all texts in a JSON value, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for member in value.values():
            yield from _texts_in(member)
    elif isinstance(value, list):
        for item in value:
            yield from _texts_in(item)


def _first_text(arguments: Mapping[str, object], names: Sequence[str]) -> str | None:
    """Return the text under the first of these names that has one."""
    values = (arguments.get(name) for name in names)
    return next((value for value in values if isinstance(value, str)), None)


def _argument_edits(name: str, arguments: Mapping[str, object]) -> Iterator[FileEdit]:
    """Yield the edits that the named arguments of a call describe."""
    path = _first_text(arguments, _PATH_KEYS)
    if not path:
        return
    edit_list = arguments.get("edits")
    changes = edit_list if isinstance(edit_list, list) else [arguments]
    possible_hunks = [_hunk_of(change) for change in changes if isinstance(change, Mapping)]
    hunks = [hunk for hunk in possible_hunks if hunk is not None]
    full_text = _first_text(arguments, _FULL_TEXT_KEYS)
    # Claude Code creates a file by an edit that replaces the empty text.
    creates_file = bool(hunks) and not hunks[0].old and hunks[0].first is None
    if creates_file:
        yield FileEdit(path, hunks=tuple(hunks[1:]), full_text=hunks[0].new)
    elif hunks:
        yield FileEdit(path, hunks=tuple(hunks))
    elif full_text is not None and (_WRITERS.search(name) or arguments.get("command") == "create"):
        yield FileEdit(path, full_text=full_text)
    elif "new_source" in arguments or arguments.get("command") == "undo_edit":
        # A cell of a notebook, or an unnamed earlier edit.
        cell = _first_text(arguments, ("new_source",)) or ""
        yield FileEdit(path, hunks=(Hunk("", cell),), command=name)


def _hunk_of(change: Mapping[str, object]) -> Hunk | None:
    """Return the hunk that the fields of a change describe, if any."""
    new_text = _first_text(change, _NEW_TEXT_KEYS)
    old_text = _first_text(change, _OLD_TEXT_KEYS)
    line = change.get("insert_line")
    if isinstance(line, int) and new_text is not None:
        return Hunk("", new_text, line)
    if old_text is None:
        return None
    everywhere = any(change.get(key) is True for key in _REPLACE_ALL_KEYS)
    return Hunk(old_text, new_text or "", everywhere=everywhere)


def _patch_edits(text: str) -> Iterator[FileEdit]:
    """Yield the edits of a patch in the format of Codex, which begins with ``*** Begin Patch``."""
    start = text.find(_PATCH_START)
    if start < 0:
        return
    files: list[tuple[str, str, list[str]]] = []
    file_lines: list[str] = []
    for line in text[start:].splitlines()[1:]:
        match = _PATCH_FILE.fullmatch(line.rstrip())
        if match is not None:
            if match[1] == "Move" and files:
                files[-1] = ("Delete", files[-1][1], [])
            file_lines = []
            files.append((match[1], match[2], file_lines))
        elif line.startswith("*** End Patch"):
            break
        elif not line.startswith("*** "):
            file_lines.append(line)
    for action, path, lines in files:
        if action == "Add":
            added_lines = [line[1:] for line in lines if line.startswith("+")]
            yield FileEdit(path, full_text="".join(f"{line}\n" for line in added_lines))
        else:
            yield FileEdit(
                path,
                hunks=tuple(_hunks_of(lines)),
                deleted=action == "Delete",
                command="apply_patch" if action == "Move" else "",
            )


def _diff_edits(text: str) -> Iterator[FileEdit]:
    """Yield the edits of a unified diff."""
    matches = list(_DIFF_FILE.finditer(text))
    ends = [*(match.start() for match in matches[1:]), len(text)]
    for match, end in zip(matches, ends, strict=False):
        lines = text[match.end() : end].splitlines()
        hunks = tuple(_hunks_of(lines))
        if hunks:
            old_path, new_path = match.groups()
            deleted = new_path == "/dev/null"
            yield FileEdit(old_path if deleted else new_path, hunks=hunks, deleted=deleted)


def _hunks_of(lines: Sequence[str]) -> Iterator[Hunk]:
    """Yield the hunks of a diff of one file; ``@@`` lines separate them."""
    old_text = ""
    new_text = ""
    for line in (*lines, "@@"):  # the added line ends the last hunk
        if line.startswith("@@"):
            if old_text or new_text:
                yield Hunk(old_text, new_text)
            old_text = ""
            new_text = ""
        elif line[:1] in ("-", "+", " "):
            if line[0] != "+":
                old_text += f"{line[1:]}\n"
            if line[0] != "-":
                new_text += f"{line[1:]}\n"


def _script_edits(text: str, *, is_script: bool) -> Iterator[FileEdit]:
    """Yield the edits of files by a shell script, in order.

    If ``is_script`` is False, only texts after ``cat > FILE <<'EOF'`` are edits.
    """
    end = 0
    for match in _HEREDOC.finditer(text):
        if is_script:
            yield from _shell_edits(text[end : match.start()])
        end = match.end()
        redirection = _REDIRECTION.search(f"{match['before']} {match['after']}")
        if redirection is not None:
            operator, target = redirection.groups()
            path = target.strip("'\"")
            if operator == ">>":
                yield FileEdit(path, hunks=(Hunk("", match["text"]),))
            elif not path.startswith("/dev/"):
                yield FileEdit(path, full_text=match["text"])
    if is_script:
        yield from _shell_edits(text[end:])


def _scripts(text: str, arguments: object) -> list[str]:
    """Return the shell scripts in a call; ``arguments`` is None if ``text`` is no JSON."""
    if arguments is None:
        is_editing_command = text.startswith(_EDITING_WORDS)  # of SWE-agent, not of a shell
        return [] if is_editing_command else [text]
    if not isinstance(arguments, Mapping):
        return []
    values = [arguments.get(key) for key in _COMMAND_KEYS]
    # A list of words ends with the script: ["bash", "-c", SCRIPT].
    values = [value[-1] if isinstance(value, list) and value else value for value in values]
    scripts = (value for value in values if isinstance(value, str))
    return [
        script
        for script in scripts
        if len(script) <= _MAX_SCRIPT_CHARS and not script.startswith(_PATCH_START)
    ]


def _shell_edits(commands: str) -> Iterator[FileEdit]:
    """Yield the edits of files by shell commands without ``<<``."""
    for line in _INPUT_TEXT.sub("", commands).splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        command: list[str] = []
        with suppress(ValueError):  # an open quote: the command is longer than the line
            for token in (*lexer, ";"):  # the added separator ends the last command
                if token not in _SEPARATORS:
                    command.append(token)
                    continue
                yield from _shell_command_edits(command)
                command = []


def _shell_command_edits(words: Sequence[str]) -> Iterator[FileEdit]:
    """Yield the edits of files by the words of one shell command."""
    while words and words[0] in _BEFORE_COMMANDS:
        words = words[1:]
    if not words:
        return
    text = " ".join(words)
    operands = [word for word in words[1:] if not word.startswith("-")]
    for operator, path in pairwise(words):
        if operator in (">", ">>") and not path.startswith("/dev/"):
            yield FileEdit(path, command=text, from_shell=True)
    match words[0]:
        case "rm" | "unlink":
            yield from (FileEdit(path, deleted=True, from_shell=True) for path in operands)
        case "mv" if len(operands) == 2:
            yield FileEdit(operands[0], deleted=True, from_shell=True)
            yield FileEdit(operands[1], command=text, from_shell=True)
        case "cp" if len(operands) == 2:
            yield FileEdit(operands[1], command=text, from_shell=True)
        # With ``-i``, these commands change the file. Operands that are no files, such as the
        # script, do no harm: no file of the run has their name.
        case "sed" | "perl" if any(map(_IN_PLACE_OPTION.match, words[1:])):
            yield from (FileEdit(path, command=text, from_shell=True) for path in operands)
        case "truncate" | "patch" | "tee":
            yield from (FileEdit(path, command=text, from_shell=True) for path in operands)
        case "git" if words[1:2] in (["checkout"], ["restore"]):
            yield from (FileEdit(path, command=text, from_shell=True) for path in operands[1:])
        case _:
            return


def _swe_agent_edits(text: str) -> Iterator[FileEdit]:
    """Yield the edit of a SWE-agent command.

    ``edit`` and ``insert`` change the file in the agent's editor. Only a result names that file, so
    the path of the edit is empty.
    """
    if not text.startswith(_EDITING_WORDS):
        return
    edit_match = _LINES.match(text)
    if edit_match is not None:  # edit FIRST:LAST, followed by the new lines
        first_line, last_line, new_text = edit_match.groups()
        new_text = new_text.removesuffix("\n").removesuffix("end_of_edit")
        yield FileEdit("", hunks=(Hunk("", new_text, int(first_line), int(last_line)),))
        return
    try:
        tokens = shlex.split(text)
    except ValueError:
        return
    match tokens:
        case ["create", path]:
            yield FileEdit(path, full_text="")
        case ["edit", old, new]:
            yield FileEdit("", hunks=(Hunk(old, new),))
        case ["insert", new, line] if line.isdigit():
            yield FileEdit("", hunks=(Hunk("", new, int(line)),))
        case ["insert", new]:
            yield FileEdit("", hunks=(Hunk("", new),))
        case [_, action, path, *options]:  # str_replace_editor ACTION PATH --option value …
            option_names = [option.removeprefix("--") for option in options[::2]]
            arguments = dict(zip(option_names, options[1::2], strict=False))
            line = arguments.pop("insert_line", "")
            insert_line = {"insert_line": int(line)} if line.isdigit() else {}
            yield from _argument_edits(
                action, {"command": action, "path": path, **arguments, **insert_line}
            )
        case _:
            return

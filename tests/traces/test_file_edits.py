"""File edits in the calls of agents, and files rebuilt from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mast_tui.traces.file_edits import edits_by_file, file_edits, file_text
from mast_tui.traces.library import read_file, read_fully
from mast_tui.traces.model import Trace

PATCH = """*** Begin Patch
*** Add File: notes.md
+one
+two
*** Update File: src/app.py
@@ def main
 def main():
-    return 1
+    return 2
*** Delete File: old.py
*** End Patch"""

CHANGED = "*** Begin Patch\n*** Update File: notes.md\n@@\n-two\n+three\n*** End Patch"
ADDED = "*** Begin Patch\n*** Add File: a\n+1\n"
EDIT = "str_replace_editor"
EXISTS = "File already exists at: /w/a.py. Cannot overwrite files using command `create`."
Step = tuple[str, object, str]
"""A call: its tool, its arguments or command, and the result."""


def trace_of(folder: Path, steps: list[Step]) -> Trace:
    """Return the trace of some calls."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Go"}]
    for number, (tool, arguments, result) in enumerate(steps):
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = {"id": f"c{number}", "function": {"name": tool, "arguments": text}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": result})
    path = folder / "run.json"
    path.write_text(json.dumps({"messages": messages}))
    trace = read_file(path, named=True).traces[0]
    read_fully(trace)
    return trace


CASES: dict[str, tuple[list[Step], dict[str, str | None]]] = {
    "Claude Code": (
        [
            ("Write", {"file_path": "/a.py", "content": "x = 1\ny = 2\n"}, "ok"),
            ("Edit", {"file_path": "/a.py", "old_string": "x = 1", "new_string": "x = 3"}, "ok"),
            ("Edit", {"file_path": "/n.py", "old_string": "", "new_string": "new\n"}, "ok"),
            (
                "MultiEdit",
                {
                    "file_path": "/a.py",
                    "edits": [
                        {"old_string": "=", "new_string": ":", "replace_all": True},
                        {"old_string": "y : 2", "new_string": "y : 4"},
                    ],
                },
                "ok",
            ),
            ("Read", {"file_path": "/b.py"}, "text"),
        ],
        {"/a.py": "x : 3\ny : 4\n", "/n.py": "new\n"},
    ),
    "Codex": (
        [("apply_patch", PATCH, "Success")],
        {"old.py": None, "src/app.py": None, "notes.md": "one\ntwo\n"},
    ),
    "Codex in a shell": (
        [
            ("shell", {"command": ["apply_patch", PATCH]}, "Success"),
            ("shell", {"command": ["apply_patch", CHANGED]}, "Success"),
        ],
        {"notes.md": "one\nthree\n", "old.py": None, "src/app.py": None},
    ),
    "OpenHands": (
        [
            (EDIT, {"command": "create", "path": "/w/a.py", "file_text": "a\nb\n"}, "ok"),
            (EDIT, {"command": "insert", "path": "/w/a.py", "insert_line": 1, "new_str": "&"}, ""),
            (EDIT, {"command": "create", "path": "/w/a.py", "file_text": ""}, EXISTS),
            (EDIT, {"command": "view", "path": "/w/b.py"}, "text"),
            (EDIT, {"command": "create", "path": "/w/c.py", "file_text": "c"}, "ok"),
            (EDIT, {"command": "undo_edit", "path": "/w/c.py"}, "Last edit undone"),
        ],
        {"/w/a.py": "a\n&\nb\n", "/w/c.py": None},
    ),
    "moved by a patch, a cell, keys": (
        [
            ("apply_patch", f"{ADDED}*** Update File: a\n*** Move to: b\n@@\n-1\n+2\n", "ok"),
            ("NotebookEdit", {"notebook_path": "n", "new_source": "1"}, "ok"),
            ("bash_command", {"keystrokes": "cat > s <<E\n1\nE\nsed -i s/1/2/ s\n"}, "ok"),
        ],
        {"a": None, "b": None, "n": None, "s": None},
    ),
    "SWE-agent": (
        [
            ("create", "create run.py", "[File: /t/run.py (1 lines total)]\n1:"),
            ("edit", "edit 1:1\nprint(1)\nprint(2)", "[File: /t/run.py (2 lines total)]"),
            ("edit", "edit 2:2\nprint(", "Your proposed edit has introduced new syntax error(s)."),
            ("edit", "edit 'print(2)' 'print(3)'", "[File: /t/run.py (2 lines total)]"),
            (
                "str_replace_editor",
                "str_replace_editor create /t/b.py --file_text 'b = \"1\"\n'",
                "ok",
            ),
            (
                "str_replace_editor",
                "str_replace_editor str_replace /t/b.py --old_str b --new_str c",
                "ok",
            ),
        ],
        {"/t/b.py": 'c = "1"\n', "/t/run.py": "print(1)\nprint(3)\n"},
    ),
    "shell": (
        [
            ("bash", {"command": "cat > a.txt <<'EOF'\n1\nEOF\necho done"}, "done"),
            ("bash", {"command": "cat <<EOF >> a.txt\n2\nEOF"}, ""),
            ("bash", {"command": "cat <<EOF | wc -l\n2\nEOF"}, "1"),
        ],
        {"a.txt": "1\n2\n"},
    ),
    "shell commands": (
        [
            ("bash", {"command": "cat > a.txt <<'E'\n1\nE\ncat > b.txt <<'E'\n2\nE"}, ""),
            ("bash", {"command": "cat > c.txt <<'E'\n3\nE\ncat > d.txt <<'E'\n4\nE"}, ""),
            ("bash", {"command": "cd /w && sed -i 's/1/x;y/' a.txt; rm -f b.txt other.txt"}, ""),
            ("bash", {"command": ["bash", "-lc", "if [ -f c.txt ]; then mv c.txt e.txt; fi"]}, ""),
            (
                "bash",
                {"command": "python - <<'E'\nprint(1 > 2)\nrm d.txt\nE\necho 5 > 'n.txt'"},
                "",
            ),
            ("bash", {"command": "rm d.txt\ncat > d.txt <<'E'\n6\nE"}, ""),
            ("bash", {"command": "echo 7 > api.py; sed -n 1p api.py"}, ""),
            ("bash", {"command": "cat > api.py <<'E'\n7\nE\nsed -n 1p api.py"}, ""),
        ],
        {"a.txt": None, "b.txt": None, "c.txt": None, "d.txt": "6\n", "api.py": "7\n"},
    ),
    "unified diff": (
        [
            (
                "bash",
                {"command": "git apply <<'E'\n--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\nE\n"},
                "",
            )
        ],
        {"x.py": None},
    ),
    "nothing": ([("bash", {"command": "ls -la"}, "a.py"), ("think", "edit the plan", "")], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_files_are_rebuilt_from_the_calls_of_an_agent(name: str, tmp_path: Path) -> None:
    steps, expected = CASES[name]
    trace = trace_of(tmp_path, steps)
    files = edits_by_file(file_edits(trace, len(trace)))
    assert {path: file_text(edits) for path, edits in files.items()} == expected


def test_a_file_as_of_a_span_ignores_failed_edits(tmp_path: Path) -> None:
    steps = CASES["SWE-agent"][0]
    trace = trace_of(tmp_path, steps)
    texts = [
        file_text(edits_by_file(file_edits(trace, end)).get("/t/run.py", []))
        for end in (1, 2, 4, 6, 8)  # the result of the last call follows
    ]
    both = "print(1)\nprint(2)\n"
    assert texts == [None, "", both, both, "print(1)\nprint(3)\n"]
    edits = edits_by_file(file_edits(trace, len(trace)))["/t/run.py"]
    assert [(edit.index, edit.failed) for edit in edits] == [
        *((1, False), (3, False), (5, True), (7, False))
    ]
    assert list(edits[3].lines()) == ["-print(2)", "+print(3)"]
    assert list(edits[1].lines()) == ["@@ lines 1 to 1 @@", "+print(1)", "+print(2)"]


def test_a_change_is_shown_with_its_context(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [("apply_patch", PATCH, "Success")])
    files = edits_by_file(file_edits(trace, len(trace)))
    assert list(files["src/app.py"][0].lines()) == [
        *(" def main():", "-    return 1", "+    return 2")
    ]
    assert list(files["old.py"][0].lines()) == ["@@ deleted @@"]

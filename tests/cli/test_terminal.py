"""The app without a terminal, and output in an encoding that lacks characters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import pytest

from mast_tui.cli.shared.terminal import replace_unencodable_characters
from mast_tui.traces.library import samples_folder

SAMPLE = samples_folder() / "cart-valkey-noeviction.jsonl"

LABELS = """\
trace_id,annotator,mode,value
t1,ann,1.3,present
t1,ann,,finished
t1,bob,1.3,absent
t1,bob,,finished
"""


def mast_tui(
    folder: Path, *words: object, stdin: IO[Any] | int | None = subprocess.DEVNULL, **settings: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command without a terminal, in a folder and a home of its own."""
    unset = ("PYTHONIOENCODING", "PYTHONUTF8", "TEXTUAL_DRIVER")
    inherited: Mapping[str, str] = {k: v for k, v in os.environ.items() if k not in unset}
    return subprocess.run(
        [sys.executable, "-m", "mast_tui", *map(str, words)],
        cwd=folder,
        env={**inherited, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), **settings},
        stdin=stdin,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("words", [(), ("--taxonomy", "own.toml", "--", SAMPLE)])
def test_without_a_terminal_the_app_ends_with_2_and_writes_nothing_to_stdout(
    tmp_path: Path, words: tuple[object, ...]
) -> None:
    (tmp_path / "own.toml").write_text("")
    done = mast_tui(tmp_path, *words)
    assert done.returncode == 2
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("mast-tui: the app needs a terminal")
    assert "mast-tui inspect" in line
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


@pytest.mark.parametrize("closing", ["<&-", ">out", "2>err"])
def test_each_stream_that_is_no_terminal_ends_the_app(tmp_path: Path, closing: str) -> None:
    # The other streams are a terminal of its own.
    command = f"{sys.executable} -m mast_tui {SAMPLE} {closing}; echo over"
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import pty; pty.spawn(['bash', '-o', 'pipefail', '-c', {command!r}])",
        ],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color"},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=120,
    ).stdout
    assert b"over" in shown
    assert b"\x1b" not in shown
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"\x1b" not in written
    assert b"needs a terminal" in shown + written


def test_a_mistyped_path_is_reported_before_a_missing_terminal(tmp_path: Path) -> None:
    done = mast_tui(tmp_path, "nowhere.jsonl")
    assert done.returncode == 1
    assert b"no such file" in done.stderr


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a workspace in which there are labels."""
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "labels.csv").write_text(LABELS)
    done = mast_tui(folder, "import", "labels.csv", "--format", "csv-long", "--allow-new")
    assert done.returncode == 0
    return folder


@pytest.mark.parametrize(
    ("encoding", "command"), [("cp1252", "report --by all"), ("latin-1:strict", "doctor --offline")]
)
def test_commands_replace_characters_that_the_encoding_lacks(
    labelled: Path, encoding: str, command: str
) -> None:
    whole = mast_tui(labelled, *command.split(), PYTHONIOENCODING="utf-8")
    done = mast_tui(labelled, *command.split(), PYTHONIOENCODING=encoding)
    assert b"unexpected error" not in done.stderr
    lines = done.stdout.decode(encoding.partition(":")[0]).splitlines()
    expected = whole.stdout.decode().splitlines()
    if not command.startswith("doctor"):  # it reports the encoding
        assert done.returncode == whole.returncode
        assert list(map(len, lines)) == list(map(len, expected))


def test_json_and_xml_stay_valid_in_another_encoding(tmp_path: Path) -> None:
    trace = tmp_path / "é-日本.json"
    trace.write_text(json.dumps([{"role": "user", "content": "où 日本"}]), "utf-8")
    done = mast_tui(tmp_path, "inspect", "--json", trace, PYTHONIOENCODING="latin-1")
    (file,) = json.loads(done.stdout)["files"]
    assert file["path"].endswith("é-日本.json")
    search = mast_tui(tmp_path, "search", "日本", trace, "--json", PYTHONIOENCODING="cp1252")
    assert [json.loads(line)["path"] for line in search.stdout.splitlines()] == [file["path"]]
    xml = mast_tui(tmp_path, "lint", "--format", "junit", trace, PYTHONIOENCODING="latin-1")
    elements = list(ElementTree.fromstring(xml.stdout).iter())
    texts = [*(element.text or "" for element in elements)]
    texts += [value for element in elements for value in element.attrib.values()]
    assert any("é-日本.json" in text for text in texts)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("╭─ MAST ─╮ │ ┌└╰╯├┼", "+- MAST -+ | ++++++"),
        ("● own ◌ open ✗ failed ▌ … → ▶", "* own o open x failed | . > >"),
        ("−0.25, “κ” and α", '-0.25, "k" and a'),
        ("日本", "????"),
        ("e\u0301\u200b", "e"),
        ("é · ×", "é · ×"),
    ],
)
def test_replacements_are_as_wide_as_what_they_replace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, shown: str
) -> None:
    path = tmp_path / "out"
    with path.open("w", encoding="latin-1") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        replace_unencodable_characters()
        stream.write(text)
    assert path.read_text("latin-1") == shown


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_command_ends_well_without_a_stream(stream: str, tmp_path: Path) -> None:
    program = f"{sys.executable} -m mast_tui inspect {SAMPLE}"
    done = subprocess.run(
        ["bash", "-c", f"{program} {stream}>&-"],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "unexpected" not in done.stderr

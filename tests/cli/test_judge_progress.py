"""The progress of a run on a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.cli.judge.output import (
    WAIT_SECONDS,
    BarProgress,
    LineProgress,
    elapsed_text,
    money,
    token_text,
)
from mast_tui.configuration import Prices
from mast_tui.judges.runner import Progress, TraceStatus
from mast_tui.workspace import Usage


def test_the_bar_shows_traces_findings_tokens_cost_and_waits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    with BarProgress(3, Prices(1.0, 2.0)) as bar:
        bar.on_use(Usage(1, 20_000, 1_000))
        bar.on_trace(Progress(1, "t1", Path("a.json"), TraceStatus.JUDGED, 2))
        bar.on_wait("asked to wait 34 s")
    out, err = capsys.readouterr()
    assert out == ""
    last = err.splitlines()[-1]
    for sentence in (
        "1 of 3 traces",
        "2 found",
        "21 k tokens",
        "cost 0.0220",
        "asked to wait 34 s",
    ):
        assert sentence in last


def test_the_text_of_a_wait_is_shown_for_a_while(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for later, stays in ((WAIT_SECONDS / 2, True), (WAIT_SECONDS, False)):
        times = iter((1_000.0, 1_000.0 + later))
        with BarProgress(3, None, times.__next__) as bar:
            bar.on_wait("asked to wait 34 s")
            bar.on_use(Usage(1, 200, 10))
        last = capsys.readouterr().err.splitlines()[-1]
        assert ("asked to wait" in last) == stays


@pytest.mark.parametrize("kind", ["bar", "lines"])
def test_foreign_text_is_no_markup_and_no_escape(
    capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    with BarProgress(1, None) if kind == "bar" else LineProgress(quiet=False) as progress:
        hostile = "[bold]x[/] \x1b[31m\nnext"
        progress.on_trace(Progress(1, "t", Path("a.json"), TraceStatus.FAILED, 0, hostile))
        progress.on_wait(hostile)
    err = capsys.readouterr().err
    assert "[bold]x[/]" in err
    assert "\x1b[31m" not in err


def test_numbers_costs_and_times_are_rounded() -> None:
    counts = {0: "0", 9_999: "9,999", 10_000: "10 k", 999_600: "1.0 M", 12_345_678: "12 M"}
    assert [token_text(count) for count in counts] == [*counts.values()]
    assert [money(x) for x in (0.0, 0.0123, 0.5, 1234.5)] == ["0.00", "0.0123", "0.50", "1,234.50"]
    times = {0.4: "0 s", 59.4: "59 s", 60: "1m00s", 3_725: "1h02m"}
    assert [elapsed_text(seconds) for seconds in times] == [*times.values()]


def test_a_wait_shows_the_time_since_the_start(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter((1_000.0, 1_204.0))
    with LineProgress(quiet=False, clock=times.__next__) as lines:
        lines.on_wait("no complete answer within 200 s; it is asked once more")
    assert "asked once more (3m24s since the start)" in capsys.readouterr().err
    monkeypatch.setenv("COLUMNS", "120")
    with BarProgress(3, None) as bar:
        bar.on_wait("asked to wait 34 s")
    assert "0:00:00" in capsys.readouterr().err

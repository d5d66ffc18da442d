"""Pictures of judges' suggestions and of the choice of a judge."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from mast_tui.configuration import configuration_path
from mast_tui.judges.llm.run.estimate import RunEstimate
from mast_tui.judges.llm.run.setup import Setup
from mast_tui.labels import Evidence, Finding, Match, QuoteCounts
from mast_tui.traces.model import Trace
from mast_tui.ui.services.open_workspace import remember_welcome
from mast_tui.workspace import RunTrace, TraceRecord, Workspace, store_judgement
from tests.ui.stage import MAST, SLUGS, finding, read_trace
from tests.ui.test_looks import NARROW, SAMPLE, app, pressing

Compare = Callable[..., bool]


@pytest.fixture(autouse=True)
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """Two judges have looked at the sample; of one not all the words stand in it."""
    remember_welcome()
    trace = read_trace(SAMPLE)
    mended = finding(trace, "3.2", 88, 90, why="It says that all is well and has not looked.")
    key = trace.span(86).key
    words = trace.text(86)[:30]
    by_judge: dict[str, list[Finding]] = {
        "judge:gpt-oss-120b@ab12cd34": [
            replace(
                mended,
                decisive=True,
                evidence=Evidence(
                    key=key,
                    quote=words,
                    char_start=0,
                    char_end=len(words),
                    match=Match.REWORDED,
                    named=(trace.span(87).key, trace.span(89).key),
                    wording=f"[the agent] {words}",
                ),
            ),
            replace(
                finding(trace, "2.6", 40, 40), evidence=Evidence(key=None, quote="I will leave it")
            ),
            finding(trace, "1.3", 64, 70, why="The same restart again."),
        ],
        "judge:other@1": [finding(trace, "1.3", 60, 66), finding(trace, "1.5", 44, 90)],
    }
    place = tmp_path / "w.db"
    with closing(Workspace.open(place)) as store:
        store.add_taxonomy(MAST)
        trace_id = store.register_trace(TraceRecord.from_trace(trace))
        for judge, found in by_judge.items():
            run = store.start_run(judge, MAST.ref)
            store_judgement(
                store,
                judge=judge,
                taxonomy=MAST.ref,
                trace_id=trace_id,
                looks_at=tuple(SLUGS.values()),
                findings=found,
                run_id=run,
                trace=RunTrace(trace_id, len(found), quotes=QuoteCounts(spacing=1, not_found=1)),
            )
            store.finish_run(run)
    return place


def test_what_judges_found(snap_compare: Compare, judged: Path) -> None:
    run = pressing("R", "vj=")
    assert snap_compare(app(SAMPLE, workspace=judged), terminal_size=NARROW, run_before=run)


def test_the_choice_of_a_judge(
    snap_compare: Compare, judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-made-up-for-this-test")
    path = configuration_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        '[judge]\nmodel = "gpt-oss-120b"\nbase_url = "https://models.example/v1"\n'
        '[judge.prices."gpt-oss-120b"]\ninput = 0.25\noutput = 2\n'
    )
    monkeypatch.setattr("mast_tui.ui.dialogs.judge_choice.estimate_run", estimated)
    opened = app(SAMPLE, workspace=judged)
    assert snap_compare(opened, terminal_size=NARROW, run_before=pressing("J", "m"))


def estimated(setup: Setup, traces: Iterable[Trace], *_: object, **options: object) -> RunEstimate:
    count = sum(1 for _ in traces)
    return RunEstimate(count, windows=2, requests=2, tokens_in=31_000, tokens_out=900)

"""A team whose traces are in object storage."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest

from mast_tui.adjudication import Adjudication, take_on, traces_from_files
from mast_tui.adjudication.conflicts import ABSENT_CHOICE
from mast_tui.labels import Target
from mast_tui.session import Session
from mast_tui.session.queues import queue
from mast_tui.traces.io.remote import trace_path
from mast_tui.traces.library import scan
from mast_tui.traces.model import Trace
from tests.postgres import PostgresServer
from tests.traces.s3_server import s3_server
from tests.traces.test_remote import run_of
from tests.workspace.build import MAST, MODES
from tests.workspace.test_sight_by_server import Team, command

pytestmark = pytest.mark.slow

RUNS = "s3://bucket/runs"


def traces_in(path: Path) -> dict[str, Trace]:
    return {trace.identity.trace_id: trace for report in scan([path]) for trace in report.traces}


def test_traces_in_object_storage_are_labelled_and_adjudicated_from_three_machines(
    postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("s3fs")
    team = Team(postgres)

    def use_machine(machine: str) -> None:
        monkeypatch.setattr("mast_tui.traces.io.remote._copies_folder", lambda: tmp_path / machine)

    with s3_server() as s3:
        monkeypatch.setitem(fsspec.config.conf, "s3", s3.options)
        runs = {f"{number}.json": run_of(f"run {number}") for number in range(4)}
        s3.objects.update({f"bucket/runs/{name}": run for name, run in runs.items()})
        (tmp_path / "copies").mkdir()
        for name, run in runs.items():
            (tmp_path / "copies" / name).write_bytes(run)
        use_machine("lea's")
        options = ("--annotators", "mira,bob", "--adjudicators", "carol", "--overlap", "0.5")
        result = command(capsys, "study", "set", RUNS, *options, "--workspace", team.url("lea"))
        assert result[0] == 0, result
        labelled: dict[str, list[str]] = {}
        for name, path in (("bob", tmp_path / "copies"), ("mira", trace_path(RUNS))):
            use_machine(f"{name}'s")
            traces = traces_in(path)
            assert len(traces) == len(runs)
            with team.workspace(name) as workspace:
                queued = [trace.trace_id for trace in queue(workspace, MAST, name)]
                for trace_id in queued:
                    session = Session.open(workspace, traces[trace_id], MAST, name, blind=True)
                    key = traces[trace_id].span(1).key
                    target = Target(key, key, "Done", 0, 4)
                    if name == "mira":
                        session.toggle_label(MODES[0], target, suggestions_on_screen=False)
                    session.mark_read([key])
                    session.finish(open_modes="absent")
                assert not queue(workspace, MAST, name)
            labelled[name] = queued
        both = set(labelled["mira"]) & set(labelled["bob"])
        assert (len(both), len(labelled["mira"] + labelled["bob"])) == (2, len(runs) + 2)
        # Without files the sides can still be compared.
        use_machine("carol's")
        s3.failures += ["refused"] * 9
        with team.workspace("carol") as workspace:
            trace_id = min(both)
            assert workspace.trace(trace_id).path == trace_path(f"{RUNS}/{trace_id[0]}.json")
            assert traces_from_files(workspace)(trace_id) is None
            take_on(workspace, MAST, "carol", [trace_id])
            work = Adjudication(workspace, MAST, trace_id, "carol")
            (label,) = [label for side in work.trace_sides.sides for label in side.labels.values()]
            assert (label.annotator, label.target.quote) == ("mira", "Done")
            (conflict,) = work.gold.conflicts
            work.decide(conflict, ABSENT_CHOICE)
            assert workspace.all_decisions(MAST.ref).keys() == {trace_id}

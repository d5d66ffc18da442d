"""``mast-tui study``: set-up, assignment, changes, samples and progress."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mast_tui.figures.intervals import wilson_of
from mast_tui.session import Session, progress, resolve_blind
from mast_tui.traces.library import read_file, read_fully
from tests.cli.conftest import Cli, open_workspace
from tests.workspace.build import MAST

AS_LEAD = ("--annotator", "olga")


def write_runs(count: int, name: str = "run") -> Path:
    """Write a folder with conversations, one in each file."""
    folder = Path(f"{name}s")
    folder.mkdir()
    for number in range(count):
        messages = [
            {"role": "user", "content": f"do {name} {number}"},
            {"role": "assistant", "content": "done"},
        ]
        (folder / f"{name}{number}.json").write_text(json.dumps({"messages": messages}))
    return folder


def finish(annotator: str, *trace_ids: str) -> None:
    with open_workspace() as workspace:
        for trace_id in trace_ids:
            path = workspace.trace(trace_id).path
            assert path is not None
            (trace,) = read_file(path, named=True).traces
            read_fully(trace)
            Session.open(workspace, trace, MAST, annotator, blind=True).finish(open_modes="absent")


def queue(cli: Cli, annotator: str, *options: str) -> list[str]:
    return cli.ok("study", "queue", "--annotator", annotator, *options).out.split()


def queues(cli: Cli, *annotators: str) -> list[list[str]]:
    return [queue(cli, annotator) for annotator in annotators]


def assigned(cli: Cli, *command: object) -> dict[str, int]:
    """Return the number of traces of each annotator after a command."""
    document = cli.json("study", *command, *AS_LEAD)
    return {row["name"]: row["assigned"] for row in document["people"]}


def test_a_study_assigns_its_traces(cli: Cli) -> None:
    folder = write_runs(10)
    document = cli.json(
        *("study", "set", folder, "--annotators", "alice,bob,eve", "--adjudicators", "carol"),
        *("--per-trace", 2, "--overlap", 0.3, "--seed", 7, "--withhold", 0.2, "--retest", 0.1),
        *("--open-modes", "leave", "--names", "shown", "--judge-in-adjudication", "before"),
        *("--boundaries", "--reasons", "--assisted", *AS_LEAD),
    )
    assert document["changed"]
    assert document["study"] == {
        "annotators": ["alice", "bob", "eve"], "present": ["alice", "bob", "eve"],
        "memberships": [], "releases": [], "adjudicators": ["carol"], "traces": 10,
        "batches": [10], "draws": [], "chances_alike": True, "per_trace": 2, "overlap": 0.3,
        "overlap_traces": 3, "seed": 7, "blind": False, "withheld": 0.2, "retests": 0.1,
        "open_modes": "leave", "names": "shown", "judge_in_adjudication": "before",
        "boundaries": True, "reasons": True,
        "redact": False,
    }  # fmt: skip
    queued = queues(cli, "alice", "bob", "eve")
    assert sum(map(len, queued)) == 13
    assert len({trace for traces in queued for trace in traces}) == 10
    progress_rows = cli.json("study", "show")["progress"]
    assert [row["assigned"] for row in progress_rows] == [len(traces) for traces in queued]
    assert "olga" not in [row["name"] for row in cli.json("status")["annotators"]]

    # Options that are left out keep their values.
    study = cli.json("study", "set", "--retest", 0.5, "--no-boundaries")["study"]
    assert (study["seed"], study["retests"], study["traces"]) == (7, 0.5, 10)
    assert cli.ok("study", "set", "--retest", 0.5).out.startswith("nothing changed")
    cli.refused("study", "set", "--blind", says="no share of traces can be without")
    help_text = " ".join(cli("study", "set", "--help").out.split())
    assert "overlapping labels of one mode with different ends as a conflict" in help_text
    assert "Labels that do not overlap always are one. Default: no." in help_text


def test_a_study_has_all_known_traces_if_none_is_named(cli: Cli) -> None:
    cli.ok("judge", write_runs(5), "--judge", "rules", "--quiet")
    for command in ("show", "add"):
        cli.refused("study", command, says="mast-tui study set")
    # A queue needs a study, or the annotator's own work.
    cli.refused("study", "queue", "--annotator", "alice")
    with open_workspace() as workspace:
        (first, *_) = workspace.traces()
    finish("alice", first.trace_id)
    assert len(queue(cli, "alice")) == 4
    sample = queue(cli, "alice", "--kind", "sample", "-n", "2")
    assert len(sample) == 2
    assert queue(cli, "alice", "--kind", "sample", "-n", "3")[:2] == sample
    study = cli.json("study", "set", "--annotators", "alice")["study"]
    assert (study["traces"], study["per_trace"], study["blind"]) == (5, 1, True)


def test_added_traces_are_queued_last(cli: Cli) -> None:
    cli.ok("study", "set", write_runs(6), "--annotators", "alice,bob", "--overlap", 0.5)
    previous = queue(cli, "alice")
    finish("alice", previous[0])
    add = ("study", "add", write_runs(4, "late"))
    trial = cli.json(*add, "--dry-run")
    with open_workspace() as workspace:
        assert len(workspace.traces()) == 6
    assert cli.json(*add) == trial
    assert (trial["changed"], trial["study"]["batches"]) == (True, [6, 4])
    current = queue(cli, "alice")
    assert current[: len(previous) - 1] == previous[1:]
    assert len(current) > len(previous) - 1
    assert not cli.json("study", "add", "lates")["changed"]


def test_settings_that_figures_depend_on_are_fixed_once_a_trace_is_finished(cli: Cli) -> None:
    cli.ok("study", "set", write_runs(3), "--annotators", "alice,bob")
    previous = cli.json("study", "show")["study"]

    def check_refused(*options: object, message: str) -> None:
        options = (*options, "--split", "0.5,0.2,0.3")
        assert cli.refused("study", "set", *options, says=message).err.count("\n") == 1
        cli.refused("study", "set", *options, "--dry-run", says=message)
        assert cli.json("study", "show")["study"] == previous
        assert "split" not in cli.ok("study", "show").err

    check_refused("--annotators", "alice", message="annotators")
    finish("alice", *queue(cli, "alice")[:1])
    hidden = ("--assisted", "--withhold", 0.1)
    for options, settings in (
        (("--annotators", "alice,bob,eve"), "the annotators"),
        (("--overlap", 0.5), "the overlap"),
        (("--per-trace", 1, "--seed", 8), "the number of annotators per trace and the seed"),
        (hidden, "the visibility (blind or suggestions shown) and the share without suggestions"),
        (("runs/run0.json",), "the traces added before"),
    ):
        check_refused(*options, message=settings)
    study = cli.json(
        *("study", "set", "--adjudicators", "carol", "--retest", 0.5, "--names", "shown"),
        *("--boundaries", "--reasons", "--annotators", "bob,alice"),
    )["study"]
    assert study["adjudicators"] == ["carol"]


def test_show_and_status_report_progress_and_hide_retests_from_annotators(cli: Cli) -> None:
    cli.ok("study", "set", write_runs(6), "--annotators", "alice,bob", "--retest", 0.4)
    finish("alice", *queue(cli, "alice"))
    alice, bob = cli.json("study", "show")["progress"]
    assert (alice["finished"], alice["left"], bob["finished"]) == (6, 0, 0)
    assert alice["retests"]["planned"] == 2
    assert alice["retests"]["due"] >= 1
    text = cli("study", "show").out
    assert "alice" in text
    assert "retests" in text
    counts = {"assigned": 6, "finished": 6, "open": 0, "left": 0}
    assert cli.json("status")["study"]["annotators"][0] == {"name": "alice", **counts}
    assert "study: 6 traces · 0 conflicts left" in cli("status").out

    as_alice = ("--annotator", "alice")
    (row,) = cli.json("study", "show", *as_alice)["progress"]
    assert "retests" not in row
    due = queue(cli, "alice")
    assert row["left"] == len(due) > 0
    assert "due" not in cli("study", "show", *as_alice).out
    cli.refused("study", "queue", *as_alice, "--kind", "retests", code=2)
    listed = cli.json("study", "queue", *as_alice)["traces"]
    assert [set(trace) for trace in listed] == [{"id", "begun", "modes"}] * len(due)
    (alice_status,) = cli.json("status", *as_alice)["study"]["annotators"]
    assert alice_status["left"] == len(due)
    finish("alice", *due)
    with open_workspace() as workspace:
        study = workspace.study(MAST.ref)
        assert study is not None
        assert set(due) <= progress(workspace, study)[0].retests.done


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("study", 2, "Usage"),
        ("study set", 2, "--annotators A,B"),
        ("study set --annotators judge:x", 2, "judge"),
        ("study set --annotators a,a", 1, "twice"),
        ("study set --annotators a,b --per-trace 3", 1, "each trace needs 3 annotators"),
        ("study set --annotators a --overlap 2", 2, "overlap"),
        ("study set --annotators a nowhere", 2, "nowhere"),
        ("study show", 1, "no workspace"),
        ("study queue", 2, "--annotator NAME"),
        ("study set runs --annotators a --sample 4", 1, "4 traces cannot be drawn from 3"),
        (
            "study set runs --annotators a --sample 2 --stratify colour",
            1,
            "cannot be spread over 'colour'",
        ),
        ("study set runs --annotators a --stratify outcome", 2, "give --sample N too"),
        ("study set runs --annotators a --split 0.5,0.5", 2, "three shares"),
        ("study set runs --annotators a --split 0.5,0.2,0.2", 2, "three shares"),
        ("study set runs --annotators a --split a,b,c", 2, "three shares"),
    ],
)
def test_wrong_options_are_refused_and_no_study_is_set(
    cli: Cli, command: str, code: int, message: str
) -> None:
    write_runs(3)
    cli.refused(*command.split(), says=message, code=code)
    cli.refused("study", "show")


def test_common_options_may_come_before_the_subcommand(cli: Cli, tmp_path: Path) -> None:
    database = tmp_path / "other.db"
    cli.ok("study", "--workspace", database, "set", write_runs(2), "--annotators", "set,show")
    study = cli.json("--workspace", database, "study", "show")["study"]
    assert study["annotators"] == ["set", "show"]
    summary = cli.json("study", f"--workspace={database}", "--annotator", "show", "show")
    assert [row["name"] for row in summary["progress"]] == ["show"]


def test_labels_from_outside_the_study_count_only_if_named(cli: Cli) -> None:
    cli.ok("study", "set", write_runs(3), "--annotators", "alice,bob", *AS_LEAD)
    traces = sorted({trace for queued in queues(cli, "alice", "bob") for trace in queued})
    rows = [f"{trace},zoe,,,,failed,1" for trace in traces]
    head = "trace_id,annotator,system,model,benchmark,outcome,1.1"
    Path("zoe.csv").write_text("\n".join([head, *rows]))
    cli.ok("import", "zoe.csv", "--format", "csv-wide", "--allow-new")
    no_gold = cli("export", "--format", "gold", "-o", "gold.json")
    assert "no one in the study has finished a trace. Work outside" in no_gold.err
    for name in ("alice", "bob"):
        finish(name, *traces)
    agree = cli.json("agree")
    assert agree["annotators"] == ["alice", "bob"]
    assert agree["left_out"]["not_in_study"] == {"zoe": 3}
    assert "zoe 3 traces. To count it, name" in cli("study", "show").err
    note = "not in the study: zoe 3 traces"
    assert note in " ".join(cli("agree", "--markdown", "agree.md").out.split())
    assert note in Path("agree.md").read_text("utf-8")
    named = cli.json("agree", "--annotators", "alice,zoe")
    assert named["annotators"] == ["alice", "zoe"]
    assert named["left_out"]["not_in_study"] == {}

    report = cli.json("report")
    assert report["gold"]["annotators"] == ["alice", "bob"]
    assert report["gold"]["not_in_study"] == {"zoe": 3}
    assert report["groups"]["(unknown)"]["modes"]["1.1"]["count"] == 0
    text = " ".join(cli("report").out.split())
    assert "excluded, not in the study: zoe 3 traces" in text
    zoe_report = cli.json("report", "--labels", "zoe")
    assert zoe_report["groups"]["(unknown)"]["modes"]["1.1"]["count"] == 3

    gold = cli.gold()
    assert gold["gold"]["not_in_study"] == {"zoe": 3}
    for trace in gold["traces"]:
        assert [side["name"] for side in trace["annotators"]] == ["alice", "bob"]
    (sheet,) = Path().glob("*.datasheet.md")
    note = "Excluded, not in the study: zoe (3 traces)"
    assert note in sheet.read_text("utf-8")
    assert cli.json("status")["conflicts"]["left"] == 0


def test_annotators_join_and_leave_without_changes_to_finished_work(cli: Cli) -> None:
    set_up = ("study", "set", write_runs(12), "--annotators", "alice,bob", "--per-trace", 1)
    cli.ok(*set_up, *AS_LEAD)
    bob_queue = queue(cli, "bob")
    finish("bob", *bob_queue[:2])
    assert assigned(cli, "join", "eve") == {"alice": 6, "bob": 6, "eve": 0}
    alice_queue = queue(cli, "alice")
    trial = cli("study", "leave", "bob", *AS_LEAD, "--dry-run")
    assert "bob                    6             2  has left" in trial.out
    assert queue(cli, "bob") == bob_queue[2:]
    assert assigned(cli, "leave", "bob") == {"alice": 6, "bob": 2, "eve": 4}
    assert queue(cli, "alice") == alice_queue
    assert sorted(queue(cli, "eve")) == sorted(bob_queue[2:])
    output = cli("study", "show", *AS_LEAD).out
    assert "bob (batch 1; has left), eve (from batch 2 on)" in output
    cli.ok("study", "add", write_runs(4, "more"), *AS_LEAD)
    assert queue(cli, "bob") == []
    assert len(queue(cli, "eve")) == 6
    cli.ok("study", "join", "bob", *AS_LEAD)
    cli.refused("study", "join", "bob", *AS_LEAD)


def test_released_traces_go_to_others_and_the_last_annotator_stays(cli: Cli) -> None:
    set_up = ("study", "set", write_runs(6), "--annotators", "alice,bob", "--per-trace", 1)
    cli.ok(*set_up, *AS_LEAD)
    finish("alice", *queue(cli, "alice")[:1])
    assert assigned(cli, "release", "alice") == {"alice": 1, "bob": 5}
    assert cli("study", "release", "alice", *AS_LEAD).out.startswith("nothing changed")
    cli.ok("study", "leave", "alice", *AS_LEAD)
    cli.refused("study", "leave", "bob", *AS_LEAD, says="last annotator")
    assert "there are bob" in cli("study", "leave", "eve", *AS_LEAD).err


def test_random_samples_record_their_chances(cli: Cli) -> None:
    folder = write_runs(12)
    options = ("--annotators", "alice", "--sample", 4, "--stratify", "outcome, length", "--seed", 3)
    study = cli.json("study", "set", folder, *options)["study"]
    draw = {"lot": 1, "of": 12, "probability": 4 / 12, "by": ["outcome", "length"], "seed": 3}
    assert study["draws"] == [draw]
    first = queue(cli, "alice")
    assert len(first) == 4
    assert cli("study", "set", folder, *options).out.startswith("nothing changed")
    finish("alice", first[0])
    more = cli.json("study", "add", folder, "--sample", 2)["study"]
    assert (more["traces"], more["chances_alike"]) == (6, True)
    assert "batch 2 is a random sample: 2 of 8 traces" in cli("study", "show").out
    assert queue(cli, "alice")[:3] == first[1:]
    assert "different chances" in cli("study", "add", folder).out


def test_a_sample_by_a_judges_uncertainty_keeps_its_chances(cli: Cli) -> None:
    folder = write_runs(12)
    cli.ok("judge", folder, "--judge", "rules", "--quiet")
    cli.ok("study", "set", folder, "--annotators", "alice", "--sample", 4)
    assert "--sample N too" in cli("study", "add", "--judge", "rules").err
    by_judge = ("--judge", "rules", "--mode")
    assert "no mode" in cli("study", "add", "--sample", 2, *by_judge, "x").err
    study = cli.json("study", "add", "--sample", 3, *by_judge, "1.3")["study"]
    draw = study["draws"][1]
    assert (draw["of"], draw["judge"].startswith("judge:rules")) == (8, True)
    assert len(draw["chances"]) == 3
    assert all(0 < chance <= 1 for chance in draw["chances"].values())
    assert not study["chances_alike"]
    output = cli("study", "show").out
    assert "is least certain" in output
    assert "signatures (mast-tui report) and" in output
    assert sorted(queue(cli, "alice", "--kind", "worth")) == sorted(draw["chances"])


def test_a_table_assigns_traces_to_annotators(cli: Cli) -> None:
    cli.ok("study", "set", write_runs(4), "--annotators", "alice,bob", "--overlap", 0.5)
    table = Path("who.csv")
    cli.ok("study", "export", "-o", table)
    heading, *rows = table.read_text().splitlines()
    assert (heading, len(rows)) == ("trace_id,annotator,lot", 6)
    previous = queues(cli, "alice", "bob")
    cli.ok("study", "import", table)
    assert queues(cli, "alice", "bob") == previous
    traces = sorted({row.split(",")[0] for row in rows})
    for bad_rows, message in (
        ("other,alice", "line 2: trace 'other' is not in the study"),
        (f"{traces[0]},eve", "line 2: 'eve' is not an annotator"),
        (f"{traces[0]},alice\n{traces[0]},alice", "line 3: alice is assigned trace"),
        ("", "no row assigns a trace to an annotator"),
    ):
        table.write_text(f"trace_id,annotator\n{bad_rows}\n")
        cli.refused("study", "import", table, says=message)
    table.write_text("trace_id,annotator\n" + "".join(f"{trace},bob\n" for trace in traces))
    trial = cli.json("study", "import", table, "--dry-run")["people"]
    assert [row["assigned"] for row in trial] == [0, 4]
    assert queues(cli, "alice", "bob") == previous
    cli.ok("study", "import", table)
    assert (queue(cli, "alice"), sorted(queue(cli, "bob"))) == ([], traces)
    finish("bob", traces[0])
    table.write_text(f"trace_id,annotator\n{traces[0]},bob\n{traces[1]},alice\n")
    assert cli.json("study", "import", table)["changed"]
    assert queue(cli, "alice") == [traces[1]]
    table.write_text(f"trace_id,annotator\n{traces[0]},alice\n")
    cli.refused("study", "import", table, says=f"line 2: someone has finished trace '{traces[0]}'")


def test_weights_set_the_share_of_each_annotator(cli: Cli) -> None:
    set_up = ("study", "set", write_runs(9), "--annotators", "alice,bob", "--overlap", 0)
    cli.ok(*set_up, "--weights", "alice=2")
    assert [len(queued) for queued in queues(cli, "alice", "bob")] == [6, 3]
    cli.refused("study", "set", "--weights", "eve=2", says="has no effect")
    cli.ok("study", "join", "dora", "--weight", 3)
    cli.ok("study", "add", write_runs(6, "late"))
    assert [len(queued) for queued in queues(cli, "alice", "bob", "dora")] == [8, 4, 3]


def test_the_lead_sees_how_many_more_traces_figures_need(cli: Cli) -> None:
    cli.ok("study", "set", write_runs(3), "--annotators", "alice", *AS_LEAD)
    assert cli.json("study", "show", *AS_LEAD)["more_traces"] == {}
    finish("alice", *queue(cli, "alice")[:2])
    with open_workspace() as workspace:  # as the app does for everyone while the study is blind
        assert resolve_blind(workspace, "olga", taxonomy=MAST.ref)
    more = cli.json("study", "show", *AS_LEAD)["more_traces"]
    low, high = wilson_of(0, more["1.3"] + 2)
    assert high - low <= 0.06
    assert wilson_of(0, more["1.3"] + 1)[1] > 0.06
    assert "a prevalence within ± 3 points, by mode: about " in cli("study", "show").out
    assert cli.json("study", "show", "--annotator", "alice")["more_traces"] == {}


def test_a_split_of_traces_stays(cli: Cli) -> None:
    split = ("study", "set", write_runs(8), "--annotators", "a,b", "--split")
    err = cli.ok(*split, "0.5,0.2,0.3").err
    [counts] = re.findall(r"split: (\d) development, (\d) calibration, (\d) test", err)
    assert sum(map(int, counts)) == 8
    assert cli.ok("study", "show").err == err
    cli.refused("study", "set", "--split", "0.6,0.2,0.2", says="0.3 for tests, 0.2 for calibr")


@pytest.mark.parametrize(
    ("option", "heading"),
    [
        ("--retest", "finished begun left retests retests due retests done"),
        ("--withhold", "without suggestions finished begun left"),
    ],
)
def test_the_progress_has_only_columns_that_apply(cli: Cli, option: str, heading: str) -> None:
    cli("study", "set", write_runs(2), "--annotators", "alice,bob", option, 0.5)
    lines = [" ".join(line.split()) for line in cli("study", "show").out.splitlines()]
    assert f"annotator assigned shared {heading}" in lines

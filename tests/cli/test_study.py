"""``mast-tui study``, as whoever runs one uses it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mast_tui.figures.intervals import wilson_of
from mast_tui.session import Session, progress
from mast_tui.traces.library import read_file, read_fully
from mast_tui.workspace import Workspace
from mast_tui.workspace.paths import find_workspace
from tests.cli.conftest import Cli
from tests.workspace.build import MAST


def runs(folder: Path, count: int, name: str = "run") -> Path:
    """A folder with conversations, one a file."""
    place = folder / f"{name}s"
    place.mkdir()
    for number in range(count):
        talk = [
            {"role": "user", "content": f"do {name} {number}"},
            {"role": "assistant", "content": "done"},
        ]
        (place / f"{name}{number}.json").write_text(json.dumps({"messages": talk}))
    return place


def finish(annotator: str, *trace_ids: str) -> None:
    """Somebody finishes traces in the workspace of this folder."""
    workspace = Workspace.open(find_workspace(None))
    for trace_id in trace_ids:
        path = workspace.trace(trace_id).path
        assert path is not None
        (trace,) = read_file(path, named=True).traces
        read_fully(trace)
        session = Session.open(workspace, trace, MAST, annotator, blind=True)
        session.finish(open_modes="absent")
    workspace.close()


def ids(cli: Cli, annotator: str, *options: str) -> list[str]:
    done = cli("study", "queue", "--annotator", annotator, *options)
    assert done.code == 0, done.err
    return done.out.split()


def test_the_help_says_which_places_are_a_conflict(cli: Cli) -> None:
    words = " ".join(cli("study", "set", "--help").out.split())
    assert "overlapping labels of one mode with different ends as a conflict" in words
    assert "as labels that do not overlap always are. Default: no." in words


def test_a_study_is_set_up_and_deals_out_its_traces(cli: Cli, tmp_path: Path) -> None:
    folder = runs(tmp_path, 10)
    done = cli(
        *("study", "set", folder, "--annotators", "alice,bob,eve", "--adjudicators", "carol"),
        *("--per-trace", 2, "--overlap", 0.3, "--seed", 7, "--withhold", 0.2, "--retest", 0.1),
        *("--open-modes", "leave", "--names", "shown", "--judge-in-adjudication", "before"),
        *("--boundaries", "--reasons", "--assisted", "--annotator", "olga", "--json"),
    )
    assert done.code == 0, done.err
    assert done.json["changed"]
    assert done.json["study"] == {
        "annotators": ["alice", "bob", "eve"],
        "present": ["alice", "bob", "eve"],
        "memberships": [],
        "releases": [],
        "adjudicators": ["carol"],
        "traces": 10,
        "batches": [10],
        "draws": [],
        "chances_alike": True,
        "per_trace": 2,
        "overlap": 0.3,
        "overlap_traces": 3,
        "seed": 7,
        "blind": False,
        "withheld": 0.2,
        "retests": 0.1,
        "open_modes": "leave",
        "names": "shown",
        "judge_in_adjudication": "before",
        "boundaries": True,
        "reasons": True,
        "redact": False,
    }
    queues = [ids(cli, name) for name in ("alice", "bob", "eve")]
    assert sum(map(len, queues)) == 13
    assert len({x for queue in queues for x in queue}) == 10
    shown = cli("study", "show", "--json").json
    assert [row["assigned"] for row in shown["progress"]] == [len(queue) for queue in queues]
    assert "olga" not in [row["name"] for row in cli("status", "--json").json["annotators"]]


def test_what_is_not_given_stays(cli: Cli, tmp_path: Path) -> None:
    cli("study", "set", runs(tmp_path, 4), "--annotators", "alice,bob", "--seed", 5)
    changed = cli("study", "set", "--retest", 0.5, "--no-boundaries", "--json").json
    study = changed["study"]
    assert (study["seed"], study["retests"], study["traces"]) == (5, 0.5, 4)
    second_run = cli("study", "set", "--retest", 0.5)
    assert second_run.code == 0
    assert second_run.out.startswith("nothing changed")


def test_all_known_traces_are_taken_in_where_none_is_named(cli: Cli, tmp_path: Path) -> None:
    cli("judge", runs(tmp_path, 3), "--judge", "rules", "--quiet")
    done = cli("study", "set", "--annotators", "alice", "--json").json
    assert (done["study"]["traces"], done["study"]["per_trace"]) == (3, 1)
    assert done["study"]["blind"]


def test_withholding_makes_a_study_assisted(cli: Cli, tmp_path: Path) -> None:
    folder = runs(tmp_path, 1)
    done = cli("study", "set", folder, "--annotators", "a,b", "--withhold", 0.5, "--json")
    assert not done.json["study"]["blind"]
    refused = cli("study", "set", "--blind")
    assert refused.code == 1
    assert "no share is without" in refused.err


def test_more_traces_come_after_the_others(cli: Cli, tmp_path: Path) -> None:
    cli("study", "set", runs(tmp_path, 6), "--annotators", "alice,bob", "--overlap", 0.5)
    before = ids(cli, "alice")
    finish("alice", before[0])
    done = cli("study", "add", runs(tmp_path, 4, "late"), "--json")
    assert (done.code, done.json["study"]["batches"]) == (0, [6, 4])
    now = ids(cli, "alice")
    assert now[: len(before) - 1] == before[1:]
    assert len(now) > len(before) - 1
    second_run = cli("study", "add", "lates", "--json")
    assert (second_run.code, second_run.json["changed"]) == (0, False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--annotators", "alice"), "annotators"),
        (("--annotators", "alice,bob,eve"), "the annotators"),
        (("--overlap", 0.5), "the overlap"),
        (("--per-trace", 1, "--seed", 8), "how many label a trace and the seed"),
        (
            ("--assisted", "--withhold", 0.1),
            "blind or suggestions shown and the share without suggestions",
        ),
        (("runs/run0.json",), "the traces taken in"),
    ],
)
def test_what_figures_rest_on_stays_once_a_trace_is_finished(
    cli: Cli, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    cli("study", "set", runs(tmp_path, 3), "--annotators", "alice,bob")
    first, *_ = ids(cli, "alice")
    if words != "annotators":
        finish("alice", first)
    before = cli("study", "show", "--json").json["study"]
    done = cli("study", "set", *options)
    assert done.code == 1
    assert done.err.count("\n") == 1
    assert words in done.err
    assert cli("study", "show", "--json").json["study"] == before


def test_how_adjudication_goes_can_change_later(cli: Cli, tmp_path: Path) -> None:
    cli("study", "set", runs(tmp_path, 2), "--annotators", "alice,bob")
    finish("alice", *ids(cli, "alice"))
    done = cli(
        *("study", "set", "--adjudicators", "carol", "--retest", 0.5, "--names", "shown"),
        *("--boundaries", "--reasons", "--annotators", "bob,alice", "--json"),
    )
    assert (done.code, done.json["study"]["adjudicators"]) == (0, ["carol"])


def test_show_and_status_tell_how_far_everybody_is(cli: Cli, tmp_path: Path) -> None:
    cli("study", "set", runs(tmp_path, 6), "--annotators", "alice,bob", "--retest", 0.4)
    order = ids(cli, "alice")
    finish("alice", *order)
    alice, bob = cli("study", "show", "--json").json["progress"]
    assert (alice["finished"], alice["left"], bob["finished"]) == (6, 0, 0)
    assert alice["retests"]["planned"] == 2
    assert alice["retests"]["due"] >= 1
    text = cli("study", "show").out
    assert "alice" in text
    assert "repeat" in text
    status = cli("status", "--json").json
    assert status["study"]["annotators"][0] == {
        "name": "alice",
        "assigned": 6,
        "finished": 6,
        "open": 0,
        "left": 0,
    }
    assert "study: 6 traces · 0 conflicts left" in cli("status").out


def test_an_annotator_is_not_told_what_comes_back(cli: Cli, tmp_path: Path) -> None:
    cli("study", "set", runs(tmp_path, 6), "--annotators", "alice,bob", "--retest", 0.4)
    finish("alice", *ids(cli, "alice"))
    (row,) = cli("study", "show", "--annotator", "alice", "--json").json["progress"]
    assert "retests" not in row
    due = ids(cli, "alice")
    assert row["left"] == len(due) > 0
    assert "due" not in cli("study", "show", "--annotator", "alice").out
    assert cli("study", "queue", "--annotator", "alice", "--kind", "retests").code == 2
    listed = cli("study", "queue", "--annotator", "alice", "--json")
    assert [set(trace) for trace in listed.json["traces"]] == [{"id", "begun", "modes"}] * len(due)
    (own,) = cli("status", "--annotator", "alice", "--json").json["study"]["annotators"]
    assert own["left"] == len(due)
    finish("alice", *due)
    workspace = Workspace.open(find_workspace(None))
    study = workspace.study(MAST.ref)
    assert study is not None
    assert set(due) <= progress(workspace, study)[0].retests.done
    workspace.close()


def test_a_sample_and_a_queue_without_a_study(cli: Cli, tmp_path: Path) -> None:
    cli("judge", runs(tmp_path, 5), "--judge", "rules", "--quiet")
    assert cli("study", "queue", "--annotator", "alice").code == 1
    workspace = Workspace.open(find_workspace(None))
    (first, *_) = workspace.traces()
    workspace.close()
    finish("alice", first.trace_id)
    assert len(ids(cli, "alice")) == 4
    sample = ids(cli, "alice", "--kind", "sample", "-n", "2")
    assert len(sample) == 2
    assert ids(cli, "alice", "--kind", "sample", "-n", "3")[:2] == sample


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("study",), 2, "Usage"),
        (("study", "set"), 2, "--annotators A,B"),
        (("study", "set", "--annotators", "judge:x"), 2, "judge"),
        (("study", "set", "--annotators", "a,a"), 1, "twice"),
        (("study", "set", "--annotators", "a,b", "--per-trace", 3), 1, "3 annotators a trace"),
        (("study", "set", "--annotators", "a", "--overlap", 2), 2, "overlap"),
        (("study", "set", "--annotators", "a", "nowhere"), 2, "nowhere"),
        (("study", "show"), 1, "no workspace"),
        (("study", "queue"), 2, "--annotator NAME"),
    ],
)
def test_mistakes_are_named(cli: Cli, words: tuple[object, ...], code: int, message: str) -> None:
    done = cli(*words)
    assert done.code == code
    assert message in done.err


def test_common_options_may_stand_before_the_subcommand(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "other.db"
    cli("study", "--workspace", place, "set", runs(tmp_path, 2), "--annotators", "set,show")
    done = cli("--workspace", place, "study", "show", "--json")
    assert done.json["study"]["annotators"] == ["set", "show"]
    one = cli("study", f"--workspace={place}", "--annotator", "show", "show", "--json")
    assert [row["name"] for row in one.json["progress"]] == ["show"]


def test_a_study_that_is_not_there_is_said_so(cli: Cli, tmp_path: Path) -> None:
    cli("judge", runs(tmp_path, 1), "--judge", "rules", "--quiet")
    for arguments in (("show",), ("add",)):
        done = cli("study", *arguments)
        assert done.code == 1
        assert "mast-tui study set" in done.err


def test_who_is_not_in_the_study_counts_only_where_they_are_named(cli: Cli, tmp_path: Path) -> None:
    folder = runs(tmp_path, 3)
    assert cli("study", "set", folder, "--annotators", "alice,bob", "--annotator", "olga").code == 0
    traces = sorted({*ids(cli, "alice"), *ids(cli, "bob")})
    for name in ("alice", "bob"):
        finish(name, *traces)
    rows = [f"{trace},zoe,,,,failed,1" for trace in traces]
    (tmp_path / "zoe.csv").write_text(
        "trace_id,annotator,system,model,benchmark,outcome,1.1\n" + "\n".join(rows)
    )
    done = cli("import", "zoe.csv", "--format", "csv-wide", "--allow-new")
    assert done.code == 0, done.err

    agree = cli("agree", "--json").json
    assert agree["annotators"] == ["alice", "bob"]
    assert agree["left_out"]["not_in_study"] == {"zoe": 3}
    told = "Not counted, as they have no part in the study: zoe 3 traces"
    assert told in " ".join(cli("agree").out.split())
    assert cli("agree", "--markdown", "agree.md").code == 0
    assert told in (tmp_path / "agree.md").read_text("utf-8")
    named = cli("agree", "--annotators", "alice,zoe", "--json").json
    assert named["annotators"] == ["alice", "zoe"]
    assert named["left_out"]["not_in_study"] == {}

    report = cli("report", "--json").json
    assert report["gold"]["annotators"] == ["alice", "bob"]
    assert report["gold"]["not_in_study"] == {"zoe": 3}
    assert report["groups"]["(unknown)"]["modes"]["1.1"]["count"] == 0
    words = "not counted, as not in the study: zoe 3 traces"
    assert words in " ".join(cli("report").out.split())
    own = cli("report", "--labels", "zoe", "--json").json
    assert own["groups"]["(unknown)"]["modes"]["1.1"]["count"] == 3

    assert cli("export", "--format", "gold", "-o", "gold.json").code == 0
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    assert gold["gold"]["not_in_study"] == {"zoe": 3}
    assert all(
        [side["name"] for side in trace["annotators"]] == ["alice", "bob"]
        for trace in gold["traces"]
    )
    sheet = (tmp_path / "gold.datasheet.md").read_text("utf-8")
    assert "Not counted, as they have no part in the study: zoe (3 traces)" in sheet
    assert cli("status", "--json").json["conflicts"]["left"] == 0


def test_one_leaves_and_one_joins_and_nothing_finished_is_touched(cli: Cli, tmp_path: Path) -> None:
    folder = runs(tmp_path, 12)
    set_up = ("study", "set", folder, "--annotators", "alice,bob", "--per-trace", 1)
    assert cli(*set_up, "--annotator", "olga").code == 0
    of_bob = ids(cli, "bob")
    finish("bob", *of_bob[:2])
    done = cli("study", "join", "eve", "--annotator", "olga", "--json")
    assert done.json["changed"]
    assert [row["assigned"] for row in done.json["people"]] == [6, 6, 0]
    before = ids(cli, "alice")
    told = cli("study", "leave", "bob", "--annotator", "olga", "--dry-run")
    assert "bob             2       6  has left" in told.out
    assert ids(cli, "bob") == of_bob[2:]
    done = cli("study", "leave", "bob", "--annotator", "olga", "--json")
    people = {row["name"]: row["assigned"] for row in done.json["people"]}
    assert people == {"alice": 6, "bob": 2, "eve": 4}
    assert ids(cli, "alice") == before
    assert sorted(ids(cli, "eve")) == sorted(of_bob[2:])
    output = cli("study", "show", "--annotator", "olga").out
    assert "bob (batch 1; has left), eve (from batch 2 on)" in output
    more = runs(tmp_path, 4, "more")
    assert cli("study", "add", more, "--annotator", "olga").code == 0
    assert ids(cli, "bob") == []
    assert len(ids(cli, "eve")) == 6
    assert cli("study", "join", "bob", "--annotator", "olga").code == 0
    assert cli("study", "join", "bob", "--annotator", "olga").code == 1


def test_what_is_given_back_goes_to_the_others_and_the_last_one_stays(
    cli: Cli, tmp_path: Path
) -> None:
    folder = runs(tmp_path, 6)
    set_up = ("study", "set", folder, "--annotators", "alice,bob", "--per-trace", 1)
    assert cli(*set_up, "--annotator", "olga").code == 0
    finish("alice", *ids(cli, "alice")[:1])
    done = cli("study", "release", "alice", "--annotator", "olga", "--json")
    assert {row["name"]: row["assigned"] for row in done.json["people"]} == {"alice": 1, "bob": 5}
    assert cli("study", "release", "alice", "--annotator", "olga").out.startswith("nothing changed")
    assert cli("study", "leave", "alice", "--annotator", "olga").code == 0
    last = cli("study", "leave", "bob", "--annotator", "olga")
    assert last.code == 1
    assert "last annotator" in last.err
    assert "there are bob" in cli("study", "leave", "eve", "--annotator", "olga").err


def test_a_sample_is_drawn_and_its_chance_is_kept(cli: Cli, tmp_path: Path) -> None:
    folder = runs(tmp_path, 12)
    arguments = (
        "--annotators",
        "alice",
        "--sample",
        4,
        "--stratify",
        "outcome, length",
        "--seed",
        3,
    )
    done = cli("study", "set", folder, *arguments, "--json")
    assert done.code == 0, done.err
    draw = {"lot": 1, "of": 12, "probability": 4 / 12, "by": ["outcome", "length"], "seed": 3}
    assert done.json["study"]["draws"] == [draw]
    first = ids(cli, "alice")
    assert len(first) == 4
    assert cli("study", "set", folder, *arguments).out.startswith("nothing changed")
    finish("alice", first[0])
    more = cli("study", "add", folder, "--sample", 2, "--json").json["study"]
    assert (more["traces"], more["chances_alike"]) == (6, True)
    assert "batch 2 is a random sample: 2 of 8 traces" in cli("study", "show").out
    assert ids(cli, "alice")[:3] == first[1:]
    assert "different chances" in cli("study", "add", folder).out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--sample", 4), "4 traces cannot be drawn from 3"),
        (("--sample", 2, "--stratify", "colour"), "cannot be drawn over 'colour'"),
        (("--stratify", "outcome"), "give --sample N too"),
    ],
)
def test_a_sample_that_cannot_be_drawn_is_refused(
    cli: Cli, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    refused = cli("study", "set", runs(tmp_path, 3), "--annotators", "alice", *options)
    assert refused.code
    assert words in refused.err
    assert cli("study", "show").code == 1


def test_who_labels_what_is_written_and_fixed_by_a_table(cli: Cli, tmp_path: Path) -> None:
    cli("study", "set", runs(tmp_path, 4), "--annotators", "alice,bob", "--overlap", 0.5)
    table = tmp_path / "who.csv"
    assert cli("study", "export", "-o", table).code == 0
    heading, *rows = table.read_text().splitlines()
    assert heading == "trace_id,annotator,lot"
    assert len(rows) == 6
    before = [ids(cli, name) for name in ("alice", "bob")]
    assert cli("study", "import", table).code == 0
    assert [ids(cli, name) for name in ("alice", "bob")] == before
    every = sorted({row.split(",")[0] for row in rows})
    mine = "".join(f"{one},bob\n" for one in every)
    table.write_text(f"trace_id,annotator\n{mine}")
    dry = cli("study", "import", table, "--dry-run", "--json").json["people"]
    assert [row["assigned"] for row in dry] == [0, 4]
    assert [ids(cli, name) for name in ("alice", "bob")] == before
    assert cli("study", "import", table).code == 0
    assert (ids(cli, "alice"), sorted(ids(cli, "bob"))) == ([], every)
    finish("bob", every[0])
    table.write_text(f"trace_id,annotator\n{every[1]},alice\n")
    refused = cli("study", "import", table)
    assert (refused.code, "who labels which trace" in refused.err) == (1, True)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("other,alice", "line 2: trace 'other' is not in the study"),
        ("{0},eve", "line 2: 'eve' is no annotator"),
        ("{0},alice\n{0},alice", "line 3: alice is to label trace"),
        ("", "no row assigns a trace to an annotator"),
    ],
)
def test_a_table_that_cannot_be_is_refused_with_its_line(
    cli: Cli, tmp_path: Path, rows: str, words: str
) -> None:
    cli("study", "set", runs(tmp_path, 1), "--annotators", "alice")
    table = tmp_path / "who.csv"
    table.write_text(f"trace_id,annotator\n{rows.format(*ids(cli, 'alice'))}\n")
    refused = cli("study", "import", table)
    assert (refused.code, words in refused.err) == (1, True)


def test_weights_say_how_much_each_is_dealt(cli: Cli, tmp_path: Path) -> None:
    folder = runs(tmp_path, 9)
    arguments = ("--annotators", "alice,bob", "--overlap", 0)
    assert cli("study", "set", folder, *arguments, "--weights", "alice=2").code == 0
    assert [len(ids(cli, name)) for name in ("alice", "bob")] == [6, 3]
    assert "no weight" in cli("study", "set", "--weights", "eve=2").err
    assert "weight over 0" in cli("study", "set", "--weights", "alice=0").err
    assert "annotators alice (weight 2), bob\n" in cli("study", "show").out
    assert cli("study", "join", "dora", "--weight", 3).code == 0
    refused = cli("study", "set", *arguments, "--sample", 3)
    assert (refused.code, "must keep the name: alice,bob,dora" in refused.err) == (1, True)
    cli("study", "add", runs(tmp_path, 6, "late"))
    assert [len(ids(cli, name)) for name in ("alice", "bob", "dora")] == [8, 4, 3]


def test_a_lot_is_drawn_by_what_labels_would_tell_and_its_chances_are_kept(
    cli: Cli, tmp_path: Path
) -> None:
    folder = runs(tmp_path, 12)
    cli("judge", folder, "--judge", "rules", "--quiet")
    cli("study", "set", folder, "--annotators", "alice", "--sample", 4)
    assert "--sample N too" in cli("study", "add", "--judge", "rules").err
    assert "no mode" in cli("study", "add", "--sample", 2, "--judge", "rules", "--mode", "x").err
    done = cli("study", "add", "--sample", 3, "--judge", "rules", "--mode", "1.3", "--json")
    assert done.code == 0, done.err
    study = done.json["study"]
    draw = study["draws"][1]
    assert (draw["of"], draw["judge"].startswith("judge:rules")) == (8, True)
    assert len(draw["chances"]) == 3
    assert all(0 < chance <= 1 for chance in draw["chances"].values())
    assert not study["chances_alike"]
    output = cli("study", "show").out
    assert "is least certain" in output
    assert "weighted by them" in output
    assert sorted(ids(cli, "alice", "--kind", "worth")) == sorted(draw["chances"])


def test_how_many_more_traces_three_points_take_is_told_to_whoever_runs_it(
    cli: Cli, tmp_path: Path
) -> None:
    cli("study", "set", runs(tmp_path, 3), "--annotators", "alice", "--annotator", "olga")
    assert cli("study", "show", "--annotator", "olga", "--json").json["more_traces"] == {}
    finish("alice", *ids(cli, "alice")[:2])
    more = cli("study", "show", "--annotator", "olga", "--json").json["more_traces"]
    low, high = wilson_of(0, more["1.3"] + 2)
    assert high - low <= 0.06
    assert wilson_of(0, more["1.3"] + 1)[1] > 0.06
    assert "needed for a ±3-point interval, by mode, about: 1.1 " in cli("study", "show").out
    assert cli("study", "show", "--annotator", "alice", "--json").json["more_traces"] == {}


def test_a_split_keeps_traces_apart_for_good(cli: Cli, tmp_path: Path) -> None:
    folder = runs(tmp_path, 8)
    done = cli("study", "set", folder, "--annotators", "a,b", "--split", "0.5,0.2,0.3")
    assert done.code == 0, done.err
    counts = re.findall(r"(\d+) (\w+)", done.err.split("split: ")[1])
    assert [part for _, part in counts] == ["development", "calibration", "test"]
    assert sum(int(count) for count, _ in counts) == 8
    other = cli("study", "set", "--split", "0.6,0.2,0.2")
    assert other.code == 1
    assert "set aside in this workspace already" in other.err


@pytest.mark.parametrize("shares", ["0.5,0.5", "0.5,0.2,0.2", "a,b,c"])
def test_a_split_is_three_shares_of_one(cli: Cli, tmp_path: Path, shares: str) -> None:
    done = cli("study", "set", runs(tmp_path, 2), "--annotators", "a,b", "--split", shares)
    assert done.code == 2
    assert "three shares" in done.err


@pytest.mark.parametrize(
    ("options", "heading"),
    [
        ((), "annotator assigned shared finished open left"),
        (
            ("--retest", 0.5),
            "annotator assigned shared finished open left repeats due now repeated",
        ),
        (
            ("--withhold", 0.5),
            "annotator assigned shared without suggestions finished open left",
        ),
    ],
)
def test_the_progress_has_only_columns_that_apply(
    cli: Cli, tmp_path: Path, options: tuple[object, ...], heading: str
) -> None:
    cli("study", "set", runs(tmp_path, 2), "--annotators", "alice,bob", *options)
    lines = [" ".join(line.split()) for line in cli("study", "show").out.splitlines()]
    assert [line for line in lines if line.startswith("annotator ")] == [heading]

"""``mast-tui exam``: a small made-up set, and the recorded answers of the corpus."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mast_tui.judges.rules import RULES, RulesJudge
from mast_tui.workspace import Workspace, find_workspace
from mast_tui.workspace.registers.look_here import look_here, spans_to_look_at
from tests.cli.conftest import Cli
from tests.exchange.corpus import corpus
from tests.judges.llm.made_answers import asked_modes, user_text
from tests.judges.llm.made_answers import said as model_says
from tests.judges.llm.made_answers import write_runs as write_traces
from tests.judges.llm.server import Action, ModelServer, answer

STEPS = (
    "Plan the trip.",
    "Ask the clerk.",
    "No train at nine.",
    "Book the train at nine.",
    "Done.",
)
AGENTS = ("lead", "clerk", "clerk", "lead", "lead")


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), "utf-8")
    return path


def write_set(folder: Path, runs: int = 4) -> Path:
    """Runs of five steps in the form of Who&When, decided by their fourth step."""
    for number in range(runs):
        write(
            folder / f"{number}.json",
            {
                "question": "Get me to the coast.",
                "question_ID": f"trip-{number}",
                "history": [
                    {"content": f"{words} ({number})", "role": "assistant", "name": agent}
                    for words, agent in zip(STEPS, AGENTS, strict=True)
                ],
                "is_correct": False,
                "mistake_agent": "lead",
                "mistake_step": "3",
                "mistake_reason": "It books a train that does not run.",
            },
        )
    return folder


def write_runs(folder: Path) -> tuple[Path, Path]:
    """What was planted in three runs, and the answers of a judge, right in two of them."""
    for number, answered in enumerate((2, 2, 4)):
        write(
            folder / "truth" / f"{number}.json",
            {
                "run_task_id": f"run-{number}",
                "critical_failure_step": 2,
                "failure_category": "System Failure",
                "failed_component": "Search",
                "reason": "planted",
            },
        )
        failure = {"step_number": answered, "failure_case": 9, "description": "it broke"}
        result = {"task_id": f"run-{number}", "failures": [failure]}
        write(folder / "said" / f"{number}.json", {"detailed_results": [result]})
    return folder / "truth", folder / "said"


def test_the_rules_sit_an_exam_of_files(cli: Cli, tmp_path: Path) -> None:
    done = cli(
        "exam", write_set(tmp_path / "set"), "--set", "who-and-when", "--judge", "rules", "--json"
    )
    assert done.code == 0, done.err
    document = done.json
    assert (document["questions"], document["scored_by"]) == (4, ["decisive"])
    [judged] = document["judges"].values()
    assert (judged["decisive"]["n"], judged["decisive"]["named"]) == (4, 0)
    assert judged["decisive"]["step"]["0"]["value"] == 0
    assert document["baselines"]["random"]["0"] == pytest.approx(1 / 5)
    assert document["baselines"]["last"]["1"] == 1
    assert len(document["files"]) == 4
    assert all(len(file["sha256"]) == 64 for file in document["files"])


def test_sets_of_steps_need_more_runs_than_these(cli: Cli, tmp_path: Path) -> None:
    arguments = ("exam", write_set(tmp_path / "set"), "--set", "who-and-when", "--judge", "rules")
    found = cli(*arguments, "--coverage", "--json").json["coverage"]
    assert set(found) == {"features", RulesJudge().name}
    assert {sets["runs"] for sets in found.values()} == {4}
    assert {sets["value"] for sets in found.values()} == {None}
    text = cli(*arguments, "--coverage").out
    assert "Sets of steps with the decisive step" in text
    assert "coverage" not in cli(*arguments, "--json").json
    wrong = cli("exam", "--judge", "rules", "--coverage")
    assert wrong.code == 2


def test_sets_of_steps_are_kept_for_every_trace_of_the_workspace(cli: Cli, tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", 41)
    imported = ("import", folder, "--format", "who-and-when", "--annotator", "people")
    assert cli(*imported, "--allow-new").code == 0
    write_traces(tmp_path / "more", 1)
    assert cli("judge", folder, tmp_path / "more", "--judge", "rules").code == 0
    arguments = ("exam", "--set", "people", "--judge", "judge:rules", "--coverage", "--keep")
    done = cli(*arguments, "--json")
    assert done.code == 0, done.err
    kept = done.json["look_here"]
    measured = done.json["coverage"][kept["judge"]]
    assert (kept["runs"], kept["mean_share"]) == (41, measured["mean_share"])
    assert kept["traces"] == 42
    with closing(Workspace.open(find_workspace(None))) as place:
        taxonomy = done.json["taxonomy"]
        known = look_here(place, taxonomy)
        assert known is not None
        assert known.hash == kept["hash"]
        assert len(known.sizes) == 42
        trace_id = next(
            trace.trace_id for trace in place.traces() if trace.path and trace.path.parent == folder
        )
        # The place of the step in a run tells all of it here.
        assert [key[-1] for key in spans_to_look_at(place, taxonomy, trace_id)] == ["3"]
        assert known.sizes[trace_id] == 1
    assert cli(*arguments, "--json").json["look_here"] == kept
    assert f"Kept for 42 traces (sets {kept['hash']})" in " ".join(cli(*arguments).out.split())
    for wrong in (arguments[:-2], arguments[:5]):
        refused = cli(*wrong, "--keep")
        assert refused.code == 2
        assert "--keep goes with --coverage" in refused.err


def test_answers_of_another_judge_are_imported_and_scored(cli: Cli, tmp_path: Path) -> None:
    truth, said = write_runs(tmp_path)
    for folder, name in ((truth, "planted"), (said, "other")):
        done = cli("import", folder, "--format", "agentrx", "--annotator", name, "--allow-new")
        assert done.code == 0, done.err
    document = cli("exam", "--set", "planted", "--judge", "other", "--json").json
    decisive = document["judges"]["other"]["decisive"]
    assert (decisive["n"], decisive["step"]["0"]["value"]) == (3, pytest.approx(2 / 3))
    assert decisive["step"]["3"]["value"] == 1
    assert decisive["category"]["value"] == 1
    cases = {case["trace"]: case["off_by"] for case in document["judges"]["other"]["cases"]}
    assert cases == {"run-0": 0, "run-1": 0, "run-2": 2}
    assert document["judges"]["other"]["places"]["joint"]["right"] == 2


def test_runs_in_the_intermediate_form_bring_agents_and_chance(cli: Cli, tmp_path: Path) -> None:
    truth, said = write_runs(tmp_path)
    for number in range(3):
        steps = [
            {
                "index": step,
                "substeps": [{"sub_index": 1, "role": role, "content": f"{role} {step}"}],
            }
            for step, role in enumerate(("Planner", "Search", "Planner", "Writer"), 1)
        ]
        run = {"trajectory_id": f"run-{number}", "instruction": "Find the kettle.", "steps": steps}
        write(tmp_path / "runs" / f"{number}" / "trajectory_ir.json", run)
    for folder, name in ((truth, "planted"), (said, "other")):
        arguments = ("--format", "agentrx", "--annotator", name, "--allow-new")
        assert cli("import", folder, "runs", *arguments).code == 0
    document = cli("exam", "--set", "planted", "--judge", "other", "--json").json
    assert document["baselines"]["n"] == 3
    assert document["baselines"]["random"]["0"] == pytest.approx(1 / 4)
    decisive = document["judges"]["other"]["decisive"]
    assert decisive["agent"]["value"] == pytest.approx(2 / 3)


def test_a_judge_that_has_run_is_held_against_gold(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    assert cli("judge", "set", "--judge", "rules", "--quiet").code == 0
    listed = cli("inspect", "set", "--json").json
    traces = [trace["id"] for file in listed["files"] for trace in file["traces"]]
    rows = ["trace_id,annotator,mode,value"]
    rows += [f"{trace},ann,1.3,{'present' if trace == traces[0] else 'absent'}" for trace in traces]
    rows += [f"{trace},ann,,finished" for trace in traces]
    (tmp_path / "labels.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assert cli("import", "labels.csv", "--format", "csv-long", "--allow-new").code == 0
    document = cli("exam", "--set", "gold", "--judge", "rules", "--json").json
    [judged] = document["judges"].values()
    table = judged["verdicts"]["modes"]["1.3"]
    assert (table["n"], table["true_negatives"], table["false_negatives"]) == (4, 3, 1)
    assert cli("judge", "set", "--judge", "rules", "--rules", "all", "--quiet").code == 0
    judges = (RulesJudge().name, RulesJudge(RULES).name)
    words = [word for name in judges for word in ("--judge", name)]
    assert cli("exam", "--set", "gold", *words, "--html", "exam.html").code == 0
    page = (tmp_path / "exam.html").read_text("utf-8")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    titles = re.findall(r"<h2[^>]*><bdi>(.*?)</bdi></h2>", page)
    assert titles == ["Judges", *judges]


def test_places_of_trail_count_by_span_and_category(cli: Cli, tmp_path: Path) -> None:
    def errors(*pairs: tuple[str, str]) -> dict[str, object]:
        return {"errors": [{"category": c, "location": at} for c, at in pairs]}

    truth = write(
        tmp_path / "truth" / "t.json", errors(("Goal Deviation", "s1"), ("Timeout Issues", "s2"))
    )
    said = write(
        tmp_path / "said" / "t.json", errors(("Goal Deviation", "s1"), ("Goal Deviation", "s2"))
    )
    arguments = ("--format", "trail", "--annotator", "other", "--allow-new")
    assert cli("import", said, *arguments).code == 0
    done = cli("exam", truth, "--set", "trail", "--judge", "other", "--json")
    assert done.code == 0, done.err
    places = done.json["judges"]["other"]["places"]
    assert places["location"]["f1"]["value"] == 1
    assert places["category"]["recall"]["value"] == 0.5
    assert places["joint"]["per_trace"]["value"] == 0.5


def test_by_a_crosswalk_a_judge_of_mast_is_asked_for_categories(cli: Cli, tmp_path: Path) -> None:
    truth = write(
        tmp_path / "truth.json",
        [
            {
                "trajectory_id": "run-1",
                "failures": [
                    {"failure_id": 1, "step_number": 2, "failure_category": "System Failure"},
                    {
                        "failure_id": 2,
                        "step_number": 3,
                        "failure_category": "Misinterpretation of Tool Output",
                    },
                ],
                "root_cause": {"failure_id": 2},
            }
        ],
    )
    rows = ["trace_id,annotator,mode,value,span_first,span_last"]
    rows += ["run-1,judge-x,2.6,present,/2,/2", "run-1,judge-x,1.3,present,/0,/0"]
    rows += ["run-1,judge-x,,finished,,"]
    (tmp_path / "said.csv").write_text("\n".join(rows) + "\n", "utf-8")
    assert cli("import", "said.csv", "--format", "csv-long", "--allow-new").code == 0
    arguments = ("exam", truth, "--set", "agentrx", "--judge", "judge-x", "--json")
    plain = cli(*arguments).json["judges"]["judge-x"]
    assert (plain["categories"], plain["places"]["location"]["named"]) == (False, 2)
    document = cli(*arguments, "--crosswalk", "agentrx-to-mast").json
    crossed = document["judges"]["judge-x"]
    assert document["modes"] == ["disobey_task_specification", "reasoning_action_mismatch"]
    assert crossed["places"]["joint"]["f1"]["value"] == 1
    assert crossed["decisive"]["step_and_category"]["value"] == 1
    refused = cli("exam", "--set", "gold", "--judge", "x", "--crosswalk", "agentrx-to-mast")
    assert refused.code == 2


def test_a_table_of_labels_is_a_set(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    listed = cli("inspect", "set", "--json").json
    traces = [trace["id"] for file in listed["files"] for trace in file["traces"]]
    rows = ["trace_id,annotator,mode,value,span_first,span_last,severity"]
    rows += [f"{trace},ann,3.3,present,/history/3,/history/4,fatal" for trace in traces[:3]]
    rows += [f"{traces[3]},ann,3.3,absent,,,", f"{traces[3]},ann,1.3,absent,,,"]
    rows += [f"{trace},ann,,finished,,," for trace in traces]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(rows) + "\n", "utf-8")
    done = cli("exam", "set", "--set", "labels.csv", "--judge", "rules", "--rules", "all", "--json")
    assert done.code == 0, done.err
    document = done.json
    assert document["scored_by"] == ["decisive", "places", "verdicts"]
    assert document["baselines"]["n"] == 3
    [judged] = document["judges"].values()
    assert judged["decisive"]["step"]["0"]["value"] == 0
    table = judged["verdicts"]["modes"]["3.3"]
    assert (table["n"], table["false_negatives"], table["true_negatives"]) == (4, 3, 1)
    labels.write_text("\n".join([*rows, f"{traces[0]},bob,1.3,absent,,,"]) + "\n", "utf-8")
    refused = cli("exam", "set", "--set", "labels.csv", "--judge", "rules")
    assert refused.code == 1
    assert "ann, bob" in refused.err


def test_a_report_in_every_language(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    outputs = {
        f"--{name}": tmp_path / f"exam.{name}" for name in ("markdown", "html", "latex", "csv")
    }
    words = [word for pair in outputs.items() for word in pair]
    done = cli("exam", "set", "--set", "who-and-when", "--judge", "rules", *words)
    assert done.code == 0, done.err
    assert "The decisive step" in done.out
    assert "by chance" in done.out
    assert "step 1 is found in 15" in " ".join(done.out.split())
    for name, file in outputs.items():
        if name != "--csv":
            assert "by chance" in file.read_text("utf-8"), name
    rows = outputs["--csv"].read_text("utf-8").splitlines()
    assert rows[0].startswith("scope,group,mode,name,statistic,value")
    assert any(row.startswith(f"decisive,{RulesJudge().name},,0,step,0.0,") for row in rows), rows
    assert any(row.startswith("baselines,random,,0,step,0.2") for row in rows), rows


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--set", "who-and-when", "--judge", "rules"), "needs the files"),
        (("set", "--set", "gold", "--judge", "rules"), "leave out the PATHs"),
        (("set", "--set", "who-and-when", "--judge", "x", "--rules", "all"), "is for"),
        (("set", "--set", "who-and-when", "--judge", "rules", "--judge", "rules"), "twice"),
        (("set", "--set", "who-and-when"), "Missing option"),
    ],
)
def test_what_does_not_go_together(cli: Cli, tmp_path: Path, words: Any, said: str) -> None:
    write_set(tmp_path / "set")
    done = cli("exam", *words)
    assert done.code == 2
    assert said in done.err


def test_the_set_itself_is_never_written_to(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    before = (tmp_path / "set" / "0.json").read_bytes()
    options = ("--set", "who-and-when", "--judge", "rules", "--force")
    done = cli("exam", "set", *options, "--markdown", tmp_path / "set" / "0.json")
    assert done.code == 1
    assert "never overwritten" in done.err
    assert (tmp_path / "set" / "0.json").read_bytes() == before


def test_what_is_hidden_from_who_asks_is_left_out(cli: Cli, tmp_path: Path) -> None:
    truth, said = write_runs(tmp_path)
    for folder, name in ((truth, "planted"), (said, "other")):
        cli("import", folder, "--format", "agentrx", "--annotator", name, "--allow-new")
    set_up = cli("study", "set", "--annotators", "ann", "--taxonomy", "agentrx@1")
    assert set_up.code == 0, set_up.err
    options = ("--judge", "other", "--annotator", "ann", "--blind", "--taxonomy", "agentrx@1")
    done = cli("exam", "--set", "planted", *options)
    assert done.code == 1
    assert "no labelled trace" in done.err


def test_other_tools_sit_the_exam_by_what_convert_wrote_for_them(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    assert cli("convert", "set/0.json", "--to", "atif", "-o", "0.atif.json").code == 0
    assert cli("convert", "set", "--to", "agentdebugx", "-o", "runs.jsonl").code == 0
    atif = json.loads(Path("0.atif.json").read_bytes())
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    issue = {"type": "loop", "summary": "", "severity": 1, "confidence": 1, "evidence": []}
    write(tmp_path / "pisama" / "0.json", {"issues": [issue], "trace_id": run})
    for number, line in enumerate(Path("runs.jsonl").read_bytes().splitlines()):
        run = json.loads(line)
        blamed = run["events"][3 - number % 2]["event_id"]
        report = {"trace_id": run["trace_id"], "findings": [], "root_cause_event_id": blamed}
        write(tmp_path / "adx" / f"{number}.json", report)
    for paths in (
        ("pisama", "0.atif.json", "--format", "pisama"),
        ("adx", "--format", "agentdebugx"),
    ):
        done = cli("import", *paths, "--allow-new")
        assert done.code == 0, done.err
    judges = ("--judge", "judge:pisama", "--judge", "judge:agentdebugx")
    done = cli("exam", "set", "--set", "who-and-when", *judges, "--json")
    assert done.code == 0, done.err
    asked = {name: one["decisive"] for name, one in done.json["judges"].items()}
    assert asked["judge:agentdebugx"]["step"]["0"]["value"] == 0.5
    assert asked["judge:agentdebugx"]["step"]["1"]["value"] == 1
    assert (asked["judge:pisama"]["n"], asked["judge:pisama"]["named"]) == (1, 0)


def test_without_a_set_judges_are_held_against_themselves(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third reading of each run sees something else than the two before."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_traces(tmp_path / "traces", 3)
    asked: Counter[str] = Counter()

    def script(body: dict[str, Any], _: int) -> Action:
        run = user_text(body).split(" says line")[0][-1]
        asked[run] += 1
        other = asked[run] == 3
        text = model_says(body, mode="2.3", place=0) if other else model_says(body)
        return answer(text, tokens_in=3_000, tokens_out=500)

    with ModelServer(script) as server:
        ask = ("judge", "traces", "--judge", "llm", "--model", "m", "--base-url", server.base_url)
        for more in (("--samples", "3"), ("--window-tokens", "9000")):
            done = cli(*ask, "--quiet", *more)
            assert done.code == 0, done.err
    done = cli("exam", "--judge", "m", "--json")
    assert done.code == 0, done.err
    first, second = done.json["judges"]
    assert done.json["judges"][first]["traces"] == 3
    assert done.json["judges"][first]["samples"]["again"]["value"] == pytest.approx(1 / 3)
    assert done.json["judges"][first]["quotes_found"]["value"] == 1
    assert done.json["judges"][second]["samples"] is None
    beside = done.json["beside"]
    assert beside["first"] == first
    [other] = beside["others"].values()
    assert other["differs"] == {"samples": ["3", "1"], "window_tokens": ["24000", "9000"]}
    assert other["n"] == 3
    assert other["verdicts"]["value"] == pytest.approx(13 / 14)
    assert other["modes"]["value"] == pytest.approx(2 / 3)
    assert other["places"]["value"] == other["step"]["value"] == 1
    shown = cli("exam", "--judge", "m", "--markdown", "steady.md", "--csv", "steady.csv")
    assert "window_tokens 9000" in shown.out
    with Path("steady.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["scope"], row["group"], row["statistic"]): row for row in csv.DictReader(file)}
    row = rows["beside", second, "modes"]
    assert (float(row["value"]), row["annotators"]) == (other["modes"]["value"], first)
    again = done.json["judges"][first]["samples"]["again"]
    assert float(rows["samples", first, "again"]["value"]) == again["value"]
    assert f"Beside {first}" in Path("steady.md").read_text("utf-8")
    assert "no judge 'x'" in cli("exam", "--judge", "x").err
    assert cli("exam", "traces", "--judge", "m").code == 2


def test_orders_of_modes_and_numbers_of_spans_tell_what_a_judge_goes_by(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model calls present whichever mode is asked about first."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_traces(tmp_path / "traces", 3)

    def script(body: dict[str, Any], _: int) -> Action:
        text = model_says(body, mode=asked_modes(body)[0])
        return answer(text, tokens_in=3_000, tokens_out=500)

    with ModelServer(script) as server:
        ask = ("judge", "traces", "--judge", "llm", "--model", "m", "--base-url", server.base_url)
        for more in ((), ("--mode-order", "3"), ("--first-number", "101")):
            done = cli(*ask, "--quiet", *more)
            assert done.code == 0, done.err
    done = cli("exam", "--judge", "m", "--json")
    assert done.code == 0, done.err
    ordered, numbered = done.json["beside"]["others"].values()
    assert ordered["differs"] == {"mode_order": [None, "3"]}
    assert numbered["differs"] == {"first_number": [None, "101"]}
    assert ordered["modes"]["value"] == 0
    assert ordered["verdicts"]["value"] == pytest.approx(12 / 14)
    assert [numbered[name]["value"] for name in ("modes", "verdicts", "places")] == [1, 1, 1]
    assert all(one["quotes_found"]["value"] == 1 for one in done.json["judges"].values())
    last = list(done.json["judges"])[-1]
    assert cli("export", "--format", "csv-long", "--labels", last, "-o", "m.csv").code == 0
    content = Path("m.csv").read_text("utf-8")
    assert "it shows in #4" in content
    assert "#104" not in content


def test_recorded_answers_score_as_counted_from_their_files(cli: Cli, tmp_path: Path) -> None:
    folder = corpus("agentrx-recorded")
    truth = {}
    for file in sorted((folder / "ground_truth").glob("*.json")):
        planted = json.loads(file.read_text("utf-8"))
        truth[planted["run_task_id"]] = planted["critical_failure_step"]
    assert cli(
        "import", folder / "ground_truth", "--format", "agentrx", "--annotator", "planted",
        "--allow-new",
    ).code == 0  # fmt: skip
    counted: dict[str, dict[str, int]] = {}
    for shown in ("agentrx", "telemetry"):
        for rep in ("rep1", "rep2"):
            files = sorted((folder / "runs" / shown).glob(f"*/{rep}/run1.json"))
            off = counted[f"{shown}-{rep}"] = {}
            for file in files:
                [result] = json.loads(file.read_text("utf-8"))["detailed_results"]
                [failure] = result["failures"]
                off[result["task_id"]] = abs(failure["step_number"] - truth[result["task_id"]])
            name = f"{shown}-{rep}"
            arguments = ("--format", "agentrx", "--annotator", name, "--allow-new")
            assert cli("import", *files, *arguments).code == 0
    judges = [word for name in counted for word in ("--judge", name)]
    document = cli("exam", "--set", "planted", *judges, "--json").json
    assert set(document["judges"]) == set(counted)
    for name, off in counted.items():
        judged = document["judges"][name]
        assert {case["trace"]: case["off_by"] for case in judged["cases"]} == off
        right = sum(one == 0 for one in off.values())
        assert judged["decisive"]["step"]["0"]["value"] == right / len(off) > 0.8

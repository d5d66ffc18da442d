"""``mast-tui exam``: judges on small sets of runs and on recorded answers."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mast_tui.judges.rules import RulesJudge
from mast_tui.workspace.registers.look_here import look_here, spans_to_look_at
from tests.cli.conftest import COLUMNS, Cli, open_workspace
from tests.exchange.corpus import corpus
from tests.judges.llm.made_answers import asked_modes, user_text
from tests.judges.llm.made_answers import judgement as model_says
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


def write_json(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), "utf-8")
    return path


def write_set(folder: Path, runs: int = 4) -> Path:
    """Write runs of five steps in the form of Who&When, decided by their fourth step."""
    for number in range(runs):
        history = [
            {"content": f"{text} ({number})", "role": "assistant", "name": agent}
            for text, agent in zip(STEPS, AGENTS, strict=True)
        ]
        run = {"question": "Get me to the coast.", "question_ID": f"trip-{number}"}
        mistake = {"is_correct": False, "mistake_agent": "lead", "mistake_step": "3"}
        reason = {"mistake_reason": "It books a train that does not run."}
        write_json(folder / f"{number}.json", run | {"history": history} | mistake | reason)
    return folder


def import_as(cli: Cli, file_format: str, name: str, *paths: object) -> None:
    """Import labels of an annotator or judge of a new name."""
    cli.ok("import", *paths, "--format", file_format, "--annotator", name, "--allow-new")


def trace_ids(cli: Cli, folder: str) -> list[str]:
    files = cli.json("inspect", folder)["files"]
    return [trace["id"] for file in files for trace in file["traces"]]


def write_runs(folder: Path) -> tuple[Path, Path]:
    """Write the failures planted in three runs, and a judge's answers, right on two of them."""
    for number, answered in enumerate((2, 2, 4)):
        planted = {"run_task_id": f"run-{number}", "critical_failure_step": 2, "reason": "planted"}
        planted |= {"failure_category": "System Failure", "failed_component": "Search"}
        write_json(folder / "truth" / f"{number}.json", planted)
        failure = {"step_number": answered, "failure_case": 9, "description": "it broke"}
        result = {"task_id": f"run-{number}", "failures": [failure]}
        write_json(folder / "answers" / f"{number}.json", {"detailed_results": [result]})
    return folder / "truth", folder / "answers"


def test_the_rules_are_scored_on_files(cli: Cli, tmp_path: Path) -> None:
    exam = ("exam", write_set(tmp_path / "set"), "--set", "who-and-when", "--judge", "rules")
    original = (tmp_path / "set" / "0.json").read_bytes()
    document = cli.json(*exam)
    assert (document["questions"], document["scored_by"]) == (4, ["decisive"])
    [judged] = document["judges"].values()
    assert (judged["decisive"]["n"], judged["decisive"]["named"]) == (4, 0)
    assert judged["decisive"]["step"]["0"]["value"] == 0
    assert document["baselines"]["random"]["0"] == pytest.approx(1 / 5)
    assert document["baselines"]["last"]["1"] == 1
    assert len(document["files"]) == 4
    assert all(len(file["sha256"]) == 64 for file in document["files"])
    assert "coverage" not in document
    # Sets of steps need more runs.
    coverage = cli.json(*exam, "--coverage")["coverage"]
    assert set(coverage) == {"features", RulesJudge().name}
    assert {(sets["runs"], sets["value"]) for sets in coverage.values()} == {(4, None)}
    assert "Shares need 30 runs with a known decisive" in cli(*exam, "--coverage").out

    outputs = {name: f"exam.{name}" for name in ("markdown", "html", "latex", "csv")}
    options = [word for name, file in outputs.items() for word in (f"--{name}", file)]
    out = cli.ok(*exam, *options).out
    assert "The decisive step" in out
    assert "finds step 1 in 15" in " ".join(out.split())
    for text in (out, *(Path(outputs[name]).read_text() for name in ("markdown", "html", "latex"))):
        assert "by chance" in text
    rows = Path(outputs["csv"]).read_text("utf-8").splitlines()
    assert rows[0].startswith("scope,group,mode,name,statistic,value")
    assert any(row.startswith(f"decisive,{RulesJudge().name},,0,step,0.0,") for row in rows), rows
    assert any(row.startswith("baselines,random,,0,step,0.2") for row in rows), rows
    # The set itself is never overwritten.
    to_the_set = ("--force", "--markdown", tmp_path / "set" / "0.json")
    cli.refused(*exam, *to_the_set, says="never overwritten")
    assert (tmp_path / "set" / "0.json").read_bytes() == original


def test_sets_of_steps_are_stored_for_every_known_trace(cli: Cli, tmp_path: Path) -> None:
    folder = write_set(tmp_path / "set", 41)
    import_as(cli, "who-and-when", "people", folder)
    write_traces(tmp_path / "more", 1)
    cli.ok("judge", folder, tmp_path / "more", "--judge", "rules")
    exam = ("exam", "--set", "people", "--judge", "judge:rules", "--coverage", "--keep")
    document = cli.json(*exam)
    stored = document["look_here"]
    measured = document["coverage"][stored["judge"]]
    assert (stored["runs"], stored["mean_share"]) == (41, measured["mean_share"])
    assert stored["traces"] == 42
    with open_workspace() as workspace:
        taxonomy = document["taxonomy"]
        step_sets = look_here(workspace, taxonomy)
        assert step_sets is not None
        assert (step_sets.hash, len(step_sets.sizes)) == (stored["hash"], 42)
        traces = [trace for trace in workspace.traces() if trace.path]
        trace_id = next(t.trace_id for t in traces if t.path and t.path.parent == folder)
        # Every decisive step is the fourth, so the position alone finds it.
        keys = spans_to_look_at(workspace, taxonomy, trace_id)
        assert [key[-1] for key in keys] == ["3"]
        assert step_sets.sizes[trace_id] == 1
    assert f"Stored for 42 traces (sets {stored['hash']})" in " ".join(cli(*exam).out.split())
    for incomplete in (exam[:-2], exam[:5]):
        cli.refused(*incomplete, "--keep", says="--keep needs --coverage", code=2)


def test_imported_answers_of_another_judge_are_scored(cli: Cli, tmp_path: Path) -> None:
    truth, answers = write_runs(tmp_path)
    import_as(cli, "agentrx", "planted", truth)
    import_as(cli, "agentrx", "other", answers)
    exam = ("exam", "--set", "planted", "--judge", "other")
    document = cli.json(*exam)
    decisive = document["judges"]["other"]["decisive"]
    assert (decisive["n"], decisive["step"]["0"]["value"]) == (3, pytest.approx(2 / 3))
    assert decisive["step"]["3"]["value"] == decisive["category"]["value"] == 1
    cases = {case["trace"]: case["off_by"] for case in document["judges"]["other"]["cases"]}
    assert cases == {"run-0": 0, "run-1": 0, "run-2": 2}
    assert document["judges"]["other"]["places"]["joint"]["right"] == 2
    # Traces in the intermediate form add agents and chance.
    for number in range(3):
        steps = [
            {
                "index": step,
                "substeps": [{"sub_index": 1, "role": role, "content": f"{role} {step}"}],
            }
            for step, role in enumerate(("Planner", "Search", "Planner", "Writer"), 1)
        ]
        run = {"trajectory_id": f"run-{number}", "instruction": "Find the kettle.", "steps": steps}
        write_json(tmp_path / "runs" / f"{number}" / "trajectory_ir.json", run)
    for folder, name in ((truth, "planted"), (answers, "other")):
        options = ("--workspace", "runs.db", "runs")
        import_as(cli, "agentrx", name, folder, *options)
    document = cli.json(*exam, "--workspace", "runs.db")
    assert document["baselines"]["n"] == 3
    assert document["baselines"]["random"]["0"] == pytest.approx(1 / 4)
    agent = document["judges"]["other"]["decisive"]["agent"]
    assert agent["value"] == pytest.approx(2 / 3)
    # Labels that are hidden from the user are left out.
    cli.ok("study", "set", "--annotators", "ann", "--taxonomy", "agentrx@1")
    blind = ("--annotator", "ann", "--blind", "--taxonomy", "agentrx@1")
    cli.refused(*exam, *blind, says="no trace has labels")


def test_a_judge_of_the_workspace_is_scored_on_gold(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    cli.ok("judge", "set", "--judge", "rules", "--quiet")
    first, *others = trace_ids(cli, "set")
    rows = [f"{first},ann,1.3,present,/history/1", *(f"{t},ann,1.3,absent," for t in others)]
    rows += [f"{others[0]},judge:x,{mode},present,/history/2" for mode in ("1.3", "2.3")]
    rows += [f"{t},{name},,finished," for name in ("ann", "judge:x") for t in (first, *others)]
    cli.label(*rows, columns=f"{COLUMNS},span_first")
    options = ("--set", "gold", "--judge", "rules", "--judge", "judge:x", "--html", "exam.html")
    judges = cli.json("exam", *options)["judges"]
    table = judges[RulesJudge().name]["verdicts"]["modes"]["1.3"]
    assert (table["n"], table["true_negatives"], table["false_negatives"]) == (4, 3, 1)
    # People left 2.3 open.
    assert judges["judge:x"]["places"]["joint"]["named"] == 1
    page = (tmp_path / "exam.html").read_text("utf-8")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(ids)) == len(ids)
    titles = re.findall(r"<h2[^>]*><bdi>(.*?)</bdi></h2>", page)
    assert titles == ["Places", "Judges", *judges]


def test_places_of_trail_count_by_span_and_category(cli: Cli, tmp_path: Path) -> None:
    def errors(name: str, *categories: str) -> Path:
        rows = [{"category": kind, "location": f"s{i}"} for i, kind in enumerate(categories)]
        return write_json(tmp_path / name / "t.json", {"errors": rows})

    truth = errors("truth", "Goal Deviation", "Timeout Issues")
    import_as(cli, "trail", "other", errors("answers", "Goal Deviation", "Goal Deviation"))
    places = cli.json("exam", truth, "--set", "trail", "--judge", "other")["judges"]["other"][
        "places"
    ]
    assert places["location"]["f1"]["value"] == 1
    assert places["category"]["recall"]["value"] == 0.5
    assert places["joint"]["per_trace"]["value"] == 0.5


def test_a_crosswalk_scores_a_judge_of_mast_on_other_categories(cli: Cli, tmp_path: Path) -> None:
    categories = ("System Failure", "Misinterpretation of Tool Output")
    failures = [
        {"failure_id": number, "step_number": number + 1, "failure_category": category}
        for number, category in enumerate(categories, 1)
    ]
    run = {"trajectory_id": "run-1", "failures": failures, "root_cause": {"failure_id": 2}}
    truth = write_json(tmp_path / "truth.json", [run])
    rows = ("run-1,judge-x,2.6,present,/2,/2", "run-1,judge-x,1.3,present,/0,/0")
    cli.label(*rows, "run-1,judge-x,,finished,,", columns=f"{COLUMNS},span_first,span_last")
    exam = ("exam", truth, "--set", "agentrx", "--judge", "judge-x")
    plain = cli.json(*exam)["judges"]["judge-x"]
    assert (plain["categories"], plain["places"]["location"]["named"]) == (False, 2)
    document = cli.json(*exam, "--crosswalk", "agentrx-to-mast")
    crossed = document["judges"]["judge-x"]
    assert document["modes"] == ["disobey_task_specification", "reasoning_action_mismatch"]
    assert crossed["places"]["joint"]["f1"]["value"] == 1
    assert crossed["decisive"]["step_and_category"]["value"] == 1


def test_a_table_of_labels_is_a_set(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    *failed, other = trace_ids(cli, "set")
    rows = [f"{COLUMNS},span_first,span_last,severity"]
    rows += [f"{trace},ann,3.3,present,/history/3,/history/4,fatal" for trace in failed]
    rows += [f"{other},ann,3.3,absent,,,", f"{other},ann,1.3,absent,,,"]
    rows += [f"{trace},ann,,finished,,," for trace in (*failed, other)]
    labels = tmp_path / "labels.csv"
    labels.write_text("\n".join(rows) + "\n", "utf-8")
    exam = ("exam", "set", "--set", "labels.csv", "--judge", "rules")
    document = cli.json(*exam, "--rules", "all")
    assert document["scored_by"] == ["decisive", "places", "verdicts"]
    assert document["baselines"]["n"] == 3
    [judged] = document["judges"].values()
    assert judged["decisive"]["step"]["0"]["value"] == 0
    table = judged["verdicts"]["modes"]["3.3"]
    assert (table["n"], table["false_negatives"], table["true_negatives"]) == (4, 3, 1)
    labels.write_text("\n".join([*rows, f"{other},bob,1.3,absent,,,"]) + "\n", "utf-8")
    cli.refused(*exam, says="ann, bob")
    labels.write_text("\n".join(rows).replace(",ann,", ",gold,") + "\n", "utf-8")
    cli.refused(*exam, says='found none (line 2: "gold" is reserved')


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--set who-and-when --judge rules", "needs the files"),
        ("set --set gold --judge rules", "leave out the PATHs"),
        ("set --set who-and-when --judge x --rules all", "needs --judge rules"),
        ("set --set who-and-when --judge rules --judge rules", "twice"),
        ("set --set who-and-when", "Missing option"),
        ("--judge rules --coverage", "--coverage"),
        ("--set gold --judge x --crosswalk agentrx-to-mast", "--crosswalk"),
    ],
)
def test_options_that_exclude_each_other_are_refused(
    cli: Cli, tmp_path: Path, options: str, message: str
) -> None:
    write_set(tmp_path / "set")
    cli.refused("exam", *options.split(), says=message, code=2)


def test_answers_of_other_tools_to_converted_runs_are_scored(cli: Cli, tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    cli.ok("convert", "set/0.json", "--to", "atif", "-o", "0.atif.json")
    cli.ok("convert", "set", "--to", "agentdebugx", "-o", "runs.jsonl")
    atif = json.loads(Path("0.atif.json").read_bytes())
    run = hashlib.sha256(atif["session_id"].encode()).hexdigest()[:32]
    issue = {"type": "loop", "summary": "", "severity": 1, "confidence": 1, "evidence": []}
    write_json(tmp_path / "pisama" / "0.json", {"issues": [issue], "trace_id": run})
    for number, line in enumerate(Path("runs.jsonl").read_bytes().splitlines()):
        run = json.loads(line)
        blamed = run["events"][3 - number % 2]["event_id"]
        report = {"trace_id": run["trace_id"], "findings": [], "root_cause_event_id": blamed}
        write_json(tmp_path / "adx" / f"{number}.json", report)
    for paths in (
        ("pisama", "0.atif.json", "--format", "pisama"),
        ("adx", "--format", "agentdebugx"),
    ):
        result = cli.ok("import", *paths, "--allow-new")
    judges = ("--judge", "judge:pisama", "--judge", "judge:agentdebugx")
    result = cli.ok("exam", "set", "--set", "who-and-when", *judges, "--json")
    scores = {name: judged["decisive"] for name, judged in result.json["judges"].items()}
    assert scores["judge:agentdebugx"]["step"]["0"]["value"] == 0.5
    assert scores["judge:agentdebugx"]["step"]["1"]["value"] == 1
    assert (scores["judge:pisama"]["n"], scores["judge:pisama"]["named"]) == (1, 0)


def test_without_a_set_judges_are_compared_with_each_other(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_traces(tmp_path / "traces", 3)
    asked: Counter[str] = Counter()

    def script(body: dict[str, Any], _: int) -> Action:
        run = user_text(body).split(" says line")[0][-1]
        asked[run] += 1
        differs = asked[run] == 3
        text = model_says(body, mode="2.3", position=0) if differs else model_says(body)
        return answer(text, tokens_in=3_000, tokens_out=500)

    with ModelServer(script) as server:
        ask = ("judge", "traces", "--judge", "llm", "--model", "m", "--base-url", server.base_url)
        for options in (("--samples", "3"), ("--window-tokens", "9000")):
            result = cli.ok(*ask, "--quiet", *options)
    result = cli.ok("exam", "--judge", "m", "--json")
    first, second = result.json["judges"]
    assert result.json["judges"][first]["traces"] == 3
    assert result.json["judges"][first]["samples"]["again"]["value"] == pytest.approx(1 / 3)
    assert result.json["judges"][first]["quotes_found"]["value"] == 1
    assert result.json["judges"][second]["samples"] is None
    comparison = result.json["beside"]
    assert comparison["first"] == first
    [other] = comparison["others"].values()
    assert other["differs"] == {"samples": ["3", "1"], "window_tokens": ["24000", "9000"]}
    assert other["n"] == 3
    assert other["verdicts"]["value"] == pytest.approx(13 / 14)
    assert other["modes"]["value"] == pytest.approx(2 / 3)
    assert other["places"]["value"] == other["step"]["value"] == 1
    output = cli("exam", "--judge", "m", "--markdown", "steady.md", "--csv", "steady.csv")
    assert "window_tokens 9000" in output.out
    with Path("steady.csv").open(encoding="utf-8", newline="") as file:
        rows = {(row["scope"], row["group"], row["statistic"]): row for row in csv.DictReader(file)}
    row = rows["beside", second, "modes"]
    assert (float(row["value"]), row["annotators"]) == (other["modes"]["value"], first)
    repeated = result.json["judges"][first]["samples"]["again"]
    assert float(rows["samples", first, "again"]["value"]) == repeated["value"]
    assert f"Beside {first}" in Path("steady.md").read_text("utf-8")
    assert "no judge 'x'" in cli("exam", "--judge", "x").err
    cli.refused("exam", "traces", "--judge", "m", code=2)


def test_the_effect_of_mode_order_and_span_numbers_is_measured(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    write_traces(tmp_path / "traces", 3)

    def script(body: dict[str, Any], _: int) -> Action:
        text = model_says(body, mode=asked_modes(body)[0])
        return answer(text, tokens_in=3_000, tokens_out=500)

    with ModelServer(script) as server:
        ask = ("judge", "traces", "--judge", "llm", "--model", "m", "--base-url", server.base_url)
        for options in ((), ("--mode-order", "3"), ("--first-number", "101")):
            result = cli.ok(*ask, "--quiet", *options)
    result = cli.ok("exam", "--judge", "m", "--json")
    ordered, numbered = result.json["beside"]["others"].values()
    assert ordered["differs"] == {"mode_order": [None, "3"]}
    assert numbered["differs"] == {"first_number": [None, "101"]}
    assert ordered["modes"]["value"] == 0
    assert ordered["verdicts"]["value"] == pytest.approx(12 / 14)
    assert [numbered[name]["value"] for name in ("modes", "verdicts", "places")] == [1, 1, 1]
    assert all(judged["quotes_found"]["value"] == 1 for judged in result.json["judges"].values())
    last = list(result.json["judges"])[-1]
    cli.ok("export", "--format", "csv-long", "--labels", last, "-o", "m.csv")
    content = Path("m.csv").read_text("utf-8")
    assert "it shows in #4" in content
    assert "#104" not in content


def test_recorded_answers_score_as_counted_from_their_files(cli: Cli) -> None:
    folder = corpus("agentrx-recorded")
    planted = [json.loads(file.read_text()) for file in (folder / "ground_truth").glob("*.json")]
    truth = {failure["run_task_id"]: failure["critical_failure_step"] for failure in planted}
    import_as(cli, "agentrx", "planted", folder / "ground_truth")
    counted: dict[str, dict[str, int]] = {}
    for name in ("agentrx-rep1", "agentrx-rep2", "telemetry-rep1", "telemetry-rep2"):
        tool, _, repetition = name.partition("-")
        files = sorted((folder / "runs" / tool).glob(f"*/{repetition}/run1.json"))
        offsets = counted[name] = {}
        for file in files:
            [result] = json.loads(file.read_text("utf-8"))["detailed_results"]
            [failure] = result["failures"]
            offsets[result["task_id"]] = abs(failure["step_number"] - truth[result["task_id"]])
        import_as(cli, "agentrx", name, *files)
    judges = [word for name in counted for word in ("--judge", name)]
    document = cli.json("exam", "--set", "planted", *judges)
    assert set(document["judges"]) == set(counted)
    for name, offsets in counted.items():
        judged = document["judges"][name]
        assert {case["trace"]: case["off_by"] for case in judged["cases"]} == offsets
        right = sum(failure == 0 for failure in offsets.values())
        assert judged["decisive"]["step"]["0"]["value"] == right / len(offsets) > 0.8

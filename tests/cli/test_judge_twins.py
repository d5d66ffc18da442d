"""``mast-tui judge --judge twins``, from files with an outcomes.csv to suggestions."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli, write_calls

WRONG = "kubectl delete namespace shop"


def write_trials(folder: Path) -> None:
    """Write four failed and four successful runs of one task with an ``outcomes.csv``."""
    rows = ["trace,outcome"]
    for number in range(4):
        write_calls(folder / f"bad{number}.json", ("ls", WRONG, f"echo {number}"))
        write_calls(folder / f"good{number}.json", ("ls", "cat log", f"echo {number}"))
        rows += [f"bad{number}.json,failed", f"good{number}.json,succeeded"]
    (folder / "outcomes.csv").write_text("\n".join(rows) + "\n")


def test_failed_runs_alone_get_a_suggestion(cli: Cli, tmp_path: Path) -> None:
    write_trials(tmp_path)
    judge = ("judge", ".", "--judge", "twins")
    blind = cli.json(*judge, "--blind", "--annotator", "ann", "--workspace", "other.db")
    assert blind["suggestions"] is None
    cli.refused(*judge, "--rules", "all", code=2)
    assert "twins uses no model" in cli(*judge, "--model", "m").err
    result = cli.ok(*judge, "--json")
    assert "comparing 8 runs of 1 task" in result.err
    assert result.json["judge"] == "judge:twins@1"
    assert result.json["modes"] == {"2.3": 4}
    table = cli.export("csv-long", "--labels", "judge:twins@1")
    rows = [row for row in table.splitlines() if ",2.3," in row]
    assert len(rows) == 4
    assert all(row.startswith("bad") and ",present," in row and WRONG in row for row in rows)
    linted = cli("lint", "bad0.json", "--judge", "twins", "--fail-on", "2.3", "--json")
    assert linted.code == 3
    (finding,) = linted.json["findings"]
    assert (finding["span"], finding["mode"]) == (4, "2.3")
    # Another successful run with the call removes the suggestion.
    write_calls(tmp_path / "good4.json", ("ls", WRONG, "cat log"))
    with (tmp_path / "outcomes.csv").open("a") as outcomes:
        outcomes.write("good4.json,succeeded\n")
    quiet = cli.ok(*judge, "--quiet", "--json")
    assert (quiet.json["suggestions"], quiet.err) == (0, "")
    assert ",present," not in cli.export("csv-long", "--labels", "judge:twins@1")

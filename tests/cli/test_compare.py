"""``compare``: two runs side by side, and where they part."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.ui.stage import SMALL, write_trace
from tests.ui.test_side_by_side import OTHERWISE


def test_where_two_runs_part_is_said_and_shown(cli: Cli) -> None:
    write_trace(Path("a.json"), SMALL)
    write_trace(Path("b.json"), OTHERWISE)
    done = cli("compare", "a.json", "b.json")
    assert (done.code, done.err) == (0, "")
    assert "They part at A #9 and B #9. Before it 4 of 4 actions are the same" in done.out
    assert "#10 restart: pod=checkout-2" in done.out
    assert "#3 get_pods" not in done.out
    assert "#3 get_pods" in cli("compare", "a.json", "b.json", "--all").out


def test_json_has_every_place(cli: Cli) -> None:
    write_trace(Path("a.json"), SMALL)
    write_trace(Path("b.json"), OTHERWISE)
    document = cli("compare", "a.json", "b.json", "--json").json
    assert document["fork"] == {"place": 8, "a": 8, "b": 8}
    assert document["first"] == document["fork"]
    assert document["cause"] is None
    assert document["alike"]["before"] == {"same": 4, "actions": 4}
    assert [place["likeness"] for place in document["places"][:8]] == ["same"] * 8
    assert document["a"]["outcome"] == "unknown"
    assert cli("compare", "a.json", "b.json", "--json", "--blind").json["a"]["outcome"] is None


def test_a_run_beside_itself(cli: Cli) -> None:
    write_trace(Path("a.json"), SMALL)
    assert "The agents do the same in both." in cli("compare", "a.json", "a.json").out


def test_one_of_several_traces_of_a_file_goes_by_its_number(cli: Cli) -> None:
    samples = Path(__file__).parents[2] / "sample_traces" / "appworld_rota_and_shelf.json"
    done = cli("compare", samples, samples)
    assert done.code == 1
    assert "holds 2 traces; name one of them" in done.err
    assert cli("compare", f"{samples}#0", f"{samples}#1").code == 0
    done = cli("compare", f"{samples}#0", f"{samples}#2")
    assert done.code == 1
    assert "no #2" in done.err


def test_what_cannot_be_compared_is_said(cli: Cli) -> None:
    write_trace(Path("a.json"), SMALL)
    done = cli("compare", "a.json", "none.json")
    assert done.code == 1
    assert "none.json: no such file" in done.err
    Path("empty.json").write_text("")
    assert "empty" in cli("compare", "a.json", "empty.json").err

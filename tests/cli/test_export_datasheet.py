"""What people write of a set of labels, on its way into gold, the datasheet and the card."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.exporters.datasheet import read_datasheet
from tests.cli.conftest import Cli

DOCS = Path(__file__).resolve().parents[2] / "docs" / "exchange.md"
LABELS = "trace_id,annotator,mode,value\nt,alice,1.1,absent\nt,alice,,finished\n"


def documented() -> str:
    """The example of the documentation."""
    found = re.search(r"## datasheet\.toml\n.*?```toml\n(.*?)```", DOCS.read_text("utf-8"), re.S)
    assert found is not None
    return found[1]


@pytest.fixture
def labelled(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(LABELS, encoding="utf-8")
    assert cli("import", "labels.csv", "--format", "csv-long").code == 0


def test_the_documented_example_reaches_gold_and_card(
    cli: Cli, tmp_path: Path, labelled: None
) -> None:
    (tmp_path / ".mast-tui" / "datasheet.toml").write_text(documented(), encoding="utf-8")
    done = cli("export", "--format", "gold", "-o", "gold.json")
    assert done.code == 0, done.err
    said = json.loads((tmp_path / "gold.json").read_text("utf-8"))["datasheet"]
    assert said["people"]["pay"] == "20 euros an hour"
    sheet = (tmp_path / "gold.datasheet.md").read_text("utf-8")
    assert "- Pay: 20 euros an hour\n" in sheet
    assert "- Licence: cc-by-4.0\n" in sheet
    assert cli("export", "--format", "huggingface", "-o", "set").code == 0
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    heading = card.split("\n---\n")[0]
    assert 'license: "cc-by-4.0"\nlanguage: ["en"]' in heading
    assert 'pretty_name: "Failures of three coding agents"' in heading
    assert heading.count("task_categories") == 1


def test_gold_says_which_set_it_is_and_how_to_cite_it(
    cli: Cli, tmp_path: Path, labelled: None
) -> None:
    (tmp_path / ".mast-tui" / "datasheet.toml").write_text(documented(), encoding="utf-8")
    out = ("export", "--format", "gold", "-o", "gold.json")
    done = cli(*out, "--json")
    assert done.json["beside"] == ["gold.datasheet.md", "gold.CITATION.cff"]
    gold = json.loads((tmp_path / "gold.json").read_text("utf-8"))
    facts = gold["set"]
    canonical = json.dumps(
        gold["traces"], ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    assert facts["content_hash"] == sha256(canonical.encode()).hexdigest()
    assert facts["version"] == "1.0"
    assert (facts["decisions"], facts["last_decision_at"]) == (0, None)
    assert facts["modes"]["1.1"] == {"verdicts": 1, "adjudicated": 0.0, "unresolved": 0.0}
    assert facts["modes"]["1.2"] == {"verdicts": 0, "adjudicated": None, "unresolved": None}
    assert facts["content_hash"] in (tmp_path / "gold.datasheet.md").read_text("utf-8")
    citation = yaml.safe_load((tmp_path / "gold.CITATION.cff").read_text("utf-8"))
    assert citation["authors"] == [
        {"family-names": "Example", "given-names": "Ada"},
        {"name": "Example Laboratory"},
    ]
    assert citation["version"] == "1.0"

    assert cli(*out).code == 0  # exporting changes neither hash
    assert json.loads((tmp_path / "gold.json").read_text("utf-8"))["set"] == facts
    (tmp_path / "bob.csv").write_text(LABELS.replace("alice", "bob"), encoding="utf-8")
    assert cli("import", "bob.csv", "--format", "csv-long", "--allow-new").code == 0
    assert cli(*out).code == 0
    changed = json.loads((tmp_path / "gold.json").read_text("utf-8"))["set"]
    assert changed["content_hash"] != facts["content_hash"]
    assert changed["events_hash"] != facts["events_hash"]


def test_a_file_is_named(cli: Cli, tmp_path: Path, labelled: None) -> None:
    (tmp_path / "mine.toml").write_text('contact = "me@example.org"\n', encoding="utf-8")
    out = ("export", "--format", "gold", "-o", "gold.json")
    assert cli(*out).code == 0
    assert json.loads((tmp_path / "gold.json").read_text("utf-8"))["datasheet"] is None
    assert cli(*out, "--datasheet", "mine.toml").code == 0
    said = json.loads((tmp_path / "gold.json").read_text("utf-8"))["datasheet"]
    assert said == {"contact": "me@example.org"}
    other = ("export", "--format", "csv-long", "-o", "x.csv", "--datasheet", "mine.toml")
    assert cli(*other).code == 2
    missing = cli(*out, "--datasheet", "nowhere.toml")
    assert (missing.code, "cannot be read" in missing.err) == (1, True)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('license = "mit"', "unknown key 'license'; did you mean 'licence'?"),
        ('[people]\npayment = "none"', "[people]: unknown key 'payment'; did you mean 'pay'?"),
        ("zzz = 1", "known are pretty_name"),
        ("licence = 4", "'licence' is no text"),
        ('languages = "en"', "'languages' is no list of texts"),
        ('people = "three"', "write [people]"),
        ("licence = ", "not TOML"),
    ],
)
def test_a_slip_is_told(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "datasheet.toml"
    path.write_text(text + "\n", encoding="utf-8")
    with pytest.raises(ExchangeError, match=re.escape(words)) as told:
        read_datasheet(path)
    assert str(told.value).startswith(str(path))

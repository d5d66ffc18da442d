"""The crosswalks that come with the package: complete, documented, and used only when asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mast_tui.exchange import crosswalk
from mast_tui.exchange.crosswalk import find_crosswalk, read_crosswalk, translated
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import Incoming
from mast_tui.exchange.importers.labelled_sets import read_agentrx, read_trail, read_who_and_when
from mast_tui.taxonomy.loader import load_mast, load_taxonomy
from tests.traces.checks import write_json

MAST = load_mast()
PACKAGE = Path(crosswalk.__file__).parent
SHIPPED = {
    "adamast-to-mast": "adamast_mast",
    "agentdebugx-to-mast": "agentdebugx",
    "agentrx-to-mast": "agentrx",
    "pisama-to-mast": "pisama",
    "trail-to-mast": "trail",
    "who-and-when-to-mast": "who_and_when",
}
VERSIONS = {"early-mast-18-to-mast", "interim-mast-17-to-mast"}
"""Those from MAST's own earlier versions are tried with migrations."""


def labels_of_agentrx(folder: Path) -> Incoming:
    categories = ["Plan Adherence Failure", "System Failure", "system failure", "Inconclusive"]
    failures = [
        {"failure_id": n, "step_number": n, "failure_category": category}
        for n, category in enumerate(categories, 1)
    ]
    return read_agentrx(
        [write_json(folder / "a.json", [{"trajectory_id": "r", "failures": failures}])]
    )


def labels_of_trail(folder: Path) -> Incoming:
    errors = [
        {"category": category, "location": "s1"}
        for category in ("Resource Abuse", "Formatting Error", "Goal deviation", "Rate Limiting")
    ]
    return read_trail([write_json(folder / "t.json", {"errors": errors})])


def labels_of_who_and_when(folder: Path) -> Incoming:
    history = [{"role": "user", "content": "Do it."}, {"role": "Worker", "content": "No."}]
    fields = {"mistake_agent": "Worker", "mistake_step": "1", "mistake_reason": "It refused."}
    return read_who_and_when([write_json(folder / "w.json", {"history": history} | fields)])


@pytest.mark.parametrize(("name", "source"), SHIPPED.items())
def test_every_category_is_linked_or_named_as_left_out(name: str, source: str) -> None:
    path = find_crosswalk(Path(name))
    taxonomy = load_taxonomy(PACKAGE / "taxonomies" / f"{source}.toml")
    links = [entry for entry in read_crosswalk(path) if entry.targets]
    assert {link.taxonomy for link in links} <= {taxonomy.ref}
    assert all(taxonomy.find(link.source) for link in links)
    assert all(MAST.find(target) for link in links for target in link.targets)
    linked = {link.source for link in links}
    told = path.read_text("utf-8")
    if linked:
        left_out = told.partition("# Left out")[2]
        names = {mode.slug for mode in taxonomy.modes}
        assert {slug for slug in names if slug in left_out} == names - linked
    assert f'["{taxonomy.ref}"]' in told


def test_every_shipped_file_is_tried_here() -> None:
    assert {path.stem for path in (PACKAGE / "crosswalks").iterdir()} == SHIPPED.keys() | VERSIONS


@pytest.mark.parametrize(
    ("name", "read", "codes", "left_out"),
    [
        ("agentrx-to-mast", labels_of_agentrx, ["1.1"], 3),
        ("trail-to-mast", labels_of_trail, ["1.3", "2.3"], 2),
        ("who-and-when-to-mast", labels_of_who_and_when, [], 1),
    ],
)
def test_what_has_no_counterpart_is_left_out_and_counted(
    tmp_path: Path,
    name: str,
    read: Callable[[Path], Incoming],
    codes: list[str],
    left_out: int,
) -> None:
    incoming = read(tmp_path)
    assert incoming.problems == ()
    assert MAST.ref not in [taxonomy.ref for taxonomy in incoming.taxonomies]
    path = find_crosswalk(Path(name))
    result = translated(incoming, read_crosswalk(path), MAST, path)
    labels = [label for work in result.work for label in work.labels.values()]
    assert [MAST.mode(label.mode).code for label in labels] == codes
    assert [work.verdicts for work in result.work] == [{}]
    assert f"{left_out} of modes without a link were left out" in result.notes[-1]


def test_a_file_goes_before_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_crosswalk(Path("trail-to-mast")).parent.name == "crosswalks"
    Path("trail-to-mast").touch()
    assert find_crosswalk(Path("trail-to-mast")) == Path("trail-to-mast")
    with pytest.raises(ExchangeError, match=r"nowhere: no such file.*who-and-when-to-mast"):
        find_crosswalk(Path("nowhere"))


def test_an_empty_table_says_that_nothing_has_a_counterpart(tmp_path: Path) -> None:
    file = tmp_path / "links.toml"
    file.write_text('["trail@1"]\n')
    assert read_crosswalk(file) == ()
    file.write_text("# nothing\n")
    with pytest.raises(ExchangeError, match="empty"):
        read_crosswalk(file)

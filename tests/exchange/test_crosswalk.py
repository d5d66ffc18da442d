"""Crosswalks between taxonomies, and those that come with the package."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.exchange import crosswalk
from mast_tui.exchange.crosswalk import CrosswalkEntry, find_crosswalk, read_crosswalk, translated
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import ImportedWork, Incoming, label_id
from mast_tui.labels import AnnotatorKind, Label, Target, VerdictValue
from mast_tui.taxonomy.loader import from_dict, load_mast, load_taxonomy
from mast_tui.workspace.records import TraceRecord

MAST = load_mast()
SOURCE = from_dict(
    {
        "id": "own",
        "version": "1",
        "categories": [{"id": "c"}],
        "modes": [
            {"slug": slug, "code": code, "name": name, "category": "c"}
            for slug, code, name in (
                ("loops", "a", "Runs in circles"),
                ("stuck", "b", "Is stuck"),
                ("other", "c", "Something else"),
            )
        ],
    }
)
FILE = Path("links.csv")


def label(mode: str, key: str, note: str) -> Label:
    target = Target(key, key)
    return Label(
        label_id("x", "t", SOURCE.ref, mode, target), "x", "t", SOURCE.ref, mode, target, note=note
    )


def incoming_work(
    labels: tuple[Label, ...] = (), verdicts: dict[str, VerdictValue] | None = None
) -> Incoming:
    draft = ImportedWork("x", "t", SOURCE.ref, AnnotatorKind.IMPORTED, finished_at="", file=FILE)
    for item in labels:
        draft.add_label(item)
    for mode, value in (verdicts or {}).items():
        draft.add_verdict(mode, value)
    return Incoming((SOURCE,), (TraceRecord("t"),), (draft,))


def cross(incoming: Incoming, *entries: CrosswalkEntry) -> ImportedWork:
    return translated(incoming, entries, MAST, FILE).work[0]


LOOPS = CrosswalkEntry("loops", ("1.3",))
STUCK = CrosswalkEntry("Is stuck", ("step_repetition",))


def test_labels_are_translated_and_joined() -> None:
    incoming = incoming_work((label("loops", "k1", "again"), label("other", "k2", "odd")))
    result = translated(incoming, (LOOPS,), MAST, FILE)
    [new] = result.work[0].labels.values()
    assert (new.mode, new.taxonomy) == ("step_repetition", MAST.ref)
    assert new.target == Target("k1", "k1")
    assert new.id != next(iter(incoming.work[0].labels.values())).id
    assert result.taxonomies == (MAST,)
    assert "1 label of modes without a link" in result.notes[-1]
    # Labels of two modes with the same target mode and span become one label with both notes.
    incoming = incoming_work((label("loops", "k", "again"), label("stuck", "k", "no way out")))
    [joined] = cross(incoming, LOOPS, STUCK).labels.values()
    assert joined.note == "again\nno way out"
    # One mode may be linked to two.
    incoming = incoming_work((label("loops", "k", ""),))
    both = cross(incoming, CrosswalkEntry("loops", ("1.3", "1.5"))).labels.values()
    assert [item.mode for item in both] == ["step_repetition", "unaware_of_termination_conditions"]


def test_absence_needs_all_source_modes_and_presence_one() -> None:
    for loops, stuck, expected in [
        (VerdictValue.ABSENT, VerdictValue.ABSENT, VerdictValue.ABSENT),
        (VerdictValue.ABSENT, VerdictValue.UNSURE, VerdictValue.UNSURE),
        (VerdictValue.ABSENT, None, None),
        (None, None, None),
    ]:
        values = {"loops": loops, "stuck": stuck}
        verdicts = {mode: value for mode, value in values.items() if value is not None}
        work = cross(incoming_work(verdicts=verdicts), LOOPS, STUCK)
        assert work.verdicts.get("step_repetition") is expected
        assert set(work.verdicts) <= {"step_repetition"}
    incoming = incoming_work((label("loops", "k", ""),), {"stuck": VerdictValue.ABSENT})
    work = cross(incoming, LOOPS, STUCK)
    assert [new_label.mode for new_label in work.labels.values()] == ["step_repetition"]
    assert work.verdicts == {}


def test_csv_and_toml_are_equivalent(tmp_path: Path) -> None:
    table = tmp_path / "links.csv"
    table.write_text("from,to,taxonomy\nloops,1.3,\nIs stuck,1.5,own@1\nIs stuck,3.1,own@1\n")
    toml = tmp_path / "links.toml"
    toml.write_text('[modes]\nloops = "1.3"\n["own@1"]\n"Is stuck" = ["1.5", "3.1"]\n')
    first, *others = read_crosswalk(table)
    assert first == CrosswalkEntry("loops", ("1.3",))
    assert others == [CrosswalkEntry("Is stuck", (code,), "own@1") for code in ("1.5", "3.1")]
    assert read_crosswalk(toml) == (first, CrosswalkEntry("Is stuck", ("1.5", "3.1"), "own@1"))
    incoming = incoming_work((label("stuck", "k", ""),))
    works = (translated(incoming, read_crosswalk(file), MAST, FILE).work for file in (table, toml))
    assert next(works) == next(works)


def test_bad_files_and_links_are_refused(tmp_path: Path) -> None:
    for text, message in [
        ("from,to\n", "empty"),
        ("from,to\nloops,\n", "line 2"),
        ("from\nloops\n", "'to' is missing"),
    ]:
        file = tmp_path / "links.csv"
        file.write_text(text)
        with pytest.raises(ExchangeError, match=message):
            read_crosswalk(file)
    with pytest.raises(ExchangeError, match=r"'9\.9' is not a mode of mast"):
        cross(incoming_work(), CrosswalkEntry("loops", ("9.9",)))
    with pytest.raises(ExchangeError, match="'lops' is not a mode in the import"):
        cross(incoming_work(), CrosswalkEntry("lops", ("1.3",)))
    with pytest.raises(ExchangeError, match="not a mode in the import"):
        cross(incoming_work(), CrosswalkEntry("loops", ("1.3",), "other@1"))


# Shipped crosswalks

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
"""Crosswalks from MAST's earlier versions, which are tested with migrations."""


@pytest.mark.parametrize(("name", "source"), SHIPPED.items())
def test_every_category_is_linked_or_listed_as_left_out(name: str, source: str) -> None:
    path = find_crosswalk(Path(name))
    taxonomy = load_taxonomy(PACKAGE / "taxonomies" / f"{source}.toml")
    links = [entry for entry in read_crosswalk(path) if entry.targets]
    assert {link.taxonomy for link in links} <= {taxonomy.ref}
    assert all(taxonomy.find(link.source) for link in links)
    assert all(MAST.find(target) for link in links for target in link.targets)
    linked = {link.source for link in links}
    text = path.read_text("utf-8")
    if linked:
        left_out = text.partition("# Left out")[2]
        names = {mode.slug for mode in taxonomy.modes}
        assert {slug for slug in names if slug in left_out} == names - linked
    assert f'["{taxonomy.ref}"]' in text


def test_every_shipped_file_is_tested() -> None:
    assert {path.stem for path in (PACKAGE / "crosswalks").iterdir()} == SHIPPED.keys() | VERSIONS


def test_a_file_overrides_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_crosswalk(Path("trail-to-mast")).parent.name == "crosswalks"
    Path("trail-to-mast").touch()
    assert find_crosswalk(Path("trail-to-mast")) == Path("trail-to-mast")
    with pytest.raises(ExchangeError, match=r"nowhere: no such file.*who-and-when-to-mast"):
        find_crosswalk(Path("nowhere"))


def test_an_empty_table_has_no_links(tmp_path: Path) -> None:
    file = tmp_path / "links.toml"
    file.write_text('["trail@1"]\n')
    assert read_crosswalk(file) == ()
    file.write_text("# nothing\n")
    with pytest.raises(ExchangeError, match="empty"):
        read_crosswalk(file)

"""What a crosswalk makes of labels, verdicts, and modes that it does not name."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_tui.exchange.crosswalk import CrosswalkEntry, read_crosswalk, translated
from mast_tui.exchange.errors import ExchangeError
from mast_tui.exchange.import_batch import ImportedWork, Incoming, label_id
from mast_tui.labels import AnnotatorKind, Label, Target, VerdictValue
from mast_tui.taxonomy.loader import from_dict, load_mast
from mast_tui.workspace.records import TraceRecord

MAST = load_mast()
OWN = from_dict(
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
        label_id("x", "t", OWN.ref, mode, target), "x", "t", OWN.ref, mode, target, note=note
    )


def one_work(
    labels: tuple[Label, ...] = (), verdicts: dict[str, VerdictValue] | None = None
) -> Incoming:
    draft = ImportedWork("x", "t", OWN.ref, AnnotatorKind.IMPORTED, finished_at="", file=FILE)
    for one in labels:
        draft.add_label(one)
    for mode, value in (verdicts or {}).items():
        draft.add_verdict(mode, value)
    return Incoming((OWN,), (TraceRecord("t"),), (draft,))


def cross(incoming: Incoming, *entries: CrosswalkEntry) -> ImportedWork:
    return translated(incoming, entries, MAST, FILE).work[0]


LOOPS, STUCK = CrosswalkEntry("loops", ("1.3",)), CrosswalkEntry("Is stuck", ("step_repetition",))


def test_labels_become_labels_of_the_target_at_the_same_place() -> None:
    incoming = one_work((label("loops", "k1", "again"), label("other", "k2", "odd")))
    result = translated(incoming, (LOOPS,), MAST, FILE)
    [made] = result.work[0].labels.values()
    assert (made.mode, made.taxonomy, made.target) == (
        "step_repetition",
        MAST.ref,
        Target("k1", "k1"),
    )
    assert made.id != next(iter(incoming.work[0].labels.values())).id
    assert result.taxonomies == (MAST,)
    assert "1 of modes without a link" in result.notes[-1]


def test_two_modes_for_one_at_one_place_make_one_label_with_both_notes() -> None:
    incoming = one_work((label("loops", "k", "again"), label("stuck", "k", "no way out")))
    [made] = cross(incoming, LOOPS, STUCK).labels.values()
    assert made.note == "again\nno way out"


def test_one_mode_may_stand_for_two() -> None:
    incoming = one_work((label("loops", "k", ""),))
    made = cross(incoming, CrosswalkEntry("loops", ("1.3", "1.5"))).labels.values()
    assert [one.mode for one in made] == ["step_repetition", "unaware_of_termination_conditions"]


@pytest.mark.parametrize(
    ("loops", "stuck", "expected"),
    [
        (VerdictValue.ABSENT, VerdictValue.ABSENT, VerdictValue.ABSENT),
        (VerdictValue.ABSENT, VerdictValue.UNSURE, VerdictValue.UNSURE),
        (VerdictValue.ABSENT, None, None),
        (None, None, None),
    ],
)
def test_a_mode_is_absent_only_where_all_that_stand_for_it_are(
    loops: VerdictValue | None, stuck: VerdictValue | None, expected: VerdictValue | None
) -> None:
    said = {"loops": loops, "stuck": stuck}
    given = {mode: value for mode, value in said.items() if value is not None}
    work = cross(one_work(verdicts=given), LOOPS, STUCK)
    assert work.verdicts.get("step_repetition") is expected
    assert set(work.verdicts) <= {"step_repetition"}


def test_present_outweighs_the_absence_of_another() -> None:
    incoming = one_work((label("loops", "k", ""),), {"stuck": VerdictValue.ABSENT})
    work = cross(incoming, LOOPS, STUCK)
    assert [one.mode for one in work.labels.values()] == ["step_repetition"]
    assert work.verdicts == {}


def test_both_file_forms_say_the_same(tmp_path: Path) -> None:
    table = tmp_path / "links.csv"
    table.write_text("from,to,taxonomy\nloops,1.3,\nIs stuck,1.5,own@1\nIs stuck,3.1,own@1\n")
    toml = tmp_path / "links.toml"
    toml.write_text('[modes]\nloops = "1.3"\n["own@1"]\n"Is stuck" = ["1.5", "3.1"]\n')
    one, *others = read_crosswalk(table)
    assert one == CrosswalkEntry("loops", ("1.3",))
    assert others == [CrosswalkEntry("Is stuck", (code,), "own@1") for code in ("1.5", "3.1")]
    assert read_crosswalk(toml) == (one, CrosswalkEntry("Is stuck", ("1.5", "3.1"), "own@1"))
    incoming = one_work((label("stuck", "k", ""),))
    made = (translated(incoming, read_crosswalk(file), MAST, FILE).work for file in (table, toml))
    assert next(made) == next(made)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from,to\n", "empty"),
        ("from,to\nloops,\n", "line 2"),
        ("from\nloops\n", "'to' is missing"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "links.csv"
    file.write_text(text)
    with pytest.raises(ExchangeError, match=words):
        read_crosswalk(file)


def test_a_link_that_names_no_mode_is_refused() -> None:
    with pytest.raises(ExchangeError, match=r"'9\.9' is no mode of mast"):
        cross(one_work(), CrosswalkEntry("loops", ("9.9",)))
    with pytest.raises(ExchangeError, match="'lops' is no mode of the import"):
        cross(one_work(), CrosswalkEntry("lops", ("1.3",)))
    with pytest.raises(ExchangeError, match="no mode of the import"):
        cross(one_work(), CrosswalkEntry("loops", ("1.3",), "other@1"))

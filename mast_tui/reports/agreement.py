"""How far annotators agree, as a report: the one place where such a figure becomes a sentence.

It is made of the JSON document of ``agree --json``: agreement on whole traces here, on places in
``places.py``, of a judge in ``judge.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from mast_tui.counts import counted
from mast_tui.figures.agreement.capture import ALPHA
from mast_tui.reports.judge import judge_section
from mast_tui.reports.model import (
    CODE,
    MODE,
    Behind,
    Cell,
    Column,
    Estimate,
    Kind,
    Note,
    Report,
    Row,
    Section,
    Table,
    columns,
    figure_cells,
)
from mast_tui.reports.render.cells import NONE, WITHHELD, fixed
from mast_tui.reports.sentences import (
    PARADOX,
    Values,
    fact,
    in_words,
    intervals_note,
    is_kappa_paradox,
    joined,
    macro_note,
    of_pair,
    p_words,
    paradox_mark,
    percent,
    why_undefined,
    withheld_notes,
)
from mast_tui.reports.span_agreement import places_section
from mast_tui.workspace.registers.taxonomies import revision_words

COEFFICIENTS: Final = columns("""
    raw_agreement      | raw    | number | raw agreement      | 46
    positive_agreement | P+     | number | positive agreement | 43
    negative_agreement | P−     | number | negative agreement | 42
    cohen_kappa        | κ      | number | Cohen's κ          | 48
    fleiss_kappa       | Fleiss | number | Fleiss' κ          | 30
    krippendorff_alpha | α      | number | Krippendorff's α   | 47
    gwet_ac1           | AC1    | number | Gwet's AC1         | 45
""")
"""Every coefficient of people, in the order of the columns. Another one is a row here.

The one that keeps most leads: names of modes are cut for its interval and for no other.
"""

_OF_PAIRS: Final = {
    "cohen_kappa": ("Mean κ rests only on the pairs for which it is defined", "n_of_pairs"),
    "fleiss_kappa": ("Fleiss' κ rests only on what all of them judged", "n_complete"),
}
"""What few shared traces pull down or leave without units: it comes last where pairs rotate.

Each has the words and the reason of the note on its n.
"""

_LEADS: Final = 99
"""What the coefficient keeps that leads."""

_HEADLINE: Final = ("cohen_kappa", "krippendorff_alpha", "gwet_ac1")
_KAPPA: Final = "cohen_kappa"
_FLEISS: Final = "fleiss_kappa"

COPIED: Final = "!"

MOST_NAMED: Final = 12
"""Traces of one block that are named."""

_PASSES: Final = {"1": "first pass", "last": "last pass"}

_UNDEFINED: Final = {
    "no_variance": "all verdicts are the same, so that nothing can be told from chance",
    "no_overlap": "no trace has a verdict on it by two people",
    "single_trace": "one trace tells nothing of chance",
    "single_rater": "only one person has given verdicts",
}
_NEVER_SAID: Final = {
    "positive agreement": "nobody said present",
    "negative agreement": "nobody said absent",
}

_N: Final = Column("n", "n", Kind.COUNT, "compared (n)", keeps=97)
_N_POOLED: Final = Note("n: traces × modes in which two or more have a verdict.", "n")
_PRESENT: Final = Column("prevalence", "present", Kind.TEXT, "share of present", keeps=40)
_MISSED: Final = columns("""
    n           | looked at    | count | traces × modes looked at by two or more | 90
    found       | found        | count | called present by one or more           | 95
    found_once  | by one       | count | found by one alone                      | 60
    missed      | missed       | text  | found by nobody, estimated              | 99
    share_found | found of all | share | share found, estimated                  | 98
""")


def agreement_report(document: Values, *, sight: Values | None = None) -> Report:
    """Put the figures of ``agree`` into tables and sentences.

    Args:
        document: What ``figures.agreement.report`` made, with its parts ``spans`` and ``judge``,
            which may be None.
        sight: Whose sight limits the figures, as the field ``sight`` of ``agree --json``:
            ``annotator``, ``blind``, ``left_out``. With ``unlabelled`` so many traces that only
            the judge has judged are hidden from them.
    """
    spans, judge = document.get("spans"), document.get("judge")
    modes = modes_section(document)
    sections = [
        replace(modes, facts=()),
        categories_section(document),
        pairs_section(document),
        None if spans is None else places_section(spans),
        None if judge is None else judge_section(judge, document.get("judges"), sight=sight),
    ]
    notes = [*_nothing(document), *_whose_sight(document, sight), *_copied(document)]
    worded = revision_words(document.get("revisions", ()))
    if worded:
        notes.append(Note(f"{worded[0].upper()}{worded[1:]}.", "revisions"))
    if spans is None:
        notes.append(Note("Places were not compared.", "no_spans"))
    if judge is None:
        notes.append(Note("No judge was measured.", "no_judge"))
    return Report(
        "agreement",
        "Agreement",
        f"{_who(document)} on {document['taxonomy']}, {_pass(document)}: "
        f"{traces_compared(document)}.",
        tuple(section for section in sections if section is not None),
        tuple(notes),
        facts=modes.facts,
        document=dict(document) if sight is None else {**document, "sight": sight},
    )


def modes_section(document: Values) -> Section:
    """Make the page of single modes: with totals, sets of modes, rounds and retests."""
    people = _People.of(document)
    tables = [people.modes(), missed_table(document), people.sets(), people.rounds()]
    tables.append(people.retests())
    notes = [*_left_out(document), *_halving(document), *_missed_untold(document)]
    kept = tuple(table for table in tables if table is not None)
    return Section("modes", "Modes", kept, tuple(people.facts()), tuple(notes))


def missed_table(document: Values) -> Table | None:
    """Make the table of failures that nobody found; None where two have found none."""
    missed = document.get("missed")
    if missed is None or not missed["pooled"]["found"]:
        return None
    modes = document["modes"]
    rows = [
        _missed_row(modes[code]["slug"], {"code": code, "name": modes[code]["name"]}, one)
        for code, one in missed["modes"].items()
        if one["found"]
    ]
    more = "Chao's estimate" if len(missed["finders"]) > 2 else "Chapman's estimate"
    return Table(
        "missed",
        "How many did we all miss?",
        (CODE, MODE, *_MISSED),
        (tuple(rows), (_missed_row("pooled", {"name": "pooled"}, missed["pooled"]),)),
        f"Failures that nobody found, by capture and recapture of {joined(missed['finders'])} "
        f"({more}; intervals after Sadinle 2009). {_who(document)}, {_pass(document)}.",
        (
            *_missed_notes(missed),
            *withheld_notes({k: one for k, one in missed.items() if k in ("modes", "pooled")}),
        ),
    )


def _missed_untold(document: Values) -> Iterator[Note]:
    """Why nothing is told of failures that nobody found, where suggestions are to blame."""
    missed = document.get("missed")
    if missed is None or missed["pooled"]["n"] or not any(missed["with_suggestions"].values()):
        return
    who = joined([name for name, n in missed["with_suggestions"].items() if n])
    yield Note(
        "How many failures everybody missed cannot be told: that takes two who looked at the same "
        f"traces without a judge's suggestions on screen, which {who} had.",
        "missed_untold",
    )


def _missed_row(ident: str, cells: dict[str, Cell], one: Values) -> Row:
    value, ends = one["missed"]["value"], one["missed"].get("ci")
    told = NONE if value is None else f"{value:.0f}"
    if ends is not None:
        told += f" [{ends[0]:.0f}, {ends[1]:.0f}]"
    elif "ci_withheld" in one["missed"]:
        told += f" {WITHHELD}"
    return Row(ident, {**cells, **figure_cells(one, _MISSED), "missed": told})


def _missed_notes(missed: Values) -> Iterator[Note]:
    """What the estimate takes for granted, and whether that holds."""
    yield Note(
        "missed: from how often they found the same failures. It takes finders to be independent, "
        "failures of one mode to be equally hard to find, and all that somebody calls present to "
        "be real unless it was settled as absent: hard ones make it too low, wrong calls too high.",
        "missed",
    )
    pairs = missed["pairs"]
    together = missed["together"]
    if missed["dependent"]:
        alike = together["alike"]
        yield Note(
            f"They are not independent: {'more' if alike else 'less'} was found by several than "
            f"chance has it ({p_words(together['p_value'])}). So "
            f"{'more' if alike else 'fewer'} were missed than the estimate says"
            f"{', unless wrong calls of single finders make it look so' if alike else ''}.",
            "dependent",
            warning=True,
        )
        for key, one in pairs.items():
            if one["p_adjusted"] is not None and one["p_adjusted"] < ALPHA:
                yield _dependent(key, one)
    elif missed["dependent"] is False:
        yield Note(
            "Nothing speaks against their independence, by what several found "
            f"({p_words(together['p_value'])}); few failures would not show it.",
            "independence",
        )
    else:
        why = "Too few were found by a third to tell" if pairs else "Two alone cannot tell"
        yield Note(
            f"{why} whether they are independent; where they are not, more were missed. A third "
            "finder can tell, such as a judge: --annotators names all.",
            "independence_untold",
            warning=True,
        )
    left = [
        f"{counted(n, 'trace × mode', 'traces × modes')} by {name}"
        for name, n in missed["with_suggestions"].items()
        if n
    ]
    if left:
        yield Note(
            f"Left out, as a judge's suggestions were on screen: {', '.join(left)}.", "suggested"
        )
    if missed["settled_absent"]:
        yield Note(f"Settled as absent, not counted: {missed['settled_absent']:,}.", "settled")


def _dependent(key: str, one: Values) -> Note:
    """That two finders find, or miss, the same failures."""
    ratio = one["odds_ratio"]
    alike = ratio is None or ratio > 1
    odds = "" if ratio is None else f"odds ratio {fixed(ratio)}, "
    return Note(
        f"{of_pair(key)} are not independent: of what a third found they find "
        f"{'the same' if alike else 'different ones'} more often than chance has it ({odds}"
        f"{p_words(one['p_adjusted'])}). So {'more' if alike else 'fewer'} were missed than the "
        "estimate says.",
        "dependent_pair",
        warning=True,
    )


def categories_section(document: Values) -> Section | None:
    """Make the page of categories of modes; None where the taxonomy has none."""
    if not document["categories"]:
        return None
    people = _People.of(document)
    return Section("categories", "Categories", (people.categories(), *people.levels()))


def pairs_section(document: Values) -> Section | None:
    """Make the page of every two of three annotators or more; None for fewer."""
    if len(document["annotators"]) < 3:
        return None
    people = _People.of(document)
    return Section("pairs", "Pairs", (people.matrix(), people.pairs(), *people.by_pair()))


def rotates(document: Values) -> bool:
    """Tell whether two of three annotators or more share few of the traces: α leads there."""
    return bool(document["pooled"].get("few_shared_by_pair"))


def coefficient_columns(people: int, *, rotating: bool = False) -> tuple[Column, ...]:
    """Make the columns of the coefficients.

    Args:
        people: How many annotators are compared; Fleiss' κ is for three or more.
        rotating: Whether two of them share few of the traces, so that κ comes last.
    """
    chosen = [one for one in COEFFICIENTS if people > 2 or one.key != _FLEISS]
    if people > 2:
        kappa = next(one for one in chosen if one.key == _KAPPA)
        mean = replace(kappa, title="mean κ", name="mean of Cohen's κ over the pairs")
        chosen = [mean if one is kappa else one for one in chosen]
    if rotating:
        last = [one for one in chosen if one.key in _OF_PAIRS]
        chosen = [one for one in chosen if one.key not in _OF_PAIRS]
        chosen += [replace(one, keeps=min(one.keeps, 41)) for one in last]
    lead = max(chosen, key=lambda one: one.keeps)
    return tuple(replace(one, keeps=_LEADS) if one is lead else one for one in chosen)


@dataclass(frozen=True, slots=True)
class _People:
    """The tables of one document."""

    document: Values
    columns: tuple[Column, ...]
    """The coefficients of all annotators together."""
    alone: tuple[Column, ...]
    """Those of two."""

    @classmethod
    def of(cls, document: Values) -> _People:
        pooled = document["pooled"]

        def known(columns: Iterable[Column]) -> tuple[Column, ...]:
            # A document of an earlier version has no later coefficient, and without two traces
            # that all have judged there is no Fleiss' κ.
            return tuple(
                column
                for column in columns
                if column.key in pooled and (column.key != _FLEISS or not _few_complete(document))
            )

        people = len(document["annotators"])
        return cls(
            document,
            known(coefficient_columns(people, rotating=rotates(document))),
            known(coefficient_columns(2)),
        )

    @property
    def names(self) -> Sequence[str]:
        names: Sequence[str] = self.document["annotators"]
        return names

    @property
    def many(self) -> bool:
        return len(self.names) > 2

    @property
    def slugs(self) -> tuple[str, ...]:
        return tuple(mode["slug"] for mode in self.document["modes"].values())

    def facts(self) -> Iterator[tuple[str, str, str]]:
        """The figures over all, the one to lead with first."""
        pooled = self.document["pooled"]
        yield "pooled over", f"{pooled['n']:,}", "traces × modes"
        for column in self.columns:
            if column.key in _HEADLINE:
                yield fact(column.title, pooled[column.key])

    # Tables

    def modes(self) -> Table:
        """A row per mode, then the totals."""
        document = self.document
        macro, pooled = document["macro"], document["pooled"]
        modes = [
            self._row(mode["slug"], code, mode["name"], mode, (mode["slug"],), self._halves(code))
            for code, mode in document["modes"].items()
        ]
        blocks = document["identical_blocks"]
        totals = (
            Row(
                "macro",
                {"name": "macro mean", **self._macro_cells(macro, document["modes"])},
                behind=_behind("Mean over modes", self.slugs),
            ),
            self._row(
                "pooled", "", "pooled", pooled, self.slugs, _shares_blocks(document),
                mark=COPIED if blocks else "",
            ),
        )  # fmt: skip
        tables = {**document["modes"], "pooled": pooled}
        return Table(
            "modes",
            "Agreement on whole traces, by mode",
            (CODE, MODE, _N, _PRESENT, *self.columns),
            (tuple(modes), totals),
            self._caption(),
            (
                *self._how_to_read(),
                macro_note(document, self.columns, " pooled: traces × modes in one table."),
                *self._own_n_notes(),
                *_paradox_note(tables),
                *_copied_mark(document),
                *withheld_notes(document["modes"], macro, pooled),
            ),
        )

    def categories(self) -> Table:
        """A row per category: its modes pooled."""
        found = self.document["categories"]
        slugs = {code: mode["slug"] for code, mode in self.document["modes"].items()}
        rows = [
            self._row(
                ident, "", one["name"], one, tuple(slugs[code] for code in one["modes"]),
                [f"The modes {joined(one['modes'])} in one table."],
            )
            for ident, one in found.items()
        ]  # fmt: skip
        return Table(
            "categories",
            "Agreement on whole traces, by category",
            (replace(MODE, title="category", name="category"), _N, _PRESENT, *self.columns),
            (tuple(rows),),
            self._caption(),
            (
                _N_POOLED,
                *_paradox_note({one["name"]: one for one in found.values()}),
                *withheld_notes(found),
            ),
        )

    def levels(self) -> Iterator[Table]:
        """A table per level of categories, where there are several: each category as marked."""
        slugs = {code: mode["slug"] for code, mode in self.document["modes"].items()}
        for place, (level, one) in enumerate(self.document.get("levels", {}).items(), start=1):
            found, macro, pooled = one["categories"], one["macro"], one["pooled"]
            rows = [
                self._row(
                    ident, "", of["name"], of, tuple(slugs[code] for code in of["modes"]),
                    [f"Present where any of {joined(of['modes'])} is."], unit="trace",
                )
                for ident, of in found.items()
            ]  # fmt: skip
            totals = (
                Row("macro", {"name": "macro mean", **self._macro_cells(macro, found)}),
                self._row("pooled", "", "pooled", pooled, self.slugs, unit=f"trace × {level} pair"),
            )
            yield Table(
                f"level_{place}",
                f"Agreement on whole traces, at the level of {level}",
                (replace(MODE, title=level, name=level), _N, _PRESENT, *self.columns),
                (tuple(rows), totals),
                self._caption(),
                (
                    Note(
                        "A category counts as present where any mode within it does, as absent "
                        "where all of them do.",
                        "any_within",
                    ),
                    Note(
                        f"macro mean: over each {level} for which the figure is defined. pooled: "
                        "all of the level in one table.",
                        "macro",
                    ),
                    *_paradox_note({of["name"]: of for of in found.values()}),
                    *withheld_notes(found, macro, pooled),
                ),
            )

    def sets(self) -> Table:
        """Agreement on which modes a trace has, taken together."""
        sets = self.document["sets"]
        figures = (
            ("krippendorff_alpha_jaccard", "α Jaccard", "Krippendorff's α with Jaccard distance"),
            ("krippendorff_alpha_masi", "α MASI", "Krippendorff's α with MASI distance"),
        )
        reasons = {
            "no_variance": "all sets are the same, so that nothing can be told from chance",
            "no_overlap": "in no trace two people have answered every mode",
            "single_trace": "one trace tells nothing of chance",
            "single_rater": "only one person has answered every mode of a trace",
        }
        cells: dict[str, Cell] = {"name": "sets of modes", "n": sets["n"]}
        cells |= {key: Estimate.of(sets[key]) for key, _, _ in figures}
        detail = tuple(why_undefined([(n, sets[key]) for key, _, n in figures], reasons, {}))
        return Table(
            "sets",
            "Agreement on which modes a trace has, taken together",
            (
                replace(MODE, title="", name="compared"),
                replace(_N, title="traces", name="traces in which two or more judged every mode"),
                *(Column(key, title, name=name) for key, title, name in figures),
            ),
            ((Row("sets", cells, "", detail, _behind("Sets of modes", self.slugs)),),),
            self._caption(),
            (
                Note(
                    "The set of modes that a trace has, over traces in which two or more judged "
                    "every mode. Two sets that share modes agree in part.",
                    "sets",
                ),
                *withheld_notes(sets),
            ),
        )

    def rounds(self) -> Table | None:
        """A row per lot of the study, all modes pooled."""
        rounds = self.document["rounds"]
        if not rounds:
            return None
        rows = [
            Row(
                name,
                {"round": name, "traces": one["traces"], **_cells(one["pooled"], self.columns)},
                paradox_mark(one["pooled"]),
                tuple(self._detail(one["pooled"], unit="trace × mode pair")),
            )
            for name, one in rounds.items()
        ]  # fmt: skip
        return Table(
            "rounds",
            "Rounds of the study, all modes pooled",
            (
                Column("round", "round", Kind.TEXT, keeps=102),
                Column("traces", "traces", Kind.COUNT, keeps=98),
                _N, _PRESENT, *self.columns,
            ),
            (tuple(rows),),
            self._caption(),
            (
                *_paradox_note({name: one["pooled"] for name, one in rounds.items()}),
                *withheld_notes(*(one["pooled"] for one in rounds.values())),
            ),
        )  # fmt: skip

    def retests(self) -> Table | None:
        """A row per annotator who labelled traces once more."""
        retests = self.document["retests"]
        if not retests:
            return None
        rows = [
            Row(
                name,
                {"annotator": name, "traces": one["n_traces"], **_cells(one, self.alone)},
                paradox_mark(one),
                (f"{name} with themselves: {_said(one, 'trace × mode pair')}",
                     *_undefined(one, self.alone)),
            )
            for name, one in retests.items()
        ]  # fmt: skip
        return Table(
            "retests",
            "Agreement with oneself, all modes pooled",
            (
                Column("annotator", "annotator", Kind.TEXT, keeps=102),
                Column("traces", "traces", Kind.COUNT, keeps=98),
                _N, _PRESENT, *self.alone,
            ),
            (tuple(rows),),
            "Traces that repeat, labelled again without sight of the first time (taxonomy "
            f"{self.document['taxonomy']}). {self._intervals()}",
            (
                Note("present: the share of that verdict, the first / the second time.", "n"),
                *_paradox_note(retests),
                *withheld_notes(retests),
            ),
        )  # fmt: skip

    def matrix(self) -> Table:
        """κ of every two, all modes pooled."""
        pairs = self.document["pooled"]["pairs"]
        names = self.names
        rows = []
        for place, name in enumerate(names[1:], 1):
            cells: dict[str, Cell] = {"name": name}
            behind, told = {}, {}
            for other in names[:place]:
                key = f"with {other}"
                pair = pairs[f"{other}|{name}"]
                cells[key] = Estimate.of(pair["cohen_kappa"])
                behind[key] = self._behind_pair(other, name)
                told[key] = tuple(self._detail(pair, unit="trace × mode pair", pairs=False))
            rows.append(Row(name, cells, behind_cells=behind, detail_cells=told))
        columns = [Column(f"with {name}", name, name=f"κ with {name}") for name in names[:-1]]
        return Table(
            "pairs_kappa",
            "κ of each pair, all modes pooled",
            (Column("name", "κ", Kind.TEXT, "annotator", keeps=102), *columns),
            (tuple(rows),),
            self._caption(),
            (*withheld_notes(*(one["cohen_kappa"] for one in pairs.values())),),
        )

    def pairs(self) -> Table:
        """A row per pair with what it rests on."""
        pairs = self.document["pooled"]["pairs"]
        shared = self.document["pooled"].get("few_shared_by_pair") or {}
        rows = [
            Row(
                f"{first}|{second}",
                {
                    "pair": joined((first, second)), "traces": shared.get(f"{first}|{second}"),
                    **_cells(one, self.alone),
                },
                paradox_mark(one),
                (*self._detail(one, unit="trace × mode pair", pairs=False),
                     *_copied_by(self.document, (first, second))),
                self._behind_pair(first, second),
            )
            for first, second, one in self._each_pair(pairs)
        ]  # fmt: skip
        return Table(
            "pairs",
            "Every two, all modes pooled",
            (
                Column("pair", "pair", Kind.TEXT, keeps=102),
                Column("traces", "traces", Kind.COUNT, "traces that both have judged", keeps=98),
                replace(_N, name="traces × modes that both judged"),
                _PRESENT, *self.alone,
            ),
            (tuple(rows),),
            self._caption(),
            (
                _N_POOLED,
                *self._pulled_note(),
                *_paradox_note({of_pair(key): one for key, one in pairs.items()}),
                *withheld_notes(pairs),
            ),
        )  # fmt: skip

    def by_pair(self) -> Iterator[Table]:
        """A folded table per pair: a row per mode."""
        modes = self.document["modes"]
        pooled = self.document["pooled"]["pairs"]
        for place, (first, second, whole) in enumerate(self._each_pair(pooled), 1):
            pair, told = (first, second), joined((first, second))
            tables = {code: mode["pairs"][f"{first}|{second}"] for code, mode in modes.items()}
            rows = [
                self._row(
                    modes[code]["slug"], code, modes[code]["name"], one, (modes[code]["slug"],),
                    pair=pair,
                )
                for code, one in tables.items()
            ]  # fmt: skip
            total = self._row("pooled", "", "pooled", whole, self.slugs, pair=pair)
            yield Table(
                f"pair_{place}",
                f"{told}, by mode",
                (CODE, MODE, _N, _PRESENT, *self.alone),
                (tuple(rows), (total,)),
                f"Labels of {told} (taxonomy {self.document['taxonomy']}, "
                f"{_pass(self.document)}). {self._intervals()}",
                (*_paradox_note({**tables, "pooled": whole}), *withheld_notes(tables, whole)),
                folded=True,
            )

    # Rows

    def _macro_cells(self, macro: Values, tables: Values) -> dict[str, Cell]:
        """Return the cells of means, with the n of those that rest on fewer units than rows do."""
        cells: dict[str, Cell] = {}
        for column in self.columns:
            key = column.key
            own_n = macro.get("units", {}).get(key)
            row_n = sum(one["n"] for one in tables.values() if one[key]["value"] is not None)
            figure = macro[key] if own_n is None else {**macro[key], "n": own_n}
            cells[key] = Estimate.of(figure, row_n)
        return cells

    def _row(
        self,
        ident: str,
        code: str,
        name: str,
        table: Values,
        modes: tuple[str, ...],
        told: Iterable[str] = (),
        mark: str = "",
        *,
        unit: str = "",
        pair: tuple[str, str] | None = None,
    ) -> Row:
        """A row of all annotators, or of a pair of them; ``unit`` is what its n counts."""
        shown = self.columns if pair is None else self.alone
        unit = unit or ("trace" if len(modes) == 1 and code else "trace × mode pair")
        title = f"{code} {name}".strip()
        return Row(
            ident,
            {"code": code, "name": name, **_cells(table, shown)},
            mark + paradox_mark(table),
            (*self._detail(table, unit=unit, pairs=pair is None), *told),
            _behind(title if pair is None else f"{title}, {joined(pair)}", modes, pair),
        )

    def _detail(self, table: Values, *, unit: str, pairs: bool = True) -> Iterator[str]:
        """Say of one row who said what, and what its figures are not."""
        yield _said(table, unit)
        yield from _undefined(table, self.columns if pairs else self.alone)
        if pairs and self.many:
            told = [
                f"{of_pair(key)} {in_words(one['cohen_kappa'])} (n {one['n']})"
                for key, one in table["pairs"].items()
            ]
            yield f"κ by pair: {'; '.join(told)}."
        unsure = [f"{name} {n:,}" for name, n in table.get("unsure", {}).items() if n]
        if unsure:
            yield f"Unsure, counted as missing: {', '.join(unsure)}."

    def _halves(self, code: str) -> Iterator[str]:
        plan = self.document["halving"].get(code, {})
        if plan.get("more_traces"):
            width = f" ({fixed(plan['width'])} wide now)" if "width" in plan else ""
            yield (
                f"About {plan['more_traces']:,} more traces labelled by two would halve the "
                f"interval of κ{width}."
            )

    def _each_pair(self, pairs: Values) -> Iterator[tuple[str, str, Values]]:
        for first, second in combinations(self.names, 2):
            yield first, second, pairs[f"{first}|{second}"]

    def _behind_pair(self, first: str, second: str) -> Behind:
        return _behind(joined((first, second)), self.slugs, (first, second))

    # Sentences

    def _caption(self) -> str:
        document = self.document
        return (
            f"Labels of {_who(document)} on {traces_compared(document)} "
            f"(taxonomy {document['taxonomy']}, {_pass(document)}). {self._intervals()}"
        )

    def _intervals(self) -> str:
        return intervals_note(self.document["bootstrap"], _shared(self.document))

    def _how_to_read(self) -> Iterator[Note]:
        """What n and present are, and which coefficient leads."""
        who = (
            "lowest and highest of them"
            if self.many
            else f"by {' / '.join(self.names) or 'nobody'}"
        )
        by = "two or more" if self.many else "both"
        yield Note(
            f"n: traces in which {by} have a verdict on the mode; of several modes, traces × "
            f"modes. present: the share of that verdict, {who}.",
            "n",
        )
        if self.many:
            yield Note("mean κ: over the pairs for which it is defined.", "mean_kappa")
            yield from self._shared_note()

    def _shared_note(self) -> Iterator[Note]:
        shared = self.document["pooled"].get("few_shared_by_pair")
        if shared:
            told = ", ".join(f"{of_pair(key)} {n}" for key, n in shared.items())
            yield Note(
                f"Traces that two of them share: {told}. So few pull κ of a pair, and mean κ, "
                "down: lead with Krippendorff's α.",
                "few_shared_traces",
            )

    def _pulled_note(self) -> Iterator[Note]:
        if rotates(self.document):
            yield Note("Few shared traces pull κ of a pair down.", "few_shared_traces")

    def _own_n_notes(self) -> Iterator[Note]:
        """Tell on how many units figures rest that rest on fewer than their row."""
        if not self.many:
            return
        document = self.document
        pooled = document["pooled"]
        if _few_complete(document):
            traces = "only one trace" if pooled["n_complete"] else "no trace"
            sentence = f"Fleiss' κ is left out: {traces} was judged by all of them."
            yield Note(sentence, "n_complete")
        tables = {**document["modes"], "pooled": pooled}
        for column in self.columns:
            if column.key not in _OF_PAIRS:
                continue
            by_n: dict[int, list[str]] = {}
            for name, table in tables.items():
                own_n = table[column.key].get("n", table["n"])
                if own_n != table["n"] and table[column.key]["value"] is not None:
                    by_n.setdefault(own_n, []).append(name)
            units = "; ".join(f"{n:,} ({', '.join(names)})" for n, names in by_n.items())
            if units:
                meaning, reason = _OF_PAIRS[column.key]
                yield Note(f"{meaning}: n {units}.", reason)


def _few_complete(document: Values) -> bool:
    """Return whether all annotators have judged fewer than two traces, too few for Fleiss' κ."""
    fleiss = document["pooled"].get(_FLEISS, {})
    return fleiss.get("undefined") in ("no_overlap", "single_trace")


def _behind(title: str, modes: tuple[str, ...], pair: tuple[str, str] | None = None) -> Behind:
    which: tuple[tuple[str, Any], ...] = (("page", "people"),)
    return Behind(title, modes, which if pair is None else (*which, ("pair", pair)))


def _cells(table: Values, shown: Iterable[Column]) -> dict[str, Cell]:
    return {"n": table["n"], "prevalence": _present(table), **figure_cells(table, shown)}


def _present(table: Values) -> str:
    """Each one's share of present; of three or more the lowest and the highest."""
    shares = list(table["prevalence"].values())
    if len(shares) > 2:
        known = [share for share in shares if share is not None]
        return f"{fixed(min(known))}–{fixed(max(known))}" if known else NONE
    return "/".join(NONE if share is None else fixed(share) for share in shares)


def _said(table: Values, unit: str) -> str:
    n = table["n"]
    by = "both" if len(table["prevalence"]) == 2 else "two or more"
    shares = [
        f"{name} in {percent(share)}"
        for name, share in table["prevalence"].items()
        if share is not None
    ]
    said = f"; {joined(shares)} say present" if shares else ""
    have = "has" if n == 1 else "have"
    return f"{counted(n, unit)} {have} a verdict by {by}{said}."


def _undefined(table: Values, columns: Iterable[Column]) -> Iterator[str]:
    figures = [(one.name, table[one.key]) for one in columns if one.key in table]
    return why_undefined(figures, _UNDEFINED, _NEVER_SAID)


def _who(document: Values) -> str:
    return joined(document["annotators"]) or "nobody"


def _pass(document: Values) -> str:
    return _PASSES.get(document["pass"], str(document["pass"]))


def _shared(document: Values) -> int:
    traces = document["traces"]
    shared: int = traces.get("finished_by_two", traces["finished_by_all"])
    return shared


def traces_compared(document: Values) -> str:
    """Return how many traces the figures compare, for the head of a page or a screen.

    Returns:
        ``3 traces by both``; of more annotators, who need not all have finished the same traces,
        ``20 traces by two or more, 5 of them by all``.
    """
    people = len(document["annotators"])
    by_all = document["traces"]["finished_by_all"]
    if people < 2:
        return f"{counted(by_all, 'trace')} finished"
    if people == 2:
        return f"{counted(by_all, 'trace')} by both"
    words = f"{counted(_shared(document), 'trace')} by two or more"
    return f"{words}, {by_all:,} of them by all" if by_all else words


def _paradox_note(tables: Values) -> Iterator[Note]:
    marked = [name for name, table in tables.items() if is_kappa_paradox(table)]
    if marked:
        yield Note(
            f"{PARADOX} {', '.join(marked)}: κ is low although raw agreement is high. Nearly all "
            "verdicts are the same there, so nearly all agreement counts as chance: read AC1, P+ "
            "and P− beside it.",
            "kappa_paradox",
        )


def _left_out(document: Values) -> Iterator[Note]:
    """What no figure rests on."""
    left = document["left_out"]
    whats = (
        ("unfinished", "traces begun and not finished"),
        ("alone", "traces finished by nobody else"),
        ("examples", "traces that are examples in the judge's prompt"),
        ("unsure", "verdicts 'unsure'"),
        ("open", "modes left open in finished traces"),
        ("open_codes", "labels of none of the modes"),
    )
    told = []
    for key, what in whats:
        by = [f"{name} {n:,}" for name, n in left.get(key, {}).items() if n]
        if by:
            told.append(f"{what} ({', '.join(by)})")
    outside = [f"{name} {counted(n, 'trace')}" for name, n in left.get("not_in_study", {}).items()]
    if told:
        yield Note(f"Left out: {'; '.join(told)}.", "left_out")
    elif not outside and "only_seen_by" not in document["traces"]:
        yield Note("Nothing was left out.", "left_out")
    if outside:
        yield Note(
            f"Not counted, as they have no part in the study: {', '.join(outside)} finished. "
            "--annotators counts whom it names.",
            "not_in_study",
        )


def _halving(document: Values) -> Iterator[Note]:
    """How many more traces, labelled by two, would halve the interval of κ, by mode."""
    wanted: dict[int, list[str]] = {}
    untold: dict[str, list[str]] = {}
    for code, plan in document["halving"].items():
        more = plan["more_traces"]
        if more is not None:
            wanted.setdefault(more, []).append(code)
        else:
            untold.setdefault(str(plan.get("undefined")).replace("_", " "), []).append(code)
    if wanted:
        told = "; ".join(f"about {more:,} for {', '.join(wanted[more])}" for more in sorted(wanted))
        none = "".join(
            f"; nobody can tell for {', '.join(codes)} ({why})" for why, codes in untold.items()
        )
        yield Note(
            f"More traces, labelled by two, that would halve the interval of κ: {told}{none}.",
            "halving",
        )


def _nothing(document: Values) -> Iterator[Note]:
    """Why nobody can be compared, where that is so."""
    if len(document["annotators"]) < 2:
        yield Note(
            "Agreement needs two annotators with finished traces; --annotators names them.",
            "few_annotators",
            warning=True,
        )
    elif not _shared(document):
        yield Note(
            "Agreement needs a trace that two of them have finished.",
            "nothing_shared",
            warning=True,
        )


def _whose_sight(document: Values, sight: Values | None) -> Iterator[Note]:
    name = document["traces"].get("only_seen_by") or (sight or {}).get("annotator")
    if name is None:
        return
    left = (sight or {}).get("left_out")
    others = "all others are left out" if left is None else f"{counted(left, 'other')} left out"
    yield Note(
        f"Only traces that {name} has finished or adjudicates count; {others}.",
        "only_seen_by",
        warning=True,
    )


def _copied(document: Values) -> Iterator[Note]:
    """That several traces share one and the same block of verdicts, where some do."""
    found = document["identical_blocks"]
    if not found:
        return
    traces = sum(len(one["traces"]) for one in found)
    every = document["blocks"]
    yield Note(
        f"{counted(traces, 'trace')} share {counted(len(found), 'block')} of verdicts: everybody "
        "said the same of every mode on several traces, where chance would hardly have it so. Were "
        "they copied, or labelled together? They count as agreement all the same. In all, "
        f"{counted(every['traces'], 'trace')} hold "
        f"{counted(every['distinct'], 'different block')}.",
        "identical_blocks",
        warning=True,
    )
    for one in found:
        yield Note(
            f"One block, by {joined(one['annotators'])}: {_some(one['traces'])}.",
            "identical_block",
            warning=True,
        )


def _copied_mark(document: Values) -> Iterator[Note]:
    if document["identical_blocks"]:
        yield Note(
            f"{COPIED} pooled: traces that share a block of verdicts are counted.",
            "identical_blocks",
        )


def _shares_blocks(document: Values) -> Iterator[str]:
    for one in document["identical_blocks"]:
        yield (
            f"{counted(len(one['traces']), 'trace')} have one and the same block of verdicts by "
            f"{joined(one['annotators'])}. Look whether they were copied: {_some(one['traces'])}."
        )


def _copied_by(document: Values, pair: tuple[str, str]) -> Iterator[str]:
    """That two share copied blocks with each other."""
    own = [one for one in document["identical_blocks"] if set(pair) <= set(one["annotators"])]
    if own:
        traces = sum(len(one["traces"]) for one in own)
        blocks = counted(len(own), "block")
        yield f"{counted(traces, 'trace')} of theirs share {blocks} of verdicts."


def _some(traces: Sequence[str]) -> str:
    more = len(traces) - MOST_NAMED
    return ", ".join(traces[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")

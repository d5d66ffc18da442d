"""Open codes of all traces, in groups of those about the same; a group becomes a mode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Final

from textual import work
from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static
from textual.worker import get_current_worker

from mast_tui.columns import TableColumn
from mast_tui.configuration import read_judge_configuration
from mast_tui.errors import MastError
from mast_tui.exchange.migration.candidate import candidate_map, taxonomy_toml, with_mode
from mast_tui.exchange.migration.migrate import check_lead, migrate
from mast_tui.judges.llm.run.grouping import propose_groups, used_words, what_it_takes
from mast_tui.judges.llm.run.setup import Setup, configured_setup
from mast_tui.safe_text import one_line
from mast_tui.session import record_reveal, viewer_named, visible_traces_for_agreement
from mast_tui.session.open_codes import (
    NO_WORDS,
    CodeGroup,
    OpenCode,
    OpenCoding,
    Saturation,
    checked_tag,
    keep_groups,
    open_coding,
    toggle_tag,
)
from mast_tui.taxonomy.model import Mode, Taxonomy
from mast_tui.ui.actions.registry import KeyOf, Where
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.dialogs.dialog import Ask
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.dialogs.note import NoteScreen
from mast_tui.ui.services.model_judge import model_name, run_until_cancelled
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import BASE_SCREEN, OPEN_CODES
from mast_tui.ui.table_screen import OpensTraces, TableScreen
from mast_tui.ui.widgets.column_table import name_width, sign_column
from mast_tui.ui.wording import counted, place_words, plain_title
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.tags import TaggedPlace

BARS: Final = "·▁▂▃▄▅▆▇█"
"""New kinds of one trace, none to eight and more."""

MOST_BARS: Final = 40
"""Traces of which the last so many are drawn."""

MOST_READ: Final = 40
"""Traces that are read so that places go by their numbers."""

LAST: Final = 10


def nothing_words(key_of: KeyOf) -> str:
    """Return that nothing is written down yet, and how to do so; ``key_of`` names keys."""
    return (
        "Nothing is written down yet that no mode describes.\n\n"
        "In a trace 0 0 labels what is none of the modes, and asks at once what it is; "
        f"{key_of('annotate.note')} writes a note on a span. A #word in the text is a tag.\n"
        "What is about the same comes together here, and "
        f"{key_of('open_codes.new_mode')} makes a mode of it.\n\n"
        "What others wrote shows here once you have finished the trace."
    )


def saturation_line(found: Saturation) -> str:
    """How far the kinds of failure saturate, in one line."""
    if not found.traces:
        return "Saturation is told once a trace is finished."
    bars = "".join(BARS[min(len(one.new), len(BARS) - 1)] for one in found.traces[-MOST_BARS:])
    last, quiet = min(LAST, len(found.traces)), found.since_last_new
    none = f", the last {quiet} none" if quiet else ""
    return (
        f"New kinds per trace {bars}  {found.kinds} in {counted(len(found.traces), 'trace')}; "
        f"the last {last} brought {found.new_in_last(last)}{none}"
    )


def _leads(opened: OpenWorkspace) -> bool:
    """Whether this person leads the study and labels nothing in it: they may see everything."""
    workspace, who, ref = opened.workspace, opened.annotator, opened.taxonomy.ref
    if workspace.study_leads().get(ref) != who:
        return False
    return not viewer_named(workspace, ref, who, blind=False, assisted=False).limited


def _visible_to(opened: OpenWorkspace) -> frozenset[str] | None:
    """The traces on which they may see what others wrote; None for all."""
    if _leads(opened):
        return None
    return visible_traces_for_agreement(opened.workspace, opened.annotator, opened.taxonomy.ref)


def _keep_groups(opened: OpenWorkspace, model: str | None, groups: Mapping[str, str]) -> None:
    """Keep the groups that a model proposes for what they see; None and none: by words again."""
    ref, who = opened.taxonomy.ref, opened.annotator
    keep_groups(opened.workspace, ref, who, _visible_to(opened), model, groups)


@dataclass(frozen=True, slots=True)
class _CodeRow:
    """A group, or one of its codes."""

    id: str
    group: CodeGroup
    code: OpenCode | None = None


def _rows(coding: OpenCoding) -> Iterator[_CodeRow]:
    for group in coding.groups:
        yield _CodeRow(f"group {group.name}", group)
        for code in group.codes:
            yield _CodeRow(repr(code.identity), group, code)


def _either(
    of_group: Callable[[CodeGroup], str], of_code: Callable[[OpenCode], str]
) -> Callable[[_CodeRow], str]:
    return lambda row: of_group(row.group) if row.code is None else of_code(row.code)


class OpenCodesScreen(OpensTraces, TableScreen[_CodeRow]):
    """The open codes that the annotator may see: their own, and others' on finished traces.

    That others' were shown is recorded.
    """

    CSS_PATH = [BASE_SCREEN, OPEN_CODES]
    where = Where.OPEN_CODES
    table_id = "codes"
    row_key = attrgetter("id")

    def __init__(self) -> None:
        super().__init__()
        self._coding: OpenCoding | None = None
        self._at_hand: TraceLoader | None = None
        self._marked: dict[TaggedPlace, OpenCode] = {}
        self._search = ""

    def compose_panes(self) -> ComposeResult:
        """How far the kinds of failure saturate, over the table."""
        yield Static(id="about", markup=False)
        yield from super().compose_panes()

    @property
    def row(self) -> _CodeRow | None:
        """What the cursor stands on."""
        return self.main_list.row

    def on_mount(self) -> None:
        """Gather as soon as the workspace is open."""
        super().on_mount()
        self.mast.workspace.when_ready(self._read)

    def on_screen_resume(self) -> None:
        """Something may have been written in the trace from which one comes back."""
        if self._coding is not None and self.mast.opened is not None:
            self._read(self.mast.opened)

    @work(thread=True, group="codes", exclusive=True)
    def _read(self, opened: OpenWorkspace) -> None:
        worker, workspace, who = get_current_worker(), opened.workspace, opened.annotator
        known = list(self.mast.catalog.traces.values())
        try:
            coding = open_coding(workspace, opened.taxonomy, who, _visible_to(opened))
            if not _leads(opened):
                record_reveal(workspace, who, opened.taxonomy.ref, sorted(coding.revealed_traces))
            at_hand = self._at_hand or TraceLoader(workspace, known)
            if worker.is_cancelled:
                # What has changed since is read by another one, which may be through already.
                return
            self.call_later(self._show_gathered, coding, at_hand)
            ids = (
                code.trace_id
                for code in coding.codes
                if at_hand.lacks_order(code.trace_id, [code.target])
            )
            more = at_hand.read_more(ids, MOST_READ, lambda: worker.is_cancelled)
        except (MastError, OSError) as error:
            self.call_later(self.show_words, one_line(str(error)))
            return
        if more:
            self.call_later(self._show_rows)  # with the numbers of their places

    def _show_gathered(self, coding: OpenCoding, at_hand: TraceLoader) -> None:
        self._coding, self._at_hand = coding, at_hand
        there = {code.identity: code for code in coding.codes}
        self._marked = {place: there[place] for place in self._marked if place in there}
        self.show_title()
        if not coding.codes:
            self.show_words(nothing_words(self.mast.key_of))
            return
        self.remove_class("-empty")
        by = "" if coding.model is None else f"  by {one_line(coding.model, 30)}"
        line = saturation_line(coding.saturation)
        self.query_one("#about", Static).update(Content(f"{line}{by}"))
        self._show_rows()
        self.main_list.focus()

    def show_title(self) -> None:
        """How much there is, and who works."""
        count = 0 if self._coding is None else len(self._coding.codes)
        words = ("Open codes", counted(count, "place")) if count else ("Open codes",)
        self.title_bar.show(words, self.who())

    def _show_rows(self) -> None:
        if self._coding is None or self._at_hand is None:
            return
        shown = self._coding.matching(self._search) if self._search else self._coding
        self.main_list.columns = self._columns(self._at_hand)
        self.main_list.show(list(_rows(shown)))
        self.show_detail()

    def _columns(self, at_hand: TraceLoader) -> tuple[TableColumn[_CodeRow], ...]:
        key = self.mast.key_of("annotate.note")
        no_words = f"no words yet: {key} there writes some"

        def is_marked(row: _CodeRow) -> bool:
            codes = row.group.codes if row.code is None else (row.code,)
            return all(code.identity in self._marked for code in codes)

        def sign(row: _CodeRow) -> str:
            if is_marked(row):
                return "v"
            return "▾" if row.code is None else "●" if row.code.is_label else "✎"

        return (
            sign_column(
                sign, lambda row: "doubt" if row.code is None or is_marked(row) else "quiet"
            ),
            TableColumn(
                "",
                _either(
                    lambda group: one_line(f"{group.name} · {counted(len(group.codes), 'place')}"),
                    lambda code: f"  {one_line(code.tagged_text) or no_words}",
                ),
                _either(lambda _: "total", lambda code: "figure" if code.text else "quiet"),
                name_width(),
            ),
            TableColumn(
                "trace",
                _either(
                    lambda group: counted(group.traces, "trace"),
                    lambda code: one_line(at_hand.name_of(code.trace_id)),
                ),
                "quiet",
                name_width(90),
            ),
            TableColumn(
                "where",
                _either(
                    lambda _: "",
                    lambda code: place_words(code.target, at_hand.known_order(code.trace_id)),
                ),
                width=name_width(80),
            ),
            TableColumn(
                "who",
                _either(lambda _: "", lambda code: one_line(code.annotator)),
                "quiet",
                name_width(70),
            ),
        )

    def show_detail(self) -> None:
        """Show the whole text under the cursor, or all of its group."""
        row = self.row
        if row is None:
            self.detail.show_text("")
            self.detail.border_title = ""
            return
        group, code = row.group, row.code
        self.detail.border_title = plain_title(group.name)
        key_of = self.mast.key_of
        self.detail.border_subtitle = plain_title(
            f"{key_of('open_codes.open')} opens  {key_of('open_codes.new_mode')} makes a mode"
        )
        if code is not None:
            self.detail.show_text(code.tagged_text or "Nobody has written what it is yet.")
            return
        who = dict.fromkeys(code.annotator for code in group.codes)
        lines = [f"{counted(len(group.codes), 'place')} by {', '.join(map(one_line, who))}", ""]
        self.detail.show_text(
            "\n".join([*lines, *(f"• {code.tagged_text}" for code in group.codes)])
        )

    # Keys

    def action_open(self) -> None:
        """Open the trace at the place under the cursor."""
        row = self.row
        if row is None:
            self.hints.say("There is nothing under the cursor")
            return
        code = row.code or row.group.codes[0]
        self.open_at(TraceLocation(code.trace_id, key=code.target.first))

    def action_mark(self) -> None:
        """Mark the place under the cursor, or the whole group; again, take the mark off."""
        row = self.row
        if row is None:
            self.hints.say("No note is listed yet that could be marked")
            return
        codes = row.group.codes if row.code is None else (row.code,)
        if all(code.identity in self._marked for code in codes):
            for code in codes:
                del self._marked[code.identity]
        else:
            self._marked |= {code.identity: code for code in codes}
        self._show_rows()
        self.main_list.move_by(1)
        key = self.mast.key_of("open_codes.new_mode")
        self.hints.say(f"{counted(len(self._marked), 'place')} marked: {key} makes a mode of them")

    def action_group(self, step: int) -> None:
        """Go to the next group, or the previous one."""
        rows = self.main_list.rows
        heads = [place for place, row in enumerate(rows) if row.code is None]
        here = self.main_list.cursor
        found = [p for p in heads if p > here] if step > 0 else [p for p in heads if p < here][::-1]
        if found:
            self.main_list.move_to(found[0])

    def action_search(self) -> None:
        """Show only what holds some words."""

        def typed(words: str | None) -> None:
            if words is None:
                return
            self._search = words.strip()
            self._show_rows()
            count = sum(row.code is not None for row in self.main_list.rows)
            key = self.mast.key_of("open_codes.search")
            self.hints.say(
                f"{counted(count, 'place')} with {one_line(self._search)}: "
                f"{key} and an empty line show all"
                if self._search
                else f"All are shown: {counted(count, 'place')}"
            )

        self.app.push_screen(
            NoteScreen("Search notes and open codes", self._search, question="Words, or a #tag"),
            typed,
        )

    def _chosen_codes(self) -> tuple[OpenCode, ...]:
        """What is marked, or else what is under the cursor."""
        row = self.row
        here = () if row is None else row.group.codes if row.code is None else (row.code,)
        return tuple(self._marked.values()) or here

    def action_tag(self) -> None:
        """Give a tag, or take off one that all have."""
        codes, opened = self._chosen_codes(), self.mast.opened
        if not codes or opened is None:
            self.hints.say("There is nothing to tag")
            return

        def written(tag: str | None) -> None:
            if tag is not None:
                on = toggle_tag(opened.workspace, opened.taxonomy.id, opened.annotator, codes, tag)
                self._marked = {}
                self.hints.say(f"#{tag} {'on' if on else 'off'} {counted(len(codes), 'place')}")
                self._read(opened)

        self.app.push_screen(
            NoteScreen(
                f"Tag {counted(len(codes), 'place')}",
                "",
                question="A tag for all of them; one that all have is taken off",
                check=checked_tag,
            ),
            written,
        )

    def action_group_by_model(self) -> None:
        """Have a model propose groups, after it was said what that sends and takes."""
        coding, opened = self._coding, self.mast.opened
        if coding is None or opened is None:
            return
        notes = coding.texts_to_group
        if not notes:
            self.hints.say("There is nothing that no tag groups")
            return
        try:
            setup = configured_setup(opened.taxonomy, read_judge_configuration())
            told = what_it_takes(setup, notes)
        except MastError as error:
            self.hints.say(f"{one_line(str(error))}; groups go by words", error=True)
            return
        name = model_name(setup)

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.hints.say(f"{name} is asked …")
                self._propose(opened, setup, notes)
            elif answer == "w":
                _keep_groups(opened, None, {})
                self._read(opened)

        by_words = () if coding.model is None else (("w", "group by words again"),)
        self.app.push_screen(
            Ask(
                f"Ask {name} for groups?",
                told,
                (("y", f"send them and ask {name}"), *by_words, ("n", "send nothing")),
                default="n",
            ),
            answered,
        )

    @work(thread=True, group="propose", exclusive=True)
    def _propose(self, opened: OpenWorkspace, setup: Setup, notes: Sequence[str]) -> None:
        worker, name = get_current_worker(), model_name(setup)
        try:
            asked = run_until_cancelled(
                propose_groups(setup, notes), lambda: worker.is_cancelled, lambda: None
            )
            found = asyncio.run(asked)
            if found is None:
                return
            _keep_groups(opened, setup.parameters.model, found.groups)
        except MastError as error:
            self.call_later(self.say_error, f"{name}: {error}; groups are as they were")
            return
        groups = counted(len(set(found.groups.values())), "group")
        self.call_later(self._grouped_by_model, f"{groups} by {name}; {used_words(found.usage)}")

    def _grouped_by_model(self, words: str) -> None:
        """Show the groups, and what they took."""
        self.hints.say(words)
        if self.mast.opened is not None:
            self._read(self.mast.opened)

    def action_new_mode(self) -> None:
        """Make a mode of what is marked, or of the group under the cursor."""
        row, opened = self.row, self.mast.opened
        codes = tuple(self._marked.values()) or (() if row is None else row.group.codes)
        if not codes or opened is None or row is None:
            self.hints.say("There is nothing to make a mode of")
            return
        try:
            check_lead(opened.workspace, opened.taxonomy, opened.annotator)
        except MastError as error:
            self.say_error(error)
            return
        offered = "" if row.group.name == NO_WORDS else row.group.name.removeprefix("#")

        def named(name: str | None) -> None:
            if name is not None and name.strip():
                self._ask_category(opened, codes, name.strip())

        self.app.push_screen(
            NoteScreen(
                f"A mode of {counted(len(codes), 'place')}",
                offered,
                question="What is it called?",
                offered=True,
            ),
            named,
        )

    def _ask_category(self, opened: OpenWorkspace, codes: Sequence[OpenCode], name: str) -> None:
        choices = [
            FinderChoice(one.id, "", opened.taxonomy.title(one.id))
            for one in opened.taxonomy.categories
        ]

        def chosen(category: str | None) -> None:
            if category is not None:
                self._ask_to_make(opened, codes, name, category)

        self.app.push_screen(
            FinderDialog(
                f"Under which category is {one_line(name, 40)}?", choices, placeholder="name"
            ),
            chosen,
        )

    def _ask_to_make(
        self, opened: OpenWorkspace, codes: Sequence[OpenCode], name: str, category: str
    ) -> None:
        old = opened.taxonomy
        taken = [one.ref for one in opened.workspace.taxonomies()]
        try:
            new = with_mode(old, name, category, used_versions=taken)
        except MastError as error:
            self.say_error(error)
            return
        (mode,) = set(new.modes) - set(old.modes)
        place = opened.workspace.path
        file = (Path() if place is None else place.parent) / f"{new.id}-{new.version}.toml"

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.hints.say("Carrying everything over …")
                self._make(opened, new, mode.slug, codes, file)

        self.app.push_screen(
            Ask(
                f"{mode.code} {mode.name}",
                f"{counted(len(codes), 'place')} become its first labels, under {new.ref}. "
                f"Everything else that anybody has said is carried over as it is; {old.ref} stays. "
                "It can be taken back.",
                (("y", "make it"), ("n", "leave it")),
            ),
            answered,
        )

    @work(thread=True, group="make", exclusive=True)
    def _make(
        self,
        opened: OpenWorkspace,
        new: Taxonomy,
        slug: str,
        codes: Sequence[OpenCode],
        file: Path,
    ) -> None:
        mapping = candidate_map(opened.taxonomy, new, slug, codes)
        try:
            outputs = outputs_beside(opened.workspace, force=False)
            outputs.add(file, taxonomy_toml(new))
            outputs.commit()
            migrate(opened.workspace, mapping, opened.annotator)
        except (MastError, OSError) as error:
            self.call_later(self.say_error, error)
            return
        self.call_later(self._mode_made, new.mode(slug), new, file)

    def _mode_made(self, mode: Mode, new: Taxonomy, file: Path) -> None:
        """Say where the new taxonomy is, and how to go on."""
        self.hints.clear()
        self._marked = {}
        self._show_rows()
        self.app.push_screen(
            Ask(
                f"{mode.code} {mode.name} is in {new.ref}",
                f"Go on with it: quit, and start with --taxonomy {file}\n\n"
                "What is labelled here from now on is under the old version still. "
                "'mast-tui taxonomy migrate --undo' takes it back.",
                (("o", "go on"),),
                default="o",
            )
        )

"""The screen of open codes: notes and open labels of all traces, grouped for possible modes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Final

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from mast_tui.columns import TableColumn
from mast_tui.configuration import read_judge_configuration
from mast_tui.errors import MastError
from mast_tui.exchange.migration.mapping import candidate_map, taxonomy_toml, with_mode
from mast_tui.exchange.migration.migrate import check_lead, migrate
from mast_tui.judges.llm.run.grouping import grouping_notice, propose_groups, used_words
from mast_tui.judges.llm.run.setup import Setup, configured_setup
from mast_tui.safe_text import one_line
from mast_tui.session import record_reveal, viewer_for_name, visible_traces_for_agreement
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
from mast_tui.ui.base_screen import Stopped
from mast_tui.ui.context import TraceLocation
from mast_tui.ui.dialogs.dialog import NoteScreen
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.services.model_judge import model_name, run_until_cancelled
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.services.trace_loader import TraceLoader
from mast_tui.ui.styles import BASE_SCREEN, OPEN_CODES
from mast_tui.ui.table_screen import OpensTraces, TableScreen
from mast_tui.ui.widgets.virtual_lines import name_width, sign_column
from mast_tui.ui.wording import counted, place_text
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.tags import TaggedPlace
from mast_tui.writes import piece_of_work

BARS: Final = "·▁▂▃▄▅▆▇█"
"""The bars for the number of new kinds of failure in a trace, from none to eight or more."""

MOST_BARS: Final = 40
"""The most traces drawn as bars; these are the last ones."""


def no_codes_text(key_of: KeyOf) -> str:
    """Return the text shown without open codes, which explains how to write one."""
    return (
        "There are no open codes yet.\n\n"
        "In a trace, 0 0 labels a failure that no mode describes, and asks for its description; "
        f"{key_of('annotate.note')} writes a note on a span without a "
        "label. A #word in the text is a tag.\n"
        "This screen groups similar texts, and "
        f"{key_of('open_codes.new_mode')} makes a mode of a group.\n\n"
        "The texts of others on a trace appear once you have finished it."
    )


def saturation_line(saturation: Saturation) -> str:
    """Return a line with the number of new kinds of failure in each trace."""
    if not saturation.traces:
        return "New failures per trace are shown once a trace is finished."
    bars = "".join(
        BARS[min(len(trace.new), len(BARS) - 1)] for trace in saturation.traces[-MOST_BARS:]
    )
    return f"New failures per trace {bars}  {saturation.summary}"


def _is_unlimited_lead(opened: OpenWorkspace) -> bool:
    """Check if the user leads the study and labels nothing, and so may see all texts."""
    workspace = opened.workspace
    annotator = opened.annotator
    ref = opened.taxonomy.ref
    if workspace.study_leads().get(ref) != annotator:
        return False
    viewer = viewer_for_name(workspace, ref, annotator, blind=False, ends_blind=False)
    return not viewer.sees_finished_only


def _visible_to(opened: OpenWorkspace) -> frozenset[str] | None:
    """Return the traces on which texts of other annotators are visible; None for all."""
    if _is_unlimited_lead(opened):
        return None
    return visible_traces_for_agreement(opened.workspace, opened.annotator, opened.taxonomy.ref)


def _store_groups(opened: OpenWorkspace, model: str | None, groups: Mapping[str, str]) -> None:
    """Store the groups that a model proposes for the visible texts.

    Without a model, the texts are grouped by their words again.
    """
    ref = opened.taxonomy.ref
    keep_groups(opened.workspace, ref, opened.annotator, _visible_to(opened), model, groups)


@dataclass(frozen=True, slots=True)
class _CodeRow:
    """A row of the table.

    Attributes:
        id: The identity of the row.
        group: The group.
        code: An open code of the group; None for the row of the group itself.
    """

    id: str
    group: CodeGroup
    code: OpenCode | None = None

    @property
    def codes(self) -> tuple[OpenCode, ...]:
        """The open code of the row, or all codes of the group."""
        return self.group.codes if self.code is None else (self.code,)


def _rows_of(coding: OpenCoding) -> Iterator[_CodeRow]:
    for group in coding.groups:
        yield _CodeRow(f"group {group.name}", group)
        for code in group.codes:
            yield _CodeRow(repr(code.identity), group, code)


def _cell_of_row(
    group_text: Callable[[CodeGroup], str], code_text: Callable[[OpenCode], str]
) -> Callable[[_CodeRow], str]:
    """Return a function for the cells of a column, from functions for groups and for codes."""
    return lambda row: group_text(row.group) if row.code is None else code_text(row.code)


class OpenCodesScreen(OpensTraces, TableScreen[_CodeRow]):
    """The open codes that the annotator may see.

    These are the annotator's own codes, and those of others on finished traces. The workspace
    records that codes of others were shown.
    """

    CSS_PATH = [BASE_SCREEN, OPEN_CODES]
    where = Where.OPEN_CODES
    table_id = "codes"
    row_key = attrgetter("id")

    def __init__(self) -> None:
        """Begin without open codes."""
        super().__init__()
        self._coding: OpenCoding | None = None
        self._loader: TraceLoader | None = None
        self._marked_codes: dict[TaggedPlace, OpenCode] = {}
        """The marked open codes, by their identities."""
        self._search_text = ""

    def compose_panes(self) -> ComposeResult:
        """Yield the saturation, and the table."""
        yield Static(id="about", markup=False)
        yield from super().compose_panes()

    def read_rows(self, opened: OpenWorkspace) -> None:
        """Read the open codes in a worker, then show them.

        Record in the workspace that codes of others were shown.
        """
        workspace = opened.workspace
        annotator = opened.annotator
        open_traces = list(self.mast.catalog.traces.values())

        def read_codes() -> tuple[OpenCoding, TraceLoader]:
            coding = open_coding(workspace, opened.taxonomy, annotator, _visible_to(opened))
            # A lead may see all codes anyway, so nothing new is revealed.
            if not _is_unlimited_lead(opened):
                record_reveal(
                    workspace, annotator, opened.taxonomy.ref, sorted(coding.revealed_traces)
                )
            return coding, self._loader or TraceLoader(workspace, open_traces)

        self.work.run("codes", read_codes, self._show_coding, self.show_message_only)

    def _show_coding(self, coding_and_loader: tuple[OpenCoding, TraceLoader]) -> None:
        """Show the open codes and their saturation, or how to write an open code.

        Codes that still exist stay marked. Afterwards, traces are read for the numbers of spans.
        """
        coding, self._loader = coding_and_loader
        self._coding = coding
        self._marked_codes = {
            code.identity: code for code in coding.codes if code.identity in self._marked_codes
        }
        self.show_title()
        if not coding.codes:
            self.show_message_only(no_codes_text(self.mast.key_of))
            return
        summary = saturation_line(coding.saturation)
        if coding.model is not None:
            summary += f"  by {one_line(coding.model, 30)}"
        self.query_one("#about", Static).update(Content(summary))
        self._show_codes()
        places = [(code.trace_id, [code.target]) for code in coding.codes]
        self.read_orders(self._loader, places, self._show_codes)

    def show_title(self) -> None:
        """Show the number of open codes, and the annotator."""
        count = 0 if self._coding is None else len(self._coding.codes)
        title = ("Open codes", counted(count, "place")) if count else ("Open codes",)
        self.title_bar.show(title, self.right_title_parts())

    def _show_codes(self) -> None:
        if self._coding is None or self._loader is None:
            return
        matching_coding = self._coding
        if self._search_text:
            matching_coding = self._coding.matching(self._search_text)
        self.show_rows(self._table_columns(self._loader), list(_rows_of(matching_coding)))

    def _is_marked(self, row: _CodeRow) -> bool:
        return all(code.identity in self._marked_codes for code in row.codes)

    def _sign(self, row: _CodeRow) -> str:
        """Return the sign before a row for a mark, a group, a label or a note."""
        if self._is_marked(row):
            return "v"
        if row.code is None:
            return "▾"
        return "●" if row.code.is_label else "✎"

    def _table_columns(self, loader: TraceLoader) -> tuple[TableColumn[_CodeRow], ...]:
        """Return the columns of the groups and open codes."""
        no_text = f"no text yet; {self.mast.key_of('annotate.note')} in the trace writes one"
        shows_quotes = self.mast.catalog.masks is None
        text = _cell_of_row(
            lambda group: one_line(f"{group.name} · {counted(len(group.codes), 'place')}"),
            lambda code: f"  {one_line(code.tagged_text) or no_text}",
        )
        text_style = _cell_of_row(
            lambda _: "total", lambda code: "figure" if code.text else "quiet"
        )
        trace = _cell_of_row(
            lambda group: counted(group.traces, "trace"),
            lambda code: one_line(loader.name_of(code.trace_id)),
        )
        place = _cell_of_row(
            lambda _: "",
            lambda code: place_text(
                code.target, loader.known_order(code.trace_id), quoted=shows_quotes
            ),
        )
        annotator = _cell_of_row(lambda _: "", lambda code: one_line(code.annotator))
        sign_style = _cell_of_row(
            lambda _: "doubt",
            lambda code: "doubt" if code.identity in self._marked_codes else "quiet",
        )
        return (
            sign_column(self._sign, sign_style),
            TableColumn("", text, text_style, name_width()),
            TableColumn("trace", trace, "quiet", name_width(90)),
            TableColumn("where", place, width=name_width(80)),
            TableColumn("who", annotator, "quiet", name_width(70)),
        )

    def describe_row(self, row: _CodeRow) -> None:
        """Show the text of an open code, or all texts of its group."""
        group = row.group
        if row.code is not None:
            text = row.code.tagged_text or "This label has no text yet."
        else:
            annotators = dict.fromkeys(code.annotator for code in group.codes)
            names = ", ".join(map(one_line, annotators))
            lines = [f"{counted(len(group.codes), 'place')} by {names}", ""]
            text = "\n".join([*lines, *(f"• {code.tagged_text}" for code in group.codes)])
        key_of = self.mast.key_of
        keys = f"{key_of('open_codes.open')} opens  {key_of('open_codes.new_mode')} makes a mode"
        self.describe(group.name, text, keys)

    def action_open(self) -> None:
        """Open the trace of the open code under the cursor at its span."""
        row = self.main_list.row
        if row is None:
            self.hints.say("There is nothing under the cursor")
            return
        code = row.code or row.group.codes[0]
        self.open_at(TraceLocation(code.trace_id, key=code.target.first))

    def action_mark(self) -> None:
        """Mark the open codes of the row under the cursor, or unmark them."""
        row = self.main_list.row
        if row is None:
            self.hints.say("There is nothing to mark")
            return
        if self._is_marked(row):
            for code in row.codes:
                del self._marked_codes[code.identity]
        else:
            self._marked_codes |= {code.identity: code for code in row.codes}
        self._show_codes()
        self.main_list.move_by(1)
        key = self.mast.key_of("open_codes.new_mode")
        marked_count = counted(len(self._marked_codes), "place")
        self.hints.say(f"{marked_count} marked: {key} makes a mode of them")

    def action_group(self, step: int) -> None:
        """Move to the next group, or with a negative ``step`` to the previous one."""
        rows = self.main_list.rows
        cursor = self.main_list.cursor
        candidates = range(cursor + 1, len(rows)) if step > 0 else range(cursor - 1, -1, -1)
        group_row = next((row for row in candidates if rows[row].code is None), None)
        if group_row is not None:
            self.main_list.move_to(group_row)

    def action_search(self) -> None:
        """Ask for a text, and show only the open codes that contain it."""

        def search_for(text: str) -> None:
            """Show the matching open codes, and their number."""
            self._search_text = text.strip()
            self._show_codes()
            # The row of a group has no code, and is not counted.
            count = counted(sum(row.code is not None for row in self.main_list.rows), "place")
            key = self.mast.key_of("open_codes.search")
            if self._search_text:
                needle = one_line(self._search_text)
                self.hints.say(f"{count} with “{needle}”: {key} and an empty line show all")
            else:
                self.hints.say(f"All shown: {count}")

        dialog = NoteScreen(
            "Search notes and open codes", self._search_text, question="Words, or a #tag"
        )
        self.mast.ask(dialog, search_for)

    def _chosen_codes(self) -> tuple[OpenCode, ...]:
        """Return the marked open codes, or else those of the row under the cursor."""
        if self._marked_codes:
            return tuple(self._marked_codes.values())
        return () if self.main_list.row is None else self.main_list.row.codes

    def action_tag(self) -> None:
        """Ask for a tag, and add it to the chosen open codes.

        If all of them have the tag, remove it.
        """
        codes = self._chosen_codes()
        opened = self.mast.opened
        if not codes or opened is None:
            self.hints.say("There is nothing to tag")
            return

        place_count_text = counted(len(codes), "place")

        async def toggle_entered_tag(tag: str, ask_again: Callable[[], None]) -> None:
            """Add or remove the tag, and read the open codes again.

            Args:
                tag: The tag.
                ask_again: Asks again, with the same text, if the tag cannot be written.
            """
            is_added = await self.run_or_show_error(
                lambda: toggle_tag(
                    opened.workspace, opened.taxonomy.id, opened.annotator, codes, tag
                )
            )
            if is_added is None:
                ask_again()
                return
            self._marked_codes = {}
            self.hints.say(
                f"#{tag} {'added to' if is_added else 'removed from'} {place_count_text}"
            )
            self.read_rows(opened)

        self.mast.ask_to_write(
            partial(
                NoteScreen,
                f"Tag {place_count_text}",
                question="The tag to add to all of them, or to remove if all have it",
                check=checked_tag,
            ),
            lambda tag, ask_again: self.writes.do(partial(toggle_entered_tag, tag, ask_again)),
        )

    def action_group_by_model(self) -> None:
        """Ask a model for groups, after showing what is sent and what it costs."""
        coding = self._coding
        opened = self.mast.opened
        if coding is None or opened is None:
            return
        texts = coding.texts_to_group
        if not texts:
            self.hints.say("All open codes are grouped by tags")
            return
        try:
            setup = configured_setup(opened.taxonomy, read_judge_configuration())
            cost_text = grouping_notice(setup, texts)
        except MastError as error:
            self.hints.say(f"{one_line(str(error))}; the groups are unchanged", error=True)
            return
        name = model_name(setup)
        answers = [("y", f"send them and ask {name}"), ("n", "send nothing")]
        if coding.model is not None:
            answers.insert(1, ("w", "group by words again"))
        self.mast.ask_key(
            f"Ask {name} for groups?",
            cost_text,
            tuple(answers),
            {
                "y": partial(self._ask_model, opened, setup, texts),
                "w": partial(self._group_by_words, opened),
            },
            default="n",
        )

    @piece_of_work
    async def _group_by_words(self, opened: OpenWorkspace) -> None:
        await self.run_or_show_error(lambda: _store_groups(opened, model=None, groups={}))
        self.read_rows(opened)

    def _ask_model(self, opened: OpenWorkspace, setup: Setup, texts: Sequence[str]) -> None:
        """Ask a model for groups in a worker, then store and show them, or show an error."""
        name = model_name(setup)
        self.hints.say(f"{name} is asked …")

        def store_proposal(stopped: Stopped) -> Iterator[str]:
            """Store the groups, and yield a message with their cost."""
            work = propose_groups(setup, texts)
            proposal = asyncio.run(run_until_cancelled(work, stopped, on_check=lambda: None))
            if proposal is not None:
                _store_groups(opened, setup.parameters.model, proposal.groups)
                group_count = counted(len(set(proposal.groups.values())), "group")
                yield f"{group_count} by {name}; {used_words(proposal.usage)}"

        self.work.run_stages(
            "propose",
            store_proposal,
            self._show_model_groups,
            failed=lambda problem: self.say_error(f"{name}: {problem}; the groups are unchanged"),
        )

    def _show_model_groups(self, message: str) -> None:
        self.hints.say(message)
        if self.mast.opened is not None:
            self.read_rows(self.mast.opened)

    def action_new_mode(self) -> None:
        """Ask for the name of a new mode for the marked open codes, or for those of the group.

        Only the lead of the study may make a mode; others see an error.
        """
        row = self.main_list.row
        opened = self.mast.opened
        codes = tuple(self._marked_codes.values()) or (() if row is None else row.group.codes)
        if not codes or opened is None or row is None:
            self.hints.say("There is nothing to make a mode of")
            return
        try:
            check_lead(opened.workspace, opened.taxonomy, opened.annotator)
        except MastError as error:
            self.say_error(error)
            return
        suggested_name = "" if row.group.name == NO_WORDS else row.group.name.removeprefix("#")
        self.mast.ask_to_write(
            partial(
                NoteScreen,
                f"A mode of {counted(len(codes), 'place')}",
                suggested_name,
                question="What is it called?",
                typing_replaces=True,
            ),
            partial(self._ask_category, opened, codes),
        )

    def _ask_category(
        self,
        opened: OpenWorkspace,
        codes: Sequence[OpenCode],
        name: str,
        ask_again: Callable[[], None],
    ) -> None:
        """Ask for the category of the new mode; ``ask_again`` asks for another name."""
        name = name.strip()
        if not name:
            return
        choices = [
            FinderChoice(category.id, code="", name=opened.taxonomy.title(category.id))
            for category in opened.taxonomy.categories
        ]
        dialog = FinderDialog(
            f"Under which category is {one_line(name, 40)}?", choices, placeholder="name"
        )
        make_mode = partial(self._ask_to_make_mode, opened, codes, name, ask_again)
        self.mast.ask(dialog, make_mode)

    def _ask_to_make_mode(
        self,
        opened: OpenWorkspace,
        codes: Sequence[OpenCode],
        name: str,
        ask_again: Callable[[], None],
        category: str,
    ) -> None:
        """Ask whether to make the mode in a new version of the taxonomy, and make it.

        Show an error, and call ``ask_again``, if the mode cannot be made.
        """

        def refuse(problem: MastError | str) -> None:
            self.say_error(problem)
            ask_again()

        taxonomy = opened.taxonomy
        used_versions = [used_taxonomy.ref for used_taxonomy in opened.workspace.taxonomies()]
        try:
            new_taxonomy = with_mode(taxonomy, name, category, used_versions=used_versions)
        except MastError as error:
            refuse(error)
            return
        (mode,) = set(new_taxonomy.modes) - set(taxonomy.modes)
        workspace_path = opened.workspace.path
        folder = Path() if workspace_path is None else workspace_path.parent
        file = folder / f"{new_taxonomy.id}-{new_taxonomy.version}.toml"

        def make_mode() -> None:
            self.hints.say("Carrying all labels over …")
            self.work.run(
                "make",
                partial(_make_mode, opened, new_taxonomy, mode.slug, codes, file),
                lambda made_mode: self._show_new_mode(made_mode, new_taxonomy, file),
                failed=refuse,
            )

        self.mast.ask_key(
            f"{mode.code} {mode.name}",
            f"{counted(len(codes), 'place')} become its first labels, under {new_taxonomy.ref}. "
            f"All other labels are carried over unchanged; {taxonomy.ref} stays. "
            "This can be undone.",
            (("y", "make it"), ("n", "leave it")),
            {"y": make_mode},
            default=None,
        )

    def _show_new_mode(self, mode: Mode, new_taxonomy: Taxonomy, file: Path) -> None:
        """Show the file of the new taxonomy, and how to continue."""
        self.hints.clear()
        self._marked_codes = {}
        self._show_codes()
        self.mast.ask_key(
            f"{mode.code} {mode.name} is in {new_taxonomy.ref}",
            f"To use it, quit, and start with --taxonomy {file}\n\n"
            "New labels in this window still use the old version. "
            "'mast-tui taxonomy migrate --undo' undoes it.",
            (("o", "continue"),),
            {},
            default="o",
        )


def _make_mode(
    opened: OpenWorkspace,
    new_taxonomy: Taxonomy,
    slug: str,
    codes: Sequence[OpenCode],
    file: Path,
) -> Mode:
    """Write the new taxonomy to a file, carry all labels over to it, and return the new mode."""
    mapping = candidate_map(opened.taxonomy, new_taxonomy, slug, codes)
    outputs = outputs_beside(opened.workspace, force=False)
    outputs.add(file, taxonomy_toml(new_taxonomy))
    outputs.commit()
    migrate(opened.workspace, mapping, opened.annotator)
    return new_taxonomy.mode(slug)

"""The screen of open codes: notes and open labels of all traces in groups that can become modes."""

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
"""The bars for the number of new kinds in a trace, from none to eight or more."""

MOST_BARS: Final = 40
"""The number of traces, the last ones, that are drawn as bars."""

MOST_READ: Final = 40
"""The most traces that are read for the numbers of their spans."""

LAST: Final = 10


def no_codes_text(key_of: KeyOf) -> str:
    """Return that there are no open codes yet, and how to write one."""
    return (
        "There are no open codes yet.\n\n"
        "In a trace 0 0 labels a failure that no mode describes, and asks for its description; "
        f"{key_of('annotate.note')} writes a note on a span. A #word in the text is a tag.\n"
        "This screen groups similar texts, and "
        f"{key_of('open_codes.new_mode')} makes a mode of a group.\n\n"
        "Texts of others appear once you have finished the trace."
    )


def saturation_line(saturation: Saturation) -> str:
    """Return the saturation of the kinds of failure in one line."""
    if not saturation.traces:
        return "Saturation is shown once a trace is finished."
    bars = "".join(
        BARS[min(len(trace.new), len(BARS) - 1)] for trace in saturation.traces[-MOST_BARS:]
    )
    last_count = min(LAST, len(saturation.traces))
    quiet = saturation.since_last_new
    quiet_text = f", the last {quiet} none" if quiet else ""
    return (
        f"New kinds per trace {bars}  {saturation.kinds} in "
        f"{counted(len(saturation.traces), 'trace')}; "
        f"the last {last_count} brought {saturation.new_in_last(last_count)}{quiet_text}"
    )


def _leads(opened: OpenWorkspace) -> bool:
    """Return whether the user leads the study and labels nothing in it; then all is visible."""
    workspace = opened.workspace
    annotator = opened.annotator
    ref = opened.taxonomy.ref
    if workspace.study_leads().get(ref) != annotator:
        return False
    return not viewer_for_name(workspace, ref, annotator, blind=False, assisted=False).limited


def _visible_to(opened: OpenWorkspace) -> frozenset[str] | None:
    """Return the traces on which the user may see texts of others; None for all."""
    if _leads(opened):
        return None
    return visible_traces_for_agreement(opened.workspace, opened.annotator, opened.taxonomy.ref)


def _keep_groups(opened: OpenWorkspace, model: str | None, groups: Mapping[str, str]) -> None:
    """Store the groups that a model proposes for the visible texts; None and no groups to group by
    words.
    """
    ref = opened.taxonomy.ref
    keep_groups(opened.workspace, ref, opened.annotator, _visible_to(opened), model, groups)


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
    """The open codes that the annotator may see: their own, and those of others on finished traces.

    The workspace records that those of others were shown.
    """

    CSS_PATH = [BASE_SCREEN, OPEN_CODES]
    where = Where.OPEN_CODES
    table_id = "codes"
    row_key = attrgetter("id")

    def __init__(self) -> None:
        super().__init__()
        self._coding: OpenCoding | None = None
        self._loader: TraceLoader | None = None
        self._marked: dict[TaggedPlace, OpenCode] = {}
        self._search = ""

    def compose_panes(self) -> ComposeResult:
        """Yield the saturation, and the table."""
        yield Static(id="about", markup=False)
        yield from super().compose_panes()

    @property
    def row(self) -> _CodeRow | None:
        """The row under the cursor."""
        return self.main_list.row

    def on_mount(self) -> None:
        """Read the open codes as soon as the workspace is open."""
        super().on_mount()
        self.mast.workspace.when_ready(self._read)

    def on_screen_resume(self) -> None:
        """Read the open codes again: some may have been written in the trace just left."""
        if self._coding is not None and self.mast.opened is not None:
            self._read(self.mast.opened)

    @work(thread=True, group="codes", exclusive=True)
    def _read(self, opened: OpenWorkspace) -> None:
        """Read the open codes in a worker, then the traces that their spans need."""
        worker = get_current_worker()
        workspace = opened.workspace
        annotator = opened.annotator
        open_traces = list(self.mast.catalog.traces.values())
        try:
            coding = open_coding(workspace, opened.taxonomy, annotator, _visible_to(opened))
            if not _leads(opened):
                record_reveal(
                    workspace, annotator, opened.taxonomy.ref, sorted(coding.revealed_traces)
                )
            loader = self._loader or TraceLoader(workspace, open_traces)
            if worker.is_cancelled:
                # A newer worker reads the open codes, and may have finished already.
                return
            self.call_later(self._show_coding, coding, loader)
            ids = (
                code.trace_id
                for code in coding.codes
                if loader.lacks_order(code.trace_id, [code.target])
            )
            has_new_orders = loader.read_more(ids, MOST_READ, lambda: worker.is_cancelled)
        except (MastError, OSError) as error:
            self.call_later(self.show_words, one_line(str(error)))
            return
        if has_new_orders:
            self.call_later(self._show_rows)  # now with the numbers of the spans

    def _show_coding(self, coding: OpenCoding, loader: TraceLoader) -> None:
        """Show the open codes and their saturation, or how to write one."""
        self._coding = coding
        self._loader = loader
        by_identity = {code.identity: code for code in coding.codes}
        self._marked = {
            identity: by_identity[identity] for identity in self._marked if identity in by_identity
        }
        self.show_title()
        if not coding.codes:
            self.show_words(no_codes_text(self.mast.key_of))
            return
        self.remove_class("-empty")
        model = "" if coding.model is None else f"  by {one_line(coding.model, 30)}"
        line = saturation_line(coding.saturation)
        self.query_one("#about", Static).update(Content(f"{line}{model}"))
        self._show_rows()
        self.main_list.focus()

    def show_title(self) -> None:
        """Show the number of open codes, and the annotator."""
        count = 0 if self._coding is None else len(self._coding.codes)
        title = ("Open codes", counted(count, "place")) if count else ("Open codes",)
        self.title_bar.show(title, self.who())

    def _show_rows(self) -> None:
        """Show the open codes that match the search."""
        if self._coding is None or self._loader is None:
            return
        visible = self._coding.matching(self._search) if self._search else self._coding
        self.main_list.columns = self._columns(self._loader)
        self.main_list.show(list(_rows(visible)))
        self.show_detail()

    def _columns(self, loader: TraceLoader) -> tuple[TableColumn[_CodeRow], ...]:
        """Return the columns of the groups and open codes."""
        key = self.mast.key_of("annotate.note")
        no_words = f"no text yet: {key} there writes one"

        def is_marked(row: _CodeRow) -> bool:
            codes = row.group.codes if row.code is None else (row.code,)
            return all(code.identity in self._marked for code in codes)

        def sign(row: _CodeRow) -> str:
            if is_marked(row):
                return "v"
            if row.code is None:
                return "▾"
            return "●" if row.code.is_label else "✎"

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
                    lambda code: one_line(loader.name_of(code.trace_id)),
                ),
                "quiet",
                name_width(90),
            ),
            TableColumn(
                "where",
                _either(
                    lambda _: "",
                    lambda code: place_words(code.target, loader.known_order(code.trace_id)),
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
        """Show the text under the cursor, or all texts of its group."""
        row = self.row
        if row is None:
            self.detail.show_text("")
            self.detail.border_title = ""
            return
        group = row.group
        code = row.code
        self.detail.border_title = plain_title(group.name)
        key_of = self.mast.key_of
        self.detail.border_subtitle = plain_title(
            f"{key_of('open_codes.open')} opens  {key_of('open_codes.new_mode')} makes a mode"
        )
        if code is not None:
            self.detail.show_text(code.tagged_text or "This label has no text yet.")
            return
        annotators = dict.fromkeys(code.annotator for code in group.codes)
        lines = [
            f"{counted(len(group.codes), 'place')} by {', '.join(map(one_line, annotators))}",
            "",
        ]
        self.detail.show_text(
            "\n".join([*lines, *(f"• {code.tagged_text}" for code in group.codes)])
        )

    # Keys

    def action_open(self) -> None:
        """Open the trace of the open code under the cursor at its span."""
        row = self.row
        if row is None:
            self.hints.say("There is nothing under the cursor")
            return
        code = row.code or row.group.codes[0]
        self.open_at(TraceLocation(code.trace_id, key=code.target.first))

    def action_mark(self) -> None:
        """Mark the open code or the group under the cursor, or remove the mark."""
        row = self.row
        if row is None:
            self.hints.say("There is nothing to mark")
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
        """Move to the next or previous group."""
        rows = self.main_list.rows
        cursor = self.main_list.cursor
        candidates = range(cursor + 1, len(rows)) if step > 0 else range(cursor - 1, -1, -1)
        heading = next((index for index in candidates if rows[index].code is None), None)
        if heading is not None:
            self.main_list.move_to(heading)

    def action_search(self) -> None:
        """Ask for a text, and show only the open codes that have it."""

        def search_for(text: str | None) -> None:
            if text is None:
                return
            self._search = text.strip()
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
            search_for,
        )

    def _chosen_codes(self) -> tuple[OpenCode, ...]:
        """Return the marked open codes, or else those under the cursor."""
        row = self.row
        if self._marked:
            return tuple(self._marked.values())
        if row is None:
            return ()
        return row.group.codes if row.code is None else (row.code,)

    def action_tag(self) -> None:
        """Ask for a tag to add, or to remove if all chosen open codes have it."""
        codes = self._chosen_codes()
        opened = self.mast.opened
        if not codes or opened is None:
            self.hints.say("There is nothing to tag")
            return

        def tag_entered(tag: str | None) -> None:
            if tag is not None:
                is_added = toggle_tag(
                    opened.workspace, opened.taxonomy.id, opened.annotator, codes, tag
                )
                self._marked = {}
                self.hints.say(
                    f"#{tag} {'on' if is_added else 'off'} {counted(len(codes), 'place')}"
                )
                self._read(opened)

        self.app.push_screen(
            NoteScreen(
                f"Tag {counted(len(codes), 'place')}",
                "",
                question="A tag for all of them; a tag that all have is removed",
                check=checked_tag,
            ),
            tag_entered,
        )

    def action_group_by_model(self) -> None:
        """Ask a model for groups, after showing what is sent and its cost."""
        coding = self._coding
        opened = self.mast.opened
        if coding is None or opened is None:
            return
        notes = coding.texts_to_group
        if not notes:
            self.hints.say("All open codes are grouped by tags")
            return
        try:
            setup = configured_setup(opened.taxonomy, read_judge_configuration())
            question = what_it_takes(setup, notes)
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
                question,
                (("y", f"send them and ask {name}"), *by_words, ("n", "send nothing")),
                default="n",
            ),
            answered,
        )

    @work(thread=True, group="propose", exclusive=True)
    def _propose(self, opened: OpenWorkspace, setup: Setup, notes: Sequence[str]) -> None:
        """Ask the model for groups in a worker, and store them."""
        worker = get_current_worker()
        name = model_name(setup)
        try:
            proposal = run_until_cancelled(
                propose_groups(setup, notes), lambda: worker.is_cancelled, lambda: None
            )
            proposed = asyncio.run(proposal)
            if proposed is None:
                return
            _keep_groups(opened, setup.parameters.model, proposed.groups)
        except MastError as error:
            self.call_later(self.say_error, f"{name}: {error}; the groups are unchanged")
            return
        groups = counted(len(set(proposed.groups.values())), "group")
        self.call_later(self._grouped_by_model, f"{groups} by {name}; {used_words(proposed.usage)}")

    def _grouped_by_model(self, message: str) -> None:
        """Show the new groups, and the cost."""
        self.hints.say(message)
        if self.mast.opened is not None:
            self._read(self.mast.opened)

    def action_new_mode(self) -> None:
        """Ask for the name of a mode made of the marked open codes, or of the group."""
        row = self.row
        opened = self.mast.opened
        codes = tuple(self._marked.values()) or (() if row is None else row.group.codes)
        if not codes or opened is None or row is None:
            self.hints.say("There is nothing to make a mode of")
            return
        try:
            check_lead(opened.workspace, opened.taxonomy, opened.annotator)
        except MastError as error:
            self.say_error(error)
            return
        suggested_name = "" if row.group.name == NO_WORDS else row.group.name.removeprefix("#")

        def name_entered(name: str | None) -> None:
            if name is not None and name.strip():
                self._ask_category(opened, codes, name.strip())

        self.app.push_screen(
            NoteScreen(
                f"A mode of {counted(len(codes), 'place')}",
                suggested_name,
                question="What is it called?",
                offered=True,
            ),
            name_entered,
        )

    def _ask_category(self, opened: OpenWorkspace, codes: Sequence[OpenCode], name: str) -> None:
        """Ask for the category of a new mode."""
        choices = [
            FinderChoice(category.id, "", opened.taxonomy.title(category.id))
            for category in opened.taxonomy.categories
        ]

        def category_chosen(category_id: str | None) -> None:
            if category_id is not None:
                self._ask_to_make(opened, codes, name, category_id)

        self.app.push_screen(
            FinderDialog(
                f"Under which category is {one_line(name, 40)}?", choices, placeholder="name"
            ),
            category_chosen,
        )

    def _ask_to_make(
        self, opened: OpenWorkspace, codes: Sequence[OpenCode], name: str, category: str
    ) -> None:
        """Ask whether to make the mode in a new version of the taxonomy."""
        old = opened.taxonomy
        used_versions = [taxonomy.ref for taxonomy in opened.workspace.taxonomies()]
        try:
            new = with_mode(old, name, category, used_versions=used_versions)
        except MastError as error:
            self.say_error(error)
            return
        (mode,) = set(new.modes) - set(old.modes)
        workspace_path = opened.workspace.path
        file = (
            Path() if workspace_path is None else workspace_path.parent
        ) / f"{new.id}-{new.version}.toml"

        def answered(answer: str | None) -> None:
            if answer == "y":
                self.hints.say("Carrying everything over …")
                self._make(opened, new, mode.slug, codes, file)

        self.app.push_screen(
            Ask(
                f"{mode.code} {mode.name}",
                f"{counted(len(codes), 'place')} become its first labels, under {new.ref}. "
                f"All other labels are carried over unchanged; {old.ref} stays. "
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
        """Write the new taxonomy and carry all labels over, in a worker."""
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
        """Show where the new taxonomy is, and how to continue."""
        self.hints.clear()
        self._marked = {}
        self._show_rows()
        self.app.push_screen(
            Ask(
                f"{mode.code} {mode.name} is in {new.ref}",
                f"To use it, quit, and start with --taxonomy {file}\n\n"
                "New labels in this window still use the old version. "
                "'mast-tui taxonomy migrate --undo' takes it back.",
                (("o", "continue"),),
                default="o",
            )
        )

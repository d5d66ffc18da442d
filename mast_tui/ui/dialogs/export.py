"""Writing labels to files from the app: which format, whose labels, where to, and what came of it.

What is written, what must not be written over and whose sight it keeps to is the same as of
``mast-tui export``: both ask ``exchange/exporters/files.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from textual import work
from textual.worker import get_current_worker

from mast_tui.errors import MastError
from mast_tui.exchange.errors import UnorderedSpans
from mast_tui.exchange.exporters.files import (
    add_workspace,
    check_output,
    left_out_lines,
    written_lines,
)
from mast_tui.exchange.formats import ExportRequest, Format, FormatContent
from mast_tui.exchange.page.content import RunPages, file_name_of
from mast_tui.exchange.page.html import render_page
from mast_tui.exchange.page.markdown import render_page_markdown
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.exchange.selection import ALL, GOLD
from mast_tui.labels import checked_person
from mast_tui.output_files import InTheWay, Outputs, is_stream
from mast_tui.reports.render import rendered
from mast_tui.safe_text import one_line
from mast_tui.session import Viewer, hidden_words, viewer_named
from mast_tui.traces.model import Trace
from mast_tui.ui.context import ReportToWrite, RunToWrite, context_of
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.dialogs.form import Field, Form, Texts
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.wording import counted
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of

REPORTS: Final[Mapping[str, tuple[str, str]]] = {
    "html": ("the report on this screen as one page", "html"),
    "markdown": ("the report on this screen as Markdown", "md"),
    "csv": ("every figure of the report on this screen", "csv"),
    "latex": ("the tables of the report on this screen, for LaTeX", "tex"),
}
"""The formats of a report: a description of each, and the suffix of its file."""

RUN_PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "page": ("this run with its labels, to read offline, to print and to import again", "html"),
    "markdown": ("this run with its labels as Markdown", "md"),
}
"""The formats of a run: a description of each, and the suffix of its file."""


def _formats_of(report: ReportToWrite | RunToWrite | None) -> Mapping[str, tuple[str, str]]:
    """Return the formats of what the screen shows."""
    if report is None:
        return {}
    return RUN_PAGES if isinstance(report, RunToWrite) else REPORTS


class ExportFormats(FinderDialog):
    """Gives back the format in which to export, or None."""

    def __init__(self, report: ReportToWrite | RunToWrite | None = None) -> None:
        """List them.

        Args:
            report: The report or run on the screen, whose formats come first.
        """
        own_formats = _formats_of(report).items()
        choices = [FinderChoice(name, name, title) for name, (title, _) in own_formats]
        choices += [FinderChoice(row.name, row.name, row.title) for row in EXPORT_FORMATS.values()]
        super().__init__("Export as", choices, placeholder="a format, or what it holds")


_NAMES_AS_THEY_ARE: Final = "as they are"
_PSEUDONYMS: Final = Field(
    "pseudonyms",
    "names",
    "People's names as they are, or letters, the same in every export of this workspace.",
    (_NAMES_AS_THEY_ARE, "letters"),
)


def fields_of(file_format: Format, names: Sequence[str]) -> tuple[Field, ...]:
    """Return the fields of an export that its format heeds.

    Args:
        file_format: The format.
        names: The annotators of the workspace, judges among them.
    """
    all_fields = (
        _file_field("folder" if file_format.is_folder else "file"),
        Field(
            "gold",
            "gold",
            "All of it, or only what two agreed on or somebody decided.",
            ("all", "settled"),
        ),
        Field("annotators", "annotators", "The sides of the gold, with commas. Empty: all."),
        Field(
            "labels",
            "whose labels",
            "The gold, what everybody has said, or what one has. What others say is left out of "
            "traces that you have not finished.",
            (GOLD, ALL, *names),
        ),
        Field(
            "majority",
            "majority",
            "Whether more than half settle a verdict of the gold that nobody has decided.",
            ("no", "yes"),
        ),
        Field(
            "which",
            "pass",
            "Which reading counts, where somebody has labelled a trace again.",
            ("first", "last"),
        ),
        Field(
            "datasheet",
            "datasheet",
            "Who labelled, licence, contact and such (TOML). Empty: datasheet.toml beside the "
            "workspace, where there is one.",
            path=True,
        ),
        _PSEUDONYMS,
    )
    by_name = {field.name: field for field in all_fields}
    return tuple(by_name[name] for name in _FIELDS[file_format.content].split())


_LABEL_FIELDS: Final = "file labels which majority pseudonyms"
_FIELDS: Final[Mapping[FormatContent, str]] = {
    FormatContent.WORKSPACE: "file",
    FormatContent.CODEBOOK: "file pseudonyms",
    FormatContent.GOLD: "file gold annotators majority which datasheet pseudonyms",
    FormatContent.LABELS: _LABEL_FIELDS,
    FormatContent.VERDICTS: _LABEL_FIELDS,
}
"""The names of the fields by the content of the format."""


def _file_field(title: str) -> Field:
    return Field(
        "file",
        title,
        f"Where it is written, from {one_line(str(Path.cwd()), 120)}. → takes what is suggested.",
        path=True,
    )


def default_texts(file_format: Format) -> dict[str, str]:
    """Return the initial texts of the fields, which are the defaults of the command."""
    return {
        "file": file_format.file_name,
        "labels": GOLD,
        "gold": "all",
        "annotators": "",
        "majority": "no",
        "which": file_format.usual_pass,
        "datasheet": "",
        "pseudonyms": _NAMES_AS_THEY_ARE,
    }


def request_of(opened: OpenWorkspace, file_format: Format, texts: Texts) -> ExportRequest:
    """Return the export that the fields describe.

    Args:
        opened: The workspace, and the annotator who works in it.
        file_format: The format.
        texts: The texts of the fields that it has.

    Raises:
        MastError: The text of a field is not valid; the message names the field.
    """
    values = {**default_texts(file_format), **texts}
    workspace = opened.workspace
    datasheet = values["datasheet"].strip()
    return ExportRequest(
        workspace,
        opened.taxonomy,
        _viewer(opened),
        file_format,
        _place(values["file"], "folder" if file_format.is_folder else "file"),
        labels=values["labels"],
        which="first" if values["which"] == "first" else "last",
        annotators=_names(values["annotators"]),
        majority=values["majority"] == "yes",
        gold="settled" if values["gold"] == "settled" else None,
        datasheet=Path(datasheet).expanduser() if datasheet else None,
        pseudonyms=pseudonyms_of(workspace) if values["pseudonyms"] == "letters" else None,
    )


def _place(text: str, title: str) -> Path:
    if not text.strip():
        raise MastError(f"{title}: say where to write it")
    return Path(text.strip()).expanduser().absolute()


def _names(text: str) -> list[str] | None:
    try:
        return [checked_person(name) for name in text.split(",") if name.strip()] or None
    except MastError as error:
        raise MastError(f"annotators: {error}") from error


def done_words(
    request: ExportRequest, counts: Mapping[str, Any], said: Sequence[str], adjudicate_key: str
) -> str:
    """Return what was written, what the gold leaves open, and what is left out and why.

    Args:
        request: The export.
        counts: How much of what is in it.
        said: What was reported on the way.
        adjudicate_key: The key that opens the adjudication.
    """
    told = []
    if counts.get("traces") == 0:
        told.append(
            "No trace is in it: an export holds labelled traces, an export of gold finished ones."
        )
    unresolved = counts.get("unresolved", 0)
    if unresolved:
        conflicts = counted(unresolved, "conflict")
        told.append(f"{conflicts} left to decide: {adjudicate_key} opens them.")
    told += [*left_out_lines(counts, request.format.name), *said]
    lines = ["Written:", *written_lines(str(request.output), counts)]
    for words in told:
        lines += ["", words]
    return "\n".join(one_line(line, 2000) for line in lines)


class _Stopped(Exception):
    """Nobody waits for the export any more."""


At = Callable[[str], None]
"""Is told what is at work; it raises an error to stop."""


@dataclass(frozen=True, slots=True)
class Order:
    """Something that is to be written to ``output``, the file or folder that was named.

    ``check`` refuses a place where it cannot or must not be written. ``add`` adds its files, and
    says what is in them; it is slow, for workers. ``although_unordered``
    makes the same order with gold allowed where the order of labelled spans is unknown.
    """

    output: Path
    check: Callable[[Outputs], None]
    add: Callable[[Outputs, At], str]
    although_unordered: Callable[[], Order] | None = None


def labels_order(request: ExportRequest, adjudicate_key: str) -> Order:
    """Return the order of an export of labels.

    Args:
        request: The export.
        adjudicate_key: The key that opens the adjudication.
    """

    def check(outputs: Outputs) -> None:
        check_output(outputs, request.format, request.output)

    def add(outputs: Outputs, at: At) -> str:
        remarks = list[str]()
        if request.format.writes is None:
            at("Reading the workspace")
            counts = add_workspace(request.workspace, outputs, request.output, remarks.append)
        else:
            reporting = replace(request, say=remarks.append, stage=at)
            counts = request.format.writes(reporting, outputs)
        return done_words(request, counts, remarks, adjudicate_key)

    def although_unordered() -> Order:
        return labels_order(replace(request, allow_unordered=True), adjudicate_key)

    return Order(request.output, check, add, although_unordered)


def report_order(
    opened: OpenWorkspace, report: ReportToWrite, language: str, output: Path
) -> Order:
    """Make the order of a report.

    Args:
        opened: The workspace that it is about.
        report: The report.
        language: One of ``REPORTS``.
        output: The file.
    """

    def add(outputs: Outputs, at: At) -> str:
        def stopped() -> bool:
            at("Counting the figures")
            return False

        stopped()
        made = report.make(opened, stopped)
        at("Putting them into words")
        outputs.add(output, rendered(made, language))
        lines = ["Written:", str(output), "", made.about]
        return "\n".join(one_line(line, 2000) for line in lines)

    return Order(output, lambda outputs: outputs.check(output), add)


def page_order(opened: OpenWorkspace, trace: Trace, file_format: str, texts: Texts) -> Order:
    """Return the order of the page of a run.

    Args:
        opened: The workspace, and the annotator who works in it.
        trace: The run.
        file_format: One of ``RUN_PAGES``.
        texts: The texts of the fields.
    """
    output = _place(texts["file"], "file")

    def add(outputs: Outputs, at: At) -> str:
        if not trace.loaded.complete:
            raise MastError("the trace is still being read; wait until all of it is there")
        at("Reading the labels")
        letters = pseudonyms_of(opened.workspace) if texts["pseudonyms"] == "letters" else None
        pages = RunPages(opened.taxonomy, _viewer(opened), pseudonyms=letters)
        page = pages.page_of(trace)
        at("Writing the run")
        is_page = file_format == "page"
        outputs.add(output, render_page(page) if is_page else render_page_markdown(page))
        lines = ["Written:", f"{output}: {counted(len(page.labels), 'label')}"]
        if pages.hidden:
            lines += ["", hidden_words(opened.annotator, len(pages.hidden))]
        return "\n".join(one_line(line, 2000) for line in lines)

    return Order(output, lambda outputs: outputs.check(output), add)


def _viewer(opened: OpenWorkspace) -> Viewer:
    """Return the annotator who works here, and what they may see."""
    return viewer_named(
        opened.workspace,
        opened.taxonomy.ref,
        opened.annotator,
        blind=opened.blind,
        assisted=not opened.blind,
    )


class ExportForm(Form):
    """Where an export goes and what it holds; it is written beside the screen, and told of."""

    def __init__(
        self,
        opened: OpenWorkspace,
        file_format: str,
        report: ReportToWrite | RunToWrite | None = None,
    ) -> None:
        """Ask for what an export in this format needs.

        Args:
            opened: The workspace, and the annotator who works in it.
            file_format: A format of labels, or of the report or run.
            report: The report or run on the screen.
        """
        self._opened = opened
        self._format = file_format
        own_formats = _formats_of(report)
        self._report = report if file_format in own_formats else None
        fields: tuple[Field, ...] = (_file_field("file"),)
        match self._report:
            case ReportToWrite(name=name):
                at_first = {"file": f"{name}.{own_formats[file_format][1]}"}
                title = f"Write the report: {file_format}"
            case RunToWrite(trace=trace):
                fields += (_PSEUDONYMS,)
                name = file_name_of(trace.identity.trace_id, own_formats[file_format][1])
                at_first = {"file": name, "pseudonyms": _NAMES_AS_THEY_ARE}
                title = f"Write the run: {file_format}"
            case None:
                names = [info.name for info in opened.workspace.annotators()]
                row = EXPORT_FORMATS[file_format]
                fields = fields_of(row, names)
                at_first = default_texts(row)
                title = f"Export as {file_format}"
        super().__init__(title, fields, {field.name: at_first[field.name] for field in fields})
        self._turn = 0

    def _order(self, texts: Texts) -> Order:
        if isinstance(self._report, RunToWrite):
            return page_order(self._opened, self._report.trace, self._format, texts)
        if self._report is None:
            request = request_of(self._opened, EXPORT_FORMATS[self._format], texts)
            return labels_order(request, context_of(self).key_of("everywhere.adjudicate"))
        place = _place(texts["file"], "file")
        return report_order(self._opened, self._report, self._format, place)

    async def take(self, texts: Texts) -> None:
        """Write it, unless something lies there that is asked about first."""
        order = self._order(texts)
        try:
            order.check(outputs_beside(self._opened.workspace, force=False))
        except InTheWay as found:
            self._ask_to_replace(order, found)
            return
        except OSError as error:
            self.refuse(_said_by(error))
            return
        if order.output.exists() and not is_stream(order.output):
            self.show_words(
                f"{one_line(str(order.output))} is there already. What is written takes its place, "
                "once all of it is there.",
                "Enter replaces it · Esc back to the fields",
                then=partial(self._begin, order),
            )
        else:
            self._begin(order)

    def _ask_to_replace(self, order: Order, found: InTheWay) -> None:
        self.show_words(
            f"{one_line(str(found.path))} {one_line(found.reason)}. Is it to be replaced all the "
            "same? What is in it now is lost then.",
            "Enter replaces it · Esc back to the fields",
            then=partial(self._begin, order, force=True),
        )

    def _ask_although_unordered(self, order: Order, error: UnorderedSpans, *, force: bool) -> None:
        assert order.although_unordered is not None, "only labels have an order of spans"
        self.show_words(
            f"{one_line(error.explanation, 2000)} Open the traces once, or export all the same: "
            "the datasheet of gold then says how many there are.",
            "Enter exports all the same · Esc back to the fields",
            then=partial(self._begin, order.although_unordered(), force=force),
        )

    def _begin(self, order: Order, *, force: bool = False) -> None:
        self._turn += 1
        self._at("Beginning")
        self._write(self._turn, order, force=force)

    def _at(self, words: str) -> None:
        self.show_words(f"{words} …", "Esc stops; nothing is written then", back=self._stop)

    def _stop(self) -> None:
        self._turn += 1
        self.workers.cancel_group(self, "export")
        self.refuse("Stopped: nothing was written")

    @work(thread=True, group="export", exclusive=True)
    def _write(self, turn: int, order: Order, *, force: bool) -> None:
        worker = get_current_worker()

        def at(words: str) -> None:
            if worker.is_cancelled:
                raise _Stopped
            self.call_later(self._in_turn, turn, partial(self._at, words))

        try:
            outputs = outputs_beside(self._opened.workspace, force=force)
            order.check(outputs)
            words = order.add(outputs, at)
            at("Writing")
            outputs.commit()
            ended = partial(self._done, words)
        except _Stopped:
            return
        except InTheWay as found:
            ended = partial(self._ask_to_replace, order, found)
        except UnorderedSpans as error:
            ended = partial(self._ask_although_unordered, order, error, force=force)
        except MastError as error:
            ended = partial(self.refuse, str(error))
        except OSError as error:
            ended = partial(self.refuse, _said_by(error))
        self.call_later(self._in_turn, turn, ended)

    def _in_turn(self, turn: int, told: Callable[[], None]) -> None:
        """Tell something of an export, unless that one has been stopped."""
        if turn == self._turn:
            told()

    def _done(self, words: str) -> None:
        close = partial(self.dismiss, None)
        self.show_words(words, "Enter closes", then=close, back=close)


def _said_by(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"

"""The dialogs that export labels or the report on screen to files.

The files, the checks before they are replaced, and the labels that are hidden from the annotator
are the same as those of ``mast-tui export``: both use ``exchange/exporters/files.py``.
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
from mast_tui.redaction.masked_trace import requested_masks
from mast_tui.reports.render import rendered
from mast_tui.safe_text import one_line
from mast_tui.session import Viewer, hidden_traces_text, viewer_for_name
from mast_tui.traces.model import Trace
from mast_tui.ui.context import ReportToWrite, RunToWrite, context_of
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.dialogs.form import Field, Form, Texts
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.wording import counted
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.pseudonyms import mask_key, pseudonyms_of

REPORTS: Final[Mapping[str, tuple[str, str]]] = {
    "html": ("the report on this screen as one page", "html"),
    "markdown": ("the report on this screen as Markdown", "md"),
    "csv": ("every figure of the report on this screen", "csv"),
    "latex": ("the tables of the report on this screen, for LaTeX", "tex"),
}
"""The formats of a report: a description of each, and the suffix of its file."""

RUN_PAGES: Final[Mapping[str, tuple[str, str]]] = {
    "page": ("this run with its labels, to read, print and import", "html"),
    "markdown": ("this run with its labels as Markdown", "md"),
}
"""The formats of a run: a description of each, and the suffix of its file."""


def _formats_of(report: ReportToWrite | RunToWrite | None) -> Mapping[str, tuple[str, str]]:
    """Return the formats of what the screen shows."""
    if report is None:
        return {}
    return RUN_PAGES if isinstance(report, RunToWrite) else REPORTS


class ExportFormats(FinderDialog):
    """A dialog that returns the format of an export, or None."""

    def __init__(self, report: ReportToWrite | RunToWrite | None = None) -> None:
        """List the formats.

        ``report`` is the report or run on the screen, whose formats come first.
        """
        own_formats = _formats_of(report).items()
        choices = [FinderChoice(name, name, title) for name, (title, _) in own_formats]
        choices += [FinderChoice(row.name, row.name, row.title) for row in EXPORT_FORMATS.values()]
        super().__init__("Export as", choices, placeholder="a format, or what it holds")


_AS_THEY_ARE: Final = "as they are"
_PSEUDONYMS: Final = Field(
    "pseudonyms",
    "names",
    "People's names as they are, or letters, the same in every export of this workspace.",
    (_AS_THEY_ARE, "letters"),
)
_MASKS: Final = Field(
    "masks",
    "personal data",
    "E-mail addresses, telephone and card numbers, keys and such as they are, or masked.",
    (_AS_THEY_ARE, "masked"),
)


def fields_of(file_format: Format, names: Sequence[str]) -> tuple[Field, ...]:
    """Return the fields of an export that its format uses.

    Args:
        file_format: The format.
        names: The names of the annotators and judges.
    """
    all_fields = (
        _file_field("folder" if file_format.is_folder else "file"),
        Field(
            "gold",
            "gold",
            "All of it, or only what two annotators agreed on or an adjudicator decided.",
            ("all", "settled"),
        ),
        Field(
            "annotators",
            "annotators",
            "The annotators to include, with commas. Empty: all.",
        ),
        Field(
            "labels",
            "whose labels",
            "The gold, the labels of everyone, or those of one. Labels of others are left out on "
            "traces that you have not finished.",
            (GOLD, ALL, *names),
        ),
        Field(
            "majority",
            "majority",
            "Whether a majority decides verdicts that no adjudicator has decided.",
            ("no", "yes"),
        ),
        Field(
            "which",
            "pass",
            "The pass that agreement and lists of labels use if someone labelled a trace again; "
            "the gold uses the last.",
            ("first", "last"),
        ),
        Field(
            "datasheet",
            "datasheet",
            "Who labelled, licence, contact and such (TOML). Empty: datasheet.toml beside the "
            "workspace, if there is one.",
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
    """Return the field for the path of the file or folder."""
    return Field(
        "file",
        title,
        f"Where it is written, from {one_line(str(Path.cwd()), 120)}. → completes it.",
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
        "pseudonyms": _AS_THEY_ARE,
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
        _output_path(values["file"], "folder" if file_format.is_folder else "file"),
        labels=values["labels"],
        which="first" if values["which"] == "first" else "last",
        annotators=_names(values["annotators"]),
        majority=values["majority"] == "yes",
        gold="settled" if values["gold"] == "settled" else None,
        datasheet=Path(datasheet).expanduser() if datasheet else None,
        pseudonyms=pseudonyms_of(workspace) if values["pseudonyms"] == "letters" else None,
    )


def _output_path(text: str, title: str) -> Path:
    if not text.strip():
        raise MastError(f"{title}: say where to write it")
    return Path(text.strip()).expanduser().absolute()


def _names(text: str) -> list[str] | None:
    try:
        return [checked_person(name) for name in text.split(",") if name.strip()] or None
    except MastError as error:
        raise MastError(f"annotators: {error}") from error


def success_text(
    request: ExportRequest, counts: Mapping[str, Any], remarks: Sequence[str], adjudicate_key: str
) -> str:
    """Return what was written, what the gold leaves open, and what is left out and why.

    Args:
        request: The export.
        counts: The counts of what was written.
        remarks: The remarks of the exporter.
        adjudicate_key: The key that opens the adjudication.
    """
    notes = []
    if counts.get("traces") == 0:
        notes.append(
            "It has no traces: an export has labelled traces, an export of gold finished ones."
        )
    unresolved = counts.get("unresolved", 0)
    if unresolved:
        conflicts = counted(unresolved, "conflict")
        notes.append(f"{conflicts} left to decide: {adjudicate_key} opens them.")
    notes += [*left_out_lines(counts, request.format.name), *remarks]
    lines = ["Written:", *written_lines(str(request.output), counts)]
    for note in notes:
        lines += ["", note]
    return "\n".join(one_line(line, 2000) for line in lines)


class _Stopped(Exception):
    """An export was stopped."""


ReportStage = Callable[[str], None]
"""Shows the present stage; it raises an error to stop the export."""


@dataclass(frozen=True, slots=True)
class ExportJob:
    """A job that writes files to ``output``, the file or folder that the user named.

    ``check`` raises an error if it cannot or must not be written. ``add`` adds the files to the
    outputs and returns a summary; it is slow, for workers. ``although_unordered`` returns a job
    that allows gold with labels whose order is unknown.
    """

    output: Path
    check: Callable[[Outputs], None]
    add: Callable[[Outputs, ReportStage], str]
    although_unordered: Callable[[], ExportJob] | None = None


def labels_job(request: ExportRequest, adjudicate_key: str) -> ExportJob:
    """Return the job of an export of labels.

    Args:
        request: The export.
        adjudicate_key: The key that opens the adjudication.
    """

    def _check(outputs: Outputs) -> None:
        check_output(outputs, request.format, request.output)

    def _add(outputs: Outputs, report_stage: ReportStage) -> str:
        remarks = list[str]()
        if request.format.writes is None:
            report_stage("Reading the workspace")
            counts = add_workspace(request.workspace, outputs, request.output, remarks.append)
        else:
            reporting = replace(request, say=remarks.append, stage=report_stage)
            counts = request.format.writes(reporting, outputs)
        return success_text(request, counts, remarks, adjudicate_key)

    def although_unordered() -> ExportJob:
        return labels_job(replace(request, allow_unordered=True), adjudicate_key)

    return ExportJob(request.output, _check, _add, although_unordered)


def report_job(
    opened: OpenWorkspace, report: ReportToWrite, language: str, output: Path
) -> ExportJob:
    """Return the job of an export of a report.

    Args:
        opened: The open workspace.
        report: The report.
        language: One of ``REPORTS``.
        output: The file.
    """

    def _add(outputs: Outputs, report_stage: ReportStage) -> str:
        def stopped() -> bool:
            report_stage("Counting the figures")
            return False

        stopped()
        computed = report.make(opened, stopped)
        report_stage("Making the page")
        outputs.add(output, rendered(computed, language))
        lines = ["Written:", str(output), "", computed.about]
        return "\n".join(one_line(line, 2000) for line in lines)

    return ExportJob(output, lambda outputs: outputs.check(output), _add)


def page_job(opened: OpenWorkspace, trace: Trace, file_format: str, texts: Texts) -> ExportJob:
    """Return the job of the page of a run.

    Args:
        opened: The workspace, and the annotator who works in it.
        trace: The run.
        file_format: One of ``RUN_PAGES``.
        texts: The texts of the fields.
    """
    output = _output_path(texts["file"], "file")

    def _add(outputs: Outputs, report_stage: ReportStage) -> str:
        if not trace.loaded.complete:
            raise MastError("the trace is still being read; wait until all of it is there")
        report_stage("Reading the labels")
        letters = pseudonyms_of(opened.workspace) if texts["pseudonyms"] == "letters" else None
        key = partial(mask_key, opened.workspace)
        masks = requested_masks(texts["masks"] == "masked", None, key)
        pages = RunPages(opened.taxonomy, _viewer(opened), pseudonyms=letters, masks=masks)
        page = pages.page_of(trace)
        report_stage("Writing the run")
        is_page = file_format == "page"
        outputs.add(output, render_page(page) if is_page else render_page_markdown(page))
        lines = ["Written:", f"{output}: {counted(len(page.labels), 'label')}"]
        if pages.hidden:
            lines += ["", hidden_traces_text(opened.annotator, len(pages.hidden))]
        return "\n".join(one_line(line, 2000) for line in lines)

    return ExportJob(output, lambda outputs: outputs.check(output), _add)


def _viewer(opened: OpenWorkspace) -> Viewer:
    """Return the annotator who works here, and what they may see."""
    return viewer_for_name(
        opened.workspace,
        opened.taxonomy.ref,
        opened.annotator,
        blind=opened.blind,
        assisted=not opened.blind,
    )


class ExportForm(Form):
    """The form of an export, which is written in the background."""

    def __init__(
        self,
        opened: OpenWorkspace,
        file_format: str,
        report: ReportToWrite | RunToWrite | None = None,
    ) -> None:
        """Make the form for a format.

        Args:
            opened: The open workspace.
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
                first_texts = {"file": f"{name}.{own_formats[file_format][1]}"}
                title = f"Write the report: {file_format}"
            case RunToWrite(trace=trace):
                fields += (_PSEUDONYMS, _MASKS)
                name = file_name_of(trace.identity.trace_id, own_formats[file_format][1])
                first_texts = {"file": name, "pseudonyms": _AS_THEY_ARE, "masks": _AS_THEY_ARE}
                title = f"Write the run: {file_format}"
            case None:
                names = [info.name for info in opened.workspace.annotators()]
                row = EXPORT_FORMATS[file_format]
                fields = fields_of(row, names)
                first_texts = default_texts(row)
                title = f"Export as {file_format}"
        super().__init__(title, fields, {field.name: first_texts[field.name] for field in fields})
        self._export_number = 0

    def _job(self, texts: Texts) -> ExportJob:
        """Return the job that the fields describe."""
        if isinstance(self._report, RunToWrite):
            return page_job(self._opened, self._report.trace, self._format, texts)
        if self._report is None:
            request = request_of(self._opened, EXPORT_FORMATS[self._format], texts)
            return labels_job(request, context_of(self).key_of("everywhere.adjudicate"))
        output = _output_path(texts["file"], "file")
        return report_job(self._opened, self._report, self._format, output)

    async def take(self, texts: Texts) -> None:
        """Start the export, or ask first if it replaces a file."""
        job = self._job(texts)
        try:
            job.check(outputs_beside(self._opened.workspace, force=False))
        except InTheWay as obstacle:
            self._ask_to_replace(job, obstacle)
            return
        except OSError as error:
            self.refuse(_problem_of(error))
            return
        if job.output.exists() and not is_stream(job.output):
            self.show_text(
                f"{one_line(str(job.output))} exists. The export replaces it once it is complete.",
                "Enter replaces it · Esc back to the fields",
                on_enter=partial(self._start, job),
            )
        else:
            self._start(job)

    def _ask_to_replace(self, job: ExportJob, obstacle: InTheWay) -> None:
        """Ask whether to replace what is in the way."""
        self.show_text(
            f"{one_line(str(obstacle.path))} {one_line(obstacle.reason)}. Replace it? Its present "
            "content is then lost.",
            "Enter replaces it · Esc back to the fields",
            on_enter=partial(self._start, job, force=True),
        )

    def _ask_although_unordered(
        self, job: ExportJob, error: UnorderedSpans, *, force: bool
    ) -> None:
        """Ask whether to export although the order of labelled spans is unknown."""
        assert job.although_unordered is not None, "only labels have an order of spans"
        self.show_text(
            f"{one_line(error.explanation, 2000)} Open the traces once, or export anyway: "
            "the datasheet of gold then says how many there are.",
            "Enter exports anyway · Esc back to the fields",
            on_enter=partial(self._start, job.although_unordered(), force=force),
        )

    def _start(self, job: ExportJob, *, force: bool = False) -> None:
        self._export_number += 1
        self._show_stage("Beginning")
        self._write(self._export_number, job, force=force)

    def _show_stage(self, stage: str) -> None:
        self.show_text(f"{stage} …", "Esc stops; nothing is written then", on_escape=self._stop)

    def _stop(self) -> None:
        self._export_number += 1
        self.workers.cancel_group(self, "export")
        self.refuse("Stopped: nothing was written")

    @work(thread=True, group="export", exclusive=True)
    def _write(self, export_number: int, job: ExportJob, *, force: bool) -> None:
        """Write the files in a worker, then show the summary, a question or the problem."""
        worker = get_current_worker()

        def report_stage(stage: str) -> None:
            if worker.is_cancelled:
                raise _Stopped
            self.call_later(self._if_current, export_number, partial(self._show_stage, stage))

        try:
            outputs = outputs_beside(self._opened.workspace, force=force)
            job.check(outputs)
            summary = job.add(outputs, report_stage)
            report_stage("Writing")
            outputs.commit()
            finish = partial(self._show_success, summary)
        except _Stopped:
            return
        except InTheWay as obstacle:
            finish = partial(self._ask_to_replace, job, obstacle)
        except UnorderedSpans as error:
            finish = partial(self._ask_although_unordered, job, error, force=force)
        except MastError as error:
            finish = partial(self.refuse, str(error))
        except OSError as error:
            finish = partial(self.refuse, _problem_of(error))
        self.call_later(self._if_current, export_number, finish)

    def _if_current(self, export_number: int, update: Callable[[], None]) -> None:
        """Update the screen, unless the export has been stopped."""
        if export_number == self._export_number:
            update()

    def _show_success(self, summary: str) -> None:
        close = partial(self.dismiss, None)
        self.show_text(summary, "Enter closes", on_enter=close, on_escape=close)


def _problem_of(error: OSError) -> str:
    path = f"{error.filename}: " if error.filename else ""
    return f"{path}{error.strerror or error}"

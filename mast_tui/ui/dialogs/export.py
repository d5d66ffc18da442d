"""The dialogs that export labels or the report on screen to files.

Files, checks and hidden labels are the same as those of ``mast-tui export``, because both use
``exchange/exporters/files.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from mast_tui.errors import MastError
from mast_tui.exchange.errors import UnorderedSpans
from mast_tui.exchange.exporters.files import (
    add_workspace,
    check_path,
    left_out_lines,
    written_lines,
)
from mast_tui.exchange.formats import ExportRequest, Format, FormatContent
from mast_tui.exchange.page.content import RunPage, RunPages, file_name_of, label_counts_text
from mast_tui.exchange.page.rendering import add_page, add_page_folder
from mast_tui.exchange.registry import EXPORT_FORMATS
from mast_tui.exchange.selection import masks_of_files
from mast_tui.labels import ALL, GOLD
from mast_tui.output_files import InTheWay, Outputs, is_stream
from mast_tui.reports.render import rendered
from mast_tui.safe_text import one_line
from mast_tui.session import Viewer, hidden_traces_text, viewer_for_name
from mast_tui.traces.file_places import distinct_name
from mast_tui.traces.library import read_fully
from mast_tui.traces.model import Trace
from mast_tui.ui.actions.registry import KeyOf
from mast_tui.ui.base_screen import Stopped, StoppedError
from mast_tui.ui.context import ReportToWrite, RunsToWrite
from mast_tui.ui.dialogs.finder import FinderChoice, FinderDialog
from mast_tui.ui.dialogs.form import Field, Form, Texts, names_between_commas
from mast_tui.ui.services.open_workspace import OpenWorkspace
from mast_tui.ui.wording import counted
from mast_tui.workspace.outputs import outputs_beside
from mast_tui.workspace.registers.pseudonyms import pseudonyms_of


class ScreenFormat(NamedTuple):
    """A format of the report or runs on the screen."""

    description: str
    suffix: str


REPORTS: Final[Mapping[str, ScreenFormat]] = {
    "html": ScreenFormat("the report on this screen as one page", "html"),
    "markdown": ScreenFormat("the report on this screen as Markdown", "md"),
    "csv": ScreenFormat("every figure of the report on this screen", "csv"),
    "latex": ScreenFormat("the tables of the report on this screen, for LaTeX", "tex"),
}
"""The formats of a report, by name."""

_RUN_PAGES: Final[Mapping[str, ScreenFormat]] = {
    "page": ScreenFormat("this run with its labels, an HTML page to hand over", "html"),
    "markdown": ScreenFormat("this run with its labels as Markdown", "md"),
}
"""The formats of a run, by name."""

_PAGES: Final = "pages"
"""The format for all listed runs: a folder of pages."""


def _screen_formats(report: ReportToWrite | RunsToWrite | None) -> Mapping[str, ScreenFormat]:
    """Return the formats of the report or runs on the screen; empty for None."""
    if report is None:
        return {}
    if isinstance(report, ReportToWrite):
        return REPORTS
    formats = {} if report.run is None else dict(_RUN_PAGES)
    if report.listed:
        runs_text = counted(len(report.listed), "listed run")
        formats[_PAGES] = ScreenFormat(f"{runs_text} with labels: HTML pages and an index", "")
    return formats


class ExportFormats(FinderDialog):
    """A dialog that returns the format of an export, or None."""

    def __init__(self, report: ReportToWrite | RunsToWrite | None = None) -> None:
        """List the formats: first those of a report on screen, last those of runs."""
        choices = [FinderChoice(row.name, row.name, row.title) for row in EXPORT_FORMATS.values()]
        screen_choices = [
            FinderChoice(name, name, screen_format.description)
            for name, screen_format in _screen_formats(report).items()
        ]
        position = 0 if isinstance(report, ReportToWrite) else len(choices)
        choices[position:position] = screen_choices
        super().__init__("Export as", choices, placeholder="type to filter")


_AS_THEY_ARE: Final = "as they are"
_PSEUDONYMS: Final = Field(
    "pseudonyms",
    "names",
    "People's names as they are, or letters (the same ones in every export of this workspace).",
    (_AS_THEY_ARE, "letters"),
)
_MASKS: Final = Field(
    "masks",
    "personal data",
    "E-mail addresses, telephone and card numbers, keys and the like: as they are, or masked.",
    (_AS_THEY_ARE, "masked"),
)
_STUDY_MASKS: Final = Field("masks", "personal data", "The study masks all files.", ("masked",))


_FILE: Final = Field("file", "file", "", path=True)
_FOLDER: Final = Field("file", "folder", "", path=True)
_WHOLE_GOLD: Final = "all, also of one person"
_GOLD: Final = Field(
    "gold",
    "verdicts",
    "All verdicts, also those of one person alone, or only those on which two annotators agree or "
    "an adjudicator decided.",
    (_WHOLE_GOLD, "only agreed or decided"),
)
_ANNOTATORS: Final = Field(
    "annotators",
    "annotators",
    "The annotators to include, separated by commas. Empty: all.",
    placeholder="all",
)
_WHOSE_LABELS: Final = Field(
    "labels",
    "whose labels",
    "The gold, the labels of everyone, or those of one annotator or judge. Labels of others are "
    "left out on traces that you have not finished.",
    (GOLD, ALL),
)
"""The field before the names of annotators and judges are added to its choices."""

_MAJORITY: Final = Field(
    "majority",
    "majority decides",
    "Yes: the majority decides what no adjudicator has decided. No: that stays open.",
    ("no", "yes"),
)
_PASS: Final = Field(
    "which",
    "agreement from",
    "If someone finished a trace again: agreement and lists of labels have the labels of the first "
    "finish, or of the last. The gold always has those of the last.",
    ("first finish", "last finish"),
)
_DATASHEET: Final = Field(
    "datasheet",
    "facts for datasheet",
    "Who labelled, licence, contact and such (TOML). Empty: datasheet.toml beside the "
    "workspace, if there is one.",
    path=True,
    placeholder="path of a TOML file",
)
_FIELDS_OF_LABELS: Final = (_WHOSE_LABELS, _PASS, _MAJORITY, _PSEUDONYMS)
_FIELDS: Final[Mapping[FormatContent, tuple[Field, ...]]] = {
    FormatContent.WORKSPACE: (),
    FormatContent.CODEBOOK: (_PSEUDONYMS,),
    FormatContent.GOLD: (_GOLD, _ANNOTATORS, _MAJORITY, _PASS, _DATASHEET, _PSEUDONYMS),
    FormatContent.LABELS: _FIELDS_OF_LABELS,
    FormatContent.VERDICTS: _FIELDS_OF_LABELS,
}
"""The fields after the path, by the content of the format."""


def fields_of(file_format: Format, names: Sequence[str]) -> tuple[Field, ...]:
    """Return the fields that an export of labels needs.

    Args:
        file_format: The format.
        names: The names of the annotators and judges.
    """
    whose_labels = replace(_WHOSE_LABELS, choices=(*_WHOSE_LABELS.choices, *names))
    return (
        _FOLDER if file_format.is_folder else _FILE,
        *(
            whose_labels if field is _WHOSE_LABELS else field
            for field in _FIELDS[file_format.content]
        ),
    )


def default_texts(file_format: Format) -> dict[str, str]:
    """Return the initial texts of the fields, which are the defaults of the command."""
    return {
        "file": file_format.file_name,
        "labels": GOLD,
        "gold": _WHOLE_GOLD,
        "annotators": "",
        "majority": "no",
        "which": f"{file_format.usual_pass} finish",
        "datasheet": "",
        "pseudonyms": _AS_THEY_ARE,
    }


def request_of(opened: OpenWorkspace, file_format: Format, texts: Texts) -> ExportRequest:
    """Return the export that the fields describe.

    Args:
        opened: The workspace, and the annotator who works in it.
        file_format: The format.
        texts: The texts of the fields of its form.

    Raises:
        MastError: The text of a field is not valid; the message names the field.
    """
    values = {**default_texts(file_format), **texts}
    if values["majority"] == "yes" and values["labels"] != GOLD:
        raise MastError(
            f"{_MAJORITY.title}: yes is possible only if {_WHOSE_LABELS.title} is {GOLD}"
        )
    workspace = opened.workspace
    datasheet = values["datasheet"].strip()
    return ExportRequest(
        workspace,
        opened.taxonomy,
        _viewer_of(opened),
        file_format,
        _output_path(values["file"], (_FOLDER if file_format.is_folder else _FILE).title),
        labels=values["labels"],
        which="first" if values["which"] == "first finish" else "last",
        annotators=list(names_between_commas(values["annotators"], "annotators")) or None,
        majority=values["majority"] == "yes",
        gold=None if values["gold"] == _WHOLE_GOLD else "settled",
        datasheet=Path(datasheet).expanduser() if datasheet else None,
        pseudonyms=pseudonyms_of(workspace) if values["pseudonyms"] == "letters" else None,
    )


def _output_path(text: str, title: str) -> Path:
    """Return the absolute path in a field."""
    if not text.strip():
        raise MastError(f"{title}: type a path")
    return Path(text.strip()).expanduser().absolute()


def success_text(
    request: ExportRequest, counts: Mapping[str, Any], remarks: Sequence[str], adjudicate_key: str
) -> str:
    """Return what was written, what the gold leaves open, and what is left out.

    Args:
        request: The export.
        counts: The counts of what was written.
        remarks: The remarks of the exporter.
        adjudicate_key: The key that opens the adjudication.
    """
    notes = []
    if counts.get("traces") == 0:
        notes.append(
            "It has no traces: only labelled traces are exported (for gold, only finished ones)."
        )
    unresolved = counts.get("unresolved", 0)
    if unresolved:
        conflicts = counted(unresolved, "conflict")
        notes.append(f"{conflicts} left to decide: {adjudicate_key} opens them.")
    notes += [*left_out_lines(counts, request.format.name), *remarks]
    lines = ["Written:", *written_lines(str(request.output), counts)]
    for note in notes:
        lines += ["", _sentence(note)]
    return "\n".join(one_line(line, 2000) for line in lines)


def _sentence(text: str) -> str:
    """Return a message with a capital letter and a full stop."""
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."


ReportStage = Callable[[str], None]
"""Shows the present stage of an export. It raises an error once the user has stopped the export."""


@dataclass(frozen=True, slots=True)
class ExportJob:
    """An export to a file or folder.

    Attributes:
        output: The file or folder that the user named.
        check: Raises an error if ``output`` cannot be written.
        add: Adds the files to the outputs, and returns a summary. It is slow, so call it in a
            worker.
        allowing_unknown_order: Returns the same export for gold with an unknown order of labels;
            None if the export has no gold.
    """

    output: Path
    check: Callable[[Outputs], None]
    add: Callable[[Outputs, ReportStage], str]
    allowing_unknown_order: Callable[[], ExportJob] | None = None


def labels_job(request: ExportRequest, adjudicate_key: str) -> ExportJob:
    """Return the job that exports labels.

    Args:
        request: The export.
        adjudicate_key: The key that opens the adjudication.
    """

    def _add_files(outputs: Outputs, report_stage: ReportStage) -> str:
        """Add the files of the labels, and return the summary."""
        remarks = list[str]()
        if request.format.writes is None:
            report_stage("Reading the workspace")
            counts = add_workspace(request.workspace, outputs, request.output, remarks.append)
        else:
            observed_request = replace(request, say=remarks.append, stage=report_stage)
            counts = request.format.writes(observed_request, outputs)
        return success_text(request, counts, remarks, adjudicate_key)

    return ExportJob(
        request.output,
        check=lambda outputs: check_path(outputs, request.output, request.format.is_folder),
        add=_add_files,
        allowing_unknown_order=lambda: labels_job(
            replace(request, allow_unordered=True), adjudicate_key
        ),
    )


def report_job(
    opened: OpenWorkspace, report: ReportToWrite, language: str, output: Path
) -> ExportJob:
    """Return the job that exports a report.

    Args:
        opened: The open workspace.
        report: The report.
        language: One of ``REPORTS``.
        output: The file.
    """

    def _add_files(outputs: Outputs, report_stage: ReportStage) -> str:
        """Compute the report, add its file, and return the summary."""

        def raise_if_stopped() -> bool:
            """Return False, or raise an error if the user has stopped the export."""
            report_stage("Counting the figures")  # raises the error
            return False

        raise_if_stopped()
        computed_report = report.make(opened, raise_if_stopped)
        report_stage("Making the page")
        outputs.add(output, rendered(computed_report, language))
        lines = ["Written:", str(output), "", computed_report.about]
        return "\n".join(one_line(line, 2000) for line in lines)

    return ExportJob(output, lambda outputs: outputs.check(output), _add_files)


def page_job(
    opened: OpenWorkspace, runs: Sequence[Trace], file_format: str, texts: Texts
) -> ExportJob:
    """Return the job that exports runs as pages.

    Args:
        opened: The workspace, and the annotator who works in it.
        runs: The runs; one, unless the format is that of a folder.
        file_format: The name of the format.
        texts: The texts of the fields.
    """
    is_folder = file_format == _PAGES
    output = _output_path(texts["file"], (_FOLDER if is_folder else _FILE).title)

    def _add_files(outputs: Outputs, report_stage: ReportStage) -> str:
        """Add the pages, and return the summary."""
        report_stage("Reading the labels")
        run_pages = _run_pages(opened, texts)
        pages = list(_pages_of(runs, run_pages, report_stage))
        if not pages:
            raise MastError("no run has a step to write")
        if is_folder:
            add_page_folder(outputs, output, pages)
        else:
            add_page(outputs, output, pages[0], markdown=file_format == "markdown")
        lines = ["Written:", f"{output}: {counted(len(pages), 'run')}, {label_counts_text(pages)}"]
        if run_pages.hidden:
            text = hidden_traces_text(opened.annotator, len(run_pages.hidden))
            lines += ["", _sentence(text)]
        return "\n".join(one_line(line, 2000) for line in lines)

    return ExportJob(output, lambda outputs: check_path(outputs, output, is_folder), _add_files)


def _pages_of(
    runs: Sequence[Trace], run_pages: RunPages, report_stage: ReportStage
) -> Iterator[RunPage]:
    for number, run in enumerate(runs, start=1):
        report_stage(f"Reading run {number} of {len(runs)}")
        # A listed run has no spans, and the run on screen may be incomplete.
        trace = run if len(run) and run.loaded.complete else run.anew()
        read_fully(trace)
        if len(trace):
            yield run_pages.page_of(trace, runs)


def _run_pages(opened: OpenWorkspace, texts: Texts) -> RunPages:
    """Return the maker of pages, with the chosen names and masks."""
    workspace = opened.workspace
    return RunPages(
        opened.taxonomy,
        _viewer_of(opened),
        pseudonyms=pseudonyms_of(workspace) if texts["pseudonyms"] == "letters" else None,
        masks=masks_of_files(
            workspace, opened.study(), redact=texts["masks"] == "masked", patterns=None
        ),
    )


def _viewer_of(opened: OpenWorkspace) -> Viewer:
    """Return the annotator as a ``Viewer``, to decide which labels are hidden.

    If the app is not blind, this also ends the annotator's blind work.
    """
    return viewer_for_name(
        opened.workspace,
        opened.taxonomy.ref,
        opened.annotator,
        blind=opened.blind,
        ends_blind=not opened.blind,
    )


@dataclass(frozen=True, slots=True)
class ExportChoices:
    """The content of the form of an export.

    Attributes:
        title: The title.
        fields: The fields.
        texts: The initial texts of the fields.
        make_job: Returns the export for the texts of the fields, or raises ``MastError``.
        companion_of: Returns the path of the file written beside an output; None without such a
            file.
    """

    title: str
    fields: tuple[Field, ...]
    texts: Texts
    make_job: Callable[[Texts], ExportJob]
    companion_of: Callable[[Path], Path] | None = None


def _choices_of_labels(opened: OpenWorkspace, file_format: Format, key_of: KeyOf) -> ExportChoices:
    fields = fields_of(file_format, [info.name for info in opened.workspace.annotators()])
    initial_texts = default_texts(file_format)
    return ExportChoices(
        f"Export as {file_format.name}",
        fields,
        {field.name: initial_texts[field.name] for field in fields},
        lambda texts: labels_job(
            request_of(opened, file_format, texts), key_of("everywhere.adjudicate")
        ),
        partial(file_format.companion_path, ending=file_format.companion)
        if file_format.companion
        else None,
    )


def _choices_of_runs(
    opened: OpenWorkspace, report: RunsToWrite, file_format: str, suffix: str
) -> ExportChoices:
    if file_format == _PAGES:
        title = "Write the listed traces as HTML pages"
        runs = report.listed
        field = _FOLDER
        file_name = _PAGES
    else:
        assert report.run is not None, "a run has the format"
        title = f"Write this trace as {'Markdown' if suffix == 'md' else 'an HTML page'}"
        runs = (report.run,)
        field = _FILE
        name = distinct_name(report.run, ())
        masks = report.run.masks
        file_name = file_name_of(name if masks is None else masks.text(name), suffix)
    return ExportChoices(
        title,
        (field, _PSEUDONYMS, _MASKS),
        {"file": file_name, "pseudonyms": _AS_THEY_ARE, "masks": _AS_THEY_ARE},
        partial(page_job, opened, runs, file_format),
    )


def _choices_of_report(
    opened: OpenWorkspace, report: ReportToWrite, file_format: str, suffix: str
) -> ExportChoices:
    return ExportChoices(
        f"Write the report: {file_format}",
        (_FILE,),
        {"file": f"{report.name}.{suffix}"},
        lambda texts: report_job(
            opened, report, file_format, _output_path(texts["file"], _FILE.title)
        ),
    )


class ExportForm(Form):
    """The form of an export, which a worker writes."""

    enter_effect = "writes"

    def __init__(
        self,
        opened: OpenWorkspace,
        file_format: str,
        report: ReportToWrite | RunsToWrite | None,
        key_of: KeyOf,
    ) -> None:
        """Make the form for a format.

        Args:
            opened: The open workspace.
            file_format: A format of labels, or of the report or runs.
            report: The report or runs on the screen.
            key_of: Returns how the key of an action is shown.
        """
        self._opened = opened
        screen_format = _screen_formats(report).get(file_format)
        if report is None or screen_format is None:
            choices = _choices_of_labels(opened, EXPORT_FORMATS[file_format], key_of)
        elif isinstance(report, RunsToWrite):
            choices = _choices_of_runs(opened, report, file_format, screen_format.suffix)
        else:
            choices = _choices_of_report(opened, report, file_format, screen_format.suffix)
        if opened.masks is not None and _MASKS in choices.fields:
            fields = tuple(_STUDY_MASKS if field is _MASKS else field for field in choices.fields)
            choices = replace(choices, fields=fields, texts={**choices.texts, "masks": "masked"})
        self._choices = choices
        super().__init__(choices.title, choices.fields, choices.texts)

    def help_of(self, field: Field) -> str:
        """Return the help of a field. The help of the file names the paths to be written."""
        if field.name != "file":
            return super().help_of(field)
        try:
            output = _output_path(self.texts["file"], field.title)
        except MastError as error:
            return str(error)
        verb = "Replaces" if output.exists() and not is_stream(output) else "Writes"
        text = f"{verb} {output}"
        companion_of = self._choices.companion_of
        if companion_of is not None and not is_stream(output):
            text += f" and, beside it, {companion_of(output).name}"
        return f"{one_line(text, 400)}."

    async def take(self, texts: Texts) -> None:
        """Start the export, or ask first if it replaces a file."""
        job = self._choices.make_job(texts)
        try:
            job.check(outputs_beside(self._opened.workspace, force=False))
        except InTheWay as obstacle:
            self._ask_to_replace(job, obstacle)
            return
        except OSError as error:
            self.refuse(_problem_of(error))
            return
        companion_of = self._choices.companion_of
        paths = [job.output, *([] if companion_of is None else [companion_of(job.output)])]
        existing_path = next(filter(Path.exists, paths), None)
        if existing_path is not None and not is_stream(job.output):
            self.show_text(
                f"{one_line(str(existing_path))} exists. Once complete, the export replaces it.",
                "Enter replaces it · Esc back to the fields",
                on_enter=partial(self._start_export, job),
            )
        else:
            self._start_export(job)

    def _ask_to_replace(self, job: ExportJob, obstacle: InTheWay) -> None:
        """Ask whether to replace the present file or folder."""
        self.show_text(
            f"{one_line(str(obstacle.path))} {one_line(obstacle.reason)}. Replace it? Its present "
            "content is then lost.",
            "Enter replaces it · Esc back to the fields",
            on_enter=partial(self._start_export, job, force=True),
        )

    def _ask_to_allow_unknown_order(
        self, job: ExportJob, error: UnorderedSpans, *, force: bool
    ) -> None:
        assert job.allowing_unknown_order is not None, "only labels have an order of spans"
        self.show_text(
            f"{one_line(error.explanation, 2000)} Open the traces once, or export anyway: "
            "the datasheet of gold then reports the number of these spans.",
            "Enter exports anyway · Esc back to the fields",
            on_enter=partial(self._start_export, job.allowing_unknown_order(), force=force),
        )

    def _start_export(self, job: ExportJob, *, force: bool = False) -> None:
        """Start a worker that writes the export.

        ``force`` allows it to replace other files.
        """
        self._show_stage("Beginning")
        write = partial(self._write_export, job, force=force)
        self.work.run_stages("export", write, lambda finish: finish(), self.refuse)

    def _show_stage(self, stage: str) -> None:
        self.show_text(
            f"{stage} …", "Esc stops; nothing is written then", on_escape=self._stop_export
        )

    def _stop_export(self) -> None:
        self.work.stop("export")
        self.refuse("Stopped: nothing was written")

    def _write_export(
        self, job: ExportJob, stopped: Stopped, *, force: bool
    ) -> Iterator[Callable[[], None]]:
        """Write the files in a worker, then yield a function that shows the summary or a
        question.
        """

        def report_stage(stage: str) -> None:
            """Show a stage, or raise ``StoppedError`` if the export was stopped."""
            if stopped():
                raise StoppedError
            self.work.post(partial(self._show_stage, stage))

        try:
            outputs = outputs_beside(self._opened.workspace, force=force)
            job.check(outputs)
            summary = job.add(outputs, report_stage)
            report_stage("Writing")
            outputs.commit()
            yield partial(self._show_success, summary)
        except InTheWay as obstacle:
            yield partial(self._ask_to_replace, job, obstacle)
        except UnorderedSpans as error:
            yield partial(self._ask_to_allow_unknown_order, job, error, force=force)
        except OSError as error:
            raise MastError(_problem_of(error)) from error

    def _show_success(self, summary: str) -> None:
        self._texts = self.texts  # nothing typed is lost any more
        close = partial(self.dismiss, None)
        self.show_text(summary, "Enter closes", on_enter=close, on_escape=close)


def _problem_of(error: OSError) -> str:
    path = f"{error.filename}: " if error.filename else ""
    return f"{path}{error.strerror or error}"

"""The file of a workspace with its transactions, its settings, and the runs of judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from mast_tui.errors import WorkspaceError
from mast_tui.traces.io.json_values import replace_surrogates
from mast_tui.workspace.database import Database
from mast_tui.workspace.events import bit_columns as packed
from mast_tui.workspace.ids import IdSource, now
from mast_tui.workspace.records import Asked, Run, RunSettings
from mast_tui.workspace.registers import imports as import_register
from mast_tui.workspace.registers import runs as run_register
from mast_tui.workspace.registers import settings as register
from mast_tui.workspace.registers.hold_out import held_out
from mast_tui.workspace.registers.imports import ImportRecord, ImportState

if TYPE_CHECKING:
    from mast_tui.workspace.outbox import Outbox

P = ParamSpec("P")
Found = TypeVar("Found")


def reading(
    query: Callable[Concatenate[Connection, P], Found],
) -> Callable[Concatenate[WorkspaceCore, P], Found]:
    """Make a method of a workspace of a query."""

    @wraps(query)
    def method(self: WorkspaceCore, /, *args: P.args, **kwargs: P.kwargs) -> Found:
        with self._database.reading() as connection:
            return query(connection, *args, **kwargs)

    return method


def writing(
    change: Callable[Concatenate[Connection, P], Found],
) -> Callable[Concatenate[WorkspaceCore, P], Found]:
    """Make a method of a workspace of a change, which is one transaction."""

    @wraps(change)
    def method(self: WorkspaceCore, /, *args: P.args, **kwargs: P.kwargs) -> Found:
        with self._database.writing() as connection:
            return change(connection, *args, **kwargs)

    return method


class WorkspaceCore:
    """What a workspace keeps beside labels; see ``Workspace``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids = IdSource()
        self.outbox: Outbox | None = None
        """Where changes wait for a server that is away, once ``keep_waiting`` was called."""

    @contextmanager
    def transaction(self, *, whole: bool = False) -> Iterator[None]:
        """Everything done within is one transaction: all of it on disk at the end, or nothing.

        With ``whole`` nothing within may fail by itself and be gone on after, which writes much
        sooner.
        """
        with self._database.writing(whole=whole):
            yield

    def new_id(self) -> str:
        """A new id (UUID version 7); later ones are greater."""
        return self._ids.new()

    get_setting = reading(register.get_setting)
    set_setting = writing(register.set_setting)
    used_taxonomies = reading(packed.used_taxonomies)

    def current_taxonomies(self) -> tuple[str, ...]:
        """Those of them that were not carried over to another, by name."""
        carried = {
            one.files[0]
            for one in self.imports()
            if one.format == import_register.MIGRATION and one.state is ImportState.FINISHED
        }
        return tuple(ref for ref in self.used_taxonomies() if ref not in carried)

    def packed_verdicts(
        self, taxonomy: str, slugs: Sequence[str], annotator: str | None = None
    ) -> tuple[packed.PackedVerdicts, ...]:
        """All verdicts on these modes in every pass, of one or of everybody; see ``packed``."""
        with self._database.reading() as connection:
            return tuple(packed.packed_verdicts(connection, taxonomy, slugs, annotator))

    # Imports

    imports = reading(import_register.imports)

    def begin_import(
        self, file_format: str, files: Sequence[str], *, asked: str, who: str | None
    ) -> ImportRecord:
        """Note that an import begins, or goes on with one that was broken off.

        Args:
            file_format: The name of the files' format.
            files: Their names.
            asked: How the import is asked for; the same words go on with what was broken off.
            who: Who imports, None where nobody is known.

        Returns:
            The import.

        Raises:
            WorkspaceError: The same import is being taken back, and that was broken off.
        """
        with self._database.writing() as connection:
            for one in import_register.imports(connection):
                if one.asked == asked and one.state is ImportState.UNDOING:
                    raise WorkspaceError(
                        f"import {one.id} of the same files was being taken back when it was "
                        f"broken off; finish that first: mast-tui import --undo {one.id}"
                    )
                if one.asked == asked and one.state is ImportState.UNFINISHED:
                    return one
            record = ImportRecord(self.new_id(), now(), who, file_format, tuple(files), asked)
            import_register.add(connection, record)
            return record

    def note_imported(self, record: ImportRecord, events: Iterable[str]) -> None:
        """Note events, by id, that came with an import and keep their actions."""
        with self._database.writing() as connection:
            import_register.note_events(connection, record.id, events)

    def finish_import(self, record: ImportRecord) -> None:
        """Note that an import is whole; one that brought nothing is forgotten."""
        with self._database.writing() as connection:
            if import_register.brought_something(connection, record):
                import_register.mark(connection, record.id, finished_at=now())
            else:
                import_register.drop(connection, record.id)

    def begin_undo(self, record: ImportRecord) -> None:
        """Note that an import is being taken back."""
        with self._database.writing() as connection:
            import_register.mark(connection, record.id, undo_begun_at=now())

    def finish_undo(self, record: ImportRecord, who: str | None) -> None:
        """Note that an import was taken back, and by whom."""
        with self._database.writing() as connection:
            import_register.mark(connection, record.id, undone_at=now(), undone_by=who)

    import_counts = reading(import_register.counts)
    import_works = reading(import_register.works)

    def noted_events(self, record: ImportRecord) -> frozenset[str]:
        """The ids of the events that an import brought, where they keep their actions."""
        with self._database.reading() as connection:
            return import_register.noted_events(connection, record.id)

    # Runs of judges

    def start_run(
        self, judge: str, taxonomy: str, *, note: str = "", settings: RunSettings | None = None
    ) -> str:
        """Note that a judge begins to look at traces, and return the run's id.

        Raises ``WorkspaceError`` where an example in its prompt is a trace that was set aside.
        """
        run = Run(self.new_id(), judge, taxonomy, now(), note=note, settings=settings)
        with self._database.writing() as connection:
            for trace_id in () if settings is None else settings.examples:
                if held_out(self, trace_id):
                    raise WorkspaceError(
                        f"trace {trace_id!r} is set aside for measuring judges, so no prompt may "
                        "show it; take other examples"
                    )
            run_register.begin_run(connection, run)
        return run.id

    unfinished_run = reading(run_register.unfinished_run)
    set_run_form = writing(run_register.set_form)
    note_run_trace = writing(run_register.add_run_trace)

    def finish_run(self, run_id: str, *, ending: str | None = None) -> None:
        """Note that a run is over; ``ending`` says why it did not come to its last trace."""
        with self._database.writing() as connection:
            run_register.finish_run(connection, run_id, now(), ending)

    add_run = writing(run_register.add_run)
    runs = reading(run_register.runs)
    run_examples = reading(run_register.examples)

    # Answers of models

    def record_asked(self, asked: Asked) -> None:
        """Keep an answer of a model, with the time; half a character in it becomes ``U+FFFD``."""
        whole = replace_surrogates(asked.answer)
        with self._database.writing() as connection:
            run_register.add_asked(connection, replace(asked, answer=whole, at=now()))

    find_answer = reading(run_register.find_answer)
    answers_about = reading(run_register.answers_about)
    unusable_answers = reading(run_register.unusable_answers)
    answer_keys = reading(run_register.answer_keys)
    usage = reading(run_register.usage)

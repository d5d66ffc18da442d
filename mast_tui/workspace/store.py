"""The workspace, which stores labels, reviews, runs of judges and decisions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import wraps
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import get_ident
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from mast_tui.errors import WorkspaceError
from mast_tui.gold.model import Decision
from mast_tui.labels import AnnotatorKind
from mast_tui.taxonomy.loader import load_mast
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.traces.model import Trace
from mast_tui.workspace import queries
from mast_tui.workspace.database import Database
from mast_tui.workspace.events import append as recording
from mast_tui.workspace.events import foreign as merging
from mast_tui.workspace.events import state
from mast_tui.workspace.events.chain import ForeignEvents, edited_histories, with_checked_chains
from mast_tui.workspace.events.changes import InForce, entries_in_force
from mast_tui.workspace.events.model import Event, IdSource, now
from mast_tui.workspace.events.state import rebuild
from mast_tui.workspace.events.types import Decided
from mast_tui.workspace.maintenance import (
    CheckResult,
    StateDifference,
    check_rows,
    copy_rows,
    damaged_events,
)
from mast_tui.workspace.paths import found_trace_path, is_url
from mast_tui.workspace.records import (
    Member,
    MergeReport,
    Run,
    RunSettings,
    SpanIndex,
    TeamRole,
    TraceRecord,
    indices_in,
    missing_indices,
)
from mast_tui.workspace.registers import imports as import_register
from mast_tui.workspace.registers import runs as run_register
from mast_tui.workspace.registers import settings as register
from mast_tui.workspace.registers import taxonomies as taxonomy_register
from mast_tui.workspace.registers import traces as trace_register
from mast_tui.workspace.registers.hold_out import held_out
from mast_tui.workspace.registers.imports import ImportRecord, ImportState
from mast_tui.workspace.sqlite_file import SqliteFile

if TYPE_CHECKING:
    from mast_tui.workspace.outbox import Outbox, WaitingChange
    from mast_tui.workspace.presence import Presence

P = ParamSpec("P")
Result = TypeVar("Result")


def reading(
    query: Callable[Concatenate[Connection, P], Result],
) -> Callable[Concatenate[Workspace, P], Result]:
    """Turn a query into a method that runs it on a read-only connection."""

    @wraps(query)
    def method(self: Workspace, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with self._database.reading() as connection:
            return query(connection, *args, **kwargs)

    return method


def writing(
    change: Callable[Concatenate[Connection, P], Result],
) -> Callable[Concatenate[Workspace, P], Result]:
    """Turn a change into a method that makes it in one transaction."""

    @wraps(change)
    def method(self: Workspace, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with self._database.writing() as connection:
            return change(connection, *args, **kwargs)

    return method


def by_database(
    method: Callable[Concatenate[Database, P], Result],
) -> Callable[Concatenate[Workspace, P], Result]:
    """Turn a method of ``Database`` into one of the workspace."""

    @wraps(method)
    def of_workspace(self: Workspace, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        result: Result = getattr(self._database, method.__name__)(*args, **kwargs)
        return result

    return of_workspace


def _open_server_database(url: str, *, create: bool, password: str | None) -> Database:
    """Connect to a server; raise ``WorkspaceError`` if its driver is not installed."""
    # The driver is optional, since workspaces in files do not need it.
    try:
        module = import_module("mast_tui.team.postgresql")
    except ImportError as error:
        raise WorkspaceError(
            f"a workspace on a server needs psycopg ({error}); install it with: pip install "
            "'mast-tui[team]'"
        ) from error
    server: Database = module.PostgresServer(url, create=create, password=password)
    return server


class Workspace:
    """An open workspace; may be used from any thread.

    The changes of a method are on disk when it returns. Methods raise ``WorkspaceError`` with a
    message for users if the workspace cannot be read or written; then nothing has changed.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ids = IdSource()
        self.outbox: Outbox | None = None
        """The changes that wait for a server; None until ``open_outbox``."""

    @classmethod
    def open(
        cls, path: Path | str, *, create: bool = True, password: str | None = None
    ) -> Workspace:
        """Open the workspace in a file or on a server.

        Args:
            path: The file, ``:memory:`` to keep everything in memory, or the URL of a database
                on a server (``postgresql://…``). On a server nothing is created.
            create: True to create a missing file and its folder.
            password: The password of the server, if the user has typed one.

        Raises:
            PasswordNeeded: The server needs a password, and none was found.
            WorkspaceError: The file is missing, of another kind, of a newer version or not
                writable; or the server does not answer or has no workspace.
        """
        if is_url(path):
            return cls(_open_server_database(str(path), create=False, password=password))
        if str(path) == ":memory:":
            return cls(SqliteFile(None, create=True))
        return cls(SqliteFile(Path(path).expanduser().absolute(), create=create))

    @classmethod
    def create_on_server(cls, url: str, *, password: str | None = None) -> Workspace:
        """Open the workspace in a database on a server; create both if they are missing.

        Args:
            url: ``postgresql://USER@HOST/DATABASE``.
            password: The password of the server, if the user has typed one.

        Raises:
            WorkspaceError: The workspace cannot be opened or created.
        """
        return cls(_open_server_database(url, create=True, password=password))

    @property
    def path(self) -> Path | None:
        """The file; None for a workspace in memory or on a server."""
        return self._database.path

    @property
    def name(self) -> str:
        """The name in messages: the path or address."""
        return self._database.name

    close = by_database(Database.close)

    @contextmanager
    def transaction(self, *, without_savepoints: bool = False) -> Iterator[None]:
        """Make the block one transaction, which is rolled back if the block raises.

        Args:
            without_savepoints: True for a faster transaction, which must end if a nested block
                raises.
        """
        with self._database.writing(without_savepoints=without_savepoints):
            yield

    def new_id(self) -> str:
        """Return a new id (UUID of version 7), greater than earlier ones."""
        return self._ids.new()

    check_exists = by_database(Database.check_exists)
    changed_elsewhere = by_database(Database.changed_elsewhere)

    @property
    def presence(self) -> Presence | None:
        """The open traces of all programs; None for a file."""
        return self._database.presence

    checkpoint = by_database(Database.checkpoint)

    @property
    def last_write(self) -> float:
        """The time of this program's last write, by ``time.monotonic``."""
        return self._database.last_write

    check = by_database(Database.check)

    def differences(self) -> tuple[StateDifference, ...]:
        """Return the rows of the state tables that do not follow from the events."""
        return self.check_rows().differences

    def check_rows(self) -> CheckResult:
        """Check all rows.

        Raises:
            WorkspaceError: The server hides other people's work from this member.
        """
        self._database.check_nothing_hidden()
        return check_rows(self._database)

    damaged_events = reading(damaged_events)

    event_count = reading(queries.event_count)

    copy_to = by_database(Database.copy_to)

    def copy_into(self, other: Workspace) -> None:
        """Copy everything into an empty workspace.

        Raises:
            WorkspaceError: The copy failed, and nothing was copied.
        """
        self._database.check_nothing_hidden()
        with (
            self._database.reading() as source,
            other._database.writing(without_savepoints=True) as target,
        ):
            copy_rows(source, target)

    @contextmanager
    def trial(self, *, without: Collection[str] = ()) -> Iterator[Workspace]:
        """Yield a temporary copy of the workspace for trying out changes.

        Args:
            without: The ids of events to leave out.
        """
        with TemporaryDirectory(prefix="mast-tui-") as folder:
            path = Path(folder) / "trial.db"
            self.copy_to(path)
            with closing(Workspace.open(path, create=False)) as copy:
                if without:
                    with copy._database.writing() as connection:
                        recording.forget(connection, without)
                yield copy

    move_to = by_database(Database.move_to)

    @property
    def member(self) -> Member | None:
        """The connected member of a team; None for a file and for the owner."""
        return self._database.member

    team = by_database(Database.team)

    def add_member(self, name: str, role: TeamRole, *, assisted: bool = False) -> str | None:
        """Add a member to the team, or change the role of a member.

        Args:
            name: The name of the member and of the user on the server.
            role: The role in the team.
            assisted: True if the member sees judges' suggestions as an annotator.

        Returns:
            The password of a new user on the server; None if the user existed.

        Raises:
            WorkspaceError: The name is invalid or looks like another name, or the server refuses.
        """
        self._database.check_may_change_team()
        if not self.taxonomies():  # most members may not add one later
            self.add_taxonomy(load_mast())
        if role is not TeamRole.JUDGE:  # the annotators of judges have names of their own
            self.add_annotator(name, AnnotatorKind.HUMAN)
        return self._database.add_member(Member(name, role, assisted))

    def remove_member(self, name: str) -> bool:
        """Remove a member from the team; the member's work stays.

        Args:
            name: The name of the member.

        Returns:
            True if the user was removed from the server too.

        Raises:
            WorkspaceError: The team has no such member, or the server refuses.
        """
        self._database.check_may_change_team()
        return self._database.remove_member(name)

    shows_who_is_connected = by_database(Database.shows_who_is_connected)

    get_setting = reading(register.get_setting)
    set_setting = writing(register.set_setting)

    def add_taxonomy(self, taxonomy: Taxonomy, *, in_use: bool = True) -> None:
        """Store a taxonomy, or a revision of its texts if they differ from the stored texts.

        In a team only the lead stores it.

        Args:
            taxonomy: The taxonomy.
            in_use: True to replace stored texts; otherwise only a missing taxonomy is stored.

        Raises:
            WorkspaceError: The stored taxonomy of this id and version has other modes.
        """
        with self._database.reading() as connection:
            stored_hash = taxonomy_register.stored_hash(connection, taxonomy)
        member = self.member
        if member is not None and member.role is not TeamRole.LEAD:
            if stored_hash is None:
                raise WorkspaceError(
                    f"taxonomy {taxonomy.ref} is not in this workspace; ask the lead to add it "
                    f"with: mast-tui --taxonomy FILE --workspace {self.name}"
                )
            return
        if stored_hash is None or (in_use and stored_hash != taxonomy.content_hash):
            with self._database.writing() as connection:
                taxonomy_register.put_in_force(connection, taxonomy)

    add_revisions = writing(taxonomy_register.add_revisions)
    revisions = reading(taxonomy_register.revisions)
    revisions_read = reading(taxonomy_register.revisions_read)
    as_worded = reading(taxonomy_register.with_latest_texts)
    with_positions = reading(taxonomy_register.with_positions)
    taxonomies = reading(taxonomy_register.taxonomies)

    def taxonomy(self, ref: str) -> Taxonomy:
        """Return the taxonomy ``id@version``.

        Raises:
            WorkspaceError: The workspace has no such taxonomy.
        """
        with self._database.reading() as connection:
            matching = taxonomy_register.taxonomies(connection, ref)
        if not matching:
            raise WorkspaceError(f"taxonomy {ref} is not in this workspace; give --taxonomy FILE")
        return matching[0]

    used_taxonomies = reading(queries.used_taxonomies)

    def current_taxonomies(self) -> tuple[str, ...]:
        """Return the used taxonomies whose labels were not migrated, sorted by name."""
        # A migration is recorded as an import whose first file is the old taxonomy.
        migrated = {
            record.files[0]
            for record in self.imports()
            if record.format == import_register.MIGRATION and record.state is ImportState.FINISHED
        }
        return tuple(ref for ref in self.used_taxonomies() if ref not in migrated)

    def register_trace(self, record: TraceRecord) -> str:
        """Store a trace, or update the stored one, and return its id in this workspace.

        The trace is known if its id and content are, or if its file has only grown. A trace with a
        known id and other content gets an id such as ``id~2``.
        """
        with self._database.reading() as connection:
            # This search avoids a write if nothing has changed. A transaction writes in any case.
            known_record = None
            if not connection.in_transaction():
                known_record = trace_register.find(connection, record)
        folder = self._database.traces_folder
        if (
            known_record is not None
            and trace_register.with_updates(known_record, record, folder) == known_record
        ):
            return known_record.trace_id
        if self.outbox is not None and self._database.away:
            if known_record is not None:
                return known_record.trace_id
            return self.outbox.register_trace(record)
        with self._database.writing() as connection:
            return trace_register.register(connection, record)

    register_unknown_traces = writing(trace_register.register_unknown)
    find_trace = reading(trace_register.find)
    traces = reading(trace_register.traces)
    earlier_contents = reading(trace_register.earlier_contents)

    def resolve_trace_path(self, stored: str) -> Path:
        """Return the path of a trace from the stored column ``path``."""
        return found_trace_path(stored, self._database.traces_folder)

    def trace(self, trace_id: str) -> TraceRecord:
        """Return the trace with this id.

        Raises:
            WorkspaceError: The workspace has no such trace.
        """
        with self._database.reading() as connection:
            matching = trace_register.traces(connection, trace_id)
        if not matching:
            raise WorkspaceError(f"trace {trace_id!r} is not known in this workspace")
        return matching[0]

    # The indices of spans that events refer to

    span_indices = reading(state.span_indices)
    referred_spans = reading(state.referred_spans)

    def keep_span_indices(self, indices: Mapping[str, Mapping[str, SpanIndex]]) -> None:
        """Store the indices of spans by trace and key, in place of earlier ones."""
        if any(indices.values()):
            with self._database.writing() as connection:
                state.keep_span_indices(connection, indices)

    def refresh_span_indices(self, trace_id: str, trace: Trace) -> None:
        """Store the current indices of the spans in a trace's events, if they have changed.

        Args:
            trace_id: The id of the trace in this workspace.
            trace: The trace, as far as it is read.
        """
        referred_keys = self.referred_spans(trace_id)
        if not referred_keys or self.away:
            return
        stored = self.span_indices(trace_id).get(trace_id, {})
        # All indices may have changed. Texts never change, so only missing lengths are counted.
        missing = missing_indices(referred_keys, stored)
        needed_keys = {key: missing.get(key, False) for key in referred_keys}
        changed_indices = {
            key: index
            for key, index in indices_in(trace, needed_keys).items()
            if key in missing or index.index != stored[key].index
        }
        self.keep_span_indices({trace_id: changed_indices})

    def add_annotator(self, name: str, kind: AnnotatorKind) -> None:
        """Add an annotator, or change the kind of a stored one from ``imported`` to ``human``.

        Args:
            name: The name.
            kind: The kind of annotator.
        """
        if any(info.name == name and info.kind is kind for info in self.annotators()):
            return
        with self._database.writing() as connection:
            register.add_annotators(connection, [(name, kind)])

    def check_annotators(self, *names: str, other_choices: Sequence[str] = ()) -> None:
        """Check that annotators have these names.

        Args:
            names: The names.
            other_choices: Words other than names to list in the message.

        Raises:
            WorkspaceError: A name is unknown.
        """
        known_names = [info.name for info in self.annotators()]
        for name in names:
            if name not in known_names:
                choices = ", ".join([*other_choices, *known_names]) or "none yet"
                raise WorkspaceError(
                    f"no annotator {name!r} in this workspace; there are: {choices}"
                )

    add_annotators = writing(register.add_annotators)
    annotators = reading(register.annotators)

    append = recording.append
    send_waiting = recording.send_waiting

    def open_outbox(self, folder: Path, annotator: str) -> None:
        """Open the outbox, which keeps changes on this machine while the server does not answer.

        Args:
            folder: The folder of the outbox.
            annotator: The annotator.

        Raises:
            WorkspaceError: The waiting changes of an earlier outbox cannot be read.
        """
        with self._database.reading() as connection:
            last_seq = recording.last_seq_of_annotator(connection, annotator)
        self.outbox = self._database.outbox(folder, annotator, last_seq)

    def read_ahead(self, *, everybody: bool = False) -> None:
        """Copy the tables that the annotator needs while the server does not answer.

        Nothing is copied while changes wait in the outbox.

        Args:
            everybody: True to copy the work of others too, for an adjudicator.

        Raises:
            WorkspaceError: The server's tables cannot be read.
        """
        outbox = self.outbox
        if outbox is not None and not outbox.waiting:
            with self._database.reading() as connection:
                outbox.local_copy.refresh(connection, everybody=everybody)

    def decided_meanwhile(self, sent: Sequence[WaitingChange]) -> tuple[Event, ...]:
        """Return decisions that others made while an adjudicator's decisions waited.

        They are on the same items, and not older than the first waiting event.

        Args:
            sent: The changes of one adjudicator that have waited.

        Raises:
            WorkspaceError: The workspace cannot be read.
        """
        sent_events = [event for change in sent for event in change.events]
        items = {
            (event.trace_id, event.taxonomy, event.fact.item)
            for event in sent_events
            if isinstance(event.fact, Decided)
        }
        first_time = min((event.at for event in sent_events), default="")
        decisions = list[Event]()
        for trace_id, taxonomy in {(trace_id, taxonomy) for trace_id, taxonomy, _ in items}:
            decisions += (
                event
                for event in self.events(trace_id=trace_id, taxonomy=taxonomy)
                if isinstance(event.fact, Decided)
                and event.at >= first_time
                and event.annotator != sent_events[0].annotator
                and (trace_id, taxonomy, event.fact.item) in items
            )
        return tuple(decisions)

    @contextmanager
    def reading_local_copy(self) -> Iterator[None]:
        """Let this thread read the local copy in the block while the server does not answer.

        This is for reading the work of all people, so it has no effect if the copy has only the
        annotator's own work.
        """
        outbox = self.outbox
        caller = get_ident()
        if outbox is not None and outbox.local_copy.everybody:
            self._database.cached_readers.add(caller)
        try:
            yield
        finally:
            self._database.cached_readers.discard(caller)

    @property
    def away(self) -> bool:
        """True if the server does not answer, so that reads use the local copy."""
        return self._database.away

    @property
    def waiting(self) -> int:
        """The number of changes that wait on this machine for the server."""
        return 0 if self.outbox is None else self.outbox.count

    def _waiting_events(
        self, annotator: str | None, trace_id: str | None, taxonomy: str | None
    ) -> tuple[Event, ...]:
        """Return the waiting events of the outbox, if it belongs to the annotator."""
        if self.outbox is None or annotator != self.outbox.annotator:
            return ()
        return self.outbox.events(trace_id, taxonomy)

    def last_seq(self, annotator: str, trace_id: str | None, taxonomy: str | None) -> int:
        """Return the sequence number of an annotator's last event on a trace; 0 if there is none.

        Args:
            annotator: The annotator.
            trace_id: The trace; None for events without a trace.
            taxonomy: The taxonomy; None for events without a taxonomy.
        """
        waiting = self._waiting_events(annotator, trace_id, taxonomy)
        with self._database.reading() as connection:
            last = recording.last_seq_on_trace(connection, annotator, trace_id, taxonomy)
        return max([last, *(event.seq for event in waiting)])

    known_facts = reading(recording.known_facts)

    def last_seqs(self, annotators: Iterable[str]) -> Mapping[str, int]:
        """Return the sequence number of each annotator's last event; 0 if there is none."""
        with self._database.reading() as connection:
            return {name: recording.last_seq_of_annotator(connection, name) for name in annotators}

    growth_of = reading(merging.growth_of)
    grow = writing(merging.grow)

    entries_in_force = reading(entries_in_force)

    def merge_events(
        self,
        events: Iterable[Event] | ForeignEvents,
        *,
        replacing: Collection[str] = (),
        in_force: InForce | None = None,
    ) -> MergeReport:
        """Add the foreign events that this workspace lacks, all in one transaction.

        The result does not depend on the order of merges. The caller registers the traces,
        taxonomies and annotators of the events.

        Args:
            events: The foreign events. Call ``with_checked_chains`` before a transaction begins.
            replacing: The people and judges whose earlier work may be replaced.
            in_force: The decisions, guidelines and studies that need consent to be replaced, as
                ``entries_in_force`` returned them before an earlier merge; None for the current
                ones.

        Returns:
            The number of added events, and the changes to each annotator's work.

        Raises:
            MergeRefused: The events would replace work of people who are not in ``replacing``;
                nothing was written.
            WorkspaceError: The events cannot be written.
        """
        foreign = events if isinstance(events, ForeignEvents) else with_checked_chains(events)
        with self._database.writing() as connection:
            return merging.merge(connection, foreign, replacing=replacing, in_force=in_force)

    def edited_histories(self) -> tuple[Event, ...]:
        """Return the first edited event of each person with edited events."""
        self._database.check_nothing_hidden()
        names = [info.name for info in self.annotators()]
        with self._database.reading() as connection:
            return edited_histories(connection, names)

    study_leads = reading(queries.study_leads)
    conflicts = reading(merging.conflicts)

    def events(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
        pass_number: int | None = None,
    ) -> Iterator[Event]:
        """Yield events in batches, sorted by annotator, sequence number and id.

        Args:
            trace_id: Only events on this trace, followed by the annotator's waiting events on it.
                None for all stored events.
            annotator: Only events of this annotator; None for all.
            taxonomy: Only events under this taxonomy; None for all.
            pass_number: Only events of this pass; None for all.
        """
        filters: queries.OfWork = {
            "trace_id": trace_id,
            "annotator": annotator,
            "taxonomy": taxonomy,
        }
        waiting: dict[str, Event] = {}
        if trace_id is not None:
            waiting_events = self._waiting_events(annotator, trace_id, taxonomy)
            waiting = {event.id: event for event in waiting_events}
        after: tuple[str, int, str] | None = None
        while True:
            with self._database.reading() as connection:
                batch = queries.events(connection, filters, pass_number, after)
            if not batch:
                break
            for event in batch:
                waiting.pop(event.id, None)
                yield event
            after = (batch[-1].annotator, batch[-1].seq, batch[-1].id)
        yield from waiting.values()

    events_on_traces = reading(queries.events_on_traces)

    rebuild = writing(rebuild)

    read_columns = reading(queries.read_columns)
    packed_verdicts = reading(queries.packed_verdicts)

    # State. By default queries select the last pass; "finished" selects the last finished pass.

    labels = reading(queries.labels)
    verdicts = reading(queries.verdicts)
    reviews = reading(queries.reviews)
    span_notes = reading(queries.span_notes)
    passes = reading(queries.passes)
    finished_traces = reading(queries.finished_traces)
    reads = reading(queries.reads)
    modes_to_look_at_again = reading(queries.modes_to_look_at_again)

    def decisions(
        self, trace_id: str, taxonomy: str, *, annotator: str | None = None
    ) -> tuple[Decision, ...]:
        """Return the decisions in force on a trace.

        Args:
            trace_id: The trace.
            taxonomy: The taxonomy.
            annotator: Only decisions of this adjudicator; None for the newest on each item.
        """
        all_decisions = self.all_decisions(taxonomy, trace_id=trace_id, annotator=annotator)
        return all_decisions.get(trace_id, ())

    all_decisions = reading(queries.decisions)
    study = reading(queries.study)

    def outside_study(self, taxonomy: str) -> frozenset[str]:
        """Return the people who are not in the taxonomy's study; empty without a study."""
        study = self.study(taxonomy)
        if study is None:
            return frozenset()
        participants = study.participants
        return frozenset(
            annotator.name
            for annotator in self.annotators()
            if annotator.kind.is_person and annotator.name not in participants
        )

    guidelines = reading(queries.guidelines)

    judgements = reading(queries.judgements)
    judges = reading(queries.judges)
    label_counts = reading(queries.label_counts)
    waiting_counts = reading(queries.waiting_counts)

    imports = reading(import_register.imports)

    def begin_import(
        self, file_format: str, files: Sequence[str], *, request_key: str, annotator: str | None
    ) -> ImportRecord:
        """Store the start of an import, or continue an interrupted one.

        Args:
            file_format: The name of the files' format.
            files: The names of the files.
            request_key: The command as a text, by which an interrupted import is found.
            annotator: The annotator who imports; None if unknown.

        Returns:
            The record of the import.

        Raises:
            WorkspaceError: An undo of the same import was interrupted.
        """
        with self._database.writing() as connection:
            for record in import_register.imports(connection):
                if record.asked == request_key and record.state is ImportState.UNDOING:
                    raise WorkspaceError(
                        f"the undo of import {record.id} of the same files was interrupted; "
                        f"finish it first: mast-tui import --undo {record.id}"
                    )
                if record.asked == request_key and record.state is ImportState.UNFINISHED:
                    return record
            record = ImportRecord(
                self.new_id(), now(), annotator, file_format, tuple(files), request_key
            )
            import_register.add(connection, record)
            return record

    record_imported_events = writing(import_register.record_imported_events)
    finish_import = writing(import_register.finish)
    begin_undo = writing(import_register.begin_undo)
    finish_undo = writing(import_register.finish_undo)
    import_counts = reading(import_register.counts)
    import_works = reading(import_register.works)
    imported_event_ids = reading(import_register.imported_event_ids)

    def start_run(
        self, judge: str, taxonomy: str, *, note: str = "", settings: RunSettings | None = None
    ) -> str:
        """Store the start of a judge's run, and return the run's id.

        Args:
            judge: The judge.
            taxonomy: The taxonomy.
            note: A note on the run.
            settings: The settings of a model's run.

        Raises:
            WorkspaceError: An example in the prompt is set aside for measuring judges.
        """
        run = Run(self.new_id(), judge, taxonomy, now(), note=note, settings=settings)
        with self._database.writing() as connection:
            for trace_id in () if settings is None else settings.examples:
                # Built-in examples are from traces that the workspace seldom has.
                if held_out(self, trace_id) and trace_register.traces(connection, trace_id):
                    raise WorkspaceError(
                        f"trace {trace_id!r} is set aside for measuring judges, so no prompt "
                        "may show it; use other examples"
                    )
            run_register.begin_run(connection, run)
        return run.id

    unfinished_run = reading(run_register.unfinished_run)
    set_run_answer_form = writing(run_register.set_answer_form)
    note_run_trace = writing(run_register.add_run_trace)
    finish_run = writing(run_register.finish_run)
    add_run = writing(run_register.add_run)
    runs = reading(run_register.runs)
    run_examples = reading(run_register.examples)
    unmeasured_traces = reading(run_register.unmeasured_traces)

    record_asked = writing(run_register.add_asked)
    find_answer = reading(run_register.find_answer)
    answers_about = reading(run_register.answers_about)
    answer_statistics = reading(run_register.answer_statistics)
    reject_answer = writing(run_register.reject_answer)
    unusable_answers = reading(run_register.unusable_answers)
    answer_keys = reading(run_register.answer_keys)
    usage = reading(run_register.usage)

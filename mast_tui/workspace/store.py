"""A workspace: where labels, reviews, runs of judges and decisions are kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from mast_tui.errors import WorkspaceError
from mast_tui.gold.model import Decision, Guideline
from mast_tui.labels import AnnotatorKind, Label, Pass, Review, SpanNote, Verdict
from mast_tui.study.model import Study
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import queries
from mast_tui.workspace.core import WorkspaceCore
from mast_tui.workspace.database import Database
from mast_tui.workspace.events import append as recording
from mast_tui.workspace.events import foreign as merging
from mast_tui.workspace.events.chain import Foreign, edited_histories, examined
from mast_tui.workspace.events.changes import State, read_state
from mast_tui.workspace.events.columns import Row, Taken, read_columns
from mast_tui.workspace.events.foreign import Growth
from mast_tui.workspace.events.model import Event
from mast_tui.workspace.events.types import Fact, SpansRead
from mast_tui.workspace.queries import Filter, PassChoice
from mast_tui.workspace.records import (
    AnnotatorInfo,
    EventConflict,
    Judgement,
    MergeReport,
    TraceRecord,
)
from mast_tui.workspace.registers import settings as register
from mast_tui.workspace.registers import taxonomies as taxonomy_register
from mast_tui.workspace.registers import traces as trace_register
from mast_tui.workspace.registers.taxonomies import Revision, RevisionJson


class Workspace(WorkspaceCore):
    """An open workspace; may be used from any thread.

    Whatever a method changes is on disk when it returns. Every method raises ``WorkspaceError``,
    in words for people, where the workspace cannot be read or written; then nothing has changed.
    """

    @classmethod
    def open(cls, path: Path | str, *, create: bool = True) -> Workspace:
        """The workspace in the file at ``path``, made with its folder where there is none.

        ``:memory:`` keeps it in memory. Raises ``WorkspaceError`` for a file of another kind, one
        made by a newer version (which is not touched), one that may not be written, and, with
        ``create`` false, where there is none.
        """
        if str(path) == ":memory:":
            return cls(Database(None, create=True))
        if "://" in str(path):
            raise WorkspaceError(f"{path}: workspaces are SQLite files so far; give a path")
        return cls(Database(Path(path).expanduser().absolute(), create=create))

    @property
    def path(self) -> Path | None:
        """The file, or None for a workspace in memory."""
        return self._database.path

    @property
    def journal_mode(self) -> str:
        """How commits are kept safe: ``wal`` on a local file system, ``delete`` elsewhere."""
        return self._database.journal_mode

    def close(self) -> None:
        """Close the file, which then holds everything; nothing waits for this to be safe."""
        self._database.close()

    # The file

    def check_there(self) -> None:
        """Raise ``WorkspaceGone`` where the file that is open is not at its path any more."""
        self._database.check_there()

    def when_gone(self, goes_on: Callable[[], bool]) -> None:
        """Have a command that finds the file gone ask whether it can go on in another one."""
        self._database.when_gone = goes_on

    def changed_elsewhere(self) -> bool:
        """Whether another program has written since this was last asked; see ``Database``."""
        return self._database.changed_elsewhere()

    def checkpoint(self) -> None:
        """Let the file hold everything that is kept, so that a copy of it is whole."""
        self._database.checkpoint()

    @property
    def last_write(self) -> float:
        """When this program wrote last, as ``time.monotonic`` tells."""
        return self._database.last_write

    def check(self) -> None:
        """Raise ``WorkspaceError`` where SQLite finds the file damaged."""
        self._database.check()

    def event_count(self) -> int:
        """How many events are kept, of everybody."""
        with self._database.reading() as connection:
            return queries.event_count(connection)

    def copy_to(self, target: Path) -> None:
        """Copy everything into a new file; raises ``WorkspaceError`` and leaves none where it
        cannot."""
        self._database.copy_to(target)

    @contextmanager
    def trial(self, *, without: Collection[str] = ()) -> Iterator[Workspace]:
        """A copy for trying out what a change would do, gone at the end.

        Nobody waits for what is done in it, however long that takes.

        Args:
            without: ids of events that it is not to hold.
        """
        with TemporaryDirectory(prefix="mast-tui-") as folder:
            path = Path(folder) / "trial.db"
            self.copy_to(path)
            with closing(Workspace.open(path, create=False)) as copy:
                if without:
                    with copy._database.writing() as connection:
                        recording.forget(connection, without)
                yield copy

    def move_to(self, target: Path) -> None:
        """Copy everything into a new file and go on there: the old one is gone."""
        self._database.move_to(target)

    # Taxonomies

    def add_taxonomy(self, taxonomy: Taxonomy, *, in_use: bool = True) -> None:
        """Keep a taxonomy, worded as this one is.

        Another text of one that is kept is noted as a revision, with the time.

        Args:
            taxonomy: What is labelled with.
            in_use: Whether somebody reads this text; else one that is here stays.

        Raises:
            WorkspaceError: The same id and version has other modes here.
        """
        with self._database.reading() as connection:
            known = taxonomy_register.is_in_force(connection, taxonomy) or (
                not in_use and taxonomy_register.is_known(connection, taxonomy)
            )
        if not known:
            with self._database.writing() as connection:
                taxonomy_register.put_in_force(connection, taxonomy)

    def add_revisions(self, revisions: Iterable[Revision]) -> None:
        """Keep texts of taxonomies with the times from which on they held: the last one holds."""
        with self._database.writing() as connection:
            taxonomy_register.add_revisions(connection, revisions)

    def revisions(self, ref: str | None = None) -> tuple[Revision, ...]:
        """Every text that the taxonomies here have had, or the one named, by name and time."""
        with self._database.reading() as connection:
            return taxonomy_register.revisions(connection, ref)

    def revisions_read(self, ref: str) -> tuple[RevisionJson, ...]:
        """The texts of a taxonomy that held one after the other, and what was read under each."""
        with self._database.reading() as connection:
            return taxonomy_register.revisions_read(connection, ref)

    def as_worded(self, taxonomy: Taxonomy) -> Taxonomy:
        """The taxonomy with the text that holds here, where this one was here before."""
        with self._database.reading() as connection:
            return taxonomy_register.in_force(connection, taxonomy)

    def taxonomies(self) -> tuple[Taxonomy, ...]:
        """The taxonomies that are kept, by name, as they are worded now."""
        with self._database.reading() as connection:
            return taxonomy_register.taxonomies(connection)

    def taxonomy(self, ref: str) -> Taxonomy:
        """The taxonomy ``id@version``; raises ``WorkspaceError`` where it is not kept here."""
        with self._database.reading() as connection:
            found = taxonomy_register.taxonomies(connection, ref)
        if not found:
            raise WorkspaceError(f"taxonomy {ref} is not in this workspace; give --taxonomy FILE")
        return found[0]

    # Traces

    def register_trace(self, record: TraceRecord) -> str:
        """Keep a trace at first contact and return the id that it has in this workspace.

        The same id and content, or a file that has only grown, is the trace that is known; the
        same id with other content is kept as ``id~2``.
        """
        with self._database.reading() as connection:
            # Within a transaction it is looked for when it is kept, and once is enough.
            within = connection.in_transaction()
            known = None if within else trace_register.find(connection, record)
        if known is not None and trace_register.with_news(known, record) == known:
            return known.trace_id
        with self._database.writing() as connection:
            return trace_register.register(connection, record)

    def register_unknown_traces(self, records: Sequence[TraceRecord]) -> tuple[TraceRecord, ...]:
        """Keep traces that nobody has seen, and whose ids nothing here has; returns the others.

        The same as ``register_trace`` of each, for very many.
        """
        with self._database.writing() as connection:
            return trace_register.register_unknown(connection, records)

    def find_trace(self, record: TraceRecord) -> TraceRecord | None:
        """The trace that this is, as it is known here, or None; writes nothing."""
        with self._database.reading() as connection:
            return trace_register.find(connection, record)

    def traces(self) -> tuple[TraceRecord, ...]:
        """The traces that are kept, by id."""
        with self._database.reading() as connection:
            return trace_register.traces(connection)

    def trace(self, trace_id: str) -> TraceRecord:
        """The trace with this id; raises ``WorkspaceError`` where it is not known here."""
        with self._database.reading() as connection:
            found = trace_register.traces(connection, trace_id)
        if not found:
            raise WorkspaceError(f"trace {trace_id!r} is not known in this workspace")
        return found[0]

    # Annotators

    def add_annotator(self, name: str, kind: AnnotatorKind) -> None:
        """Keep an annotator; an ``imported`` one becomes ``human`` when they label here."""
        if any(info.name == name and info.kind is kind for info in self.annotators()):
            return
        with self._database.writing() as connection:
            register.add_annotators(connection, [(name, kind)])

    def add_annotators(self, given: Sequence[tuple[str, AnnotatorKind]]) -> None:
        """Keep annotators who come together, by name and kind."""
        with self._database.writing() as connection:
            register.add_annotators(connection, given)

    def annotators(self) -> tuple[AnnotatorInfo, ...]:
        """Everybody who labels here, by name."""
        with self._database.reading() as connection:
            return register.annotators(connection)

    # Events

    append = recording.append

    def last_seq(self, annotator: str, trace_id: str, taxonomy: str) -> int:
        """The counter of an annotator's last event on a trace, 0 for none; for ``append``."""
        with self._database.reading() as connection:
            return recording.last_seq(connection, annotator, trace_id, taxonomy)

    def known_facts(self, ids: Sequence[str]) -> Mapping[str, Fact]:
        """What the events of these ids say that are here, by id."""
        with self._database.reading() as connection:
            return recording.known_facts(connection, ids)

    def counters(self, annotators: Iterable[str]) -> Mapping[str, int]:
        """The counter of each annotator's last event, 0 for none."""
        with self._database.reading() as connection:
            return {name: recording.last_counter(connection, name) for name in annotators}

    def growth_of(self, events: Sequence[Event], *, is_broken: bool) -> Growth:
        """What one annotator's foreign events, as ``examined`` has them, add to what is here."""
        with self._database.reading() as connection:
            return merging.growth_of(connection, events, is_broken=is_broken)

    def grow(self, growth: Growth, events: Sequence[Event]) -> Growth:
        """Add the next events of a plain growth, and return what is to follow.

        Raises ``ChangedElsewhere`` where the annotator has events here that came meanwhile.
        """
        with self._database.writing() as connection:
            return merging.grow(connection, growth, events)

    def merge_events(
        self, events: Iterable[Event] | Foreign, *, replacing: Collection[str] = ()
    ) -> MergeReport:
        """Add foreign events that are not here yet, all in one transaction.

        The outcome does not depend on the order of merges, and merging twice changes nothing.
        Register their traces, taxonomies and annotators beside it (``merge`` does all of it).

        Args:
            events: what comes; look at it with ``examined`` before a transaction begins.
            replacing: the people whose finished passes, decisions and sight may change by it, and
                whose edited histories take the place of those here.

        Returns:
            What was added, and what changed by name.

        Raises:
            MergeRefused: it would change what others have said; nothing was written.
            WorkspaceError: it cannot be written.
        """
        foreign = events if isinstance(events, Foreign) else examined(events)
        with self._database.writing() as connection:
            return merging.merge(connection, foreign, replacing=replacing)

    def standing(self, annotator: str) -> State:
        """Everything that stands of one annotator, for ``changes.compare``."""
        with self._database.reading() as connection:
            return read_state(connection, annotator)

    def edited_histories(self) -> tuple[Event, ...]:
        """For each person whose events were changed outside of this program, the first of them."""
        names = [info.name for info in self.annotators()]
        with self._database.reading() as connection:
            return edited_histories(connection, names)

    def study_leads(self) -> Mapping[str, str]:
        """Who set up each study that stands, by taxonomy."""
        with self._database.reading() as connection:
            return queries.study_leads(connection)

    def conflicts(self) -> tuple[EventConflict, ...]:
        """What people counted alike, with other content, in workspaces that were merged."""
        with self._database.reading() as connection:
            return merging.conflicts(connection)

    def events(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
        pass_number: int | None = None,
    ) -> Iterator[Event]:
        """Events by annotator, counter and id, read piece by piece."""
        wanted = Filter(trace_id, annotator, taxonomy, pass_number)
        after: tuple[str, int, str] | None = None
        while True:
            with self._database.reading() as connection:
                batch = queries.events(connection, wanted, after)
            if not batch:
                return
            yield from batch
            after = (batch[-1].annotator, batch[-1].seq, batch[-1].id)

    def rebuild(self) -> None:
        """Make the state tables anew from the events."""
        with self._database.writing() as connection:
            recording.rebuild(connection)

    def read_columns(
        self,
        table: str,
        columns: Sequence[str],
        take: Callable[[Iterator[Row]], Taken],
        *,
        wanted: Mapping[str, str] | None = None,
        given: str | None = None,
    ) -> Taken:
        """What ``take`` makes of the rows of a state table or register; see ``columns``.

        For figures over so many rows that no object is made of each. ``take`` may not use the
        workspace.
        """
        with self._database.reading() as connection:
            return read_columns(connection, table, columns, take, wanted=wanted or {}, given=given)

    # State. Without a pass named these are of the last one; "finished" is the last finished one.

    def labels(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
        pass_number: PassChoice = "last",
    ) -> tuple[Label, ...]:
        """Labels by trace, annotator, taxonomy, pass and id."""
        with self._database.reading() as connection:
            return queries.labels(connection, Filter(trace_id, annotator, taxonomy, pass_number))

    def verdicts(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
        pass_number: PassChoice = "last",
    ) -> tuple[Verdict, ...]:
        """Verdicts by trace, annotator, taxonomy, pass and mode; a mode with labels is present."""
        with self._database.reading() as connection:
            return queries.verdicts(connection, Filter(trace_id, annotator, taxonomy, pass_number))

    def reviews(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
        pass_number: PassChoice = "last",
    ) -> tuple[Review, ...]:
        """Reviews by trace, annotator, taxonomy, pass and suggestion."""
        with self._database.reading() as connection:
            return queries.reviews(connection, Filter(trace_id, annotator, taxonomy, pass_number))

    def span_notes(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
        pass_number: PassChoice = "last",
    ) -> tuple[SpanNote, ...]:
        """Notes on spans by trace, annotator, taxonomy, pass and span."""
        with self._database.reading() as connection:
            return queries.span_notes(
                connection, Filter(trace_id, annotator, taxonomy, pass_number)
            )

    def passes(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
    ) -> tuple[Pass, ...]:
        """All passes by trace, annotator, taxonomy and number, adjudications among them."""
        with self._database.reading() as connection:
            return queries.passes(connection, Filter(trace_id, annotator, taxonomy))

    def finished_traces(self, annotator: str, taxonomy: str) -> frozenset[str]:
        """The ids of the traces of which an annotator has finished the last pass."""
        with self._database.reading() as connection:
            return queries.finished_traces(connection, annotator, taxonomy)

    def reads(self, annotator: str, trace_id: str, taxonomy: str, pass_number: int) -> SpansRead:
        """What was read up to and in a pass, each key and each run once."""
        with self._database.reading() as connection:
            return queries.reads(connection, annotator, trace_id, taxonomy, pass_number)

    def look_again(
        self, annotator: str, taxonomy: str, trace_id: str | None = None
    ) -> Mapping[str, tuple[str, ...]]:
        """The modes that an annotator was asked to look at again, by trace, done or not."""
        with self._database.reading() as connection:
            return queries.look_again(connection, annotator, taxonomy, trace_id)

    def decisions(
        self, trace_id: str, taxonomy: str, *, annotator: str | None = None
    ) -> tuple[Decision, ...]:
        """The decisions that stand, in the order in which they were made.

        Of several adjudicators' decisions on one item the last one stands, unless only those of
        one ``annotator`` are asked for.
        """
        return self.all_decisions(taxonomy, trace_id=trace_id, annotator=annotator).get(
            trace_id, ()
        )

    def all_decisions(
        self, taxonomy: str, *, trace_id: str | None = None, annotator: str | None = None
    ) -> Mapping[str, tuple[Decision, ...]]:
        """The decisions that stand, per trace, as ``decisions`` gives them."""
        with self._database.reading() as connection:
            found = queries.decisions(connection, Filter(trace_id, annotator, taxonomy))
        by_trace: dict[str, tuple[Decision, ...]] = {}
        for trace, decision in found:
            by_trace[trace] = (*by_trace.get(trace, ()), decision)
        return by_trace

    def study(self, taxonomy: str) -> Study | None:
        """The study under a taxonomy, None where none was set up; of several the last one set."""
        with self._database.reading() as connection:
            return queries.study(connection, taxonomy)

    def outside_study(self, taxonomy: str) -> frozenset[str]:
        """People who have no part in the taxonomy's study; nobody where there is no study.

        What they said counts in no figure unless they are named.
        """
        study = self.study(taxonomy)
        if study is None:
            return frozenset()
        inside = {*study.annotators, *study.adjudicators}
        return frozenset(
            one.name
            for one in self.annotators()
            if one.kind is not AnnotatorKind.JUDGE and one.name not in inside
        )

    def guidelines(self, taxonomy: str) -> tuple[Guideline, ...]:
        """What was agreed about the taxonomy's modes, the earliest first."""
        with self._database.reading() as connection:
            return queries.guidelines(connection, taxonomy)

    # Judges

    def judgements(
        self,
        *,
        trace_id: str | None = None,
        annotator: str | None = None,
        taxonomy: str | None = None,
    ) -> tuple[Judgement, ...]:
        """Which judge has looked at which trace, by trace and judge."""
        with self._database.reading() as connection:
            return queries.judgements(connection, Filter(trace_id, annotator, taxonomy))

    def answered_suggestions(self, trace_id: str, taxonomy: str) -> frozenset[str]:
        """The ids of suggestions that anybody has answered, in whatever pass."""
        reviews = self.reviews(trace_id=trace_id, taxonomy=taxonomy, pass_number=None)
        return frozenset(review.suggestion for review in reviews)

    def label_counts(self, annotator: str, taxonomy: str) -> Mapping[str, int]:
        """How many labels an annotator has per trace, in the last pass."""
        with self._database.reading() as connection:
            return queries.label_counts(connection, annotator, taxonomy)

    def waiting_counts(self, annotator: str, taxonomy: str) -> Mapping[str, int]:
        """How many judges' suggestions an annotator has not answered yet, per trace."""
        with self._database.reading() as connection:
            return queries.waiting_counts(connection, annotator, taxonomy)

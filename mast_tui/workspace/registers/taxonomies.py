"""The register of taxonomies and of the revisions of their texts.

Labels rely on the names, codes and slugs of a taxonomy and on their order and levels, which never
change within one version. Its texts may change: each revision is stored with the time from which it
is in force, and the last one counts. So equal revisions result in equal texts on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TypedDict

from msgspec import Struct, structs
from sqlalchemy import Connection, func, select

from mast_tui.counts import counted
from mast_tui.errors import WorkspaceError
from mast_tui.labels import AGENT_PREFIX, JUDGE_PREFIX
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, to_dict
from mast_tui.taxonomy.model import Taxonomy, differences, lasting_positions
from mast_tui.workspace import schema
from mast_tui.workspace.database import put_rows
from mast_tui.workspace.events.model import now


class Revision(Struct, frozen=True):
    """The texts of a taxonomy that are in force from a time on.

    ``since`` is ISO 8601 in UTC, or empty if unknown.
    """

    taxonomy: Taxonomy
    since: str = ""


class RevisionJson(TypedDict):
    """A revision in the documents of figures.

    ``passes`` is the number of people's finished passes that began while it was in force.
    """

    hash: str
    since: str | None
    passes: int


def stored_hash(connection: Connection, taxonomy: Taxonomy) -> str | None:
    """Return the content hash of the stored taxonomy with the same id and version, or None.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.

    Raises:
        WorkspaceError: The stored taxonomy has other modes.
    """
    table = schema.taxonomies
    row = connection.execute(
        select(table.c.content_hash, table.c.document).where(table.c.ref == taxonomy.ref)
    ).one_or_none()
    if row is None:
        return None
    content_hash, document = row
    if content_hash != taxonomy.content_hash:
        _check_same_modes(_taxonomy_of_document(taxonomy.ref, document), taxonomy)
    return str(content_hash)


def put_in_force(connection: Connection, taxonomy: Taxonomy) -> None:
    """Store the texts of a taxonomy as the newest revision, unless they are already in force.

    Args:
        connection: An open transaction.
        taxonomy: The taxonomy.

    Raises:
        WorkspaceError: The stored taxonomy of this name has other modes.
    """
    if stored_hash(connection, taxonomy) != taxonomy.content_hash:
        add_revisions(connection, [Revision(taxonomy, now())])


def add_revisions(connection: Connection, revisions: Iterable[Revision]) -> None:
    """Store revisions of taxonomies; the newest one of each taxonomy is in force.

    Args:
        connection: An open transaction.
        revisions: The revisions, in any order.

    Raises:
        WorkspaceError: A stored taxonomy of the same name has other modes.
    """
    table = schema.taxonomy_revisions
    for revision in revisions:
        taxonomy = revision.taxonomy
        stored_hash(connection, taxonomy)  # raises if the stored taxonomy has other modes
        revision_row = {
            "ref": taxonomy.ref,
            "since": revision.since,
            "content_hash": taxonomy.content_hash,
            "document": json.dumps(to_dict(taxonomy)),
        }
        put_rows(connection, table, [revision_row])
        newest_revision = (
            select(table.c.ref, table.c.content_hash, table.c.document)
            .where(table.c.ref == taxonomy.ref)
            .order_by(table.c.since.desc(), table.c.content_hash.desc())
            .limit(1)
        )
        row_in_force = connection.execute(newest_revision).mappings().one()
        put_rows(connection, schema.taxonomies, [dict(row_in_force)])


def with_latest_texts(connection: Connection, taxonomy: Taxonomy) -> Taxonomy:
    """Return the newest stored texts of a taxonomy if its own texts are a stored revision.

    Otherwise the taxonomy is returned unchanged. So new texts in a version of this program replace
    edited texts, but only once.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
    """
    table = schema.taxonomy_revisions
    stored = connection.execute(
        select(table.c.since)
        .where(table.c.ref == taxonomy.ref, table.c.content_hash == taxonomy.content_hash)
        .limit(1)
    ).one_or_none()
    return taxonomy if stored is None else taxonomies(connection, taxonomy.ref)[0]


def taxonomies(connection: Connection, ref: str | None = None) -> tuple[Taxonomy, ...]:
    """Return the stored taxonomies with their newest texts, sorted by name.

    Args:
        connection: An open connection.
        ref: Only this taxonomy; None for all that can be read.

    Raises:
        WorkspaceError: The taxonomy ``ref`` cannot be read.
    """
    table = schema.taxonomies
    statement = select(table.c.ref, table.c.document).order_by(table.c.ref)
    if ref is not None:
        statement = statement.where(table.c.ref == ref)
    rows = connection.execute(statement).all()
    return tuple(
        _taxonomy_of_document(*row) for row in rows if ref is not None or _is_readable(*row)
    )


def revisions(connection: Connection, ref: str | None = None) -> tuple[Revision, ...]:
    """Return the stored revisions of taxonomies, sorted by name and time.

    Args:
        connection: An open connection.
        ref: Only revisions of this taxonomy; None for all that can be read.
    """
    table = schema.taxonomy_revisions
    statement = select(table.c.ref, table.c.since, table.c.document).order_by(
        table.c.ref, table.c.since, table.c.content_hash
    )
    if ref is not None:
        statement = statement.where(table.c.ref == ref)
    rows = connection.execute(statement).all()
    return tuple(
        Revision(_taxonomy_of_document(name, document), since)
        for name, since, document in rows
        if ref is not None or _is_readable(name, document)
    )


def unreadable(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return the names of damaged taxonomies with their first problems, sorted."""
    table = schema.taxonomies
    revisions_table = schema.taxonomy_revisions
    taxonomy_rows = connection.execute(
        select(table.c.ref, table.c.content_hash, table.c.document)
    ).all()
    revision_rows = connection.execute(
        select(
            revisions_table.c.ref, revisions_table.c.content_hash, revisions_table.c.document
        ).order_by(revisions_table.c.since, revisions_table.c.content_hash)
    ).all()
    problems = dict[str, str]()
    for ref, content_hash, document in (*taxonomy_rows, *revision_rows):
        try:
            taxonomy = _taxonomy_of_document(ref, document)
        except WorkspaceError as error:
            problems.setdefault(ref, str(error))
            continue
        if (taxonomy.ref, taxonomy.content_hash) != (ref, content_hash):
            problems.setdefault(ref, "its text does not match its stored hash")
    last_hash_by_ref = {ref: content_hash for ref, content_hash, _ in revision_rows}
    for ref, content_hash, _ in taxonomy_rows:
        if last_hash_by_ref.get(ref) != content_hash:
            problems.setdefault(ref, "its text is not the latest revision")
    return tuple(sorted(problems.items()))


def with_positions(connection: Connection, taxonomy: Taxonomy) -> Taxonomy:
    """Add to a taxonomy the ``positions`` that its modes had in earlier versions.

    People type the position of a mode as two digits, so it must stay when another mode is removed.

    Args:
        connection: An open connection.
        taxonomy: The taxonomy.
    """
    if taxonomy.coded_by_digits:  # people type its codes instead
        return taxonomy
    first_revisions: dict[str, Revision] = {}
    for revision in revisions(connection):
        if revision.taxonomy.id == taxonomy.id:
            first_revisions.setdefault(revision.taxonomy.ref, revision)
    refs = sorted(first_revisions, key=lambda ref: (first_revisions[ref].since, ref))
    earlier_refs = refs[: refs.index(taxonomy.ref)] if taxonomy.ref in first_revisions else refs
    versions = [*(first_revisions[ref].taxonomy for ref in earlier_refs), taxonomy]
    return (
        structs.replace(taxonomy, positions=lasting_positions(versions))
        if earlier_refs
        else taxonomy
    )


def revisions_read(connection: Connection, ref: str) -> tuple[RevisionJson, ...]:
    """Return the revisions of a taxonomy in order, and count the passes that began under each.

    Only people's finished passes count. The first revision includes all earlier passes.

    Args:
        connection: An open connection.
        ref: The taxonomy.
    """
    table = schema.taxonomy_revisions
    passes = schema.passes
    rows = connection.execute(
        select(table.c.content_hash, table.c.since)
        .where(table.c.ref == ref)
        .order_by(table.c.since, table.c.content_hash)
    ).all()
    # Consecutive rows with equal texts are one revision, which begins at the first row.
    distinct_rows = [next(group) for _, group in groupby(rows, key=lambda row: row.content_hash)]
    documents = list[RevisionJson]()
    finished_passes = select(func.count()).where(
        passes.c.taxonomy == ref,
        passes.c.finished_at.is_not(None),
        passes.c.withdrawn.is_(False),
        ~passes.c.annotator.startswith(JUDGE_PREFIX),
        ~passes.c.annotator.startswith(AGENT_PREFIX),
    )
    for index, (content_hash, since) in enumerate(distinct_rows):
        statement = finished_passes
        if index:
            statement = statement.where(passes.c.started_at >= since)
        if index + 1 < len(distinct_rows):
            statement = statement.where(passes.c.started_at < distinct_rows[index + 1].since)
        count = connection.execute(statement).scalar_one()
        documents.append({"hash": content_hash, "since": since or None, "passes": count})
    return tuple(documents)


def revision_words(revisions: Sequence[RevisionJson]) -> str:
    """Describe the revisions of a taxonomy; empty if there is only one."""
    if len(revisions) < 2:
        return ""
    changes = "; ".join(
        f"{revision['hash'][:8]} since {_date_of(revision)} "
        f"(traces labelled {counted(revision['passes'], 'time')})"
        for revision in revisions
    )
    times = "once" if len(revisions) == 2 else f"{len(revisions) - 1} times"
    return f"the texts of the modes have changed {times}: {changes}"


def _date_of(revision: RevisionJson) -> str:
    # Texts without a time are those with which the workspace began.
    return "the beginning" if revision["since"] is None else revision["since"][:10]


def _is_readable(name: str, document: str) -> bool:
    try:
        _taxonomy_of_document(name, document)
    except WorkspaceError:
        return False
    return True


@lru_cache(maxsize=32)  # Most commands read the same few taxonomies several times.
def _taxonomy_of_document(name: str, document: str) -> Taxonomy:
    """Read a taxonomy from its stored JSON.

    Raises:
        WorkspaceError: The text is no valid taxonomy.
    """
    try:
        values = json.loads(document)
        if not isinstance(values, dict):
            raise TaxonomyError(f"{name}: not a taxonomy")
        return from_dict(values, name)
    except (TaxonomyError, ValueError) as error:
        raise WorkspaceError(f"a taxonomy in the workspace cannot be read: {error}") from error


def _check_same_modes(stored: Taxonomy, taxonomy: Taxonomy) -> None:
    """Raise ``WorkspaceError`` if a taxonomy has other modes than the stored one."""
    changes = differences(stored, taxonomy)
    if changes:
        more = f", and {len(changes) - 3} more" if len(changes) > 3 else ""
        raise WorkspaceError(
            f"taxonomy {taxonomy.ref} is already in this workspace with other modes "
            f"({'; '.join(changes[:3])}{more}); raise the version in the taxonomy file, so "
            "that labels keep their meaning. Only texts may change within a version"
        )

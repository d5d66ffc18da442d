"""The registers of a workspace: taxonomies, annotators, settings."""

from __future__ import annotations

import json
from collections.abc import Iterable

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from mast_tui.errors import WorkspaceError
from mast_tui.labels import AnnotatorKind, annotator_kind, check_unlike, checked_person
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, to_dict
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import schema
from mast_tui.workspace.records import AnnotatorInfo


def knows_taxonomy(connection: Connection, taxonomy: Taxonomy) -> bool:
    """Whether a taxonomy is kept; raises ``WorkspaceError`` where its name stands for another."""
    table = schema.taxonomies
    known = connection.execute(
        select(table.c.content_hash).where(table.c.ref == taxonomy.ref)
    ).scalar_one_or_none()
    if known is not None and known != taxonomy.content_hash:
        raise WorkspaceError(
            f"taxonomy {taxonomy.ref} is in this workspace already with another content; "
            "labels must not change their meaning: raise the version in the taxonomy file"
        )
    return known is not None


def add_taxonomy(connection: Connection, taxonomy: Taxonomy) -> None:
    """Keep a taxonomy; raises ``WorkspaceError`` where its name stands for another."""
    if not knows_taxonomy(connection, taxonomy):
        connection.execute(
            insert(schema.taxonomies).values(
                ref=taxonomy.ref,
                content_hash=taxonomy.content_hash,
                document=json.dumps(to_dict(taxonomy)),
            )
        )


def taxonomies(connection: Connection, ref: str | None = None) -> tuple[Taxonomy, ...]:
    """The taxonomies that are kept, by name: all, or the one named."""
    table = schema.taxonomies
    statement = select(table.c.ref, table.c.document).order_by(table.c.ref)
    if ref is not None:
        statement = statement.where(table.c.ref == ref)
    try:
        return tuple(
            from_dict(json.loads(document), name)
            for name, document in connection.execute(statement)
        )
    except TaxonomyError as error:
        raise WorkspaceError(f"a taxonomy in the workspace cannot be read: {error}") from error


def add_annotators(connection: Connection, given: Iterable[tuple[str, AnnotatorKind]]) -> None:
    """Keep annotators; one whose labels were imported becomes human once they label here.

    Those who come together are not held against each other, so that what was written from one
    workspace can always be read into an empty one.

    Args:
        connection: An open transaction.
        given: Name and kind of each.

    Raises:
        WorkspaceError: A name cannot be one, or looks like another that is known.
    """
    known = _names(connection)
    for name, kind in given:
        _check_kind(name, kind)
        if name not in known:
            _check_name(name, known)
        statement = insert(schema.annotators).values(name=name, kind=kind.value)
        if kind is AnnotatorKind.HUMAN:
            statement = statement.on_conflict_do_update(
                index_elements=["name"], set_={"kind": kind.value}
            )
        else:
            statement = statement.on_conflict_do_nothing()
        connection.execute(statement)


def note_annotator(connection: Connection, name: str) -> None:
    """Keep an annotator of whom only the name is known; a known one stays as is.

    Args:
        connection: An open transaction.
        name: The name that stands beside an event.

    Raises:
        WorkspaceError: It cannot be a name, or looks like another that is known.
    """
    known = _names(connection)
    if name in known:
        return
    _check_name(name, known)
    kind = annotator_kind(name).value
    connection.execute(insert(schema.annotators).values(name=name, kind=kind))


def _names(connection: Connection) -> frozenset[str]:
    return frozenset(connection.execute(select(schema.annotators.c.name)).scalars())


def _check_kind(name: str, kind: AnnotatorKind) -> None:
    is_judge = annotator_kind(name) is AnnotatorKind.JUDGE
    if is_judge != (kind is AnnotatorKind.JUDGE):
        raise WorkspaceError(f"{name!r}: a judge's name begins with 'judge:', and no other does")


def _check_name(name: str, known: Iterable[str]) -> None:
    """Refuse what is no person's name, or could be taken for another's; programs name judges."""
    if annotator_kind(name) is AnnotatorKind.JUDGE:
        return
    try:
        if checked_person(name) != name:
            raise ValueError(f"{name!r} begins or ends with white space")
        check_unlike(name, sorted(known))
    except ValueError as error:
        raise WorkspaceError(str(error)) from error


def annotators(connection: Connection) -> tuple[AnnotatorInfo, ...]:
    """Everybody who labels here, by name."""
    table, sights = schema.annotators, schema.sights
    statement = (
        select(table.c.name, table.c.kind, sights.c.blind)
        .select_from(table.outerjoin(sights, sights.c.annotator == table.c.name))
        .order_by(table.c.name)
    )
    return tuple(
        AnnotatorInfo(name, AnnotatorKind(kind), blind)
        for name, kind, blind in connection.execute(statement)
    )


def get_setting(connection: Connection, key: str) -> str | None:
    """The value of a setting, or None."""
    table = schema.settings
    value: str | None = connection.execute(
        select(table.c.value).where(table.c.key == key)
    ).scalar_one_or_none()
    return value


def set_setting(connection: Connection, key: str, value: str) -> None:
    """Keep a setting."""
    statement = insert(schema.settings).values(key=key, value=value)
    connection.execute(
        statement.on_conflict_do_update(index_elements=["key"], set_={"value": value})
    )

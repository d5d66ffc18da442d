"""The registers of a workspace: taxonomies, annotators, settings."""

from __future__ import annotations

import json

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert

from mast_tui.labels import AnnotatorKind, annotator_kind, checked_person
from mast_tui.taxonomy.loader import TaxonomyError, from_dict, to_dict
from mast_tui.taxonomy.model import Taxonomy
from mast_tui.workspace import schema
from mast_tui.workspace.errors import WorkspaceError
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


def add_annotator(connection: Connection, name: str, kind: AnnotatorKind) -> None:
    """Keep an annotator; one whose labels were imported becomes human once they label here."""
    is_judge = annotator_kind(name) is AnnotatorKind.JUDGE
    if is_judge != (kind is AnnotatorKind.JUDGE):
        raise WorkspaceError(f"{name!r}: a judge's name begins with 'judge:', and no other does")
    if not is_judge:
        try:
            if checked_person(name) != name:
                raise ValueError(f"{name!r} begins or ends with white space")
        except ValueError as error:
            raise WorkspaceError(str(error)) from error
    statement = insert(schema.annotators).values(name=name, kind=kind.value)
    if kind is AnnotatorKind.HUMAN:
        statement = statement.on_conflict_do_update(
            index_elements=["name"], set_={"kind": kind.value}
        )
    else:
        statement = statement.on_conflict_do_nothing()
    connection.execute(statement)


def note_annotator(connection: Connection, name: str) -> None:
    """Keep an annotator of whom only the name is known; a known one stays as is."""
    kind = annotator_kind(name).value
    connection.execute(
        insert(schema.annotators).values(name=name, kind=kind).on_conflict_do_nothing()
    )


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

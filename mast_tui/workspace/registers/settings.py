"""The registers of annotators and settings."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from mast_tui.errors import WorkspaceError
from mast_tui.labels import (
    AnnotatorKind,
    annotator_kind,
    check_unlike,
    checked_agent,
    checked_person,
    kind_fits_name,
)
from mast_tui.workspace import schema
from mast_tui.workspace.database import call_function, put_rows, sees_own_only
from mast_tui.workspace.records import AnnotatorInfo


def add_annotators(connection: Connection, annotators: Iterable[tuple[str, AnnotatorKind]]) -> None:
    """Add annotators, and change the kind of stored ones from ``imported`` to ``human``.

    The new names are not compared with each other, so that all annotators of a workspace can be
    added to an empty one.

    Args:
        connection: An open transaction.
        annotators: The names and kinds.

    Raises:
        WorkspaceError: A name is invalid, or looks like a stored one.
    """
    known_kinds = _kinds_by_name(connection)
    for name, kind in annotators:
        _check_kind(name, kind)
        if name not in known_kinds:
            _check_name(name, known_kinds)
        elif kind is not AnnotatorKind.HUMAN or known_kinds[name] == kind.value:
            continue  # a known annotator can only become human
        put_rows(connection, schema.annotators, [{"name": name, "kind": kind.value}])


def note_annotator(connection: Connection, name: str) -> None:
    """Add an annotator by name, unless the workspace has the annotator.

    Args:
        connection: An open transaction.
        name: The name in an event.

    Raises:
        WorkspaceError: The name is invalid, or looks like a stored one.
    """
    kinds = _kinds_by_name(connection)
    if name in kinds:
        return
    _check_name(name, kinds)
    kind = annotator_kind(name).value
    put_rows(connection, schema.annotators, [{"name": name, "kind": kind}])


def _kinds_by_name(connection: Connection) -> dict[str, str]:
    """Return the kinds of the stored annotators by name."""
    table = schema.annotators
    return {row.name: row.kind for row in connection.execute(select(table.c.name, table.c.kind))}


def _check_kind(name: str, kind: AnnotatorKind) -> None:
    if not kind_fits_name(kind, name):
        raise WorkspaceError(
            f"{name!r}: only judges' names begin with 'judge:', and only agents' names with "
            "'agent:'"
        )


def _check_name(name: str, names: Iterable[str]) -> None:
    """Raise ``WorkspaceError`` for a new name that is invalid or looks like another name.

    Programs make the names of judges, so these are not checked.
    """
    kind = annotator_kind(name)
    if kind is AnnotatorKind.JUDGE:
        return
    checked = checked_agent if kind is AnnotatorKind.AGENT else checked_person
    try:
        if checked(name) != name:
            raise ValueError(f"{name!r} begins or ends with white space")
        check_unlike(name, sorted(names))
    except ValueError as error:
        raise WorkspaceError(str(error)) from error


def annotators(connection: Connection) -> tuple[AnnotatorInfo, ...]:
    """Return the annotators of the workspace, sorted by name."""
    table = schema.annotators
    sights = schema.sights
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
    """Return the value of a setting; None if it was never set.

    Args:
        connection: An open connection.
        key: The name of the setting.
    """
    table = schema.settings
    value: str | None = connection.execute(
        select(table.c.value).where(table.c.key == key)
    ).scalar_one_or_none()
    return value


def set_setting(connection: Connection, key: str, value: str) -> None:
    """Store a setting.

    Args:
        connection: An open transaction.
        key: The name of the setting.
        value: The value.
    """
    if sees_own_only(connection):
        call_function(connection, "set_setting", schema.settings, [(key, value)])
    else:
        put_rows(connection, schema.settings, [{"key": key, "value": value}])

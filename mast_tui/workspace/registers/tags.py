"""Tags that somebody gave to open codes afterwards, by taxonomy and person.

They are about places, not labels, and stay from version to version of a codebook.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from mast_tui.labels import Target
from mast_tui.workspace.events.codec import read, to_values

if TYPE_CHECKING:
    from mast_tui.workspace.store import Workspace

SETTING: Final = "open_codes.tags"
"""So begins the setting that keeps them; the taxonomy's id and the person's name follow."""

Place = tuple[str, str, Target, bool]
"""Annotator, trace id, where it stands, and whether it is a label: what names an open code in every
pass."""

Tags = Mapping[Place, tuple[str, ...]]


def tags_by(workspace: Workspace, taxonomy: str, who: str) -> Tags:
    """The tags that somebody gave, by place, under any version of a taxonomy."""
    kept = workspace.get_setting(f"{SETTING}:{taxonomy}:{who}")
    return tags_from(json.loads(kept or "[]"))


def all_tags(
    workspace: Workspace, taxonomies: Iterable[str] | None = None
) -> Iterator[tuple[str, str, Tags]]:
    """Who gave which tags, under taxonomies with these ids or under all: id, name and tags."""
    people = (one.name for one in workspace.annotators())
    names = sorted({*people, *workspace.study_leads().values()})
    if taxonomies is None:
        taxonomies = sorted({one.id for one in workspace.taxonomies()})
    for taxonomy in taxonomies:
        for who in names:
            if tags := tags_by(workspace, taxonomy, who):
                yield taxonomy, who, tags


def keep_tags(workspace: Workspace, taxonomy: str, who: str, tags: Tags) -> None:
    """Keep what somebody gives, in place of what they gave before."""
    kept = json.dumps(tag_values(tags), ensure_ascii=False)
    workspace.set_setting(f"{SETTING}:{taxonomy}:{who}", kept)


def add_tags(
    workspace: Workspace, taxonomy: str, who: str, tags: Tags, names: Mapping[str, str]
) -> None:
    """Keep tags from another workspace beside those that are here.

    Args:
        workspace: What takes them.
        taxonomy: The id of the taxonomy.
        who: Who gave them.
        tags: What they gave.
        names: What traces are called here.
    """
    known = tags_by(workspace, taxonomy, who)
    joined = dict(known)
    for (annotator, trace_id, target, is_label), given in tags.items():
        place = annotator, names.get(trace_id, trace_id), target, is_label
        joined[place] = tuple(dict.fromkeys((*joined.get(place, ()), *given)))
    if joined != known:
        keep_tags(workspace, taxonomy, who, joined)


def tag_values(tags: Tags) -> list[list[Any]]:
    """Tags as plain values."""
    return [
        [annotator, trace_id, to_values(target), is_label, list(given)]
        for (annotator, trace_id, target, is_label), given in tags.items()
        if given
    ]


def tags_from(values: object) -> Tags:
    """Tags from plain values; raises ``ValueError`` for what is none."""
    found: dict[Place, tuple[str, ...]] = {}
    for value in values if isinstance(values, list) else [values]:
        match value:
            case [str(annotator), str(trace_id), target, bool(is_label), [*given]]:
                place = read(target, Target, "target")
                found[annotator, trace_id, place, is_label] = tuple(map(str, given))
            case _:
                raise ValueError("a tagged place is its annotator, trace, target, kind and tags")
    return found

"""The tags that authors add to open codes, by taxonomy and author.

A tag belongs to a place in a trace, not to a label, so it stays valid in later versions of a
codebook.
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
"""The beginning of the name of a setting, before the taxonomy's id and the author's name."""

TaggedPlace = tuple[str, str, Target, bool]
"""The place of an open code: annotator, trace id, target, and True for a label."""

Tags = Mapping[TaggedPlace, tuple[str, ...]]


def tags_by(workspace: Workspace, taxonomy: str, author: str) -> Tags:
    """Return the tags that an author has added under a taxonomy, by place.

    Args:
        workspace: The workspace.
        taxonomy: The id of the taxonomy, without a version.
        author: The author.
    """
    stored = workspace.get_setting(f"{SETTING}:{taxonomy}:{author}")
    return tags_from(json.loads(stored or "[]"))


def all_tags(
    workspace: Workspace, taxonomies: Iterable[str] | None = None
) -> Iterator[tuple[str, str, Tags]]:
    """Yield the id of a taxonomy, an author, and the author's tags under the taxonomy.

    Args:
        workspace: The workspace.
        taxonomies: The ids of the taxonomies; None for all.
    """
    people = (annotator.name for annotator in workspace.annotators())
    names = sorted({*people, *workspace.study_leads().values()})
    if taxonomies is None:
        taxonomies = sorted({taxonomy.id for taxonomy in workspace.taxonomies()})
    for taxonomy in taxonomies:
        for author in names:
            if tags := tags_by(workspace, taxonomy, author):
                yield taxonomy, author, tags


def keep_tags(workspace: Workspace, taxonomy: str, author: str, tags: Tags) -> None:
    """Store the tags of an author under a taxonomy, in place of earlier ones.

    Args:
        workspace: The workspace.
        taxonomy: The id of the taxonomy.
        author: The author.
        tags: The tags by place.
    """
    document = json.dumps(tag_values(tags), ensure_ascii=False)
    workspace.set_setting(f"{SETTING}:{taxonomy}:{author}", document)


def add_tags(
    workspace: Workspace, taxonomy: str, author: str, tags: Tags, local_ids: Mapping[str, str]
) -> None:
    """Add an author's tags from another workspace.

    Args:
        workspace: This workspace.
        taxonomy: The id of the taxonomy.
        author: The author of the tags.
        tags: The tags by place.
        local_ids: The ids of traces in this workspace by the other workspace's ids.
    """
    own_tags = tags_by(workspace, taxonomy, author)
    joined_tags = dict(own_tags)
    for (annotator, trace_id, target, is_label), new_tags in tags.items():
        location = annotator, local_ids.get(trace_id, trace_id), target, is_label
        joined_tags[location] = tuple(dict.fromkeys((*joined_tags.get(location, ()), *new_tags)))
    if joined_tags != own_tags:
        keep_tags(workspace, taxonomy, author, joined_tags)


def tag_values(tags: Tags) -> list[list[Any]]:
    """Convert tags to JSON values; places without tags are left out."""
    return [
        [annotator, trace_id, to_values(target), is_label, list(tag_names)]
        for (annotator, trace_id, target, is_label), tag_names in tags.items()
        if tag_names
    ]


def tags_from(values: object) -> Tags:
    """Read tags from JSON values.

    Raises:
        ValueError: The values are malformed.
    """
    tags: dict[TaggedPlace, tuple[str, ...]] = {}
    entries = values if isinstance(values, list) else [values]  # a value that is no list is refused
    for entry in entries:
        match entry:
            case [str(annotator), str(trace_id), target, bool(is_label), [*names]]:
                span_target = read(target, Target, "target")
                tags[annotator, trace_id, span_target, is_label] = tuple(map(str, names))
            case _:
                raise ValueError("expected annotator, trace, target, kind and tags")
    return tags

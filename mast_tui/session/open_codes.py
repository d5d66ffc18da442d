"""Open coding: what people wrote down that no mode describes, gathered across traces.

An open code is a label of the open mode, or a note on a span. Those alike are grouped by a tag
(given to them afterwards, or ``#name`` in their text), else as a model has proposed, else by their
words; a group may become a mode of the next codebook.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from rapidfuzz import fuzz, process

from mast_tui.errors import SessionError
from mast_tui.labels import AnnotatorKind, Pass, Target, annotator_kind
from mast_tui.session.retests import by_trace, retests_of
from mast_tui.taxonomy.model import OPEN_SLUG, Taxonomy
from mast_tui.workspace import Workspace
from mast_tui.workspace.registers.tags import Place, all_tags, keep_tags, tags_by

ALIKE: Final = 60.0
"""From this likeness on, of 0 to 100, texts are about the same."""

NO_WORDS: Final = "no words yet"
"""What the group is called of labels that nobody has written anything on."""

_TAG: Final = re.compile(r"(?<![\w#])#([^\W\d_][\w-]*)")
_WORD: Final = re.compile(r"\w+")
_STEM: Final = 5
"""So many first letters tell words apart: ``ignored`` is ``ignores``."""

_SAYS_NOTHING: Final = frozenset(
    word
    for words in (
        "a about after again all also an and any are as at be because been before but by can did",
        "do does for from had has have here how i if in into is it its just more no not of on or",
        "so than that the their them then there these they this to too was were what when where",
        "which while who why will with without",
    )
    for word in words.split()
)


@dataclass(frozen=True, slots=True)
class OpenCode:
    """What somebody wrote of a place: on a label of the open mode, or beside a span."""

    annotator: str
    trace_id: str
    target: Target
    text: str
    is_label: bool
    given: tuple[str, ...] = ()
    """Tags that it was given afterwards."""

    @property
    def place(self) -> Place:
        """What names it in every pass."""
        return self.annotator, self.trace_id, self.target, self.is_label

    @property
    def tags(self) -> tuple[str, ...]:
        """Those given, then those in its text, in small letters; ``#13`` is a span."""
        written = (tag.casefold() for tag in _TAG.findall(self.text))
        return tuple(dict.fromkeys((*self.given, *written)))

    @property
    def tagged_text(self) -> str:
        """Its text with the tags that it was given."""
        return " ".join((self.text, *(f"#{tag}" for tag in self.given))).strip()

    @property
    def words(self) -> str:
        """Its text without tags, on one line."""
        return " ".join(_TAG.sub(" ", self.text).split())


@dataclass(frozen=True, slots=True)
class Group:
    """Open codes that are about the same, those of earlier traces first."""

    name: str
    codes: tuple[OpenCode, ...]
    tag: str | None = None

    @property
    def traces(self) -> int:
        """In how many traces it shows."""
        return len({code.trace_id for code in self.codes})


@dataclass(frozen=True, slots=True)
class Looked:
    """A trace that was looked at, and the kinds of failure that showed there for the first time.

    A kind is a mode (its slug) or a group of open codes (its name).
    """

    trace_id: str
    kinds: int
    new: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Saturation:
    """Which kinds of failure were new in each trace, in the order of looking."""

    traces: tuple[Looked, ...]

    @property
    def kinds(self) -> int:
        """All kinds that were found."""
        return sum(len(one.new) for one in self.traces)

    @property
    def since_last_new(self) -> int:
        """How many traces were looked at since one last brought something new."""
        for count, one in enumerate(reversed(self.traces)):
            if one.new:
                return count
        return len(self.traces)

    def new_in_last(self, count: int) -> int:
        """How many kinds the last ``count`` traces brought."""
        return sum(len(one.new) for one in self.traces[-count:])


@dataclass(frozen=True, slots=True)
class OpenCoding:
    """All open codes that somebody may see, grouped: the biggest group first."""

    groups: tuple[Group, ...]
    saturation: Saturation
    others: frozenset[str] = frozenset()
    """The traces on which something is shown that somebody else wrote."""
    model: str | None = None
    """Which model has proposed groups; None where they go by words."""

    @property
    def codes(self) -> tuple[OpenCode, ...]:
        """Those of all groups."""
        return tuple(code for group in self.groups for code in group.codes)

    @property
    def to_group(self) -> tuple[str, ...]:
        """The words that a tag puts into no group, each once, as a model is shown them."""
        words = (code.words for group in self.groups if group.tag is None for code in group.codes)
        return tuple(dict.fromkeys(one for one in words if one))

    def matching(self, words: str) -> OpenCoding:
        """Keep the open codes that hold all of these words, or tags, whatever their case."""
        wanted = words.casefold().split()
        return self.keeping(
            lambda code: all(word in code.tagged_text.casefold() for word in wanted)
        )

    def keeping(self, wanted: Callable[[OpenCode], bool]) -> OpenCoding:
        """Keep some open codes, in their groups."""
        kept = (replace(group, codes=tuple(filter(wanted, group.codes))) for group in self.groups)
        return replace(self, groups=tuple(group for group in kept if group.codes))


def open_coding(
    workspace: Workspace,
    taxonomy: Taxonomy,
    reader: str | None,
    visible: Collection[str] | None,
) -> OpenCoding:
    """Gather the open codes that somebody may see, and how far they saturate.

    Args:
        workspace: Where they are.
        taxonomy: Under which taxonomy.
        reader: Who asks: what is theirs is shown, but for traces that come to them once more.
        visible: The traces on which they may see what others wrote; None for all.
    """
    ref = taxonomy.ref
    again = frozenset[str]()
    if reader is not None:
        own = by_trace(workspace.passes(annotator=reader, taxonomy=ref))
        again = retests_of(workspace.study(ref), reader, own).now

    def may_see(annotator: str, trace_id: str) -> bool:
        if annotator_kind(annotator) is AnnotatorKind.JUDGE:
            return False
        if annotator == reader:
            return trace_id not in again
        return visible is None or trace_id in visible

    readings = [
        one
        for one in workspace.passes(taxonomy=ref)
        if one.kind.is_reading and may_see(one.annotator, one.trace_id)
    ]
    place = {trace_id: number for number, trace_id in enumerate(_in_order(readings))}
    labels = [one for one in workspace.labels(taxonomy=ref) if may_see(one.annotator, one.trace_id)]
    notes = [
        one for one in workspace.span_notes(taxonomy=ref) if may_see(one.annotator, one.trace_id)
    ]
    codes = [
        *(
            OpenCode(
                annotator=one.annotator,
                trace_id=one.trace_id,
                target=one.target,
                text=one.note,
                is_label=True,
            )
            for one in labels
            if one.mode == OPEN_SLUG
        ),
        *(
            OpenCode(
                annotator=one.annotator,
                trace_id=one.trace_id,
                target=Target(one.key, one.key),
                text=one.text,
                is_label=False,
            )
            for one in notes
        ),
    ]
    given = _given_tags(workspace, taxonomy.id, may_see)
    codes = [replace(code, given=given.get(code.place, ())) for code in codes]
    codes.sort(key=lambda code: place.get(code.trace_id, len(place)))
    model, proposed = proposed_groups(workspace, ref, reader, visible)
    groups = grouped(codes, proposed)
    modes: dict[str, set[str]] = defaultdict(set)
    for label in labels:
        if label.mode != OPEN_SLUG:
            modes[label.trace_id].add(label.mode)
    finished = [one for one in readings if one.finished]
    return OpenCoding(
        groups,
        saturation(_in_order(finished), groups, modes),
        frozenset(code.trace_id for code in codes if code.annotator != reader),
        model,
    )


def _key(taxonomy: str, reader: str | None, visible: Collection[str] | None) -> str:
    # Names of groups follow from all that was shown to the model, which is not for everybody.
    return f"open_codes.groups:{taxonomy}:{'' if visible is None else reader or ''}"


def proposed_groups(
    workspace: Workspace, taxonomy: str, reader: str | None, visible: Collection[str] | None
) -> tuple[str | None, Mapping[str, str]]:
    """Read which model has proposed groups of what somebody may see, and each text's group."""
    kept = workspace.get_setting(_key(taxonomy, reader, visible))
    found = json.loads(kept) if kept else {"model": None, "groups": {}}
    return found["model"], found["groups"]


def keep_groups(
    workspace: Workspace,
    taxonomy: str,
    reader: str | None,
    visible: Collection[str] | None,
    model: str | None,
    groups: Mapping[str, str],
) -> None:
    """Keep what a model has proposed, for whoever may see what it was shown.

    Args:
        workspace: Where open codes are.
        taxonomy: Under which taxonomy.
        reader: Who asked.
        visible: The traces on which they may see what others wrote; None for all.
        model: Which model it was; None to go by words again.
        groups: The name of its group by text.
    """
    kept = json.dumps({"model": model, "groups": dict(groups)}, ensure_ascii=False)
    workspace.set_setting(_key(taxonomy, reader, visible), kept)


def give_tag(
    workspace: Workspace, taxonomy: str, who: str, codes: Iterable[OpenCode], tag: str
) -> bool:
    """Give open codes a tag; where all have it from this person, take it off.

    Args:
        workspace: Where they are.
        taxonomy: The id of the taxonomy; tags stay from version to version.
        who: Who tags.
        codes: What is tagged, whoever wrote it.
        tag: The tag, with or without ``#``.

    Returns:
        Whether they have it now.

    Raises:
        SessionError: It can be no tag.
    """
    tag = checked_tag(tag)
    own = dict(tags_by(workspace, taxonomy, who))
    places = [code.place for code in codes]
    on = not all(tag in own.get(place, ()) for place in places)
    for place in places:
        left = [one for one in own.get(place, ()) if one != tag]
        own[place] = (*left, tag) if on else tuple(left)
    keep_tags(workspace, taxonomy, who, own)
    return on


def checked_tag(words: str) -> str:
    """Give a tag in small letters, without ``#``; raises ``SessionError`` for what can be none."""
    found = _TAG.fullmatch(f"#{words.strip().removeprefix('#')}")
    if found is None:
        raise SessionError("a tag is one word that begins with a letter, such as #retry")
    return found[1].casefold()


def _given_tags(
    workspace: Workspace, taxonomy: str, may_see: Callable[[str, str], bool]
) -> Mapping[Place, tuple[str, ...]]:
    """The tags that were given, of those whose words may be seen on the trace."""
    found: dict[Place, tuple[str, ...]] = {}
    for _, who, given in all_tags(workspace, [taxonomy]):
        for place, tags in given.items():
            if may_see(who, place[1]):
                found[place] = tuple(dict.fromkeys((*found.get(place, ()), *tags)))
    return found


def _in_order(readings: Iterable[Pass]) -> list[str]:
    """Traces in the order in which somebody first looked at them."""
    first: dict[str, str] = {}
    for one in readings:
        first[one.trace_id] = min(one.started_at, first.get(one.trace_id, one.started_at))
    return sorted(first, key=lambda trace_id: (first[trace_id], trace_id))


def grouped(
    codes: Sequence[OpenCode], proposed: Mapping[str, str] = MappingProxyType({})
) -> tuple[Group, ...]:
    """Put open codes together that are about the same, the biggest group first.

    Those with a tag stand under their first one, others in the group that was proposed for them.
    Of the rest each joins, in their order, the group to whose texts it is most alike on average,
    so that what comes later moves nothing.

    Args:
        codes: In the order of looking.
        proposed: The names of groups by text.
    """
    tagged: dict[str, list[OpenCode]] = defaultdict(list)
    named: dict[str, list[OpenCode]] = defaultdict(list)
    rest: list[OpenCode] = []
    for code in codes:
        if code.tags:
            tagged[code.tags[0]].append(code)
        elif code.words in proposed:
            named[proposed[code.words]].append(code)
        else:
            rest.append(code)
    groups = [Group(f"#{tag}", tuple(found), tag) for tag, found in tagged.items()]
    for group in _by_words(rest):
        named[group.name] += group.codes
    groups += [Group(name, tuple(found)) for name, found in named.items()]
    return tuple(sorted(groups, key=lambda group: -len(group.codes)))


def _by_words(codes: Sequence[OpenCode]) -> list[Group]:
    texts: list[str] = []
    owner: list[int] = []
    groups: list[list[OpenCode]] = []
    wordless = [code for code in codes if not code.words]
    for code in codes:
        if not code.words:
            continue
        text = _stems(code.words)
        likeness = [0.0] * len(groups)
        for place, score in _alike(text, texts):
            likeness[owner[place]] += score
        best = max(range(len(groups)), key=lambda g: likeness[g] / len(groups[g]), default=-1)
        if best < 0 or likeness[best] / len(groups[best]) < ALIKE:
            best = len(groups)
            groups.append([])
        groups[best].append(code)
        texts.append(text)
        owner.append(best)
    found = [Group(min((c.words for c in group), key=len), tuple(group)) for group in groups]
    return found + ([Group(NO_WORDS, tuple(wordless))] if wordless else [])


def _stems(words: str) -> str:
    """The words that say something, each by its first letters; all where none does."""
    found = _WORD.findall(words.casefold())
    said = [word for word in found if word not in _SAYS_NOTHING] or found
    return " ".join(dict.fromkeys(word[:_STEM] for word in said))


def _alike(text: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    """How alike a text is to each of the others, by its place: 0 to 100.

    The mean of two likenesses: that of all words, and that which takes a text within another for
    the same.
    """
    whole = process.extract(text, texts, scorer=fuzz.token_sort_ratio, limit=None)
    part = {
        place: score
        for _, score, place in process.extract(text, texts, scorer=fuzz.token_set_ratio, limit=None)
    }
    return [(place, (score + part[place]) / 2) for _, score, place in whole]


def saturation(
    looked_at: Sequence[str], groups: Iterable[Group], modes: Mapping[str, Collection[str]]
) -> Saturation:
    """Tell which kinds of failure each trace brought that none before it had.

    Guest, Namey and Chen, "A simple method to assess and report thematic saturation in qualitative
    research", PLoS ONE 15(5), 2020: new kinds per unit looked at, in the order of looking.

    Args:
        looked_at: The traces, in the order of looking.
        groups: The open codes by kind; labels that nobody has described are of none.
        modes: The slugs of the modes that were labelled, by trace id.
    """
    kinds: dict[str, dict[str, None]] = {
        trace_id: dict.fromkeys(sorted(modes.get(trace_id, ()))) for trace_id in looked_at
    }
    for group in groups:
        if group.name == NO_WORDS and group.tag is None:
            continue
        for code in group.codes:
            if code.trace_id in kinds:
                kinds[code.trace_id][group.name] = None
    seen: set[str] = set()
    found = []
    for trace_id, here in kinds.items():
        found.append(Looked(trace_id, len(here), tuple(kind for kind in here if kind not in seen)))
        seen.update(here)
    return Saturation(tuple(found))

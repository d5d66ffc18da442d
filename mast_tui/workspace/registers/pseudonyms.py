"""Letters in place of people's names, the same for a person in all published documents.

They are stored in the workspace. Their order is that of a hash with a secret key, so that it shows
nothing of the names; a new person gets the next letter. Judges keep their names.
"""

from __future__ import annotations

import hmac
import json
import secrets
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Final

from mast_tui.labels import annotator_kind
from mast_tui.workspace.store import Workspace

_SETTING: Final = "pseudonyms"
_MASK_KEY: Final = "masks"
_PAIR: Final = "|"
"""The separator of two names in one key, as in agreement by pairs."""

_OTHER_THINGS: Final = frozenset(
    {
        "benchmark",
        "code",
        "content_hash",
        "datasheet",
        "first",
        "item",
        "key",
        "kind",
        "last",
        "mode",
        "model",
        "note",
        "origin",
        "outcome",
        "pass_kind",
        "quote",
        "reader",
        "reason",
        "severity",
        "slug",
        "source",
        "span_first",
        "span_last",
        "system",
        "taxonomy",
        "text",
        "trace",
        "trace_id",
        "undefined",
        "value",
    }
)
"""The fields that have no names of annotators, even if their text equals a name."""

_AS_KEYS_TOO: Final = frozenset({"gold", "all"})
"""The keys that may be among the names in a table by name."""


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """The replacements of names.

    ``letters`` has the letter of each person by name. ``unlettered`` has the names of judges, which
    stay. ``key`` is the secret key of the hashes.
    """

    letters: Mapping[str, str]
    unlettered: frozenset[str]
    key: bytes

    def name(self, name: str) -> str:
        """Return the letter of a person, or any other name unchanged."""
        return self.letters.get(name, name)

    def id(self, text: str) -> str:
        """Replace a UUID, which may be derived from a name; return any other id unchanged."""
        try:
            uuid_value = uuid.UUID(text)
        except ValueError:
            return text
        return str(uuid.UUID(bytes=_hash(self.key, uuid_value.bytes)[:16], version=4))

    def in_document(self, document: Any) -> Any:
        """Return a JSON document with each name replaced and sorted by the letters.

        A name is a whole string, or a key of a table of names or pairs of names. Texts that people
        wrote stay as they are, even if they mention a name.
        """
        match document:
            case Mapping():
                return self._table(document)
            case list() | tuple():
                return self._list(document)
            case str():
                return self.name(document)
        return document

    def _table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        replaced = {key: self._field(key, value) for key, value in table.items()}
        if not self._has_names_as_keys(table):
            return replaced
        return {self._key(key): replaced[key] for key in sorted(replaced, key=self._key)}

    def _field(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and key in _OTHER_THINGS:
            return value
        if isinstance(value, str) and key == "id":
            return self.id(value)
        if isinstance(value, list) and key == "labels" and all(map(_is_text, value)):
            return [self.id(item) for item in value]
        return self.in_document(value)

    def _list(self, values: Iterable[Any]) -> list[Any]:
        """Replace the names in a list; sort a list of names, or of items with a name each.

        In the old order the letters would give away the alphabetical order of the names.
        """
        replaced = [(value, self.in_document(value)) for value in values]
        if any(isinstance(value, str) and value in self.letters for value, _ in replaced):
            return sorted((new for _, new in replaced), key=str)
        names = [_annotator_in(new) for _, new in replaced]
        if replaced and all(name is not None for name in names):
            order = sorted(range(len(replaced)), key=lambda index: str(names[index]))
            return [replaced[index][1] for index in order]
        return [new for _, new in replaced]

    def _has_names_as_keys(self, table: Mapping[str, Any]) -> bool:
        """Check whether all keys of a table are annotators, or pairs of them."""
        known_names = self.letters.keys() | self.unlettered | _AS_KEYS_TOO
        names = [name for key in table for name in _names_in(key, known_names)]
        return all(name in known_names for name in names) and any(
            name in self.letters for name in names
        )

    def _key(self, key: str) -> str:
        names = self.letters.keys() | self.unlettered | _AS_KEYS_TOO
        # In a pair, annotators are in the order of their letters.
        return _PAIR.join(sorted(map(self.name, _names_in(key, names))))


def _names_in(key: str, names: Iterable[str]) -> list[str]:
    """Return the names in a key: one of ``names``, or a pair."""
    return [key] if key in names else key.split(_PAIR)


def _annotator_in(value: object) -> str | None:
    """Return the annotator in the first field of a record; None if it has none there."""
    if not isinstance(value, Mapping):
        return None
    first_field = next(iter(value), None)
    # Only an annotator has a name and a kind; other things have names too.
    if first_field not in ("annotator", "name") or ("kind" not in value and first_field == "name"):
        return None
    return str(value[first_field])


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def pseudonyms_of(workspace: Workspace) -> Pseudonyms:
    """Return the letters of all people in a workspace, and store new ones in it.

    Raises:
        WorkspaceError: The workspace cannot be written.
    """
    annotators = workspace.annotators()
    people = {person.name for person in annotators if person.kind.is_person}
    for taxonomy in workspace.taxonomies():
        study = workspace.study(taxonomy.ref)
        people |= set() if study is None else set(study.participants)
    people = {name for name in people if annotator_kind(name).is_person}
    judges = frozenset(person.name for person in annotators) - people
    with workspace.transaction():
        stored = json.loads(workspace.get_setting(_SETTING) or "{}")
        key = bytes.fromhex(stored.get("key") or secrets.token_hex(32))
        letters: dict[str, str] = dict(stored.get("letters", {}))
        names = {_hash(key, name.encode("utf-8", "surrogatepass")).hex(): name for name in people}
        # Letters are assigned in the order of the hashes, so that they do not show that of names.
        for name_hash in sorted(names.keys() - letters.keys()):
            letters[name_hash] = _letter(len(letters))
        if letters != stored.get("letters"):
            value = json.dumps({"key": key.hex(), "letters": letters})
            workspace.set_setting(_SETTING, value)
    return Pseudonyms({name: letters[name_hash] for name_hash, name in names.items()}, judges, key)


def mask_key(workspace: Workspace) -> bytes:
    """Return the secret key of a workspace's masks; make and store it at the first call.

    Raises:
        WorkspaceError: The workspace cannot be written.
    """
    with workspace.transaction():
        stored = workspace.get_setting(_MASK_KEY)
        if stored is None:
            stored = secrets.token_hex(32)
            workspace.set_setting(_MASK_KEY, stored)
    return bytes.fromhex(stored)


def _hash(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _letter(number: int) -> str:
    """Return ``A`` to ``Z``, then ``AA``, ``AB`` and so on for the numbers from 0."""
    letter = ""
    number += 1
    while number:
        number, index = divmod(number - 1, len(ascii_uppercase))
        letter = ascii_uppercase[index] + letter
    return letter

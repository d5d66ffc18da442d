"""Letters in place of people's names, the same in all publications.

The workspace stores them. Letters follow the order of a hash with a secret key, which reveals
nothing about the names. A new person gets the next letter. Judges keep their names.
"""

from __future__ import annotations

import hmac
import json
import secrets
import uuid
from collections.abc import Iterable, Mapping
from string import ascii_uppercase
from typing import Any, Final

from msgspec import Struct

from mast_tui.labels import annotator_kind
from mast_tui.workspace.store import Workspace

_SETTING: Final = "pseudonyms"
_MASK_KEY: Final = "masks"
_PAIR_SEPARATOR: Final = "|"
"""The separator of two names in one key, as in tables of pairs."""

_FIELDS_WITHOUT_NAMES: Final = frozenset(
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
"""The fields with texts that are never names."""

_OTHER_KEYS: Final = frozenset({"gold", "all"})
"""The other keys of tables by name."""


class Pseudonyms(Struct, frozen=True):
    """The letters of a workspace by name.

    ``judges`` are the names of judges and agents, which stay. ``key`` is the secret key of the
    hashes.
    """

    letters: Mapping[str, str]
    judges: frozenset[str]
    key: bytes

    def name(self, name: str) -> str:
        """Return the letter of a person; other names stay."""
        return self.letters.get(name, name)

    def id(self, text: str) -> str:
        """Replace a UUID, which may be a hash of a name, by another one; other ids stay."""
        try:
            uuid_value = uuid.UUID(text)
        except ValueError:
            return text
        return str(uuid.UUID(bytes=_keyed_hash(self.key, uuid_value.bytes)[:16], version=4))

    def in_document(self, document: Any) -> Any:
        """Replace people's names in a JSON document by letters.

        A name is replaced if it is a whole string, or a key of an object by name. A name within a
        text stays. Lists and objects of names are sorted by letter.
        """
        match document:
            case Mapping():
                return self._renamed_table(document)
            case list() | tuple():
                return self._renamed_list(document)
            case str():
                return self.name(document)
        return document

    def _renamed_table(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """Replace the names in a JSON object; an object by name is sorted by letter."""
        new_values = {key: self._renamed_field(key, value) for key, value in table.items()}
        if not self._has_names_as_keys(table):
            return new_values
        names_by_letter = {self._renamed_key(name): name for name in table}
        return {letter: new_values[name] for letter, name in sorted(names_by_letter.items())}

    def _renamed_field(self, key: str, value: Any) -> Any:
        """Replace the names and the ids of labels in the value of a field."""
        if isinstance(value, str) and key in _FIELDS_WITHOUT_NAMES:
            return value
        if isinstance(value, str) and key == "id":
            return self.id(value)
        if isinstance(value, list) and key == "labels" and all(map(_is_text, value)):
            return [self.id(item) for item in value]
        return self.in_document(value)

    def _renamed_list(self, values: Iterable[Any]) -> list[Any]:
        """Replace the names in a list; a list of names or annotators is sorted by letter.

        The old order would reveal the alphabetical order of the names.
        """
        old_values = list(values)
        new_values = [self.in_document(value) for value in old_values]
        if any(isinstance(value, str) and value in self.letters for value in old_values):
            return sorted(new_values, key=str)
        if all(_annotator_of_record(record) is not None for record in new_values):
            return sorted(new_values, key=lambda record: str(_annotator_of_record(record)))
        return new_values

    def _has_names_as_keys(self, table: Mapping[str, Any]) -> bool:
        """Return whether all keys are names or pairs of names, at least one of them a person's."""
        known_names = self.letters.keys() | self.judges | _OTHER_KEYS
        names = [name for key in table for name in _names_in(key, known_names)]
        return all(name in known_names for name in names) and any(
            name in self.letters for name in names
        )

    def _renamed_key(self, key: str) -> str:
        names = self.letters.keys() | self.judges | _OTHER_KEYS
        # The letters of a pair are sorted too.
        return _PAIR_SEPARATOR.join(sorted(map(self.name, _names_in(key, names))))


def _names_in(key: str, names: Iterable[str]) -> list[str]:
    return [key] if key in names else key.split(_PAIR_SEPARATOR)


def _annotator_of_record(value: object) -> str | None:
    """Return the name in an annotator's record; None for other values."""
    if not isinstance(value, Mapping):
        return None
    first_field = next(iter(value), None)
    # Other records have names, too, but only those of annotators have a kind.
    if first_field == "annotator" or (first_field == "name" and "kind" in value):
        return str(value[first_field])
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def pseudonyms_of(workspace: Workspace) -> Pseudonyms:
    """Return the letters of all people in a workspace; people without one get a letter.

    Raises:
        WorkspaceError: The workspace cannot be written.
    """
    annotators = workspace.annotators()
    people_names = {person.name for person in annotators if person.kind.is_person}
    for taxonomy in workspace.taxonomies():
        study = workspace.study(taxonomy.ref)
        if study is not None:
            people_names |= {name for name in study.participants if annotator_kind(name).is_person}
    judges = frozenset(person.name for person in annotators) - people_names
    with workspace.transaction():
        stored = json.loads(workspace.get_setting(_SETTING) or "{}")
        key = bytes.fromhex(stored.get("key") or secrets.token_hex(32))
        letters: dict[str, str] = dict(stored.get("letters", {}))  # by the hash of the name
        names_by_hash = {
            _keyed_hash(key, name.encode("utf-8", "surrogatepass")).hex(): name
            for name in people_names
        }
        # New people get the next letters in the order of the hashes, which reveals no names.
        for name_hash in sorted(names_by_hash.keys() - letters.keys()):
            letters[name_hash] = _letters_of_number(len(letters))
        if letters != stored.get("letters"):
            value = json.dumps({"key": key.hex(), "letters": letters})
            workspace.set_setting(_SETTING, value)
    return Pseudonyms(
        {name: letters[name_hash] for name_hash, name in names_by_hash.items()}, judges, key
    )


def mask_key(workspace: Workspace) -> bytes:
    """Return the secret key for masks in place of personal data, and make it if it is missing.

    Raises:
        WorkspaceError: The workspace cannot be written.
    """
    with workspace.transaction():
        stored = workspace.get_setting(_MASK_KEY)
        if stored is None:
            stored = secrets.token_hex(32)
            workspace.set_setting(_MASK_KEY, stored)
    return bytes.fromhex(stored)


def _keyed_hash(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")


def _letters_of_number(number: int) -> str:
    """Return the letters for a number from 0: ``A`` to ``Z``, then ``AA``, ``AB`` and so on."""
    letters = ""
    remaining = number + 1
    while remaining:
        # The letters are digits without a zero.
        remaining, index = divmod(remaining - 1, len(ascii_uppercase))
        letters = ascii_uppercase[index] + letters
    return letters

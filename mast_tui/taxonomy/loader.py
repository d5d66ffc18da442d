"""Taxonomy files: the conversion from TOML to a checked ``Taxonomy``, and to plain values.

``docs/codebook.md`` describes the file. ``to_dict`` returns values of the same shape.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from mast_tui.counts import counted
from mast_tui.errors import MastError
from mast_tui.taxonomy.model import Alias, Category, Confusable, Mode, Taxonomy, open_code_mode
from mast_tui.toml_text import parse_toml

STAGES: Final = ("pre", "execution", "post")

# The file is beside this one, also in a wheel. importlib.resources would delay the first screen.
_MAST: Final = Path(__file__).with_name("mast.toml")

MOST_ENTRIES: Final = 1000
"""The most modes, and the most categories, of a file, since people choose among them."""

_MODE_HEAD: Final = re.compile(r"^[ \t]*\[\[[ \t]*modes[ \t]*\]\]", re.MULTILINE)
_SLUG: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*\Z")
_TYPE_NAMES: Final = {bool: "true or false", int: "a number", float: "a number", str: "text"}


class TaxonomyError(MastError, ValueError):
    """A taxonomy that cannot be used; the message names the place and the correction."""


@cache
def load_mast() -> Taxonomy:
    """Load MAST, version 3, from the package."""
    return load_taxonomy(_MAST)


def load_taxonomy(path: Path) -> Taxonomy:
    """Load the taxonomy from a TOML file.

    Raises:
        TaxonomyError: The file cannot be read, is not TOML in UTF-8, or has no valid taxonomy.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TaxonomyError(f"{path}: cannot be read: {error.strerror or error}") from error
    return _parse_file(data, str(path))


def _parse_file(data: bytes, source: str) -> Taxonomy:
    """Return the taxonomy in the content of a file.

    Raises:
        TaxonomyError: The content is not TOML in UTF-8, or no valid taxonomy.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TaxonomyError(
            f"{source}: line {line}: not UTF-8 (byte 0x{data[error.start]:02x}); "
            "save the file as UTF-8"
        ) from error
    if not text.strip():
        raise TaxonomyError(f"{source}: the file is empty; see docs/codebook.md for its shape")
    _refuse_too_many(source, "modes", len(_MODE_HEAD.findall(text)))  # before the slow parsing
    try:
        document = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise TaxonomyError(f"{source}: not TOML: {error}") from error
    for key in ("modes", "categories"):
        entries = document.get(key)
        if isinstance(entries, list):
            _refuse_too_many(source, key, len(entries))
    return from_dict(document, source)


def _refuse_too_many(source: str, key: str, count: int) -> None:
    """Raise ``TaxonomyError`` if a list has too many entries."""
    if count > MOST_ENTRIES:
        raise TaxonomyError(
            f"{source}: {count:,} {key}; a taxonomy may have up to {MOST_ENTRIES:,}: leave "
            "some out, or split the file into several taxonomies"
        )


def to_dict(taxonomy: Taxonomy) -> dict[str, object]:
    """Convert a taxonomy to plain values for JSON, in the shape of its file.

    ``from_dict`` makes an equal taxonomy from these values.
    """
    return {
        "id": taxonomy.id,
        "version": taxonomy.version,
        "name": taxonomy.name,
        **_open_code_mode_values(taxonomy.own_open_code_mode),
        **({"levels": list(taxonomy.own_levels)} if taxonomy.own_levels else {}),
        "categories": [
            {
                "id": category.id,
                "name": category.name,
                **({"under": category.under} if category.under else {}),
            }
            for category in taxonomy.categories
        ],
        "modes": [_mode_values(mode) for mode in taxonomy.modes],
    }


def _open_code_mode_values(mode: Mode | None) -> dict[str, object]:
    return {} if mode is None else {"open": {"code": mode.code, "name": mode.name}}


def _mode_values(mode: Mode) -> dict[str, object]:
    """Return the fields of a mode as plain values."""
    values = {name: getattr(mode, name) for name in Mode.__struct_fields__}
    for name in ("stages", "applies", "applies_not", "fixes"):
        values[name] = list(values[name])
    values["confusable"] = [
        {"slug": confusable.slug, "difference": confusable.difference}
        for confusable in mode.confusable
    ]
    values["aliases"] = [{"name": alias.name, "source": alias.source} for alias in mode.aliases]
    return values


def from_dict(document: Mapping[str, object], source: str = "taxonomy") -> Taxonomy:
    """Make a taxonomy from plain values in the shape of a file.

    White space in texts becomes single spaces, so that line breaks make no difference.

    Args:
        document: The values.
        source: The origin of the values, for error messages.

    Raises:
        TaxonomyError: The values describe no valid taxonomy.
    """
    root = TaxonomyTable(document, source)
    root.refuse_unknown(("id", "version", "name", "open", "levels", "categories", "modes"))
    identifier = root.slug("id")
    version = root.word("version")
    categories = _read_categories(root)
    modes = tuple(_read_mode(table, categories) for table in root.tables("modes"))
    own_open_code_mode = _read_open_code_mode(document, source)
    all_modes = modes if own_open_code_mode is None else (*modes, own_open_code_mode)
    refuse_duplicates(source, "mode", [(mode.slug, mode.code, mode.name) for mode in all_modes])
    slugs = frozenset(mode.slug for mode in modes)
    for mode in modes:
        _check_confusable(source, mode, slugs)
    taxonomy = Taxonomy(
        id=identifier,
        version=version,
        name=root.text("name", default=identifier),
        categories=categories,
        modes=modes,
        content_hash="",
        own_open_code_mode=own_open_code_mode,
    )
    return _with_hash(_with_levels(taxonomy, root))


def _read_open_code_mode(document: Mapping[str, object], source: str) -> Mode | None:
    """Return the file's own mode of open codes, for failures that no other mode describes, if any.

    Raises:
        TaxonomyError: The description is not valid.
    """
    if "open" not in document:
        return None
    values = document["open"]
    if not isinstance(values, Mapping):
        raise TaxonomyError(f"{source}: 'open' is not a table; write open = {{ code = \"9.9\" }}")
    table = TaxonomyTable(values, f"{source}: open")
    table.refuse_unknown(("code", "name"))
    default = open_code_mode()
    code = table.word("code", default=default.code)
    return open_code_mode(code, table.text("name", default=default.name))


def _read_categories(root: TaxonomyTable) -> tuple[Category, ...]:
    """Read the categories of a taxonomy.

    Raises:
        TaxonomyError: A category is not valid, or comes before the category that contains it.
    """
    categories: list[Category] = []
    for table in root.tables("categories"):
        table.refuse_unknown(("id", "name", "under"))
        identifier = table.slug("id")
        table.add_name(identifier)  # for messages of errors
        under = table.text("under", default="")
        # Only earlier categories are allowed, which excludes cycles.
        if under and under not in [category.id for category in categories]:
            raise table.error(
                f"'under' is {under!r}, which is not an earlier category; give the id of one"
            )
        categories.append(Category(identifier, table.text("name", default=identifier), under))
    refuse_duplicates(root.location, "category", [(category.id,) for category in categories])
    return tuple(categories)


def _with_levels(taxonomy: Taxonomy, root: TaxonomyTable) -> Taxonomy:
    """Add the file's names of the levels of categories to the taxonomy, if there are any.

    Raises:
        TaxonomyError: There is another number of levels, or a name occurs twice.
    """
    names = root.texts("levels")
    depth = len(taxonomy.levels)
    if names and (len(names) != depth or len(set(names)) != depth):
        levels = counted(depth, "level")
        different_names = counted(depth, "different name")
        raise root.error(
            f"'levels' has {', '.join(map(repr, names))}; the categories have {levels}, so "
            f"give {different_names}, the topmost first, without the modes"
        )
    return replace(taxonomy, own_levels=names)


def _read_mode(table: TaxonomyTable, categories: tuple[Category, ...]) -> Mode:
    """Return the mode in a table; its category must be among ``categories``.

    Raises:
        TaxonomyError: A value is missing, unknown or not valid.
    """
    table.refuse_unknown(Mode.__struct_fields__)
    slug = table.slug("slug")
    table.add_name(slug)  # for messages of errors
    return Mode(
        slug=slug,
        code=table.word("code", default=slug),
        name=table.text("name"),
        category=table.choice("category", [category.id for category in categories]),
        stages=table.choices("stages", STAGES),
        definition=table.text("definition", default=""),
        applies=table.texts("applies"),
        applies_not=table.texts("applies_not"),
        confusable=tuple(map(_read_confusable, table.tables("confusable", needed=False))),
        detection=table.text("detection", default=""),
        fixes=table.texts("fixes"),
        aliases=tuple(map(_read_alias, table.tables("aliases", needed=False))),
    )


def _read_confusable(table: TaxonomyTable) -> Confusable:
    table.refuse_unknown(("slug", "difference"))
    return Confusable(slug=table.slug("slug"), difference=table.text("difference"))


def _read_alias(table: TaxonomyTable) -> Alias:
    table.refuse_unknown(("name", "source"))
    return Alias(name=table.text("name"), source=table.text("source"))


def _check_confusable(source: str, mode: Mode, slugs: frozenset[str]) -> None:
    """Raise ``TaxonomyError`` if a mode names itself or an unknown mode as confusable."""
    for confusable in mode.confusable:
        if confusable.slug not in slugs or confusable.slug == mode.slug:
            reason = (
                "the mode itself" if confusable.slug == mode.slug else "not a mode of this file"
            )
            raise TaxonomyError(
                f"{source}: mode {mode.slug!r}: confusable {confusable.slug!r} is {reason}; "
                "give the slug of another mode"
            )


def _with_hash(taxonomy: Taxonomy) -> Taxonomy:
    """Return the taxonomy with ``content_hash``, the SHA-256 of its values as canonical JSON."""
    # Start-up: these modules are imported only when needed.
    import hashlib
    import json

    canonical = json.dumps(
        to_dict(taxonomy), ensure_ascii=False, sort_keys=True, separators=(",", ":")
    )
    return replace(taxonomy, content_hash=hashlib.sha256(canonical.encode()).hexdigest())


class TaxonomyTable:
    """A table of a file with its location, such as ``FILE: mode 3 'step_repetition'``."""

    def __init__(self, values: Mapping[str, object], location: str) -> None:
        self._values = values
        self.location = location

    def add_name(self, name: str) -> None:
        """Add the table's name to its location in messages."""
        self.location = f"{self.location} {name!r}"

    def error(self, message: str) -> TaxonomyError:
        """Make an error with the location of the table."""
        return TaxonomyError(f"{self.location}: {message}")

    def refuse_unknown(self, known_keys: Sequence[str]) -> None:
        """Refuse a key that is not among ``known_keys``, such as a misspelt one.

        Raises:
            TaxonomyError: The table has such a key.
        """
        for key in self._values:
            if key not in known_keys:
                raise self.error(f"unknown key {key!r}; expected {', '.join(known_keys)}")

    def text(self, key: str, *, default: str | None = None) -> str:
        """Return the text under a key, with single spaces.

        Args:
            key: The key.
            default: The text if the key is missing; None if the key is required.

        Raises:
            TaxonomyError: The value is missing, empty or not a text.
        """
        value = self._values.get(key)
        if value is None:
            if default is None:
                raise self.error(f'{key!r} is missing; add {key} = "…"')
            return default
        if not isinstance(value, str):
            raise self.error(f'{key!r} is {_kind_name(value)}, not text; write {key} = "…"')
        text = " ".join(value.split())
        if not text and default is None:
            raise self.error(f"{key!r} is empty")
        _refuse_surrogates(self, key, text)
        return text

    def word(self, key: str, *, default: str | None = None) -> str:
        """Return the short name under a key.

        Args:
            key: The key.
            default: The name if the key is missing; None if the key is required.

        Raises:
            TaxonomyError: The name is missing, too long, or has a space, ``,``, ``|`` or ``@``.
        """
        word = self.text(key, default=default)
        if not word:
            raise self.error(f"{key!r} is empty")
        if not word.isprintable() or len(word) > 64 or set(word) & set(",|@ "):
            raise self.error(
                f"{key!r} is {word!r}; use up to 64 printable characters, and no space, ',', "
                "'|' or '@'"
            )
        return word

    def slug(self, key: str) -> str:
        """Return the permanent name under a key.

        It has small ASCII letters and digits, joined by ``_`` or ``-``.

        Raises:
            TaxonomyError: The text is missing, or has another form.
        """
        slug = self.text(key)
        if len(slug) > 64 or _SLUG.match(slug) is None:
            raise self.error(
                f"{key!r} is {slug!r}; use up to 64 lower-case letters a to z and digits, "
                "joined by '_' or '-'"
            )
        return slug

    def choice(self, key: str, names: Sequence[str]) -> str:
        """Return the name under a key, which must be an allowed one.

        Args:
            key: The key.
            names: The allowed names.

        Raises:
            TaxonomyError: The name is not allowed.
        """
        name = self.text(key)
        if name not in names:
            raise self.error(f"{key!r} is {name!r}; it must be one of {', '.join(names)}")
        return name

    def choices(self, key: str, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names under a key, which must be allowed ones.

        Args:
            key: The key.
            names: The allowed names.

        Raises:
            TaxonomyError: An entry is not allowed, or occurs twice.
        """
        listed_names = self.texts(key)
        for name in listed_names:
            if name not in names:
                raise self.error(f"{key!r} has {name!r}; expected {', '.join(names)}")
        if len(set(listed_names)) < len(listed_names):
            raise self.error(f"{key!r} has an entry twice")
        return listed_names

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the texts under a key; empty if the key is missing.

        Raises:
            TaxonomyError: The value is not a list, or an entry is empty or not a text.
        """
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.error(f'{key!r} is {_kind_name(value)}, not a list; write {key} = ["…"]')
        texts = []
        for number, item in enumerate(value, start=1):
            if not isinstance(item, str):
                raise self.error(f"entry {number} of {key!r} is {_kind_name(item)}, not text")
            if not item.strip():
                raise self.error(f"entry {number} of {key!r} is empty")
            texts.append(" ".join(item.split()))
            _refuse_surrogates(self, key, item)
        return tuple(texts)

    def tables(self, key: str, *, needed: bool = True) -> list[TaxonomyTable]:
        """Return the tables under a key, such as ``[[modes]]``.

        Args:
            key: The key.
            needed: True if there must be at least one table.

        Raises:
            TaxonomyError: The value is not a list of tables, or a needed table is missing.
        """
        value = self._values.get(key, [])
        if not isinstance(value, list):
            raise self.error(
                f"{key!r} is {_kind_name(value)}, not a list of tables; write [[{key}]]"
            )
        if needed and not value:
            raise self.error(f"no {key}; add at least one under [[{key}]]")
        noun = {"categories": "category", "modes": "mode", "aliases": "alias"}.get(key, key)
        tables = []
        for number, item in enumerate(value, start=1):
            if not isinstance(item, Mapping):
                raise self.error(f"{noun} {number} is {_kind_name(item)}, not a table")
            tables.append(TaxonomyTable(item, f"{self.location}: {noun} {number}"))
        return tables


def refuse_duplicates(source: str, noun: str, names: Sequence[Sequence[str]]) -> None:
    """Refuse entries with a common slug, code or name, in any case.

    Args:
        source: The file, for error messages.
        noun: The kind of the entries, for error messages.
        names: The names of each entry; messages use the first name.

    Raises:
        TaxonomyError: Two entries have a common name.
    """
    index_by_name: dict[str, int] = {}
    for index, entry_names in enumerate(names):
        for name in entry_names:
            # The slug, code and name of one entry may be equal.
            other_index = index_by_name.setdefault(name.casefold(), index)
            if other_index != index:
                raise TaxonomyError(
                    f"{source}: {noun} {index + 1} {entry_names[0]!r}: {name!r} already names "
                    f"{noun} {other_index + 1} {names[other_index][0]!r}; give each its own"
                )


def _kind_name(value: object) -> str:
    """Return the kind of a TOML value in words."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list):
        return "a list"
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def _refuse_surrogates(table: TaxonomyTable, key: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise table.error(f"{key!r} contains half a character (a lone surrogate)") from error

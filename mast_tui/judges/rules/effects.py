"""Whether a tool call changes the world, looks at it, or does neither.

The judgement rests on the names of tools, programs and functions alone: nothing is executed and
no model is asked. What is not known is ``UNKNOWN``, and rules are careful with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import orjson

from mast_tui.judges.rules import commands


class Effect(IntEnum):
    """What a call does, in the order in which one part of it outweighs another."""

    NONE = 0
    READS = 1
    UNKNOWN = 2
    CHANGES = 3


_COMMAND_FIELDS: Final = ("command", "cmd", "script", "code", "input", "bash", "commands")
_HEREDOC: Final = re.compile(
    r"<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<line>[^\n]*)\n(?P<body>.*?)(?:\n\s*(?P=end)\b|\Z)",
    re.DOTALL,
)
_TOKEN: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'[^']*'|\|\||&&|\d?>>|\d?>&\d|&>|\d?>|\$\(|[;|&\n()]|(?:\\.|[^\s;|&<>\"'()\\])+"
)
_SEPARATORS: Final = frozenset({"||", "&&", ";", "|", "&", "\n", "(", ")", "$("})
_REDIRECT: Final = re.compile(r"(?:[1&]?>|1?>>)\Z")
_NOWHERE: Final = ("/dev/null", "/dev/stderr", "/dev/stdout", "&1", "&2")
_ASSIGNMENT: Final = re.compile(r"\w+=")
_NAME_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CALLED: Final = re.compile(r"\b([A-Za-z_]\w*)\(")
_FIND_CHANGES: Final = re.compile(r"-delete\b|-exec\s+rm\b")
_HTTP_CHANGES: Final = re.compile(
    r"(?:-X\s*|--request[ =])['\"]?(?:POST|PUT|PATCH|DELETE)"
    r"|\s(?:-d|--data\S*|-F|-T|--upload-file)\s"
)
_HTTP_QUERIES: Final = re.compile(
    r"/api/v1/query|/_search|graphql|/loki/api|/evaluate\b|/(?:query|search|validate|preview)\b"
    r"|--get\b|\s-G\s"
)
_SHELL_TOOLS: Final = re.compile(
    r"shell|bash|terminal|exec|command|run_cmd|console|ssh", re.IGNORECASE
)
_CODE_TOOLS: Final = re.compile(r"python|code|ipython|interpreter|jupyter", re.IGNORECASE)


def command_of(arguments: str) -> str:
    """The command or code in a call's arguments, or the arguments themselves.

    Arguments are JSON most often: ``{"command": ["bash", "-lc", "kubectl get pods"]}``,
    ``{"cmd": "…"}``, ``{"code": "…"}``. Only the command itself is returned, without its shell.
    """
    text = arguments.strip()
    if not text.startswith("{"):
        return text
    try:
        values = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    for field in _COMMAND_FIELDS:
        value = values.get(field)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            words = [str(word) for word in value]
            shelled = words[0].rsplit("/", 1)[-1] in commands.SHELLS and len(words) > 2
            return words[-1] if shelled else " ".join(words)
    return text


def effect_of(tool: str | None, arguments: str) -> Effect:
    """What the call of ``tool`` with ``arguments`` (as read) does."""
    name = tool or ""
    if name == "apply_patch":
        return Effect.CHANGES
    if name in commands.HANDING_OVER:
        return Effect.NONE
    command = command_of(arguments)
    has_command = command != arguments.strip()
    words = name_words(name)
    if name in commands.VERBS:
        return effect_of_command(command if command.startswith(name) else f"{name} {command}")
    if _CODE_TOOLS.search(name):
        return effect_of_code(command)
    if _SHELL_TOOLS.search(name) or (has_command and not _known(words)):
        return effect_of_command(command)
    by_program = _effect_of_program(name, arguments)
    if by_program is not None:
        return by_program
    if words and words[0] in commands.IDLE_VERBS:
        return Effect.NONE
    if "plan" in words and ("update" in words or "todo" in words):
        return Effect.NONE
    for word in words:
        if word in commands.CHANGING_VERBS:
            return Effect.CHANGES
        if word in commands.LOOKING_VERBS:
            return Effect.READS
    return Effect.UNKNOWN


def name_words(name: str) -> list[str]:
    """The lower-case words of a tool's or function's name, in snake or camel case."""
    return [word.lower() for word in _NAME_WORDS.findall(name)]


def _known(words: list[str]) -> bool:
    known = commands.CHANGING_VERBS | commands.LOOKING_VERBS | commands.IDLE_VERBS
    return any(word in known for word in words)


def effect_of_code(code: str) -> Effect:
    """What a piece of Python-like code does, by the names of the functions that it calls."""
    if commands.CODE_CHANGES.search(code) or commands.SQL_CHANGES.search(code):
        return Effect.CHANGES
    for called in _CALLED.findall(code):
        if called in commands.HANDING_OVER:
            continue
        words = name_words(called)
        # Methods of lists and sets change nothing outside: 'api.like_song(' does, 'x.add(' not.
        if len(words) > 1 and words[0] in commands.CHANGING_VERBS:
            return Effect.CHANGES
    return Effect.READS if code.strip() else Effect.NONE


def effect_of_command(command: str) -> Effect:
    """What a shell command line does: the gravest of its parts counts."""
    bodies: list[Effect] = []

    def without_body(match: re.Match[str]) -> str:
        before = command[max(0, match.start() - 80) : match.start()]
        if re.search(r"(?:python3?|node|ruby)\b[^|;&\n]*\Z", before):
            bodies.append(effect_of_code(match["body"]))
        elif re.search(r"(?:psql|mysql|sqlite3)\b[^|;&\n]*\Z", before):
            changes = commands.SQL_CHANGES.search(match["body"])
            bodies.append(Effect.CHANGES if changes else Effect.READS)
        return match["line"]

    bare = _HEREDOC.sub(without_body, command)
    effects = [_effect_of_segment(segment) for segment in _segments(bare)]
    return max([*effects, *bodies], default=Effect.NONE)


def _segments(command: str) -> Iterator[list[str]]:
    """The simple commands of a line, as words with their quotes taken off."""
    words: list[str] = []
    for match in _TOKEN.finditer(command):
        token = match[0]
        if token in _SEPARATORS:
            if words:
                yield words
            words = []
        else:
            words.append(token)
    if words:
        yield words


def _effect_of_segment(words: list[str]) -> Effect:
    redirected = any(
        _REDIRECT.match(word) and not target.startswith(_NOWHERE)
        for word, target in zip(words, [*words[1:], "/dev/null"], strict=True)
    )
    effect = _effect_of_words([_unquoted(word) for word in words])
    return Effect.CHANGES if redirected else effect


def _without_wrappers(words: list[str]) -> list[str]:
    """The words from the program's own name on, past ``sudo``, ``A=b``, ``timeout 30``, ``do``."""
    words = list(words)
    while words:
        name = words[0].rsplit("/", 1)[-1]
        if name in commands.WRAPPERS:
            del words[0]
            while words and re.match(r"-|[\d.]+[smh]?\Z", words[0]):
                del words[0]
        elif name in commands.KEYWORDS or _ASSIGNMENT.match(words[0]):
            del words[0]
        else:
            break
    return words


def _effect_of_words(words: list[str]) -> Effect:
    words = _without_wrappers(words)
    if not words:
        return Effect.NONE
    program, rest = words[0].rsplit("/", 1)[-1], words[1:]
    line = " ".join(rest)
    if program in commands.SHELLS:
        script = next(
            (rest[i + 1] for i, w in enumerate(rest[:-1]) if re.match(r"-\w*c\Z", w)), None
        )
        return effect_of_command(script) if script is not None else Effect.UNKNOWN
    if (program in ("kubectl", "docker") and "exec" in rest) or program == "ssh":
        return _effect_inside(program, rest)
    by_program = _effect_of_program(program, line)
    if by_program is not None:
        return by_program
    if program in commands.PACKAGE_TOOLS:
        looks = {"list", "show", "search", "freeze", "info", "test", "vet", "check", "ls", "view"}
        return Effect.READS if looks & set(rest[:2]) else Effect.CHANGES
    if program in commands.NOTHING:
        return Effect.NONE
    if program in commands.CHANGING:
        return Effect.CHANGES
    return Effect.READS if program in commands.READING else Effect.UNKNOWN


def _effect_inside(program: str, rest: list[str]) -> Effect:
    """What a command does that is run in a container or on another host."""
    if "--" in rest:
        inner = rest[rest.index("--") + 1 :]
    else:
        start = rest.index("exec") + 1 if program != "ssh" else 0
        names = [word for word in rest[start:] if not word.startswith("-")]
        inner = names[1:]
    if len(inner) == 1:
        return effect_of_command(inner[0])
    return _effect_of_words(inner) if inner else Effect.UNKNOWN


def _effect_of_program(program: str, line: str) -> Effect | None:
    """What a program does whose arguments decide; None where the program is not one of them."""
    if program in commands.VERBS:
        return _effect_of_verbs(program, line)
    if program in ("python", "python3", "node", "ruby", "perl"):
        if re.match(r"-m\s+(?:pytest|unittest|json\.tool)", line):
            return Effect.READS
        return Effect.UNKNOWN if re.match(r"[^\s;(]+\.\w{1,4}\b", line) else effect_of_code(line)
    if program == "sed":
        return Effect.CHANGES if re.search(r"(?:^|\s)(?:-\w*i|--in-place)", line) else Effect.READS
    if program in ("curl", "http", "grpcurl", "wget"):
        changes = _HTTP_CHANGES.search(f" {line} ") and not _HTTP_QUERIES.search(line)
        return Effect.CHANGES if changes else Effect.READS
    if program in ("psql", "mysql", "sqlite3", "mongosh", "sql", "run_sql", "execute_sql"):
        changing = commands.SQL_CHANGES
    elif program.replace("_", "-") in ("redis-cli", "valkey-cli"):
        changing = commands.STORE_CHANGES
    elif program.startswith("kafka-"):
        changing = commands.KAFKA_CHANGES
    elif program == "find":
        changing = _FIND_CHANGES
    else:
        return None
    return Effect.CHANGES if changing.search(line) else Effect.READS


def _effect_of_verbs(program: str, line: str) -> Effect:
    looks, changes = commands.VERBS[program]
    if re.search(r"--dry-run|--help\b", line):
        return Effect.READS
    words = re.findall(r"(?<![\w./=:-])[a-z][a-z-]*(?![\w./=:])", line)
    for place, word in enumerate(words):
        if word == "rollout" or (word == "config" and program == "kubectl"):
            following = words[place + 1 : place + 2]
            return Effect.READS if looks.intersection(following) else Effect.CHANGES
        if word in changes:
            return Effect.CHANGES
        if word in looks:
            return Effect.READS
    return Effect.UNKNOWN


def _unquoted(word: str) -> str:
    quoted = len(word) > 1 and word[0] in "\"'" and word[-1] == word[0]
    return word[1:-1] if quoted else word

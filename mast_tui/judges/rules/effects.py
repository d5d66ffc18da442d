"""The effect of a tool call on its environment: it changes it, reads it, or does neither.

The effect follows from the names of tools, programs and functions alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from enum import IntEnum
from itertools import pairwise
from typing import Final

import orjson

from mast_tui.judges.rules import commands


class Effect(IntEnum):
    """The effect of a call; a call of several parts has the effect with the highest value.

    Attributes:
        RECORDS: It records finished changes, such as a commit.
        CHANGES_AND_READS: It changes something, and later parts read it or have an unknown effect.
    """

    NONE = 0
    READS = 1
    UNKNOWN = 2
    RECORDS = 3
    CHANGES = 4
    CHANGES_AND_READS = 5


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
_CALLED_FUNCTION: Final = re.compile(r"\b([A-Za-z_]\w*)\(")
_WRAPPER_VALUE_OPTIONS: Final = frozenset({"-C", "-I", "-g", "-k", "-n", "-s", "-u"})
_DURATION: Final = re.compile(r"[\d.]+[smh]?\Z")
_SSH_VALUE_OPTIONS: Final = frozenset({"-F", "-J", "-i", "-l", "-o", "-p"})
_EXEC_VALUE_OPTIONS: Final = frozenset(
    {"-c", "-e", "-n", "-u", "-w", "--container", "--env", "--namespace", "--user", "--workdir"}
)
_MOST_WORDS: Final = 200
"""The most words of a simple command that are examined. Each may begin a command in a command."""

_CHANGES_OF_PROGRAMS: Final = (
    (re.compile(r"sed"), re.compile(r"(?:^|\s)(?:-\w*i|--in-place)")),
    (re.compile(r"find"), re.compile(r"-delete\b|-exec\s+rm\b")),
    (re.compile(r"psql|mysql|sqlite3|mongosh|sql|(?:run|execute)_sql"), commands.SQL_CHANGES),
    (re.compile(r"(?:redis|valkey)[-_]cli"), commands.STORE_CHANGES),
    (re.compile(r"kafka-.*", re.DOTALL), commands.KAFKA_CHANGES),
)
"""The arguments with which programs change something; without them, the programs read."""

_HTTP_CHANGES: Final = re.compile(
    r"(?:-X\s*|--request[ =])['\"]?(?:POST|PUT|PATCH|DELETE)"
    r"|\s(?:-d|--data\S*|-F|-T|--upload-file)\s"
)
_HTTP_QUERIES: Final = re.compile(
    r"/api/v1/query|/_search|graphql|/loki/api|/evaluate\b|/(?:query|search|validate|preview)\b"
    r"|--get\b|\s-G\s"
)
_PACKAGE_QUERIES: Final = commands.word_set(
    "list show search freeze info test vet check ls view build lint typecheck type-check clippy"
)
_PACKAGE_VALUE_OPTIONS: Final = frozenset(
    {"-C", "--cwd", "--directory", "--filter", "--package", "--prefix", "--with", "--workspace"}
)
_EDITORS: Final = re.compile(r"editor|edit_tool")
_EDITOR_COMMAND: Final = re.compile(r"\"command\":\s*\"(\w+)\"|\A\w+ (\w+)")
_SHELL_TOOLS: Final = re.compile(
    r"shell|bash|terminal|exec|command|run_cmd|console|ssh", re.IGNORECASE
)
_CODE_TOOLS: Final = re.compile(r"python|code|ipython|interpreter|jupyter", re.IGNORECASE)


def command_of(name: str, arguments: str) -> str:
    """Return the command or code in a call's arguments, or else the arguments.

    Arguments are mostly JSON: ``{"command": ["bash", "-lc", "kubectl get pods"]}``, ``{"cmd":
    "…"}``, ``{"code": "…"}``. The command is returned without its shell. The ``command`` of an
    editor (``view``, ``create``) is only a part of the call.

    Args:
        name: The name of the tool; may be empty.
        arguments: The arguments as they are in the trace.
    """
    text = arguments.strip()
    if not text.startswith("{") or _EDITORS.search(name):
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
            tokens = [str(word) for word in value]
            program = tokens[0].rsplit("/", 1)[-1]
            is_shell_script = program in commands.SHELL_TOOLS and len(tokens) > 2
            return tokens[-1] if is_shell_script else " ".join(tokens)
    return text


def effect_of(name: str, arguments: str, command: str) -> Effect:
    """Return the effect of a call, by the first of these that is known:

    1. The name of a tool with a known effect.
    2. The command or code, if the tool runs any.
    3. The verbs in the name of the tool.

    Args:
        name: The name of the tool; may be empty.
        arguments: The arguments as they are in the trace.
        command: The result of ``command_of`` for the arguments.
    """
    if name == "apply_patch":
        return Effect.CHANGES
    editor_command = _EDITOR_COMMAND.search(arguments) if _EDITORS.search(name) else None
    if editor_command is not None:
        return effect_of(editor_command[1] or editor_command[2], "", "")
    if name in commands.HANDING_OVER:
        return Effect.NONE  # a message to another agent or to the user
    # ``command_of`` returns arguments without a command unchanged.
    has_command = command != arguments.strip()
    tokens = name_words(name)
    if name in commands.VERBS:  # a program with subcommands, such as ``git``
        return effect_of_command(command if command.startswith(name) else f"{name} {command}")
    if _CODE_TOOLS.search(name):
        return effect_of_code(command)
    if _SHELL_TOOLS.search(name) or (has_command and commands.KNOWN_VERBS.isdisjoint(tokens)):
        return effect_of_command(command)
    known_effect = _effect_of_program(name, arguments)
    if known_effect is not None:
        return known_effect
    if tokens and tokens[0] in commands.IDLE_VERBS:
        return Effect.NONE
    if "plan" in tokens and ("update" in tokens or "todo" in tokens):
        return Effect.NONE
    for word in tokens:
        if word in commands.CHANGING_VERBS:
            return Effect.CHANGES
        if word in commands.LOOKING_VERBS:
            return Effect.READS
    return Effect.UNKNOWN


def name_words(name: str) -> list[str]:
    """Return the words of a name in snake or camel case, in lower case."""
    return [word.lower() for word in _NAME_WORDS.findall(name)]


def effect_of_code(code: str) -> Effect:
    """Return the effect of Python-like code, from the names of the functions that it calls."""
    if commands.CODE_CHANGES.search(code) or commands.SQL_CHANGES.search(code):
        return Effect.CHANGES
    for function_name in _CALLED_FUNCTION.findall(code):
        if function_name in commands.HANDING_OVER:
            continue  # A message to another agent or to the user changes nothing outside.
        tokens = name_words(function_name)
        # A name of one word, such as 'x.add(', is often a method of a list or set. 'api.like_song('
        # has an effect outside.
        if len(tokens) > 1 and tokens[0] in commands.CHANGING_VERBS:
            return Effect.CHANGES
    return Effect.READS if code.strip() else Effect.NONE


def effect_of_command(command: str) -> Effect:
    """Return the strongest effect of the pipelines and here-documents of a command line."""

    def remove_body(match: re.Match[str]) -> str:
        """Return the line that starts a here-document, with an output if its code changes."""
        text_before = command[max(0, match.start() - 80) : match.start()]
        changes = False
        if re.search(r"(?:python3?|node|ruby)\b[^|;&\n]*\Z", text_before):
            changes = effect_of_code(match["body"]) is Effect.CHANGES
        elif re.search(r"(?:psql|mysql|sqlite3)\b[^|;&\n]*\Z", text_before):
            changes = commands.SQL_CHANGES.search(match["body"]) is not None
        return f" > body {match['line']}" if changes else match["line"]

    effects = list(_effects_of_pipelines(_HEREDOC.sub(remove_body, command)))
    effect = max(effects, default=Effect.NONE)
    effects = [other for other in effects if other not in (Effect.NONE, Effect.RECORDS)]
    if effect is Effect.RECORDS and effects:
        return Effect.UNKNOWN  # such as tests and then a commit
    if effect >= Effect.CHANGES and effects[-1] is not Effect.CHANGES:
        return Effect.CHANGES_AND_READS
    return effect


def _effects_of_pipelines(command: str) -> Iterator[Effect]:
    """Yield the strongest effect of each pipeline of a line."""
    effect = Effect.NONE
    tokens: list[str] = []
    for token in (*_TOKEN.findall(command), ";"):
        if token not in _SEPARATORS:
            tokens.append(token)
            continue
        if tokens:
            effect = max(effect, _effect_of_simple_command(tokens))
        tokens = []
        if token != "|":
            yield effect
            effect = Effect.NONE


def _effect_of_simple_command(tokens: list[str]) -> Effect:
    """Return the effect of a simple command; output to a file is a change."""
    next_tokens = [*tokens[1:], "/dev/null"]  # a redirection at the end has no file
    writes_file = any(
        _REDIRECT.match(token) and not next_token.startswith(_NOWHERE)
        for token, next_token in zip(tokens, next_tokens, strict=True)
    )
    effect = _effect_of_words([_without_quotes(word) for word in tokens[:_MOST_WORDS]])
    return Effect.CHANGES if writes_file else effect


def _without_wrappers(tokens: list[str]) -> list[str]:
    """Return the words of a command from the program's name on.

    Words before it are wrappers such as ``sudo`` or ``timeout 30``, keywords, and assignments such
    as ``A=b``.
    """
    tokens = list(tokens)
    while tokens:
        name = tokens[0].rsplit("/", 1)[-1]
        if name in commands.WRAPPERS:
            tokens = _without_options(tokens[1:], _WRAPPER_VALUE_OPTIONS)
            while tokens and _DURATION.match(tokens[0]):
                del tokens[0]
        elif name in commands.KEYWORDS or _ASSIGNMENT.match(tokens[0]):
            del tokens[0]
        else:
            break
    return tokens


def _effect_of_words(tokens: list[str]) -> Effect:
    """Return the effect of a simple command from its words; redirected output does not count."""
    tokens = _without_wrappers(tokens)
    if not tokens:
        return Effect.NONE
    program = tokens[0].rsplit("/", 1)[-1]
    arguments = tokens[1:]
    line = " ".join(arguments)
    if program in commands.SHELL_TOOLS:
        for option, script in pairwise(arguments):
            if re.match(r"-\w*c\Z", option):  # such as: bash -lc SCRIPT
                return effect_of_command(script)
        return Effect.UNKNOWN
    if (program in ("kubectl", "docker") and "exec" in arguments) or program == "ssh":
        return _effect_of_remote_command(program, arguments)
    known_effect = _effect_of_program(program, line)
    if known_effect is not None:
        return known_effect
    if program in commands.PACKAGE_TOOLS:
        return _effect_of_package_tool(_without_options(arguments, _PACKAGE_VALUE_OPTIONS))
    if program in commands.WITHOUT_EFFECT:
        return Effect.NONE
    if program in commands.CHANGING:
        return Effect.CHANGES
    return Effect.READS if program in commands.READING else Effect.UNKNOWN


def _effect_of_package_tool(arguments: list[str]) -> Effect:
    """Return the effect of a package tool, which may run a program or a script of the project."""
    runs = arguments[:1] in (["run"], ["exec"], ["pip"])
    if runs:
        arguments = _without_options(arguments[1:], _PACKAGE_VALUE_OPTIONS)
    if arguments and arguments[0].split(":")[0] in _PACKAGE_QUERIES:
        return Effect.READS
    if not runs:
        return Effect.CHANGES
    return _effect_of_words(arguments) if arguments else Effect.UNKNOWN


def _effect_of_remote_command(program: str, arguments: list[str]) -> Effect:
    """Return the effect of a command that runs in a container or on another host.

    ``program`` is ``ssh``, ``kubectl`` or ``docker``.
    """
    if "--" in arguments:
        remote_command = arguments[arguments.index("--") + 1 :]
    elif program == "ssh":
        host_and_command = _without_options(arguments, _SSH_VALUE_OPTIONS)
        remote_command = host_and_command[1:]
    else:
        after_exec = arguments[arguments.index("exec") + 1 :]
        container_and_command = _without_options(after_exec, _EXEC_VALUE_OPTIONS)
        remote_command = _without_options(container_and_command[1:], _EXEC_VALUE_OPTIONS)
    if len(remote_command) == 1:
        return effect_of_command(remote_command[0])
    return _effect_of_words(remote_command) if remote_command else Effect.UNKNOWN


def _without_options(arguments: list[str], value_options: Collection[str]) -> list[str]:
    """Return the arguments after leading options; some options take the next word as a value."""
    while arguments and arguments[0].startswith("-"):
        arguments = arguments[2 if arguments[0] in value_options else 1 :]
    return arguments


def _effect_of_program(program: str, line: str) -> Effect | None:
    """Return the effect of a program that depends on its arguments; None for other programs."""
    if program in commands.VERBS:
        return _effect_of_subcommand(program, line)
    if program in ("python", "python3", "node", "ruby", "perl"):
        if re.match(r"-m\s+(?:pytest|unittest|json\.tool)", line):
            return Effect.READS
        runs_file = re.match(r"[^\s;(]+\.\w{1,4}\b", line)
        return Effect.UNKNOWN if runs_file else effect_of_code(line)
    if program in ("curl", "http", "grpcurl", "wget"):
        changes = _HTTP_CHANGES.search(f" {line} ") and not _HTTP_QUERIES.search(line)
        return Effect.CHANGES if changes else Effect.READS
    for programs, change_pattern in _CHANGES_OF_PROGRAMS:
        if programs.fullmatch(program):
            return Effect.CHANGES if change_pattern.search(line) else Effect.READS
    return None


def _effect_of_subcommand(program: str, line: str) -> Effect:
    """Return the effect of a program that depends on its subcommand, such as ``git push``."""
    reading_verbs, changing_verbs = commands.VERBS[program]
    if re.search(r"--dry-run|--help\b", line):
        return Effect.READS
    tokens = re.findall(r"(?<![\w./=:-])[a-z][a-z-]*(?![\w./=:])", line)
    for index, word in enumerate(tokens):
        # The next word decides: ``kubectl rollout status`` reads.
        if word == "rollout" or (word == "config" and program == "kubectl"):
            next_word = tokens[index + 1 : index + 2]
            return Effect.READS if reading_verbs.intersection(next_word) else Effect.CHANGES
        if word in changing_verbs:
            is_record = program == "git" and word in commands.GIT_RECORDS
            return Effect.RECORDS if is_record else Effect.CHANGES
        if word in reading_verbs:
            return Effect.READS
    return Effect.UNKNOWN


def _without_quotes(word: str) -> str:
    is_quoted = len(word) > 1 and word[0] in "\"'" and word[-1] == word[0]
    return word[1:-1] if is_quoted else word

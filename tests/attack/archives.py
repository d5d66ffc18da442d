"""Archives behind URLs: bombs, names that lead out, links, wrong sizes, damage, nesting."""

from __future__ import annotations

import gzip
import io
import json
import random
import resource
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from mast_tui.cli.command_line import split_command
from mast_tui.cli.dispatch import run
from mast_tui.traces.io.archive import MOST_BYTES, MOST_MEMBER_BYTES, MOST_MEMBERS
from tests.attack.trying import ROOM, Outcome, Setting, bad_end, forked, result_of, wait_for
from tests.terminal.hostile import HOSTILE
from tests.traces.damage import mutate
from tests.traces.zips import Part, archive_of

WHOLE: Final = 300

SECRET: Final = "SECRET-OUTSIDE"
"""The text of a file outside the archive, which no link may lead to."""

MOST_MEMORY: Final = 600 << 20
"""The bytes by which ``inspect`` may grow: a member of 256 MB, and its spans."""

MOST_CACHED: Final = MOST_BYTES + MOST_MEMBER_BYTES


def trace(text: str) -> bytes:
    """Return a trace of one message."""
    return json.dumps({"messages": [{"role": "user", "content": text}]}).encode()


GOOD: Final = trace("hello")
OUTSIDE: Final = (
    "../secret.json", "../../../../etc/shadow", "/etc/passwd", "..\\..\\secret.json",
    "C:\\secret.json", "a/../../secret.json", "nul\x00byte.json", "~/secret.json", HOSTILE,
)  # fmt: skip

Make = Callable[[random.Random], tuple[str, bytes, bool]]
"""Makes an archive: its kind, its bytes, and whether its trace ``good.json`` must be read."""


def zipped(members: Mapping[str, bytes]) -> bytes:
    """Return a zip archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def tarred(members: Mapping[str, bytes], *more: tarfile.TarInfo) -> bytes:
    """Return a tar archive, with members without content behind the others."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for special in more:
            archive.addfile(special)
    return data.getvalue()


def _archive(draw: random.Random, members: Mapping[str, bytes]) -> tuple[str, bytes]:
    kind = ("zip", "tar", "tar.gz")[draw.randrange(3)]
    if kind == "zip":
        return kind, zipped(members)
    data = tarred(members)
    return kind, data if kind == "tar" else gzip.compress(data, 1)


def bomb(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make a small archive with a member over the limit beside a good one."""
    content = bytes(MOST_MEMBER_BYTES + draw.randrange(1, 1 << 20))
    members = {"bomb.json": content, "good.json": GOOD}
    if draw.random() < 0.5:
        return "zip", zipped(members), True
    return "tar.gz", gzip.compress(tarred(members), 1), True


def many_bombs(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make an archive whose members are over the limit together."""
    content = bytes(MOST_BYTES // 4)
    return "zip", zipped({f"{number}.json": content for number in range(6)}), False


def many_members(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make an archive of more members than are read."""
    count = MOST_MEMBERS + draw.randrange(1, 100)
    return *_archive(draw, dict.fromkeys((f"{n}.json" for n in range(count)), b"")), False


def names_that_lead_out(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make an archive with names that lead out of it."""
    names = draw.sample(OUTSIDE, 4)
    return *_archive(draw, {**dict.fromkeys(names, trace("planted")), "good.json": GOOD}), True


def links(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make a tar archive with links out of it, to itself, pipes and devices."""
    members = []
    kinds = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, b"Z")
    for number in range(6):
        member = tarfile.TarInfo(f"link{number}.json")
        member.type = draw.choice(kinds)
        member.linkname = draw.choice((*OUTSIDE[:6], "secret.json", member.name, "/dev/zero"))
        members.append(member)
    return "tar", tarred({"good.json": GOOD}, *members), True


def lying_sizes(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make a zip archive that states wrong sizes, checksums and places."""
    content = trace("x" * draw.randrange(10, 100_000))
    lie = draw.choice((0, 1, 100, 2**31, 2**32 - 1))
    part = (
        Part("lie.json", content, stated_size=lie),
        Part("lie.json", content, stated_checksum=lie),
        Part("lie.json", content, offset=lie),
    )[draw.randrange(3)]
    return "zip", archive_of(part, Part("good.json", GOOD)), True


def lying_tar(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make a tar archive whose last header states far more bytes than there are."""
    data = bytearray(tarred({"good.json": GOOD}))
    header = tarfile.TarInfo("lie.json")
    header.size = draw.choice((10**6, 2**33, 2**60))
    return "tar", bytes(data[:1024]) + header.tobuf(tarfile.GNU_FORMAT) + b"short", False


def nested(draw: random.Random) -> tuple[str, bytes, bool]:
    """Make archives in archives, a bomb in the innermost."""
    name = "bomb.json"
    data = bytes(64 << 20) if draw.random() < 0.5 else GOOD
    for _ in range(draw.randrange(2, 6)):
        data = zipped({name: data})
        name = "in.zip"
    return *_archive(draw, {"in.zip": data, "good.json": GOOD}), True


def damaged(draw: random.Random) -> tuple[str, bytes, bool]:
    """Damage an archive anywhere, most often in its directory."""
    kind, data = _archive(draw, {"good.json": GOOD, "more.json": trace("more " * 100)})
    if kind == "zip" and draw.random() < 0.6:
        changed = bytearray(data)
        for _ in range(draw.randrange(1, 6)):
            changed[draw.randrange(len(data) // 2, len(data))] = draw.randrange(256)
        return kind, bytes(changed), False
    return kind, mutate(data, draw).data, False


KINDS: Final[Mapping[str, Make]] = {
    "damaged archives": damaged, "names that lead out": names_that_lead_out,
    "links, pipes and devices": links, "lying sizes in zip": lying_sizes,
    "lying sizes in tar": lying_tar, "nested archives": nested, "a member over the limit": bomb,
    "too many members": many_members, "members over the limit together": many_bombs,
}  # fmt: skip


def _inspect(home: Path, url: str) -> int:
    peak_before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    code = run(split_command(("inspect", url, "--spans")))
    peak = max(
        resource.getrusage(processes).ru_maxrss
        for processes in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    (home / "grown").write_text(str((peak - peak_before) << 10))
    return code


def _files(home: Path) -> set[Path]:
    return {path for path in home.iterdir() if not path.name.startswith(".")}


def attack(home: Path, make: Make, draw: random.Random) -> tuple[str, float]:
    """Inspect one archive; return what does not hold, and the megabytes that it took."""
    kind, data, reads_good = make(draw)
    (home / "secret.json").write_bytes(trace(SECRET))
    (home / f"runs.{kind}").write_bytes(data)
    surroundings = {"XDG_CACHE_HOME": str(home / ".cache")}
    url = f"{kind[:3]}://::{home / f'runs.{kind}'}"
    files = _files(home)
    work = partial(_inspect, home, url)
    pid = forked(home, work, room=ROOM, surroundings=surroundings)
    done = result_of(home, wait_for(pid))
    grown = int((home / "grown").read_text()) if (home / "grown").exists() else 0
    cached = sum(path.stat().st_size for path in (home / ".cache").rglob("*") if path.is_file())
    new = _files(home) - files - {home / name for name in ("grown", "said.out", "said.err")}
    failure = bad_end(home, done)
    if grown > MOST_MEMORY:
        failure = failure or f"took {grown >> 20} MB more"
    if cached > MOST_CACHED:
        failure = failure or f"{cached >> 20} MB are in the cache"
    if SECRET in done.out:
        failure = failure or "a file outside the archive was read"
    if new:
        failure = failure or f"written outside the archive: {sorted(new)}"
    if reads_good and "hello" not in done.out:
        failure = failure or f"the good trace beside it was not read: {done.err[-300:]}"
    return failure, float(grown >> 20)


def tries(setting: Setting) -> Iterator[Outcome]:
    """Make archives of each kind in turn."""
    for number in setting.numbers(WHOLE):
        name = list(KINDS)[number % len(KINDS)]
        with setting.home() as home:
            failure, grown = attack(home, KINDS[name], setting.draw(number))
        yield Outcome(
            setting.kind, name, failure, {"most memory that a command took, in MB": grown}
        )

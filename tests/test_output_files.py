"""Output files are written completely or not at all, and never over a device or a link."""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mast_tui.output_files import OutputError, Outputs, ReplacementRules, is_stdout, write_output
from tests.waiting import PATIENCE


def names(folder: Path) -> set[str]:
    """Return the names of all files in a folder, hidden drafts too."""
    return {path.name for path in folder.iterdir()}


def read_in_background(pipe: Path) -> Callable[[], bytes]:
    """Begin to read a pipe; the result waits for its end."""
    contents: list[bytes] = []
    thread = threading.Thread(target=lambda: contents.append(pipe.read_bytes()), daemon=True)
    thread.start()

    def result() -> bytes:
        thread.join(PATIENCE)
        return contents[0]

    return result


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "out.csv"
    file.write_text("old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space") as caught:
        write_output(file, "new")
    assert caught.value.filename == str(file)
    assert file.read_text() == "old"
    assert names(tmp_path) == {"out.csv"}


def test_a_pipe_is_written_into_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to("pipe")
    for path in (pipe, tmp_path / "link"):
        result = read_in_background(pipe)
        write_output(path, "words\n" * 30_000)
        assert result() == b"words\n" * 30_000
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == {"pipe", "link"}


def test_a_terminal_and_a_device_are_written_into(tmp_path: Path) -> None:
    reading, terminal = os.openpty()
    try:
        (tmp_path / "tty").symlink_to(os.ttyname(terminal))
        write_output(tmp_path / "tty", "words")
        assert os.read(reading, 100) == b"words"
    finally:
        os.close(reading)
        os.close(terminal)
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.close(os.open(device, os.O_WRONLY))
    except OSError:
        pytest.skip("devices cannot be made here")
    write_output(device, "words")
    assert stat.S_ISCHR(device.stat().st_mode)
    assert names(tmp_path) == {"null", "tty"}


WRITE_TO_LINKED_STDOUT = """
import sys
from pathlib import Path
from mast_tui.output_files import is_stdout, write_output
print("before")
write_output(Path(sys.argv[1]), "words\\n")
print(is_stdout(Path(sys.argv[1])))
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["/proc/self/fd/1", "/dev/fd/1"])
@pytest.mark.parametrize("mode", ["w", "a"])
def test_an_open_descriptor_is_written_at_its_position(
    tmp_path: Path, target: str, mode: str
) -> None:
    if not os.access("/proc/self/fd", os.R_OK):
        pytest.skip("there is no /proc")
    link, out = tmp_path / "stdout", tmp_path / "out.txt"
    link.symlink_to(target)
    out.write_text("first\n")
    inode = out.stat().st_ino
    with out.open(mode) as file:
        command = [sys.executable, "-c", WRITE_TO_LINKED_STDOUT, str(link)]
        subprocess.run(command, stdout=file, check=True, timeout=120)
    first = "first\n" if mode == "a" else ""
    assert out.read_text() == f"{first}before\nwords\nTrue\n"
    assert out.stat().st_ino == inode
    assert link.is_symlink()
    assert names(tmp_path) == {"stdout", "out.txt"}


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "out.txt", tmp_path / "out.txt"
    real.write_text("old")
    link.symlink_to(Path("real") / "out.txt")
    write_output(link, '"\ud800"')
    assert link.is_symlink()
    # Text that UTF-8 cannot hold is escaped as in JSON.
    assert json.loads(real.read_text(encoding="utf-8")) == "\ud800"
    (tmp_path / "new").symlink_to(Path("real") / "not yet")
    write_output(tmp_path / "new", "made")
    assert (tmp_path / "real" / "not yet").read_text() == "made"
    assert not is_stdout(link)
    for name, target in ("ab", "ba"):
        (tmp_path / name).symlink_to(target)
    with pytest.raises(OutputError, match="leads to itself"):
        write_output(tmp_path / "a", "words")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of somebody else")
def test_a_link_of_another_user_is_not_followed_to_own_files(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("old")
    link = tmp_path / "out.json"
    link.symlink_to(mine)
    os.lchown(link, 65534, 65534)
    with pytest.raises(OutputError, match="another user created"):
        write_output(link, "new")
    assert mine.read_text() == "old"
    os.chown(mine, 65534, 65534)  # theirs: they can do with it what they want anyway
    write_output(link, "new")
    assert mine.read_text() == "new"


def test_a_planted_draft_is_neither_used_nor_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    victim, out = tmp_path / "victim", tmp_path / "out.json"
    victim.write_text("victim's")
    (tmp_path / f".{out.name}.{os.getpid()}.part").symlink_to(victim)
    write_output(out, "new")
    assert (victim.read_text(), out.read_text(), out.is_symlink()) == ("victim's", "new", False)
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    (tmp_path / ".mast-tui-guessed.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_output(out, "newer")
    assert (victim.read_text(), out.read_text(), out.is_symlink()) == ("victim's", "new", False)


def test_the_mode_of_a_file_is_kept_and_new_ones_follow_the_umask(tmp_path: Path) -> None:
    existing, new = tmp_path / "kept", tmp_path / "new"
    existing.write_text("old")
    existing.chmod(0o640)
    old_umask = os.umask(0o027)
    try:
        write_output(existing, "new")
        write_output(new, "new")
    finally:
        os.umask(old_umask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (existing, new)] == [0o640, 0o640]
    existing.chmod(0o606)
    write_output(existing, "newer")
    assert stat.S_IMODE(existing.stat().st_mode) == 0o606


def two_outputs(folder: Path) -> Outputs:
    outputs = Outputs()
    outputs.add_folder(folder / "new" / "deep")
    outputs.add(folder / "new" / "deep" / "a", "new a")
    outputs.add(folder / "b", "new b")
    outputs.add(folder / "c", "new c")
    outputs.remove(folder / "d")
    return outputs


def test_several_files_are_replaced_together_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "bd":
        (tmp_path / name).write_text(f"old {name}")
    replace = Path.replace
    # Three files are put in their places, and one is removed.
    for fails in range(1, 5):
        calls = iter(range(1, 100))

        def failing(
            self: Path, target: Path, fails: int = fails, calls: Iterator[int] = calls
        ) -> Path:
            if next(calls) == fails:
                raise OSError(errno.EIO, "Input/output error")
            return replace(self, target)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "replace", failing)
            with pytest.raises(OSError, match="Input/output"):
                two_outputs(tmp_path).commit()
        assert names(tmp_path) == {"b", "d"}
        assert [(tmp_path / name).read_text() for name in "bd"] == ["old b", "old d"]
    two_outputs(tmp_path).commit()
    assert names(tmp_path) == {"b", "c", "new"}
    assert (tmp_path / "b").read_text() == "new b"
    assert names(tmp_path / "new" / "deep") == {"a"}


def test_pieces_are_written_one_by_one_and_an_error_leaves_nothing(tmp_path: Path) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"one\n"
        (draft,) = tmp_path.glob(".mast-tui-*")
        assert draft.read_bytes() == b"one\n"
        yield b"two\n"
        if not (tmp_path / "out").exists():
            raise ValueError("cannot be read")

    outputs = Outputs()
    outputs.add(tmp_path / "out", pieces())
    with pytest.raises(ValueError, match="cannot be read"):
        outputs.commit()
    assert names(tmp_path) == set()
    (tmp_path / "out").touch()
    outputs = Outputs()
    outputs.add(tmp_path / "out", pieces())
    outputs.commit()
    assert (tmp_path / "out").read_bytes() == b"one\ntwo\n"


def test_a_pipe_gets_nothing_while_a_file_cannot_be_written(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        outputs = Outputs()
        outputs.add(pipe, "words")
        (tmp_path / "folder").mkdir()
        outputs.add(tmp_path / "folder" / "file", "words")
        (tmp_path / "folder").rmdir()
        with pytest.raises(FileNotFoundError):
            outputs.commit()
        assert os.read(reading, 10) == b""
    finally:
        os.close(reading)


def test_impossible_paths_are_refused(tmp_path: Path) -> None:
    outputs = Outputs()
    (tmp_path / "file").touch()
    for path, message in (
        (tmp_path, "is a folder; give a file"),
        (tmp_path / "none" / "file", "no such folder"),
    ):
        with pytest.raises(OutputError, match=message):
            outputs.check(path)
    with pytest.raises(OutputError, match="is a file; give a folder"):
        outputs.add_folder(tmp_path / "file")
    outputs.add(tmp_path / "file", "one")
    with pytest.raises(OutputError, match="two outputs"):
        outputs.add(tmp_path / "x" / ".." / "file", "two")


def test_replacement_rules_protect_files(tmp_path: Path) -> None:
    def never(path: Path) -> str | None:
        return "is kept" if path.name == "kept" else None

    def precious(path: Path) -> str | None:
        return "is precious" if path.name == "precious" else None

    for name in ("kept", "precious", "other", "ours"):
        (tmp_path / name).write_text(f"{name}, marked" if name == "ours" else name)

    def refused(name: str, outputs: Outputs) -> str:
        try:
            outputs.add(tmp_path / name, "new", ours=lambda head: b"marked" in head)
        except OutputError as error:
            return str(error)
        return ""

    careful, forced = (
        Outputs(ReplacementRules(never, precious)),
        Outputs(ReplacementRules(never, precious, True)),
    )
    assert "is kept; give another file" in refused("kept", careful)
    assert "was not written by mast-tui" in refused("other", careful)
    assert refused("ours", careful) == refused("new", careful) == ""
    with pytest.raises(OutputError, match="is precious; give another file, or use --force"):
        careful.check(tmp_path / "precious")
    careful.check(tmp_path / "other")
    assert "is kept" in refused("kept", forced)
    assert refused("precious", forced) == refused("other", forced) == ""

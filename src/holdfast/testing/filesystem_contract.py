"""The contract of `holdfast.ports.filesystem`, as tests."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.ports.filesystem import Filesystem, write_all
from holdfast.testing.samples import expect_error

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FilesystemContract:
    """Subclass it, and define which file system to test."""

    def filesystem(self) -> Filesystem:
        raise NotImplementedError

    @contextmanager
    def opened(self, directory: Path) -> Iterator[tuple[Filesystem, int]]:
        fs = self.filesystem()
        fd = fs.open(os.fsencode(directory), _READ | os.O_DIRECTORY)
        try:
            yield fs, fd
        finally:
            fs.close(fd)

    def test_written_bytes_are_read_back(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as (fs, top):
            fd = fs.open(b"\xff", _NEW, 0o600, dir_fd=top)
            write_all(fs, fd, b"content" * 50_000)
            fs.ftruncate(fd, 10)
            fs.fsync(fd)
            fs.close(fd)
            fs.fsync(top)
            fd = fs.open(b"\xff", _READ, dir_fd=top)
            assert (fs.read(fd, 4), fs.pread(fd, 3, 1), fs.read(fd, 99)) == (
                b"cont",
                b"ont",
                b"entcon",
            )
            assert fs.lseek(fd, 0, os.SEEK_SET) == 0
            assert fs.fstat(fd).st_size == 10
            fs.close(fd)
            assert fs.list_names(top) == [b"\xff"]

    def test_links_are_not_followed(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x")
        with self.opened(tmp_path) as (fs, top):
            before = fs.stat(b"file", dir_fd=top, follow_symlinks=False)
            fs.symlink(b"file", b"link", dir_fd=top)
            assert fs.readlink(b"link", dir_fd=top) == b"file"
            with expect_error(OSError):
                fs.open(b"link", _READ, dir_fd=top)
            fs.set_times(b"link", 5_000_000_000, dir_fd=top)
            link = fs.stat(b"link", dir_fd=top, follow_symlinks=False)
            assert stat.S_ISLNK(link.st_mode)
            assert link.st_mtime_ns == 5_000_000_000
            assert fs.stat(b"file", dir_fd=top, follow_symlinks=False) == before

    def test_a_mode_is_set_even_if_the_file_cannot_be_read(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x")
        with self.opened(tmp_path) as (fs, top):
            for mode in (0o000, 0o640):
                fs.set_mode(b"file", mode, dir_fd=top)
                found = fs.stat(b"file", dir_fd=top, follow_symlinks=False)
                assert stat.S_IMODE(found.st_mode) == mode

    def test_nothing_is_replaced_by_a_new_name(self, tmp_path: Path) -> None:
        (tmp_path / "one").write_bytes(b"1")
        (tmp_path / "two").write_bytes(b"2")
        with self.opened(tmp_path) as (fs, top):
            with expect_error(FileExistsError):
                fs.rename_new(b"one", b"two", src_dir_fd=top, dst_dir_fd=top)
            with expect_error(FileExistsError):
                fs.link(b"one", b"two", src_dir_fd=top, dst_dir_fd=top)
            assert (tmp_path / "two").read_bytes() == b"2"
            fs.rename_new(b"one", b"three", src_dir_fd=top, dst_dir_fd=top)
            fs.link(b"three", b"four", src_dir_fd=top, dst_dir_fd=top)
            fs.rename(b"two", b"three", src_dir_fd=top, dst_dir_fd=top)
            assert sorted(fs.list_names(top)) == [b"four", b"three"]
            assert (tmp_path / "three").read_bytes() == b"2"
            assert (tmp_path / "four").read_bytes() == b"1"

    def test_two_names_are_exchanged_whatever_they_are(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x")
        (tmp_path / "directory").mkdir()
        with self.opened(tmp_path) as (fs, top):
            fs.exchange(b"file", b"directory", src_dir_fd=top, dst_dir_fd=top)
            assert (tmp_path / "file").is_dir()
            assert (tmp_path / "directory").read_bytes() == b"x"
            with expect_error(OSError):
                fs.exchange(b"file", b"missing", src_dir_fd=top, dst_dir_fd=top)
            assert sorted(fs.list_names(top)) == [b"directory", b"file"]

    def test_names_are_made_and_removed(self, tmp_path: Path) -> None:
        with self.opened(tmp_path) as (fs, top):
            fs.mkdir(b"a", 0o700, dir_fd=top)
            fs.close(fs.open(b"b", _NEW, 0o600, dir_fd=top))
            with expect_error(FileExistsError):
                fs.mkdir(b"a", 0o700, dir_fd=top)
            fs.rmdir(b"a", dir_fd=top)
            fs.unlink(b"b", dir_fd=top)
            fs.sync_all(top)
            fs.sync_everything()
            assert fs.list_names(top) == []

    def test_many_names_are_looked_at_in_one_piece_that_changes_with_them(
        self, tmp_path: Path
    ) -> None:
        names = [b"a", b"b"]
        for name in names:
            (tmp_path / os.fsdecode(name)).write_bytes(name)
        with self.opened(tmp_path) as (fs, top):
            found = fs.stat_all(names, dir_fd=top)
            if found is None:
                return  # not supported on this system; `stat` is used instead
            assert fs.stat_all(names, dir_fd=top) == found
            single = [fs.stat(name, dir_fd=top, follow_symlinks=False) for name in names]
            assert [tuple(numbers) for numbers in fs.stat_numbers(found)] == [
                (one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns, one.st_mode)
                for one in single
            ]
            assert fs.stat_all([b"a", b"missing"], dir_fd=top) is None
            (tmp_path / "b").write_bytes(b"longer")
            assert fs.stat_all(names, dir_fd=top) != found

    def test_a_writer_is_noticed_where_the_system_tells(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"x")
        with self.opened(tmp_path) as (fs, top):
            fd = fs.open(b"file", _READ, dir_fd=top)
            assert not fs.is_open_for_writing(fd)
            with open(tmp_path / "file", "ab"):
                assert fs.is_open_for_writing(fd) in (True, None)
            fs.expose_mapped_writes(fd)
            assert fs.list_xattrs(fd) == []
            fs.close(fd)
            assert fs.free_bytes(os.fsencode(tmp_path)) > 0
            assert fs.mount_points_below(os.fsencode(tmp_path)) == []

"""Part 10: size. Many files, wide and deep directories, large files; memory stays where it is.

A slice does the same with a hundredth of everything. Each case is a process of its own, because
the most memory that a process ever had cannot be taken back.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.disks import kind_of
from tests.torture.scenes import remove_tree

pytestmark = pytest.mark.requirement("PF-5", "RL-6")

_MB = 1_000_000
_BLOCK = 1 << 20
_ROOM_BYTES = 16_000 * _MB


@dataclass(frozen=True, slots=True)
class _Shape:
    """What is made, the changes of it that are saved and taken back one after the other, and what
    may be used: memory, and new bytes stored by each change."""

    name: str
    make: Callable[[Path, int], None]
    changes: tuple[str, ...]
    memory_bytes: int
    second_bytes: int


def _many_files(workspace: Path, share: int) -> None:
    for number in range(1_000_000 // share):
        directory = workspace / f"d{number // 10_000}" / f"e{number // 100 % 100}"
        if number % 100 == 0:
            directory.mkdir(parents=True, exist_ok=True)
        _write(f"{directory}/f{number}", b"%d\n" % number)


def _write(path: str, data: bytes) -> None:
    """What `Path.write_bytes` does, a million times."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, data)
    os.close(fd)


def _wide(workspace: Path, share: int) -> None:
    for number in range(200_000 // share):
        _write(f"{workspace}/file{number}", b"%d\n" % number)


def _deep(workspace: Path, share: int) -> None:
    fd = os.open(workspace, os.O_RDONLY)
    for _ in range(500):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    file = os.open("file", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=fd)
    os.write(file, b"deep")
    os.close(file)
    os.close(fd)


def _sparse(workspace: Path, share: int) -> None:
    with (workspace / "large").open("wb") as file:
        for at in range(64):
            file.seek(at * 150 * _MB // share)
            file.write(_random(at, 4096))
        file.truncate(10_000 * _MB // share)


def _real(workspace: Path, share: int) -> None:
    with (workspace / "large").open("wb") as file:
        for number in range(2_000 * _MB // share // _BLOCK + 1):
            file.write(_random(number, _BLOCK))


def _random(seed: int, size: int) -> bytes:
    return hashlib.shake_128(b"%d" % seed).digest(size)


_EDIT = """
import os
file = os.open(workspace / "large", os.O_RDWR)
os.pwrite(file, b"!", os.fstat(file).st_size // 2)
"""
_APPEND = "(workspace / 'large').open('ab').write(b'some more')"
# Blocks of zeros are left out again, so that a sparse file stays one.
_INSERT = """
with (workspace / "large").open("rb") as old, (workspace / "new").open("wb") as new:
    new.write(b"at the front")
    while block := old.read(1 << 20):
        if block.count(0) == len(block):
            new.seek(len(block), 1)
        else:
            new.write(block)
    new.truncate()
(workspace / "new").replace(workspace / "large")
"""
_ONE_FILE = "next(p for p in workspace.rglob('f*') if p.is_file()).write_bytes(b'changed')"
_NEW_FILE = "(workspace / 'top').write_bytes(b'new')"
_TO_A_LARGE_FILE = (_EDIT, _APPEND, _INSERT)
_SHAPES = (
    _Shape("1,000,000 files", _many_files, (_ONE_FILE,), 400 * _MB, 200_000),
    _Shape("200,000 files in one directory", _wide, (_ONE_FILE,), 400 * _MB, 40 * _MB),
    _Shape("500 directories deep", _deep, (_NEW_FILE,), 50 * _MB, 200_000),
    _Shape("a sparse file of 10 GB", _sparse, _TO_A_LARGE_FILE, 300 * _MB, 12 * _MB),
    _Shape("a file of 2 GB", _real, _TO_A_LARGE_FILE, 300 * _MB, 4 * _MB),
)


def test_huge_trees_and_files_are_saved_and_restored_in_little_memory(
    campaign: Campaign, tmp_path: Path, quick_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In memory where there is room for it: a million files are quickly made there."""
    is_roomy = shutil.disk_usage(quick_disk).free > _ROOM_BYTES
    place = quick_disk if campaign.is_slice or is_roomy else tmp_path
    workspace, home = place / "large", place / "home"
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    most: dict[int, str] = {}

    def case(case: Case) -> None:
        shape = _SHAPES[case.number]
        remove_tree(workspace)
        remove_tree(home)
        workspace.mkdir()
        shape.make(workspace, 100 if campaign.is_slice else 1)
        command = [sys.executable, "-m", "tests.torture.size_child", str(workspace)]
        command += shape.changes
        done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        assert told["problems"] == []
        assert all(told["changed"]), told
        assert all(told["back"]), told
        assert max(told["memory"].values()) < shape.memory_bytes, told
        assert max(told["stored"]) < shape.second_bytes, told
        used = ", ".join(f"{step} {peak / _MB:.0f}" for step, peak in told["memory"].items())
        most[case.number] = f"{shape.name}: {used} MB"
        campaign.note = "; ".join(text for _, text in sorted(most.items()))

    title = (
        "a huge tree or file saved, changed, saved, restored and checked, with bounded memory"
        " and few new bytes,"
        f" {kind_of(place)}"
    )
    shapes = len(_SHAPES)
    campaign.run(
        Scenario(10, "size", title), case, slice_cases=shapes, space=shapes, most_cases=shapes
    )

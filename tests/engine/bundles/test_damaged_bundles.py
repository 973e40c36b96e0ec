"""A file that is not exactly what was exported is refused whole, and the store does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SessionCheckpointer
from holdfast.domain.bundles.inventory import Role
from holdfast.domain.errors import BundleRefused, HoldfastError
from holdfast.domain.ids import SessionId
from holdfast.engine.bundles.importer import ImportRequest, import_bundle
from holdfast.ports.catalog import all_checkpoints
from tests.support.bundle_files import (
    Frames,
    edited,
    object_frame,
    put_together,
    small_bundle,
    take_apart,
)
from tests.support.composition import Composed, composed
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("ST-7"), pytest.mark.in_memory]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("bundle")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOLDFAST_HOME", str(directory / "home"))
        return small_bundle(directory)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Composed]:
    """A store that has something of its own."""
    workspace = tmp_path / "target"
    fill(workspace / "mine", b"mine")
    with composed(workspace) as opened:
        opened.save("mine")
        yield opened


def everything(opened: Composed) -> tuple[Any, ...]:
    """What the store holds and what its files are."""
    vault = opened.engine.vault
    files = {
        path.relative_to(opened.store.directory): path.read_bytes()
        for path in sorted(opened.store.directory.rglob("*"))
        if path.is_file() and not path.name.endswith("-shm") and path.name != "lock"
    }
    return list(all_checkpoints(vault.catalog)), list(vault.catalog.sessions()), files


def import_file(opened: Composed, path: Path) -> None:
    import_bundle(opened.engine.vault, ImportRequest(path, foreign=True))


def require_refused(opened: Composed, path: Path) -> BundleRefused:
    with pytest.raises(BundleRefused) as refusal:
        import_file(opened, path)
    assert refusal.value.exit_status == 5
    assert refusal.value.hint
    return refusal.value


def test_every_flipped_byte_is_refused(bundle: Path, target: Composed, tmp_path: Path) -> None:
    before = everything(target)
    original = bundle.read_bytes()
    damaged = tmp_path / "damaged"
    accepted: list[int] = []
    for position in range(len(original)):
        flip = bytes((original[position] ^ (1 << position % 8),))
        damaged.write_bytes(original[:position] + flip + original[position + 1 :])
        try:
            import_file(target, damaged)
        except BundleRefused:
            continue
        accepted.append(position)
    assert accepted == []
    assert everything(target) == before


def test_every_truncation_is_refused(bundle: Path, target: Composed, tmp_path: Path) -> None:
    before = everything(target)
    original = bundle.read_bytes()
    damaged = tmp_path / "damaged"
    for length in range(len(original)):
        damaged.write_bytes(original[:length])
        require_refused(target, damaged)
    assert everything(target) == before


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "cannot import the file: it is empty"),
        (b"HFBUNDLE", "cannot import the file: it is incomplete"),
        (b"\0" * 100_000, "cannot import the file: not a Holdfast export"),
        (b"PK\x03\x04 something else", "cannot import the file: not a Holdfast export"),
        (b"HFBUNDLE\x02\0\0\0", "the file has format 2; this Holdfast reads format 1"),
    ],
)
def test_other_files_are_refused_by_name(
    content: bytes, words: str, target: Composed, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    assert require_refused(target, file).message == f"{file}: {words}"


def test_a_bundle_of_a_later_version_says_that_an_upgrade_helps(
    bundle: Path, target: Composed, tmp_path: Path
) -> None:
    data = bytearray(bundle.read_bytes())
    data[8] = 2
    later = tmp_path / "later"
    later.write_bytes(data)
    refusal = require_refused(target, later)
    assert "the file has format 2; this Holdfast reads format 1" in refusal.message
    assert "upgrade" in (refusal.hint or "")


def test_anything_behind_the_end_is_refused(bundle: Path, target: Composed, tmp_path: Path) -> None:
    longer = tmp_path / "longer"
    longer.write_bytes(bundle.read_bytes() + b"\0")
    assert "there is data after its end" in require_refused(target, longer).message


def test_a_pipe_or_a_directory_is_refused_without_waiting(target: Composed, tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    require_refused(target, tmp_path / "pipe")
    require_refused(target, tmp_path)


def _set(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda fields: fields.update({key: value})


def _intent(key: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda fields: fields["intent"].update({key: value})


BROKEN_ROWS: dict[str, tuple[bytes, Callable[[dict[str, Any]], None]]] = {
    "more content than there is": (b"BNDL", _set("content_bytes", 10**6)),
    "less content than there is": (b"BNDL", _set("content_bytes", 1)),
    "more objects": (b"BNDL", _set("objects", 10**6)),
    "fewer objects": (b"BNDL", _set("objects", 1)),
    "more checkpoints": (b"BNDL", _set("checkpoints", 3)),
    "fewer checkpoints": (b"BNDL", _set("checkpoints", 1)),
    "no sessions": (b"BNDL", _set("sessions", 0)),
    "a latest that is not there": (b"BNDL", _set("latest", "0" * 20)),
    "a negative number": (b"BNDL", _set("objects", -1)),
    "an id that is a path": (b"BNDL", _set("workspace_id", "../../../etc/passwd1")),
    "a session that stands nowhere": (b"SESS", _set("head", "0" * 20)),
    "an unknown status": (b"SESS", _set("status", "strange")),
    "a session with control characters": (b"SESS", _set("id", "a\x1b[31m")),
    "the wrong session": (b"CKPT", _set("session_id", "other")),
    "one id twice": (b"CKPT", _set("id", "a" * 20)),
    "an unknown parent": (b"CKPT", _set("parent", "0" * 20)),
    "an unknown origin": (b"CKPT", _set("restores_from", "0" * 20)),
    "a kind of its own": (b"CKPT", _set("kind", "strange")),
    "no tree": (b"CKPT", _set("tree", "00" * 32)),
    "half a tree": (b"CKPT", _set("tree", "00")),
    "no report": (b"CKPT", _set("report", "00" * 32)),
    "a time out of range": (b"CKPT", _set("created_at_ns", 1 << 70)),
    "a time that is text": (b"CKPT", _set("created_at_ns", "now")),
    "a flag that is a number": (b"CKPT", _set("partial", 1)),
    "an empty reason": (b"CKPT", _intent("reasoning", " ")),
    "a reason that is none": (b"CKPT", _intent("reasoning", None)),
    "too much confidence": (b"CKPT", _intent("confidence", 2)),
    "infinite confidence": (b"CKPT", _intent("confidence", float("inf"))),
    "a name that means something": (b"CKPT", _intent("checkpoint_name", "HEAD~1")),
    "the same name twice": (b"CKPT", _intent("checkpoint_name", "same")),
    "tags that are a text": (b"CKPT", _intent("tags", "abc")),
    "tool calls that are numbers": (b"CKPT", _intent("tool_calls", [1])),
    "a goal that is a number": (b"CKPT", _intent("goal_id", 5)),
}


@pytest.mark.parametrize("what", BROKEN_ROWS)
def test_rows_that_no_store_would_hold_are_refused(
    what: str, bundle: Path, target: Composed, tmp_path: Path
) -> None:
    before = everything(target)
    tag, change = BROKEN_ROWS[what]
    path = put_together(tmp_path / "crafted", edited(take_apart(bundle), tag, change))
    require_refused(target, path)
    assert everything(target) == before


def _without(tag: bytes, number: int) -> Callable[[Frames], Frames]:
    def change(frames: Frames) -> Frames:
        positions = [i for i, (found, _) in enumerate(frames) if found == tag]
        return [frame for i, frame in enumerate(frames) if i != positions[number]]

    return change


BROKEN_FRAMES: dict[str, Callable[[Frames], Frames]] = {
    "an object missing": _without(b"OBJT", 0),
    "the last object missing": _without(b"OBJT", -1),
    "no origin": _without(b"BNDL", 0),
    "no session": _without(b"SESS", 0),
    "a checkpoint missing": _without(b"CKPT", 0),
    "the origin twice": lambda frames: frames[:1] + frames,
    "the order turned round": lambda frames: frames[::-1],
    "an object twice": lambda frames: [*frames, frames[-1]],
    "an object that nobody names": lambda frames: [*frames, object_frame(Role.BLOB, b"stowaway")],
    "an unknown part": lambda frames: [*frames, (b"WHAT", b"")],
    "an object of no role": lambda frames: [*frames, (b"OBJT", b"")],
    "a tag in small letters in front of the origin, and no origin": lambda frames: [
        (b"what", b""),
        *frames[1:],
    ],
    "a tag in small letters in front of the origin": lambda frames: [(b"what", b""), *frames],
    "nothing at all": lambda frames: [],
}


@pytest.mark.parametrize("what", BROKEN_FRAMES)
def test_parts_that_do_not_make_a_whole_are_refused(
    what: str, bundle: Path, target: Composed, tmp_path: Path
) -> None:
    before = everything(target)
    path = put_together(tmp_path / "crafted", BROKEN_FRAMES[what](take_apart(bundle)))
    require_refused(target, path)
    assert everything(target) == before


def test_optional_parts_of_later_versions_are_passed_over(
    bundle: Path, target: Composed, tmp_path: Path
) -> None:
    frames = take_apart(bundle)
    frames = edited(frames, b"CKPT", lambda fields: fields.update({"later": {"more": [1]}}))
    frames = [frames[0], (b"anno", b"x" * 3_000_000), *frames[1:], (b"zzzz", b"")]
    import_file(target, put_together(tmp_path / "later", frames))
    history = target.engine.vault.catalog.history(SessionId("travelling"))
    assert [c.intent.reasoning for c in history] == ["two", "one"]


def test_a_file_that_changes_after_it_was_verified_is_refused(
    bundle: Path, target: Composed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.engine.bundles.verifier import VerifiedBundle

    changing = tmp_path / "changing"
    changing.write_bytes(bundle.read_bytes())
    verified = VerifiedBundle.objects

    def change_first(self: VerifiedBundle) -> Any:
        self._reader._window = b""
        with changing.open("r+b") as file:
            file.seek(-100, 2)
            file.write(b"\xff" * 8)
        return verified(self)

    before = everything(target)
    monkeypatch.setattr(VerifiedBundle, "objects", change_first)
    with pytest.raises(HoldfastError):
        import_file(target, changing)
    assert everything(target)[:2] == before[:2]
    assert list(target.engine.vault.objects.check(data=True)) == []


def test_an_undamaged_bundle_is_imported(bundle: Path, target: Composed) -> None:
    """The other tests of this file would also pass if nothing ever were."""
    import_file(target, bundle)
    workspace = target.engine.vault.workspace
    with SessionCheckpointer(workspace, "travelling") as session:
        assert session.get_by_name("first") is not None
        session.restore("first")
    assert (workspace / "sub/file").read_bytes().startswith(b"content that is long")

"""Files outside the workspace come back as they were, and nothing that was not named is touched."""

from __future__ import annotations

import json
import os
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.components.external import named_paths as looking
from holdfast.components.external.component import ExternalComponent
from holdfast.components.external.states import content_name
from holdfast.domain.component_states import ComponentState
from holdfast.domain.external_paths import key_of
from holdfast.ports.component import Component, ComponentProblem
from holdfast.testing.component_contract import ComponentContract
from tests.support.external_desk import ExternalDesk, NamedPaths
from tests.support.hostile_trees import fill
from tests.support.workspace_state import state_of

pytestmark = pytest.mark.requirement("CP-13")


@pytest.fixture
def desk(tmp_path: Path) -> ExternalDesk:
    return ExternalDesk(tmp_path)


@pytest.mark.requirement("DB-3")
class TestExternal(ComponentContract):
    """The contract of every component."""

    names = NamedPaths()

    def make_component(self) -> Component:
        return ExternalComponent(self.names)

    def make_state(self, place: Path) -> None:
        beside = place.parent / "beside"
        self.names.paths = [bytes(beside / "notes.txt"), bytes(beside / "not yet")]
        fill(beside / "notes.txt", b"remember\r\n\xff")

    def change_state(self, place: Path) -> None:
        fill(place.parent / "beside/notes.txt", b"forgotten")
        (place.parent / "beside/notes.txt").chmod(0o600)
        fill(place.parent / "beside/not yet", b"new")

    def look_at_state(self, place: Path) -> object:
        return state_of(place.parent / "beside")


def test_everything_that_was_named_comes_back_and_the_rest_stays(desk: ExternalDesk) -> None:
    desk.write("rc", b"old\n", 0o640)
    desk.write("tool/bin/run", b"#!/bin/sh\n", 0o755)
    (desk.outside / "tool/empty").mkdir(mode=0o750)
    (desk.outside / "tool/link").symlink_to("bin/run")
    desk.write("mine", b"nobody named this")
    os.utime(desk.outside / "rc", ns=(1, 1_600_000_000_123_456_789))
    desk.name("rc", "tool", "later")
    before = state_of(desk.outside)
    then = desk.run.captured()

    desk.write("rc", b"new", 0o600)
    os.unlink(desk.outside / "tool/link")
    (desk.outside / "tool/link").symlink_to("nowhere")
    (desk.outside / "tool/bin/run").unlink()
    (desk.outside / "tool/bin").rmdir()
    (desk.outside / "tool/empty").rmdir()
    desk.write("tool/new/deep", b"new")
    desk.write("later", b"made by the tool")
    changed = state_of(desk.outside)
    desk.write("mine", b"changed by me")
    present = desk.run.restore_to(then)

    assert state_of(desk.outside) == {**before, "mine": ("file", 0o644, b"changed by me")}
    assert (desk.outside / "rc").stat().st_mtime_ns == 1_600_000_000_123_456_789
    desk.run.restore(present, desk.run.captured())
    assert state_of(desk.outside) == {**changed, "mine": ("file", 0o644, b"changed by me")}


def test_nothing_is_read_again_when_nothing_changed(desk: ExternalDesk) -> None:
    path = desk.write("rc", b"a")
    desk.name("rc")
    then = desk.run.captured()
    assert desk.run.capture(then) is None
    times = path.stat()
    path.write_bytes(b"b")  # the same size, and the same time of change
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not desk.run.captured(then).same_as(then)
    desk.name("another")
    assert desk.run.capture(then) is not None


@pytest.mark.parametrize("path", ["/", "/proc/self/status", "/sys/kernel", "/dev/null", "/run/x"])
def test_system_trees_are_never_read(path: str, desk: ExternalDesk) -> None:
    desk.names.add([os.fsencode(path)])
    state = desk.run.captured()
    assert state.contents == ()
    assert state.facts["left_out"][0].startswith(f"{path}: it ")


@pytest.mark.requirement("BX-7", "CP-13")
def test_what_is_too_much_is_left_out_and_listed(
    desk: ExternalDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LARGEST_FILE_BYTES", 1000)
    desk.write("small", b"kept")
    desk.write("large", b"x" * 1001)
    os.mkfifo(desk.outside / "pipe")
    fill(desk.stores / "pack", b"of Holdfast")
    fill(desk.workspace / "app.py", b"of the workspace")
    desk.name("small", "large", "pipe")
    desk.names.add([bytes(desk.stores), bytes(desk.workspace)])
    state = desk.run.captured()
    assert [path.rpartition("/")[2] for path in state.facts["paths"]] == ["small"]
    said = "\n".join(desk.run.component.describe(state))
    for reason in ("1,001 bytes", "is not a regular file", "Holdfast's own"):
        assert f"not captured: {desk.outside.parent}" in said
        assert reason in said
        assert any(reason in problem for problem in state.problems)


@pytest.mark.requirement("BX-7", "CP-13")
def test_of_a_directory_as_much_is_kept_as_fits_and_the_checkpoint_is_partial(
    desk: ExternalDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "MOST_LOOKS", 8)
    for number in range(20):
        desk.write(f"sib/{number:02}", b"%d" % number)
    desk.name("sib")
    then = desk.run.captured()
    assert len(then.facts["paths"]) == 8
    assert any("only part of it is saved: more than 8 files" in text for text in then.problems)
    monkeypatch.undo()
    shutil.rmtree(desk.outside / "sib")
    desk.write("sib/later", b"made since")
    desk.run.restore(then, desk.run.captured(then))
    kept = sorted(path.name for path in (desk.outside / "sib").iterdir())
    assert kept == [*(f"{number:02}" for number in range(7)), "later"]


@pytest.mark.requirement("CP-13")
def test_a_whole_project_beside_the_workspace_comes_back_without_what_can_be_made_again(
    desk: ExternalDesk,
) -> None:
    for number in range(300):
        desk.write(f"sib/src/{number}.py", b"%d" % number)
    desk.write("sib/node_modules/x/index.js", b"made by npm")
    desk.name("sib")
    then = desk.run.captured()
    assert then.problems == ()
    assert "sib/node_modules: it can be regenerated" in "\n".join(then.facts["left_out"])
    for number in range(300):
        (desk.outside / f"sib/src/{number}.py").unlink()
    desk.write("sib/src/added.py", b"since")
    desk.run.restore(then, desk.run.captured(then))
    assert len(list((desk.outside / "sib/src").iterdir())) == 300
    assert (desk.outside / "sib/node_modules/x/index.js").read_bytes() == b"made by npm"


@pytest.mark.requirement("BX-7")
def test_what_is_missing_is_a_problem_of_the_first_checkpoint_that_is_without_it(
    desk: ExternalDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LARGEST_FILE_BYTES", 1000)
    desk.write("large", b"x" * 1001)
    desk.name("large")
    first = desk.run.captured()
    second = desk.run.captured(first)
    assert (len(first.problems), second.problems) == (1, ())
    assert second.facts["left_out"] == first.facts["left_out"]


def test_the_number_of_looks_is_bounded(
    desk: ExternalDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "MOST_LOOKS", 3)
    desk.name("a", "b", "c", "d", "e")
    state = desk.run.captured()
    kept = [path.rpartition("/")[2] for path in state.facts["paths"]]
    assert kept == ["c", "d", "e"]  # the newest
    assert len(state.facts["left_out"]) == 2


@pytest.mark.usefixtures("ordinary_permissions")
def test_what_cannot_be_read_is_left_out(desk: ExternalDesk) -> None:
    desk.write("closed", b"secret", 0o000)
    desk.name("closed")
    assert "cannot be read" in desk.run.captured().facts["left_out"][0]


def _refused(desk: ExternalDesk, then: ComponentState) -> str:
    """Why nothing is done, in the plan and in the restore alike."""
    before = state_of(desk.outside)
    present = desk.run.captured()
    blocked = desk.run.plan(then, present).blocked
    with pytest.raises(ComponentProblem) as caught:
        desk.run.restore(then, present)
    assert str(caught.value) == blocked[0]
    assert state_of(desk.outside) == before
    return blocked[0]


def test_a_file_that_is_a_link_now_is_refused(desk: ExternalDesk) -> None:
    desk.write("rc", b"old")
    victim = desk.write("victim", b"mine")
    desk.name("rc")
    then = desk.run.captured()
    (desk.outside / "rc").unlink()
    (desk.outside / "rc").symlink_to(victim)
    assert "it was a file and is a link now" in _refused(desk, then)
    assert victim.read_bytes() == b"mine"


def test_a_directory_on_the_way_that_is_a_link_now_is_refused(desk: ExternalDesk) -> None:
    desk.write("etc/rc", b"old")
    desk.write("elsewhere/rc", b"of somebody else")
    desk.name("etc/rc")
    then = desk.run.captured()
    (desk.outside / "etc/rc").unlink()
    (desk.outside / "etc").rmdir()
    (desk.outside / "etc").symlink_to("elsewhere")
    assert "its parent is a link or not a directory now" in _refused(desk, then)


@pytest.mark.parametrize(
    ("column", "reason"),
    [(3, "its owner has changed"), (6, "the owner of its directory has changed")],
)
def test_another_owner_is_refused(column: int, reason: str, desk: ExternalDesk) -> None:
    desk.write("rc", b"old")
    desk.name("rc")
    then = desk.run.captured()
    rows = json.loads(desk.run.contents(then).of["index"])
    rows[0][column] += 1
    before = desk.run.altered(then, "index", json.dumps(rows).encode())
    desk.write("rc", b"new")
    assert reason in _refused(desk, before)


def test_a_file_whose_directory_is_gone_is_refused(desk: ExternalDesk) -> None:
    desk.write("etc/rc", b"old")
    desk.name("etc/rc")
    then = desk.run.captured()
    (desk.outside / "etc/rc").unlink()
    (desk.outside / "etc").rmdir()
    assert "its directory is gone" in _refused(desk, then)


def test_what_changed_since_the_state_before_the_restore_is_not_lost(desk: ExternalDesk) -> None:
    path = desk.write("rc", b"old")
    desk.name("rc")
    then = desk.run.captured()
    desk.write("rc", b"saved before the restore")
    present = desk.run.captured()
    desk.write("rc", b"written meanwhile")
    with pytest.raises(ComponentProblem, match="could not be saved"):
        desk.run.restore(then, present)
    assert path.read_bytes() == b"written meanwhile"


def test_what_no_tool_has_named_here_is_not_written_whatever_a_bundle_says(
    desk: ExternalDesk,
) -> None:
    desk.write("rc", b"old")
    desk.name("rc")
    then = desk.run.captured()
    desk.names.paths.clear()
    desk.write("rc", b"new")
    assert "no tool has used it" in _refused(desk, then)


@pytest.mark.parametrize(
    "path", ["rc", "/a/../b", "/a//b", "/proc/1/mem", "/", "", "/a/\0", "/a/.holdfast-staging-x"]
)
def test_a_state_with_a_hostile_path_is_refused_whole(path: str, desk: ExternalDesk) -> None:
    desk.write("rc", b"old")
    desk.name("rc")
    then = desk.run.captured()
    rows = json.loads(desk.run.contents(then).of["index"])
    rows[0][0] = path
    hostile = desk.run.altered(then, "index", json.dumps(rows).encode())
    with pytest.raises(ComponentProblem, match="unusable"):
        desk.run.plan(hostile, then)


@pytest.mark.parametrize("mode", [0o4755, -1, 2**70, "644", None, True])
def test_a_state_with_a_hostile_mode_is_refused_whole(mode: object, desk: ExternalDesk) -> None:
    desk.write("rc", b"old")
    desk.name("rc")
    then = desk.run.captured()
    rows = json.loads(desk.run.contents(then).of["index"])
    rows[0][2] = mode
    with pytest.raises(ComponentProblem, match="unusable"):
        desk.run.plan(desk.run.altered(then, "index", json.dumps(rows).encode()), then)


def test_setuid_is_not_given_by_a_restore(desk: ExternalDesk) -> None:
    desk.write("tool", b"old")
    (desk.outside / "tool").chmod(0o4755)
    desk.name("tool")
    then = desk.run.captured()
    desk.write("tool", b"new")
    desk.run.restore_to(then)
    assert (desk.outside / "tool").stat().st_mode & 0o7777 == 0o755


def test_just_what_is_chosen_comes_back(desk: ExternalDesk) -> None:
    for name in ("a", "b"):
        desk.write(name, b"old")
    desk.name("a", "b")
    then = desk.run.captured()
    for name in ("a", "b"):
        desk.write(name, b"new")
    present = desk.run.captured()
    preview = desk.run.plan(then, present)
    assert [line for _, line in preview.choices] == list(preview.actions)
    key = key_of(bytes(desk.outside / "b"))
    request = replace(desk.run.request(then, present), mode=f"some:{key}")
    desk.run.component.restore(request)
    assert list(desk.run.component.verify(request)) == []
    assert [(desk.outside / name).read_bytes() for name in ("a", "b")] == [b"new", b"old"]


def test_a_content_that_is_lost_is_found_before_anything_is_changed(desk: ExternalDesk) -> None:
    for name in ("a", "b"):
        desk.write(name, b"old " + name.encode())
    desk.name("a", "b")
    then = desk.run.captured()
    lost = content_name(bytes(desk.outside / "b"))
    damaged = replace(then, contents=tuple(c for c in then.contents if c.name != lost))
    for name in ("a", "b"):
        desk.write(name, b"new")
    request = desk.run.request(damaged, desk.run.captured(), desk.run.contents(then))
    with pytest.raises(ComponentProblem, match="is missing from the checkpoint"):
        desk.run.component.restore(request)
    assert (desk.outside / "a").read_bytes() == b"new"


def test_a_socket_in_a_directory_is_left_out_and_stays_when_the_rest_comes_back(
    desk: ExternalDesk,
) -> None:
    desk.write("dir/file", b"x")
    desk.name("dir")
    here = os.getcwd()
    os.chdir(desk.outside / "dir")
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("s")
            then = desk.run.captured()
            desk.write("dir/file", b"changed")
            desk.run.restore(then, desk.run.captured(then))
    finally:
        os.chdir(here)
    assert (desk.outside / "dir/file").read_bytes() == b"x"
    assert (desk.outside / "dir/s").is_socket()
    assert "is not a regular file" in then.facts["left_out"][0]


@pytest.mark.requirement("RB-3")
def test_what_is_put_back_after_a_failure_is_what_was_chosen(desk: ExternalDesk) -> None:
    desk.write("chosen", b"old")
    desk.write("other", b"old")
    desk.name("chosen", "other")
    then = desk.run.captured()
    desk.write("chosen", b"new")
    before = desk.run.captured()
    key = key_of(bytes(desk.outside / "chosen"))
    mode = f"some:{key}"
    desk.run.component.restore(replace(desk.run.request(then, before), mode=mode))
    desk.write("other", b"written meanwhile")
    desk.run.component.restore(replace(desk.run.request(before, then), mode=mode))
    assert (desk.outside / "chosen").read_bytes() == b"new"
    assert (desk.outside / "other").read_bytes() == b"written meanwhile"


@pytest.mark.requirement("RB-3")
def test_a_rollback_leaves_a_directory_alone_that_others_use_by_now(desk: ExternalDesk) -> None:
    desk.write("made/file", b"of the checkpoint")
    desk.name("made")
    then = desk.run.captured()
    (desk.outside / "made/file").unlink()
    (desk.outside / "made").rmdir()
    before = desk.run.captured()
    desk.run.component.restore(desk.run.request(then, before))
    desk.write("made/other", b"of another program")
    mode = ",".join(key_of(bytes(desk.outside / name)) for name in ("made", "made/file"))
    back = replace(desk.run.request(before, then), mode=f"some:{mode}")
    desk.run.component.restore(back)
    assert [one.name for one in (desk.outside / "made").iterdir()] == ["other"]
    assert "it has other files now" in "".join(desk.run.component.verify(back))


def test_states_differ_in_the_paths_that_they_do_not_have_alike(desk: ExternalDesk) -> None:
    for name in ("content", "mode", "gone", "same"):
        desk.write(name, b"1")
    desk.name("content", "mode", "gone", "same", "new", "never")
    one = desk.run.captured()
    desk.write("content", b"2")
    (desk.outside / "mode").chmod(0o600)
    (desk.outside / "gone").unlink()
    desk.write("new", b"1")
    other = desk.run.captured()
    component = desk.run.component
    assert isinstance(component, ExternalComponent)
    contents = desk.run.contents
    keys = component.differing(one, contents(one), other, contents(other))
    named = ("content", "mode", "gone", "new")
    assert set(keys) == {key_of(bytes(desk.outside / name)) for name in named}
    assert component.differing(one, contents(one), one, contents(one)) == []

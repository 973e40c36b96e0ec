"""Names that a mirror may have are names that git takes, and none of git's own."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.errors import InvalidSetting
from holdfast.domain.git.branches import DEFAULT_MIRROR, valid_ref_path
from holdfast.domain.git.mirror_commits import ref_component
from holdfast.domain.settings.schema import check_setting

_LETTERS = st.sampled_from(list("ab/.-_@{}~^:?*[\\ \x01~lock"))


def git_takes(ref: str) -> bool:
    done = subprocess.run(["git", "check-ref-format", ref], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.requirement("GT-4", "GT-6")
@given(st.text(_LETTERS, min_size=1, max_size=8))
@example("a.lock")
@example("@")
@example("a/.b")
@example("a.lock/b")
@example("a//b")
def test_a_name_that_is_accepted_is_one_for_git(name: str) -> None:
    if valid_ref_path(name):
        assert git_takes(f"refs/heads/{name}")
        assert git_takes(f"refs/{name}/approved")


@pytest.mark.requirement("GT-4")
def test_on_is_the_default_name_and_off_is_none() -> None:
    assert check_setting("mirror", True) == DEFAULT_MIRROR == "holdfast-checkpoints"
    assert check_setting("mirror", False) == check_setting("mirror", "") == ""
    assert check_setting("mirror", "team/story") == "team/story"
    assert check_setting("mirror_refs", "tags") == "tags"


@pytest.mark.requirement("GT-4", "GT-6")
@pytest.mark.parametrize(
    "name", ["-x", ".x", "a..b", "a b", "heads/x", "tags", "holdfast", 3, "@", "x\n"]
)
def test_other_names_are_refused(name: object) -> None:
    with pytest.raises(InvalidSetting):
        check_setting("mirror", name)


@pytest.mark.parametrize("name", ["heads", "remotes/origin", "holdfast/x", "../x", 1])
def test_places_that_belong_to_another_user_are_refused(name: object) -> None:
    with pytest.raises(InvalidSetting):
        check_setting("mirror_refs", name)


@pytest.mark.requirement("GT-4", "GT-6")
@given(
    st.text(min_size=1, max_size=20).filter(
        lambda text: not any("\ud800" <= c <= "\udfff" for c in text)
    )
)
def test_every_session_has_a_ref_of_its_own(text: str) -> None:
    component = ref_component(text).decode()
    assert git_takes(f"refs/x/sessions/{component}/approved")
    assert ref_component(text + "x") != ref_component(text)

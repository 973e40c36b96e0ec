"""The base of the tests holds: no user's files are in reach, and permissions apply."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import privileges


def test_every_test_has_an_empty_store_directory_of_its_own(holdfast_home: Path) -> None:
    assert os.environ["HOLDFAST_HOME"] == str(holdfast_home)
    assert list(holdfast_home.iterdir()) == []


def test_home_and_git_configuration_are_not_the_users(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = subprocess.run(
        ["git", "config", "--list"], capture_output=True, text=True, check=False, cwd="/"
    )
    assert settings.stdout == ""
    assert Path.home().is_relative_to(tmp_path_factory.getbasetemp())


@given(number=st.integers())
def test_a_property_may_use_the_ground_without_a_health_check(number: int) -> None:
    assert "HOLDFAST_HOME" in os.environ


def test_permission_bits_bind_the_test_itself(tmp_path: Path, ordinary_permissions: None) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o000)
    with pytest.raises(PermissionError):
        secret.read_bytes()


def test_permission_bits_bind_its_child_processes(
    tmp_path: Path, ordinary_permissions: None
) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o000)
    child = subprocess.run(
        [sys.executable, "-c", "import sys; open(sys.argv[1])", secret],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "PermissionError" in child.stderr


def test_privileges_come_back_afterwards(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o000)
    before = os.access(secret, os.R_OK)
    with privileges.none():
        assert not os.access(secret, os.R_OK, effective_ids=True)
    assert os.access(secret, os.R_OK) == before

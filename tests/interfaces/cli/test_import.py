"""`holdfast import`: take a bundle in, once, and say what was added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.command_line import CommandLine


@pytest.fixture
def bundle(cli: CommandLine, tmp_path: Path) -> Path:
    cli.save("one", "--name", "first", "--tag", "t")
    cli.save("two")
    cli.json("export", str(tmp_path / "work.holdfast"))
    return tmp_path / "work.holdfast"


@pytest.fixture
def there(tmp_path: Path) -> CommandLine:
    (tmp_path / "there").mkdir()
    return CommandLine(tmp_path / "there")


@pytest.mark.requirement("ST-7", "CL-1")
def test_a_session_is_imported_and_becomes_the_current_one_of_a_fresh_workspace(
    cli: CommandLine, there: CommandLine, bundle: Path
) -> None:
    done = there.json("import", str(bundle), "--foreign")
    log = there.json("log")
    assert done["added"] == [one["id"] for one in log[::-1]]
    assert log == cli.json("log")
    there.json("restore", "first", "--yes")
    assert (there.workspace / "README.md").read_text() == "hello\n"
    said = there("import", str(bundle), "--foreign")
    assert (said.status, "Nothing to import" in said.out) == (0, True)


@pytest.mark.requirement("ST-7", "CL-3")
def test_another_workspaces_bundle_needs_a_word_and_leaves_no_store_without_it(
    there: CommandLine, bundle: Path, holdfast_home: Path
) -> None:
    stores = sorted((holdfast_home / "stores").iterdir())
    refused = there("import", str(bundle), "--json")
    assert (refused.status, refused.error["code"]) == (5, "foreign_bundle")
    assert "project" in refused.error["message"]
    assert "--foreign" in refused.error["hint"]
    assert sorted((holdfast_home / "stores").iterdir()) == stores
    assert list(there.workspace.iterdir()) == []


@pytest.mark.requirement("ST-7", "CL-3")
@pytest.mark.parametrize("content", [b"", b"\0" * 4096, b"something else"])
def test_a_file_that_is_no_bundle_is_refused_and_leaves_no_store(
    content: bytes, there: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(content)
    refused = there("import", str(tmp_path / "file"), "--foreign", "--json")
    assert (refused.status, refused.error["code"]) == (5, "bundle_refused")
    assert list(there.workspace.iterdir()) == []
    assert there("import", str(tmp_path / "missing"), "--json").status == 4
    assert there("import", "--json").status == 2


@pytest.mark.requirement("ST-7")
def test_a_dry_run_says_what_would_be_added(
    cli: CommandLine, there: CommandLine, bundle: Path
) -> None:
    for command_line in (there, cli):
        done = command_line.json("import", str(bundle), "--foreign", "--dry-run")
        assert done["dry_run"] is True
        assert len(done["added"]) + done["already_there"] == 2
    assert list(there.workspace.iterdir()) == []
    assert "Would import 2" in there("import", str(bundle), "--foreign", "--dry-run").out


@pytest.mark.requirement("ST-7")
def test_a_second_copy_is_beside_the_first_under_its_own_name(
    cli: CommandLine, bundle: Path
) -> None:
    done = cli.json("import", str(bundle), "--as-session", "copy")
    assert (done["renamed"], done["latest_session"]) == (2, "copy")
    assert len(cli.json("log", "--session", "copy")) == 2
    assert cli("import", str(bundle), "--as-session", " ", "--json").status == 2

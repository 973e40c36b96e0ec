"""`holdfast check`: a sound store, a damaged one, one of a later version."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast.engine.scan.walker import DEEPEST
from tests.interfaces.cli.command_line import CommandLine
from tests.support.hostile_trees import descended, remove_deep, write_at


@pytest.mark.requirement("CL-1")
def test_a_sound_store_has_no_problems(cli: CommandLine) -> None:
    cli.save()
    assert cli.json("check") == {"ok": True, "problems": []}
    assert cli.json("check", "--data") == {"ok": True, "problems": []}
    assert cli("check").out.startswith("✓ The store's structure is sound: 0 problems, ")
    assert "content was not verified" in cli("check").out
    assert cli("check", "--data").out.startswith("✓ The store is sound: 0 problems, ")


@pytest.mark.requirement("CL-1", "CL-3")
def test_a_flipped_byte_of_content_is_found_and_named(cli: CommandLine) -> None:
    cli.save()
    pack = next((Path(cli.json("init")["store"]) / "objects" / "packs").iterdir())
    data = bytearray(pack.read_bytes())
    data[len(data) // 2] ^= 0xFF
    pack.write_bytes(data)
    answer = cli("check", "--data", "--json")
    assert answer.status == 6
    assert answer.json["ok"] is False
    for problem in answer.json["problems"]:
        assert problem.keys() == {"invariant", "subject", "problem"}
    last = cli("check", "--data").out.splitlines()[-1]
    assert last.startswith("✗ The store is damaged: ")
    assert last.endswith("to repair it: holdfast repair")


@pytest.mark.requirement("RL-6", "CL-1")
def test_the_deepest_tree_that_a_checkpoint_takes_is_no_trouble_for_what_looks_at_it(
    cli: CommandLine, request: pytest.FixtureRequest
) -> None:
    """In a process of its own each: only a scan lets Python recurse further."""
    request.addfinalizer(lambda: remove_deep(cli.workspace / "d"))
    with descended(cli.workspace, DEEPEST - 1, create=True) as bottom:
        write_at(bottom, b"leaf", b"one")
        cli.save("deep", "--name", "one")
        write_at(bottom, b"leaf", b"two")
    cli.save("changed", "--name", "two")
    looks = (["check", "--data"], ["repair"], ["diff", "one", "two"], ["show", "two", "--files"])
    for look in looks:
        answer = cli.process(*look)
        assert (answer.status, answer.err) == (0, ""), look
    assert "/d/leaf" in cli.process("diff", "one", "two", "--name-only").out


@pytest.mark.requirement("RB-3", "CL-3")
def test_a_restore_that_meets_damage_names_the_file_and_how_to_have_the_others(
    cli: CommandLine,
) -> None:
    for path in cli.workspace.rglob("*"):
        if path.is_file() and ".holdfast" not in path.parts:
            path.unlink()
    (cli.workspace / "hit.bin").write_bytes(os.urandom(2_000_000))
    whole = cli.save("one large file")
    (cli.workspace / "kept.txt").write_text("small\n")
    both = cli.save("and a small one")
    pack = next((Path(cli.json("init")["store"]) / "objects" / "packs").iterdir())
    data = bytearray(pack.read_bytes())
    data[1_000_000] ^= 0xFF
    pack.write_bytes(data)
    for name in ("hit.bin", "kept.txt"):
        (cli.workspace / name).unlink()

    for target in (whole, both):
        refused = cli("restore", target, "--yes", "--json")
        assert refused.status == 6
        assert refused.error["message"].startswith("cannot restore hit.bin: ")
        assert "--best-effort" in refused.error["hint"]
        assert not (cli.workspace / "kept.txt").exists(), "all or nothing"

    assert cli("restore", both, "--yes", "--best-effort").status == 3
    assert (cli.workspace / "kept.txt").read_text() == "small\n"


@pytest.mark.requirement("CL-3")
def test_a_damaged_catalog_is_exit_6_and_a_problem_that_check_tells(cli: CommandLine) -> None:
    cli.save()
    catalog = Path(cli.json("init")["store"]) / "catalog.db"
    for log in catalog.parent.glob("catalog.db-*"):
        log.unlink()
    catalog.write_bytes(b"\x55" * 4096)
    answer = cli("log", "--json")
    assert answer.status == 6
    assert answer.error["code"] == "store_damaged"
    checked = cli("check", "--json")
    assert checked.status == 6
    assert checked.json["ok"] is False
    assert "catalog.db" in checked.json["problems"][0]["problem"]


@pytest.mark.requirement("CL-3")
@pytest.mark.parametrize("verb", ["checkpoint", "log", "check", "init", "config"])
def test_a_store_of_a_later_version_is_refused_untouched(cli: CommandLine, verb: str) -> None:
    cli.save()
    store = Path(cli.json("init")["store"])
    described = json.loads((store / "store.json").read_bytes())
    (store / "store.json").write_text(json.dumps(described | {"format": 99}))
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    answer = cli(verb, *(["x"] if verb == "checkpoint" else []), "--json")
    assert answer.status == 6
    assert answer.error["code"] == "newer_store"
    assert "upgrade" in answer.error["hint"]
    assert {path: path.read_bytes() for path in store.rglob("*") if path.is_file()} == before


@pytest.mark.requirement("CL-2")
def test_what_is_missing_is_named_once_and_as_people_write_it(cli: CommandLine) -> None:
    cli.save("one")
    cli.save("two")
    cli.save("three")
    packs = Path(cli.json("init")["store"]) / "objects" / "packs"
    for pack in packs.iterdir():
        pack.unlink()
    answer = cli("check")
    assert answer.status == 6
    lines = answer.out.splitlines()
    assert "b'" not in answer.out
    assert len([line for line in lines if "directory at the top" in line]) == 1
    assert any(" and 2 more: directory at the top" in line for line in lines)
    told = [problem["subject"] for problem in cli("check", "--json").json["problems"]]
    assert len([subject for subject in told if subject.startswith("checkpoint ")]) >= 3

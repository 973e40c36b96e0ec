"""A repair that dies at any call leaves a store that the next repair makes sound (ST-4)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.bootstrap.maintenance import repair_workspace
from tests.damage.campaign import problems, restorable
from tests.damage.test_damage_campaign import small_edit
from tests.damage.victims import Victim, make_victim

pytestmark = [pytest.mark.requirement("ST-4", "RL-4"), pytest.mark.in_memory]

ROOT = Path(__file__).parents[2]
DIED = 9

# Ends the process, as a kill does, at the n-th call that changes a file or makes one durable.
REPAIR = """
import os, sys
from pathlib import Path
from holdfast.bootstrap.maintenance import repair_workspace

left = int(sys.argv[2])

def counted(real):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os._exit(9)
        return real(*arguments, **options)
    return call

for name in "rename replace unlink rmdir mkdir fsync write ftruncate pwrite".split():
    setattr(os, name, counted(getattr(os, name)))
repair_workspace(Path(sys.argv[1]), act=True)
"""


def damaged(victim: Victim) -> dict[str, bytes]:
    """Everything at once: description, index, the catalog and its log, and one record."""
    files = dict(victim.files)
    files["store.json"] = b"{}"
    files["objects/index.db"] = b"\x55" * 8192
    for name, position in (("catalog.db", 5), ("catalog.db-wal", 9000)):
        files[name] = files[name][:position] + b"\xff\xff" + files[name][position + 2 :]
    (pack,) = [name for name in files if name.endswith(".pack")]
    middle = len(files[pack]) // 2
    files[pack] = files[pack][:middle] + b"\0\0\0" + files[pack][middle + 3 :]
    return files


def test_a_repair_killed_at_any_call_is_finished_by_the_next(tmp_path: Path) -> None:
    victim = make_victim(tmp_path / "victim", small_edit, 3)
    files = damaged(victim)
    undisturbed = victim.lay_out(tmp_path / "undisturbed", files)
    repair_workspace(undisturbed, act=True)
    assert problems(undisturbed) == []
    expected = restorable(undisturbed, victim)
    number, died = 0, True
    while died:
        number += 1 + number // 4
        workspace = victim.lay_out(tmp_path / str(number), files)
        command = [sys.executable, "-c", REPAIR, str(workspace), str(number)]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}"}
        done = subprocess.run(command, env=environment, check=False, capture_output=True)
        died = done.returncode == DIED
        assert died or done.returncode == 0, done.stderr.decode()
        repair_workspace(workspace, act=True)
        assert problems(workspace) == [], number
        assert restorable(workspace, victim) == expected, number
    assert number > 20


def test_a_damaged_record_at_the_end_of_a_pack_is_kept_aside(tmp_path: Path) -> None:
    victim = make_victim(tmp_path / "victim", small_edit, 3)
    (pack,) = [name for name in victim.files if name.endswith(".pack")]
    whole = victim.files[pack]
    damaged_tail = whole[:-3] + b"\0\0\0"
    workspace = victim.lay_out(tmp_path / "case", {**victim.files, pack: damaged_tail})
    repair_workspace(workspace, act=True)
    assert problems(workspace) == []
    kept = (tmp_path / "case" / "home").glob(f"stores/*/set-aside/*/{Path(pack).name}")
    assert damaged_tail in [path.read_bytes() for path in kept]

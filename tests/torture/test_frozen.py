"""Part 5: a process that is frozen with the store's lock in its hand.

Others wait, and then say who holds it; who waits longer goes on as soon as the frozen one does. The
freezing happens at any call of a save, a restore or a deletion. Where the lock is not held at that
call others go on, or SQLite lets them wait for what it does on opening, and they are told the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.engine.settings import set_setting
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.frozen import PURPOSE, Freezer
from tests.torture.scenes import (
    Scene,
    build_small,
    make_scene,
    problems,
    save,
    wreck_small,
    write,
)

pytestmark = pytest.mark.requirement("CP-8", "CL-3")

_FIRST_GUESS_CALLS = 150
_BUSY = 8
_COMMANDS = ("checkpoint why --session s", "restore HEAD --yes --session s", "diff --session s")


def _scene(root: Path) -> tuple[Scene, str, str]:
    scene, good, _ = make_scene(root, build_small, wreck_small)
    with scene.open() as work:
        set_setting(work.engine, "lock_timeout", 0.05)
        spare = save(work, "to be deleted").id
        scene.known[spare] = scene.state()
    scene.keep()
    return scene, good, spare


def test_a_frozen_holder_of_the_lock_is_named_and_goes_on(
    campaign: Campaign, quick_disk: Path
) -> None:
    scene, good, spare = _scene(quick_disk)
    longest = dict.fromkeys(("save", "restore", "delete"), _FIRST_GUESS_CALLS)
    counts = {"held": 0, "free": 0}

    def case(case: Case) -> None:
        rng = case.rng()
        action = rng.choice(list(longest))
        scene.reset()
        write(scene.project / "edited", b"something else")
        argument = {"save": "", "restore": good, "delete": spare}[action]
        at = rng.randint(1, longest[action])
        frozen = freezer.ask("freeze", action=action, argument=argument, at=at)
        if frozen["frozen"] is None:
            longest[action] = frozen["calls"]
            return
        counts["held" if frozen["held"] else "free"] += 1
        _others_meet(freezer, frozen, rng.choice(_COMMANDS))
        known = dict(scene.known)
        if action == "delete":
            del known[spare]
        wrong = problems(scene.project, scene.home, known, (scene.state(),))
        assert not wrong, "\n".join(wrong)
        campaign.note = f"{counts['held']:,} with the lock held, {counts['free']:,} without"

    title = "a process frozen during a save, restore or deletion; others wait, and report it"
    with Freezer(scene.project, scene.home) as freezer:
        campaign.run(Scenario(5, "frozen-holder", title), case, slice_cases=8)


def _others_meet(freezer: Freezer, frozen: dict[str, object], command: str) -> None:
    if frozen["held"]:
        freezer.ask("wait", action="save", argument="")
    answer = freezer.ask("command", arguments=command.split())
    if not frozen["held"]:
        freezer.ask("wait", action="save", argument="")
    assert answer["status"] in ((_BUSY,) if frozen["held"] else (0, _BUSY)), answer
    if answer["status"] == _BUSY:
        error = json.loads(answer["err"])["error"]
        assert error["code"] == "busy"
        assert f"process {frozen['frozen']} " in error["message"]
        assert f"kill {frozen['frozen']}" in error["hint"]
        assert not frozen["held"] or f"({PURPOSE})" in error["message"]
    ended = freezer.ask("thaw")
    assert not (frozen["held"] and ended["early"]), "it did not wait"
    for who in ("frozen", "waiting"):
        assert "error" not in ended[who], ended
        assert ended[who]["made"]

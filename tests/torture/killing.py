"""Every moment at which a process can be killed, and going through all of them."""

from __future__ import annotations

from collections.abc import Callable

from tests.torture.acts import Act
from tests.torture.campaign import Campaign, Case, Scenario
from tests.torture.kill_server import Answer, KillServer, Order

WRITES = ("write", "xWrite")


def moments(act: Act) -> list[tuple[int, str]]:
    """Before each call, in the middle of each write, and after the last."""
    calls = act.calls()
    points = [(call.number, "before") for call in calls]
    points += [(call.number, "half") for call in calls if call.name in WRITES]
    return [*points, (calls[-1].number, "after")]


def order_for(
    act: Act, at: int = 0, how: str = "before", after_s: float = 0.0, rounds: int = 1
) -> Order:
    project, home = str(act.scene.project), str(act.scene.home)
    return Order(project, home, act.action, act.argument, at, how, after_s, rounds, act.git)


def killed(server: KillServer, order: Order, *, must_die: bool) -> Answer:
    """Let it die, or end well before that."""
    answer = server.ask(order)
    assert answer.died or not must_die, answer
    assert answer.died or answer.error is None, answer
    return answer


def at_every_call(
    campaign: Campaign,
    scenario: Scenario,
    act: Act,
    kill: Callable[[Order], None],
    *,
    slice_cases: int,
) -> None:
    """`kill` lets it die and looks at what the next process finds."""
    points = moments(act)

    def case(case: Case) -> None:
        act.scene.reset()
        kill(order_for(act, *points[case.number]))

    campaign.run(
        scenario,
        case,
        slice_cases=slice_cases,
        space=len(points),
        covered="every call, every half-done write",
        most_cases=len(points),
    )

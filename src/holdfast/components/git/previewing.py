"""What a restore of one repository would do, for people."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.components.git.commands import Git
from holdfast.components.git.looking import Look
from holdfast.components.git.planning import describe, make_plan, other_differences
from holdfast.components.git.reference_choice import choose, differing, kind_of, short_name
from holdfast.components.git.references import BrokenReference
from holdfast.components.git.restoring import present_look
from holdfast.components.git.states import decode_state
from holdfast.domain.paths import to_text
from holdfast.ports.component import ComponentPreview, RestoreOf

_SHOWN = 5


def preview(git: Git, request: RestoreOf) -> ComponentPreview:
    target = decode_state(request.target)
    try:
        present = present_look(git, request)
        plan = make_plan(git, present, target, request)
        if plan.blocked:
            return ComponentPreview(blocked=tuple(plan.blocked))
        actions = describe(git, present, target, plan)
        actions += other_differences(present, request, plan, actions)
    except BrokenReference as error:
        return ComponentPreview(blocked=(f"the repository is damaged: {error}",))
    warnings = []
    if target.operation is not None and not plan.put_operation:
        warnings.append(
            f"a {target.operation} was under way then; only --git exact takes it up again"
        )
    choices = tuple(_offered(git, present, request))
    if choices:
        shown = ", ".join(line for _, line in choices[:_SHOWN])
        more = f" and {len(choices) - _SHOWN} more" if len(choices) > _SHOWN else ""
        warnings.append(f"{shown}{more} since that checkpoint; to bring them back: --refs all")
    return ComponentPreview(tuple(actions), tuple(warnings), choices=choices)


def _offered(git: Git, present: Look, request: RestoreOf) -> Iterator[tuple[str, str]]:
    """Other references that are not as they were and that nobody has asked for: the name to ask
    with, and a line."""
    found = differing(git.repository, present.head, request.mode, request.target, request.contents)
    choice = choose(git.repository, present.head, request.mode, request.target, request.contents)
    for ref in found.references:
        if ref not in choice.wanted and ref not in found.occupied:
            fate = "moved" if ref in found.now else "is gone"
            yield to_text(ref).removeprefix("refs/"), f"{kind_of(ref)} {short_name(ref)} {fate}"
    if found.stash and choice.stash is None:
        count = len(found.stash)
        yield "stash", "1 stash entry is gone" if count == 1 else f"{count} stash entries are gone"

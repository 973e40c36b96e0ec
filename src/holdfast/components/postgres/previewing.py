"""What a restore of a database would change, in rows, and who would notice."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.components.postgres.capturing import Connector
from holdfast.components.postgres.looking import identify, other_connections
from holdfast.components.postgres.states import KeptDatabase, decode_databases
from holdfast.domain.component_states import ComponentState
from holdfast.domain.wording import count_words
from holdfast.ports.component import ComponentPreview, RestoreOf

_MOST_SHOWN = 50


def preview(connector: Connector, kept: KeptDatabase, request: RestoreOf) -> ComponentPreview:
    from holdfast.components.postgres.restoring import DatabaseRestore

    with connector.connect() as talk:
        DatabaseRestore(connector, kept, request).require_same(identify(talk))
        others = other_connections(talk)
    now = _same_database(kept, request.present)
    if now is not None and _is_same(kept, request):
        return ComponentPreview()
    actions = list(_differences(kept, now))
    shown = actions[:_MOST_SHOWN]
    if len(actions) > len(shown):
        shown.append(f"{kept.database}: and {count_words(len(actions) - len(shown), 'more table')}")
    warnings = [
        f"{kept.database}: {count:,} connection{'s' if count > 1 else ''} of {_clean(name)} will "
        "have to wait, and then find other rows"
        for name, count in others
    ]
    if kept.large_objects or (now is not None and now.large_objects):
        warnings.append(f"{kept.database}: large objects are left as they are")
    return ComponentPreview(tuple(map(_clean, shown)), tuple(map(_clean, warnings)))


def _same_database(kept: KeptDatabase, state: ComponentState | None) -> KeptDatabase | None:
    if state is None or state.failure is not None:
        return None
    for found in decode_databases(state):
        if (found.system, found.database) == (kept.system, kept.database):
            return found
    return None


def _is_same(kept: KeptDatabase, request: RestoreOf) -> bool:
    """Whether both states hold the same, as far as they hold it: a mere look keeps no rows."""
    there = {n: c.digest for n, c in kept.parts.of(request.present).items()}
    wanted = {n: c.digest for n, c in kept.parts.of(request.target).items()}
    return there == wanted


def _differences(kept: KeptDatabase, now: KeptDatabase | None) -> Iterator[str]:
    yield f"{kept.database}: replace everything in it, {_rows(kept.total_rows)} then" + (
        "" if now is None else f", {_rows(now.total_rows)} now"
    )
    if now is None:
        return
    if kept.schema != now.schema:
        yield f"{kept.database}: the schema as it was"
    for name in sorted(kept.rows.keys() | now.rows.keys()):
        then, there = kept.rows.get(name), now.rows.get(name)
        if then is None:
            yield f"{kept.database}: remove {name}, which has {_rows(there or 0)}"
        elif there is None:
            yield f"{kept.database}: bring {name} back with {_rows(then)}"
        elif then != there:
            yield f"{kept.database}: {name} from {_rows(there)} to {_rows(then)}"


def _rows(number: int) -> str:
    return f"{number:,} row{'' if number == 1 else 's'}"


def _clean(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)

"""Search, replay, settings, cleanup, the state of the store, and long operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Path, Query
from starlette.requests import Request

from holdfast.api.health import WorkspaceStatus, examine_surroundings, write_gaps
from holdfast.api.replay_pages import replay_page, replay_step
from holdfast.api.settings import gather_settings
from holdfast.api.views.health import (
    CheckView,
    DurationsView,
    GrowthView,
    StatisticsView,
    SymptomsView,
    WorkspaceStateView,
    check_view,
    durations_view,
    growth_view,
    statistics_view,
    symptoms_view,
    usage_view,
    workspace_state_view,
)
from holdfast.api.views.history import (
    ExplanationView,
    ReplayStepView,
    SearchView,
    explanation_view,
    search_view,
)
from holdfast.api.views.pages import ReplayPageView
from holdfast.api.views.settings import (
    SettingView,
    for_a_form,
    setting_view,
    settings_view,
    with_rules,
)
from holdfast.api.views.upkeep import CleanupView, cleanup_view
from holdfast.api.views.workspaces import WorkspaceOverviewView, workspace_overview_view
from holdfast.api.workspace import NoProgress, Workspace
from holdfast.domain.errors import NothingSaved
from holdfast.domain.repair_plan import Gravity
from holdfast.domain.search.hits import SearchResult
from holdfast.domain.settings.schema import (
    KEYS,
    Settings,
    check_setting,
    make_settings,
    unknown_setting,
)
from holdfast.interfaces.daemon.client import ask_about_saves, ask_about_watch
from holdfast.interfaces.web.access import LINK_S, LOCAL
from holdfast.interfaces.web.operations import LATER, OperationView, run_long
from holdfast.interfaces.web.parameters import (
    DECODED,
    Limit,
    RequestBody,
    RequiredPath,
    SessionParameter,
)
from holdfast.interfaces.web.routing import (
    Answer,
    LoginLinkView,
    Route,
    elapsed_ms,
    known_session,
    path_parameter,
    served,
    served_path,
    server_of,
)
from holdfast.interfaces.web.telemetry import DAEMON_S

_WRITE_TEST_S = 60
"""Pages ask for the status again and again."""
_MOST_RESTORES = 200

_SessionFilter = Annotated[str | None, Query(max_length=128, description="Only this session.")]


class SettingBody(RequestBody):
    """A value as in settings files; null resets the setting."""

    value: Any = None


def search(
    request: Request,
    q: Annotated[str, Query(max_length=2000, description="Words, phrases and filters.")],
    session: _SessionFilter = None,
    limit: Limit = 20,
) -> SearchView:
    try:
        with served(request) as workspace:
            wanted = None if session is None else known_session(workspace, session)
            with server_of(request).telemetry.search():
                found = workspace.history.search(q, session_id=wanted, limit=limit)
    except NothingSaved:
        if session is not None:
            raise
        found = SearchResult(())
    return search_view(q, found, elapsed_ms(request))


def why(
    request: Request,
    path: RequiredPath,
    session: _SessionFilter = None,
    line: Annotated[int | None, Query(ge=1, description="Only this line.")] = None,
    ref: Annotated[str | None, Query(max_length=300, description="A checkpoint.")] = None,
) -> ExplanationView:
    wanted = path_parameter(request) or b""
    with served(request) as workspace:
        scope = None if session is None else known_session(workspace, session)
        found = workspace.history.why(scope, wanted, line=line, reference=ref)
        return explanation_view(found, elapsed_ms(request))


def replay(
    request: Request,
    session_id: SessionParameter,
    first: Annotated[int, Query(ge=0, le=1 << 40, description="The first step of the page.")] = 0,
    limit: Limit = 100,
) -> ReplayPageView:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        return replay_page(workspace, wanted, first=first, limit=limit)


def show_step(
    request: Request,
    session_id: SessionParameter,
    step: Annotated[int, Path(ge=0, le=1 << 40, description="Counted from 0.")],
) -> Any:
    with served(request) as workspace:
        return replay_step(workspace, known_session(workspace, session_id), step)


def list_settings(request: Request) -> list[SettingView]:
    try:
        with served(request) as workspace:
            return _settings(workspace.settings.effective, workspace.settings.origins)
    except NothingSaved:  # there are settings without a store, too
        found = gather_settings({}, served_path(request))
        return _settings(make_settings(found.values), found.origins)


def _settings(settings: Settings, origins: Mapping[str, str]) -> list[SettingView]:
    values = {key: getattr(settings, key) for key in KEYS}
    listed = settings_view(values, {key: origins.get(key, "default") for key in KEYS})
    return [_completed(one, settings) for one in listed]


def _completed(view: SettingView, settings: Settings) -> SettingView:
    view = for_a_form(view)
    return with_rules(view, settings.retention) if view["key"] == "retention" else view


def change_setting(
    request: Request,
    key: Annotated[str, Path(max_length=200, description="The name of a setting."), DECODED],
    body: SettingBody,
) -> SettingView:
    name = key.partition(".")[0]
    if name not in KEYS:
        raise unknown_setting(name)
    if "." not in key and body.value is not None:
        check_setting(name, body.value)  # a refused value creates no store
    with served(request, create=body.value is not None) as workspace:
        workspace.settings.set(key, body.value)
    with served(request) as workspace:  # reopened with the new value
        origin = workspace.settings.origins.get(name, "default")
        settings = workspace.settings.effective
        return _completed(setting_view(name, getattr(settings, name), origin), settings)


def preview_cleanup(request: Request) -> CleanupView:
    with served(request) as workspace:
        plan = workspace.upkeep.plan_cleanup()
    return cleanup_view(
        plan.decisions,
        unneeded_bytes=plan.unneeded_bytes,
        freed_bytes=0,
        saved_first=None,
        debris=(),
        warnings=(),
    )


def cleanup(request: Request) -> Answer:
    def work(workspace: Workspace) -> Answer:
        done = workspace.upkeep.cleanup(NoProgress())
        return Answer(
            cleanup_view(
                done.decisions,
                unneeded_bytes=None,
                freed_bytes=done.freed_bytes,
                saved_first=done.saved_first,
                debris=done.debris,
                warnings=done.warnings,
            )
        )

    return run_long(request, "cleanup", work)


def overview(request: Request) -> WorkspaceOverviewView:
    with served(request) as workspace:
        own = workspace.path == server_of(request).workspaces.own
        return workspace_overview_view(workspace, is_own=own)


def state(
    request: Request,
    session: _SessionFilter = None,
    limit: Annotated[int, Query(ge=0, le=10_000, description="How many paths to list.")] = 500,
) -> WorkspaceStateView:
    try:
        with served(request) as workspace:
            scope = None if session is None else known_session(workspace, session)
            wanted = workspace.sessions.current() if scope is None else scope
            scanned = workspace.health.scan(scope)
            found = workspace.health.status(wanted, scanned, tested_within_s=_WRITE_TEST_S)
    except NothingSaved:
        if session is not None:
            raise
        place = served_path(request)
        found = WorkspaceStatus(place, Settings().budget, gaps=write_gaps(place))
    watch = ask_about_watch(str(found.workspace), DAEMON_S)
    return workspace_state_view(found, watch=watch, most=limit)


def statistics(request: Request, session_id: SessionParameter) -> StatisticsView:
    with served(request) as workspace:
        wanted = known_session(workspace, session_id)
        view = statistics_view(
            wanted,
            workspace.upkeep.statistics(wanted),
            sessions=len(workspace.sessions.listed()),
            store_bytes=workspace.upkeep.size_bytes(),
            budget_bytes=workspace.upkeep.budget_bytes,
            lost=(),
        )
        view["usage"] = usage_view(workspace.upkeep.usage())
        return view


def growth(request: Request) -> list[GrowthView]:
    with served(request) as workspace:
        return growth_view(workspace.upkeep.content_growth())


def durations(request: Request) -> DurationsView:
    with served(request) as workspace:
        place, upkeep = workspace.path, workspace.upkeep
        own, restores = upkeep.save_times_ns(), upkeep.restore_times_ns(_MOST_RESTORES)
    return durations_view([*ask_about_saves(str(place), DAEMON_S), *own], restores)


def check(request: Request) -> Answer:
    def work(workspace: Workspace) -> Answer:
        return Answer(check_view(list(workspace.health.check(data=False, progress=NoProgress()))))

    return run_long(request, "check", work)


def doctor(request: Request) -> SymptomsView:
    found = examine_surroundings(served_path(request))
    fine = (Gravity.FINE, Gravity.NOTE)
    return symptoms_view(found, ok=all(one.gravity in fine for one in found))


def show_operation(
    request: Request,
    operation_id: Annotated[str, Path(max_length=64, description="From a 202 response."), DECODED],
) -> OperationView:
    return server_of(request).operations.get(operation_id).view()


def new_login_link(request: Request) -> LoginLinkView:
    return {"link": server_of(request).access.new_link(), "expires_in_s": LINK_S}


_SESSION = "/api/sessions/{session_id}"
ROUTES = (
    Route("GET", "/api/search", search, SearchView, "Search reasons, messages and paths"),
    Route("GET", "/api/why", why, ExplanationView, "Show which step wrote each line of a file"),
    Route("GET", f"{_SESSION}/replay", replay, ReplayPageView, "List the steps of a session"),
    Route("GET", f"{_SESSION}/replay/{{step}}", show_step, ReplayStepView, "Show one step"),
    Route("GET", "/api/settings", list_settings, list[SettingView], "List settings", tag="upkeep"),
    Route(
        "PUT",
        "/api/settings/{key}",
        change_setting,
        SettingView,
        "Change a setting",
        "admin",
        tag="upkeep",
    ),
    Route(
        "GET",
        "/api/cleanup/preview",
        preview_cleanup,
        CleanupView,
        "Show what a cleanup would delete",
        tag="upkeep",
        looks=True,
    ),
    Route(
        "POST",
        "/api/cleanup",
        cleanup,
        CleanupView,
        "Delete expired checkpoints",
        "admin",
        tag="upkeep",
        other_answers=LATER,
    ),
    Route(
        "GET",
        "/api/overview",
        overview,
        WorkspaceOverviewView,
        "Show a workspace's status",
        tag="upkeep",
    ),
    Route(
        "GET",
        "/api/status",
        state,
        WorkspaceStateView,
        "Compare the workspace with its last checkpoint",
        tag="upkeep",
        looks=True,
    ),
    Route(
        "GET",
        f"{_SESSION}/statistics",
        statistics,
        StatisticsView,
        "Show a session's statistics",
        tag="upkeep",
    ),
    Route(
        "GET",
        "/api/growth",
        growth,
        list[GrowthView],
        "Show how the store has grown",
        tag="upkeep",
    ),
    Route(
        "GET",
        "/api/durations",
        durations,
        DurationsView,
        "Show how long saves and restores took",
        tag="upkeep",
    ),
    Route(
        "POST",
        "/api/check",
        check,
        CheckView,
        "Verify the store",
        tag="upkeep",
        other_answers=LATER,
    ),
    Route("GET", "/api/doctor", doctor, SymptomsView, "Find setup problems", tag="upkeep"),
    Route(
        "GET",
        "/api/operations/{operation_id}",
        show_operation,
        OperationView,
        "Show work in progress",
        tag="upkeep",
    ),
    Route(
        "POST",
        "/api/login-links",
        new_login_link,
        LoginLinkView,
        "Make a link that signs a browser in",
        LOCAL,
        tag="upkeep",
    ),
)

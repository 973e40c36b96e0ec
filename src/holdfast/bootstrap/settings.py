"""The effective settings of a workspace, from user, project, store and environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.adapters.local.local_filesystem import LocalFilesystem
from holdfast.adapters.local.settings_files import (
    ProjectSettings,
    read_project_settings,
    read_user_settings,
    trust_project_settings,
)
from holdfast.adapters.local.store_files import require_own_place
from holdfast.app.open_workspace import GatheredSettings, SettingProblem
from holdfast.bootstrap.locations import holdfast_home, project_settings_file, user_settings_file
from holdfast.bootstrap.stores import make_home
from holdfast.domain.errors import (
    InvalidSetting,
)
from holdfast.domain.settings.schema import (
    KEYS,
    RETIRED,
    check_setting,
)


def gather_settings(
    stored: Mapping[str, str], workspace: Path, environment: Mapping[str, str] | None = None
) -> GatheredSettings:
    """The environment overrides the store, which overrides the project file, which overrides the
    user's file. Project includes are added to the user's. A retired setting has an origin and no
    value. Invalid settings are skipped and listed."""
    environment = os.environ if environment is None else environment
    problems: list[SettingProblem] = []
    user_file = user_settings_file(environment)
    user = read_user_settings(user_file)
    edit = "holdfast config edit --user"
    values = _readable(user.values, str(user_file), edit, problems, broken=user.broken)
    origins = dict.fromkeys((*values, *(user.values.keys() & RETIRED.keys())), str(user_file))
    project = project_settings(workspace, environment)
    includes = (*values.get("include", ()), *project.values.get("include", ()))
    values |= project.values
    if includes:
        values["include"] = includes
    project_file = str(project_settings_file(workspace))
    origins |= dict.fromkeys((*project.values, *project.retired), project_file)
    own = _readable(
        {key: json.loads(text) for key, text in stored.items()},
        "settings of this workspace",
        "holdfast config edit",
        problems,
    )
    values |= own
    origins |= dict.fromkeys((*own, *(stored.keys() & RETIRED.keys())), "store")
    _take_from_environment(environment, values, origins, problems)
    return GatheredSettings(values, origins, tuple(problems))


def _readable(
    found: Mapping[str, Any],
    source: str,
    cure: str,
    problems: list[SettingProblem],
    *,
    broken: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    if not found and not broken:
        return {}
    from holdfast.domain.settings.fallback import readable_settings  # late: many set nothing

    try:
        readable = readable_settings(found, broken or {})
    except InvalidSetting as error:
        raise InvalidSetting(f"{source}: {error.message}", hint=f"fix it: {cure}") from None
    problems += [
        SettingProblem(f"{source}: {why}; not applied", cure) for why in readable.problems.values()
    ]
    return dict(readable.values)


def _take_from_environment(
    environment: Mapping[str, str],
    values: dict[str, Any],
    origins: dict[str, str],
    problems: list[SettingProblem],
) -> None:
    """`HOLDFAST_AUTO_INTERVAL=30` and similar environment variables."""
    given = [name for name in environment if name.startswith("HOLDFAST_")]
    for key in KEYS if given else ():
        variable = f"HOLDFAST_{key.upper()}"
        if variable not in given or key == "key_file":  # unlocking reads the key file's variable
            continue
        text: Any = environment[variable]
        try:
            if text not in ("on", "off"):
                from holdfast.engine.settings import parse_value  # late: hardly ever needed

                text = parse_value(key, [text])
            taken = {key: check_setting(key, text)}
        except InvalidSetting:
            cure = f"fix the variable {variable}, or unset it"
            taken = _readable({key: environment[variable]}, variable, cure, problems)
        values |= taken
        origins |= dict.fromkeys(taken, variable)


def project_settings(workspace: Path, environment: Mapping[str, str]) -> ProjectSettings:
    """The settings in a project's own file, and those not applied, with the reason."""
    return read_project_settings(project_settings_file(workspace), holdfast_home(environment))


def trust_settings(workspace: Path, environment: Mapping[str, str]) -> ProjectSettings:
    """Trust the project's file in its current form; returns the settings that now apply."""
    home = holdfast_home(environment)
    require_own_place(home)
    fs = LocalFilesystem()
    make_home(fs, home)
    return trust_project_settings(fs, project_settings_file(workspace), home)

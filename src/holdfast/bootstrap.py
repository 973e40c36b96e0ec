"""The composition root: the one place that names adapters and reads the environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.component_makers import with_parts
from holdfast.domain.errors import (
    HoldfastError,
    InvalidSetting,
    KeyNeeded,
    NoSpace,
    NotFound,
    NothingSaved,
    Refused,
    StoreMissing,
    WorkspaceMissing,
    WorkspaceRefused,
)
from holdfast.domain.settings import (
    KEYS,
    RETIRED,
    Settings,
    check_setting,
    make_settings,
)
from holdfast.engine.engine import Engine
from holdfast.engine.vault import Vault
from holdfast.store.faults import store_trouble, translate_os_error
from holdfast.store.identity import MARKER_NAME, WorkspaceIdentity
from holdfast.store.layout import StoreLayout, make_private_directory
from holdfast.store.local_filesystem import LocalFilesystem
from holdfast.store.local_store import LocalStore
from holdfast.store.own_files import require_own_place
from holdfast.store.settings_files import (
    ProjectSettings,
    read_project_settings,
    read_user_settings,
    trust_project_settings,
)
from holdfast.store.system import RandomIds, SystemClock
from holdfast.values.classes import dataclass, replace

if TYPE_CHECKING:
    from holdfast.engine.bundles.importing import ImportOutcome, ImportRequest
    from holdfast.ports.progress import Progress
    from holdfast.store.encryption.key_slots import Secret
    from holdfast.store.encryption.unlocking import KeySources, Unlocked

_ASK_AS_EFFECTIVE_USER = os.access in os.supports_effective_ids
_SYSTEM_TREES = ("/proc", "/sys", "/dev")
_MEMORY_DISK = "/dev/shm"
_SYSTEM_DIRECTORIES = (
    "/bin /boot /etc /home /lib /lib64 /media /mnt /opt /root /run /sbin /srv /tmp /usr /usr/local"
    " /var /var/tmp /Applications /Library /System /Users /Volumes /private /private/tmp"
).split()

_PLAIN = (
    "Holdfast protects {} from now on. It is not a project: it has no git repository and no file "
    "such as package.json or pyproject.toml. Repositories below it are workspaces of their own and "
    "are left out."
)
_FROM_ELSEWHERE = (
    "Holdfast made a new store for {}. Its marker .holdfast/workspace.json names a store that is "
    "not on this machine; it may have come with a clone or a copy."
)
_LOST = (
    "Holdfast made a new store for {}, because its store is not there any more. Earlier "
    "checkpoints are out of reach."
)
_ENCRYPTED_AGAIN = "The new store is encrypted with {}, because the missing one was encrypted."
_NOT_ENCRYPTED = (
    "The new store is not encrypted, although the marker says that its store was: no key was found."
)


def holdfast_home(environment: Mapping[str, str]) -> Path:
    """Where stores live: outside every workspace, so that no clean-up of one reaches it."""
    if chosen := environment.get("HOLDFAST_HOME"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "holdfast"
    data = environment.get("XDG_DATA_HOME")
    base = Path(data) if data and os.path.isabs(data) else Path.home() / ".local" / "share"
    return base / "holdfast"


@dataclass(frozen=True, slots=True)
class SettingProblem:
    """A setting that cannot be used: where and why, and what to do about it."""

    finding: str
    cure: str


@dataclass(frozen=True, slots=True)
class GatheredSettings:
    """Effective values, where each comes from, and what cannot be used."""

    values: dict[str, Any]
    origins: dict[str, str]
    problems: tuple[SettingProblem, ...]


class OpenWorkspace:
    """A workspace with its store open. Close it, or use it as a context.

    `setting_problems` are settings that cannot be used. `recovered` tells that an interrupted
    restore was put right on the way. `news` is what there is to say about the store, for whoever
    opened it to pass on. `environment` is that of whoever it works for, which need not be this
    process: programs are started with it.
    """

    def __init__(
        self,
        engine: Engine,
        store: LocalStore,
        settings: GatheredSettings,
        environment: Mapping[str, str],
        *,
        recovered: bool = False,
        news: tuple[str, ...] = (),
    ) -> None:
        self.news = news
        self.engine = engine
        self.store = store
        self.setting_origins = settings.origins
        self.setting_problems = settings.problems
        self.environment = environment
        self.recovered = recovered

    def close(self) -> None:
        self.store.close()

    def __enter__(self) -> OpenWorkspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_workspace(
    workspace: Path,
    *,
    create: bool,
    force: bool = False,
    file_filter: Callable[[Path], bool] | None = None,
    environment: Mapping[str, str] | None = None,
    purpose: str = "holdfast",
    passive: bool = False,
    recover: bool = True,
    new_store: bool = False,
    protect: bool = False,
    spare_repositories: bool = False,
    new_secret: Callable[[Path], Secret] | None = None,
    unencrypted: bool = False,
    ask_passphrase: Callable[[], str | None] | None = None,
) -> OpenWorkspace:
    """Open the store of a workspace, making one if `create`. `NotFound` when there is none, and
    `StoreMissing` when there was one; `new_store` makes another in its place, and so does `create`
    where the marker came from elsewhere, with a clone or a copy. With `protect` one is made in any
    case: for hooks, which nobody is there to ask.

    `passive` is for a mere look that must neither wait nor change anything: what an interrupted
    operation left, and a tie between workspace and store that is out of date, stay as they are.
    Without `recover` just a restore that was interrupted is left as it is.
    With `spare_repositories` a store that is made for a directory that is no project leaves the
    repositories below to themselves (CP-16).
    With `new_secret` the store is an encrypted one; it is called, with the workspace, for what will
    open it. A store in place of a lost one that was encrypted is encrypted too, with the key that
    is at hand, unless `unencrypted` says otherwise. `ask_passphrase` is called when nothing else
    opens a store that has a passphrase.
    """
    environment = os.environ if environment is None else environment
    home = holdfast_home(environment)
    directory = require_project(workspace, home, force=force, for_agent=protect)
    require_own_place(home)
    fs, clock, ids = LocalFilesystem(), SystemClock(), RandomIds()
    identity = WorkspaceIdentity(fs, home, ids)
    with store_trouble("being looked for"):
        layout, news = _find_store(
            identity, directory, new_store=new_store, create=create, protect=protect
        )
        new_store = new_store or bool(news)
    secret: Secret | None = None
    made = layout is None
    if layout is None:
        if not create:
            hint = 'make one: holdfast checkpoint "why"'
            raise NothingSaved(f"{directory} has no checkpoints yet", hint=hint)
        _make_home(fs, home)
        with store_trouble("being made"):
            if not unencrypted:
                new_secret, said = _chosen_secret(identity, directory, environment, new_secret)
                news += said
            layout, secret = _make_store(identity, directory, new_secret, or_missing=new_store)
    elif new_secret is not None:
        _require_encrypted(layout, directory)

    def unlock(layout: StoreLayout) -> Unlocked:
        return unlock_store(layout, environment, given=secret, ask=ask_passphrase)

    store = LocalStore(fs, layout, directory, clock, purpose=purpose, unlock=unlock)
    try:
        if not passive:
            with store_trouble("being tied to its workspace"):
                identity.tie(directory, layout)  # only now: one of a later version stays untouched
            store.make_ready()
        if made and spare_repositories and _spare_repositories(store, directory) and protect:
            news = (*news, _PLAIN.format(directory))
        gathered = gather_settings(store.catalog.settings(), directory, environment)
        settings = make_settings(gathered.values)
        store.lock_timeout_s = settings.lock_timeout
        vault = _vault(directory, fs, store, clock, settings, environment)
        engine = Engine(vault, file_filter=file_filter)
        recovered = recover and not passive and engine.recover_if_free()
        return OpenWorkspace(engine, store, gathered, environment, recovered=recovered, news=news)
    except BaseException:
        store.close()
        raise


def _find_store(
    identity: WorkspaceIdentity, directory: Path, *, new_store: bool, create: bool, protect: bool
) -> tuple[StoreLayout | None, tuple[str, ...]]:
    """The store, and what to say if a new one has to be made in place of one that is missing."""
    try:
        return identity.find(directory, or_missing=new_store), ()
    except StoreMissing as missing:
        if not create or (missing.was_here and not protect):
            raise
        return None, ((_LOST if missing.was_here else _FROM_ELSEWHERE).format(directory),)


def _spare_repositories(store: LocalStore, directory: Path) -> bool:
    """Whether the directory is no project, so that this matters."""
    from holdfast.domain.project_signs import shows_project

    if shows_project(os.listdir(os.fsencode(directory))):
        return False
    with store.exclusive(), store.catalog.transaction() as transaction:
        transaction.set_setting("nested_repositories", json.dumps("auto"))
    return True


def _make_room_elsewhere(
    own: StoreLayout, needed_bytes: int, environment: Mapping[str, str]
) -> None:
    """Let other stores of the user give back what they can spare, the one that was not used for
    longest first, until so much is free in all. One that is in use, encrypted or without its
    workspace is left alone."""
    from holdfast.store.all_stores import forget_sizes, idle_stores

    for layout in idle_stores(own):
        with suppress(HoldfastError, OSError):
            if layout.keys.exists() or _give_back(layout, needed_bytes, environment):
                continue
            break
    forget_sizes(own.home)


def _give_back(layout: StoreLayout, needed_bytes: int, environment: Mapping[str, str]) -> bool:
    """Whether that was not enough."""
    from holdfast.engine.eviction import make_room
    from holdfast.engine.space_limit import SpaceLimit
    from holdfast.store.all_stores import forget_sizes

    workspace = layout.read_description()["workspace"]
    with open_workspace(
        workspace, create=False, force=True, passive=True, environment=environment
    ) as opened:
        if opened.store.directory != layout.directory:
            return True
        vault = replace(opened.engine.vault, make_room_elsewhere=lambda _: None)
        forget_sizes(layout.home)
        with opened.store.exclusive(wait=False):
            make_room(vault, needed_bytes)
            return SpaceLimit(vault).budget_left < needed_bytes


def _require_encrypted(layout: StoreLayout, directory: Path) -> None:
    if not layout.read_description()["encrypted"]:
        raise Refused(
            f"{directory} has a store that is not encrypted: {layout.directory}",
            hint="encryption is chosen when a store is made; nothing was changed",
        )


def _chosen_secret(
    identity: WorkspaceIdentity,
    directory: Path,
    environment: Mapping[str, str],
    chosen: Callable[[Path], Secret] | None,
) -> tuple[Callable[[Path], Secret] | None, tuple[str, ...]]:
    """What encrypts a new store: what was chosen, or a key at hand where the lost store was
    encrypted, and what to say. `KeyNeeded` without a key. Of a clone only its marker says that it
    was: no reason to leave it unprotected."""
    lost = identity.lost_encrypted(directory)
    if chosen is not None or lost is None:
        return chosen, ()
    from holdfast.store.encryption.unlocking import first_secret

    try:
        secret, origin = first_secret(_key_sources(environment))
    except KeyNeeded as error:
        if not lost.was_here:
            return None, (_NOT_ENCRYPTED,)
        raise KeyNeeded(
            f"the store of {directory} was encrypted and is missing ({lost.directory}), and there "
            f"is no key for a new one: {error.message}",
            hint="name a key file in HOLDFAST_KEY_FILE; or: holdfast init --new-store --encrypt; "
            "without encryption: holdfast init --new-store --no-encrypt",
        ) from None
    return (lambda _: secret), (_ENCRYPTED_AGAIN.format(origin),)


def _make_store(
    identity: WorkspaceIdentity,
    directory: Path,
    new_secret: Callable[[Path], Secret] | None,
    *,
    or_missing: bool,
) -> tuple[StoreLayout, Secret | None]:
    if new_secret is None:
        if identity.is_copy_of_encrypted(directory):
            raise Refused(
                f"{directory} is a copy of a workspace whose store is encrypted",
                hint="make its store first: holdfast init --encrypt; "
                "or remove .holdfast from the copy to have one that is not encrypted",
            )
        return identity.find_or_create(directory, or_missing=or_missing), None
    from holdfast.store.encryption.cipher import StoreKeys
    from holdfast.store.encryption.key_slots import encode_key_slots, first_slots

    secret = new_secret(directory)
    slots = encode_key_slots(first_slots(StoreKeys.new(), secret))
    layout = identity.find_or_create(directory, key_slots=slots, or_missing=or_missing)
    return layout, secret


def unlock_store(
    layout: StoreLayout,
    environment: Mapping[str, str],
    *,
    given: Secret | None = None,
    ask: Callable[[], str | None] | None = None,
) -> Unlocked:
    """The keys of an encrypted store; never from the workspace, never from the store."""
    from holdfast.store.encryption.unlocking import unlock

    return unlock(layout, replace(_key_sources(environment), given=given, ask=ask))


def _key_sources(environment: Mapping[str, str]) -> KeySources:
    from holdfast.store.encryption.unlocking import KeySources

    user_file = user_settings_file(environment)
    user = read_user_settings(user_file)
    if "key_file" in user.broken:
        raise InvalidSetting(
            f"{user_file}: {user.broken['key_file']}, where key_file is set",
            hint="correct it: holdfast config edit --user",
        )
    own = user.values.get("key_file")
    named = (environment.get("HOLDFAST_KEY_FILE"), own if isinstance(own, str) else None)
    passphrase_file = environment.get("HOLDFAST_PASSPHRASE_FILE")
    return KeySources(
        key_files=tuple(Path(path).expanduser() for path in named if path),
        passphrase_file=Path(passphrase_file).expanduser() if passphrase_file else None,
    )


def key_file_secret(path: Path, workspace: Path, environment: Mapping[str, str]) -> Secret:
    """The key in a file, which is made if there is none; it may not lie in what it protects."""
    from holdfast.store.encryption.secret_files import make_key_file, read_key_file

    place = path.expanduser().absolute()
    real = Path(os.path.realpath(place.parent)) / place.name
    home = Path(os.path.realpath(holdfast_home(environment)))
    for forbidden in (Path(os.path.realpath(workspace)), home):
        if real.is_relative_to(forbidden):
            raise Refused(
                f"the key file {path} would lie in {forbidden}, together with what it protects",
                hint="choose a place of which you keep a backup elsewhere",
            )
    if not os.path.lexists(place):
        return make_key_file(place)
    try:
        return read_key_file(place)
    except KeyNeeded as error:
        hint = error.hint or "name a file that does not exist yet, and Holdfast makes a key there"
        raise KeyNeeded(error.message, hint=hint) from None


def _vault(
    workspace: Path,
    fs: LocalFilesystem,
    store: LocalStore,
    clock: SystemClock,
    settings: Settings,
    environment: Mapping[str, str],
) -> Vault:
    own = StoreLayout(store.directory)
    vault = Vault(
        workspace,
        fs,
        store.objects,
        store.catalog,
        store.stat_cache,
        store,
        clock,
        RandomIds(),
        settings,
        make_room_elsewhere=lambda needed: _make_room_elsewhere(own, needed, environment),
    )
    return with_parts(vault, environment, store)


def store_of(workspace: Path, environment: Mapping[str, str] | None = None) -> StoreLayout | None:
    """The store that belongs to a directory, whatever state it is in."""
    home = holdfast_home(os.environ if environment is None else environment)
    return WorkspaceIdentity(LocalFilesystem(), home, RandomIds()).locate(workspace)


def nearest_workspace(
    start: Path, *, or_lost: bool = False, environment: Mapping[str, str] | None = None
) -> Path | None:
    """The nearest directory, from `start` upwards, that has a store, as git finds a repository; or,
    with `or_lost`, whose marker names one that is not there, which is `StoreMissing` otherwise.

    A directory above that is no project (someone once insisted on their home) is passed over.
    """
    home = holdfast_home(os.environ if environment is None else environment)
    require_own_place(home)
    identity = WorkspaceIdentity(LocalFilesystem(), home, RandomIds())
    try:
        directory = start.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    if not directory.is_dir():
        return None
    store_home = Path(os.path.realpath(home))
    with store_trouble("being looked for"):
        for above in (directory, *directory.parents):
            if above != directory and _not_a_project(above, store_home) is not None:
                continue
            try:
                if identity.find(above) is not None:
                    return above
            except StoreMissing:
                if not or_lost:
                    raise
                return above
    return None


def former_store(workspace: Path, environment: Mapping[str, str]) -> StoreLayout | None:
    """The store that was missing when the one of this workspace was made in its place."""
    home = holdfast_home(environment)
    identity = WorkspaceIdentity(LocalFilesystem(), home, RandomIds())
    layout = identity.locate(workspace)
    return None if layout is None else identity.former(layout)


def tie_again(opened: OpenWorkspace) -> None:
    """Write the marker again where it is gone: `git clean -fdx` takes it away."""
    workspace, layout = opened.engine.vault.workspace, StoreLayout(opened.store.directory)
    if os.path.lexists(workspace / ".holdfast" / MARKER_NAME):
        return
    with store_trouble("being tied to its workspace"):
        WorkspaceIdentity(LocalFilesystem(), layout.home, RandomIds()).tie(workspace, layout)


def use_former_store(workspace: Path, environment: Mapping[str, str]) -> StoreLayout:
    """Let a workspace have the store again that was missing when another one was made for it."""
    former = former_store(workspace, environment)
    if former is None or not former.exists():
        raise NotFound(
            f"{workspace} has no other store"
            if former is None
            else f"{former.directory} is missing",
            hint="see which store it has: holdfast status",
        )
    with store_trouble("being tied to its workspace"):
        WorkspaceIdentity(LocalFilesystem(), former.home, RandomIds()).tie(workspace, former)
    return former


def verify_bundle(request: ImportRequest, progress: Progress) -> ImportOutcome:
    """Look at a bundle before a store is made for it; nothing is written."""
    from holdfast.engine.bundles.importing import verify_for_new_store

    budget_bytes = make_settings({}).budget
    return verify_for_new_store(
        LocalFilesystem(), request, budget_bytes=budget_bytes, progress=progress
    )


def _make_home(fs: LocalFilesystem, home: Path) -> None:
    try:
        make_private_directory(fs, home)
    except OSError as error:
        if isinstance(full := translate_os_error(error, "being made"), NoSpace):
            raise full from error
        raise WorkspaceRefused(
            f"the store's directory {home} cannot be made: {error.strerror}",
            hint="set HOLDFAST_HOME to a directory that you can write to",
        ) from None


def require_project(workspace: Path, home: Path, *, force: bool, for_agent: bool = False) -> Path:
    """The real path of a directory that is worth protecting; refuses `/`, `$HOME` and the like.
    `for_agent`: somebody who works with an agent is told, and gives no options."""
    try:
        directory = workspace.expanduser().resolve(strict=True)
    except (OSError, RuntimeError):
        import shlex

        raise WorkspaceMissing(
            f"the workspace {workspace} does not exist",
            hint="give an existing directory: -C DIR; to bring back one that was deleted, make it "
            f"again first: mkdir -p {shlex.quote(str(workspace))}",
        ) from None
    if not directory.is_dir():
        raise WorkspaceRefused(
            f"the workspace {directory} is not a directory",
            hint=f"did you mean {directory.parent}?",
        )
    if not os.access(directory, os.R_OK | os.X_OK, effective_ids=_ASK_AS_EFFECTIVE_USER):
        raise WorkspaceRefused(
            f"the workspace {directory} cannot be read", hint="check its owner and permissions"
        )
    store_home = Path(os.path.realpath(home))
    if directory == store_home or store_home in directory.parents:
        raise WorkspaceRefused(
            f"{directory} is part of Holdfast's own store", hint="choose a project directory"
        )
    if force:
        return directory
    reason = _not_a_project(directory, store_home)
    if reason is not None:
        raise WorkspaceRefused(
            f"{directory} {reason.problem}", hint=reason.for_agent if for_agent else reason.hint
        )
    return directory


def is_no_place_for_work(directory: Path, environment: Mapping[str, str] | None = None) -> bool:
    """Whether the directory, without links in it, is one that is refused as a workspace."""
    home = holdfast_home(os.environ if environment is None else environment)
    return _not_a_project(directory, Path(os.path.realpath(home))) is not None


def why_no_project(directory: Path, environment: Mapping[str, str] | None = None) -> str | None:
    """The reason that such a directory is refused for, in words that follow its name."""
    home = holdfast_home(os.environ if environment is None else environment)
    found = _not_a_project(Path(os.path.realpath(directory)), Path(os.path.realpath(home)))
    return None if found is None else found.problem


class _NoProject:
    """Why a directory is refused, and what a person and an agent's user can do instead."""

    def __init__(
        self,
        problem: str,
        hint: str = "choose a project directory with -C DIR, or insist with --force",
        for_agent: str = "to have checkpoints, start the agent in a project's directory",
    ) -> None:
        self.problem, self.hint, self.for_agent = problem, hint, for_agent


def _not_a_project(directory: Path, store_home: Path) -> _NoProject | None:
    user_home = Path(os.path.realpath(Path.home()))
    if directory == Path(directory.anchor):
        return _NoProject("is the whole file system, not a project")
    if directory == user_home:
        return _NoProject("is your home directory, not a project")
    if directory in user_home.parents or str(directory) in _SYSTEM_DIRECTORIES:
        return _NoProject("is a system directory, not a project")
    below = [t for t in _SYSTEM_TREES if str(directory) == t or str(directory).startswith(t + "/")]
    if below and not str(directory).startswith(_MEMORY_DISK + "/"):
        return _NoProject("is part of the system, not a project")
    if directory in store_home.parents:
        return _NoProject(
            f"holds the store itself ({store_home})",
            "set HOLDFAST_HOME to a directory outside of it, or insist with --force",
            "set HOLDFAST_HOME to a directory outside of it",
        )
    return None


def gather_settings(
    stored: Mapping[str, str], workspace: Path, environment: Mapping[str, str] | None = None
) -> GatheredSettings:
    """The environment wins over the store, which wins over what is taken from the project file,
    which wins over the user's file. What the project includes is added to what the user includes. A
    retired setting has an origin and no value. What cannot be used is left out and named."""
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
    from holdfast.domain.unreadable_settings import readable_settings  # late: many set nothing

    try:
        readable = readable_settings(found, broken or {})
    except InvalidSetting as error:
        raise InvalidSetting(f"{source}: {error.message}", hint=f"correct it: {cure}") from None
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
    """`HOLDFAST_AUTO_INTERVAL=30` and the like, for whoever has set them."""
    given = [name for name in environment if name.startswith("HOLDFAST_")]
    for key in KEYS if given else ():
        variable = f"HOLDFAST_{key.upper()}"
        if variable not in given or key == "key_file":  # the key file is looked for by unlocking
            continue
        text: Any = environment[variable]
        try:
            if text not in ("on", "off"):
                from holdfast.engine.setting_words import value_of_words  # late: hardly ever needed

                text = value_of_words(key, [text])
            taken = {key: check_setting(key, text)}
        except InvalidSetting:
            cure = f"correct the variable {variable}, or unset it"
            taken = _readable({key: environment[variable]}, variable, cure, problems)
        values |= taken
        origins |= dict.fromkeys(taken, variable)


def project_settings(workspace: Path, environment: Mapping[str, str]) -> ProjectSettings:
    """What a project's own file sets, and what of it is not taken, with the reason."""
    return read_project_settings(project_settings_file(workspace), holdfast_home(environment))


def trust_settings(workspace: Path, environment: Mapping[str, str]) -> ProjectSettings:
    """Take the project's file, as it is now, in whole; what it sets from here on."""
    home = holdfast_home(environment)
    require_own_place(home)
    fs = LocalFilesystem()
    _make_home(fs, home)
    return trust_project_settings(fs, project_settings_file(workspace), home)


def project_settings_file(workspace: Path) -> Path:
    return workspace / ".holdfast" / "config.toml"


def user_settings_file(environment: Mapping[str, str]) -> Path:
    configured = environment.get("XDG_CONFIG_HOME")
    base = Path(configured) if configured and os.path.isabs(configured) else Path.home() / ".config"
    return base / "holdfast" / "config.toml"

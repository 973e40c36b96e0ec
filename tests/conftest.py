"""The base of every test: marks, Hypothesis profiles, and an environment without user data.

No test can reach the data directory, the git configuration or the home of the user. Random tests
print what repeats them: Hypothesis its blob, `make torture` its seed.

Where the machine has room for it, tests below `_IN_MEMORY` and those marked `in_memory` work in
memory: most of their time would else be waiting for a disk that they do not test. On the disk stay
all others, campaigns, and those marked `on_disk`: they are about files and what saving them
promises, or about what differs in memory, such as the pace of a disk or a warning of the doctor.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import privileges
from tests.support.chromium import WHY_NO_CHROMIUM
from tests.support.public_mcp_tools import PUBLIC_TOOLS
from tests.torture.disks import memory_disk

DEFAULT_SEED = 20_260_917
ON_LINUX = sys.platform == "linux"

_TESTS = Path(__file__).resolve().parent
_IN_MEMORY = tuple(
    _TESTS / name
    for name in """
        adapters/local/catalog adapters/local/encryption adapters/local/objects
        adapters/local/search adapters/local/story
        app/automation components/external components/git components/worktrees engine
        interfaces/agent_setup interfaces/cli interfaces/daemon interfaces/hooks interfaces/mcp
        interfaces/tools interfaces/web scenarios
    """.split()
)

# Bounded and the same on every run: a failure in continuous integration is a failure everywhere.
settings.register_profile(
    "default",
    derandomize=True,
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    database=None,
    print_blob=True,
)
# Random, long, and shrinking little: the test itself stops when its share of the time is over.
settings.register_profile(
    "torture",
    derandomize=False,
    max_examples=1_000_000,
    stateful_step_count=60,
    deadline=None,
    database=None,
    print_blob=True,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.data_too_large),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# A run in the background may have been started with these signals ignored, and commands under test
# would inherit that.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "requirement(*ids): the promises of promises.toml that this test proves"
    )
    config.addinivalue_line(
        "markers", "torture: a long random campaign, run by `make torture` and not by `make test`"
    )
    config.addinivalue_line(
        "markers", "agents: real agents against a stub model, run by `make agents` alone"
    )
    config.addinivalue_line(
        "markers", "torture_share(weight): how much of TORTURE_S a campaign gets; others get 1"
    )
    config.addinivalue_line("markers", "both_stores: runs on a store on disk, and on one in memory")
    config.addinivalue_line(
        "markers", "store_on_disk: looks into store files or at other processes: not in memory"
    )
    config.addinivalue_line(
        "markers", "in_memory: a process dies or a call fails, never the power: no disk is needed"
    )
    config.addinivalue_line(
        "markers", "on_disk: what this test is about is different for files in memory"
    )
    config.addinivalue_line(
        "markers",
        "linux: uses inotify, /proc, mounts or process handles; left out on other systems",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The last line of the run counts what was left out."""
    left_out = [item for item in items if item.get_closest_marker("linux") and not ON_LINUX]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_collection_finish() -> None:
    """Ten thousand tests stay until the end: garbage is not searched for among them every time."""
    gc.collect()
    gc.freeze()


def pytest_report_header() -> list[str]:
    profile = settings.get_current_profile_name()
    said = [f"hypothesis profile {profile}, seed {torture_seed()}"]
    if PUBLIC_TOOLS.why_not:
        said.append(f"the public MCP tools are not run: {PUBLIC_TOOLS.why_not}")
    if WHY_NO_CHROMIUM:
        said.append(f"the page is not tried in a browser: {WHY_NO_CHROMIUM}")
    return said


@pytest.fixture(autouse=True, scope="session")
def hermetic_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The whole run, child processes included, sees an empty home and a plain git."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as environment:
        for name in [name for name in os.environ if name.startswith(("GIT_", "HOLDFAST_", "XDG_"))]:
            environment.delenv(name)
        environment.setenv("HOME", str(home))
        environment.setenv("HOLDFAST_HOME", str(home / "holdfast"))
        # No hook starts a daemon unless a test is about that.
        environment.setenv("HOLDFAST_DAEMON", "off")
        # Nor does a command page its answer.
        environment.setenv("HOLDFAST_PAGER", "cat")
        environment.setenv("GIT_CONFIG_NOSYSTEM", "1")
        environment.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        environment.setenv("GIT_TERMINAL_PROMPT", "0")
        for role in ("AUTHOR", "COMMITTER"):
            environment.setenv(f"GIT_{role}_NAME", "Test")
            environment.setenv(f"GIT_{role}_EMAIL", "test@example.invalid")
        for name in ("COLUMNS", "FORCE_COLOR", "NO_COLOR", "PAGER"):
            environment.delenv(name, raising=False)
        yield


@pytest.fixture(scope="session")
def memory_of_the_run() -> Iterator[Path | None]:
    """Where this worker's directories in memory are, if there is such a place."""
    memory = memory_disk()
    if memory is None:
        yield None
        return
    directory = Path(tempfile.mkdtemp(dir=memory, prefix="holdfast-test-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def memory_directory(
    memory_of_the_run: Path | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A directory in memory, if there is such a place: thousands of syncs cost nothing there."""
    if memory_of_the_run is None:
        yield tmp_path_factory.mktemp("memory")
        return
    directory = Path(tempfile.mkdtemp(dir=memory_of_the_run, prefix=""))
    try:
        yield directory
    finally:
        _remove(directory)


def _remove(directory: Path) -> None:
    """As far as it goes: a process that the test has left may write there until it ends."""
    for place, names, _ in os.walk(directory):
        for name in names:
            below = os.path.join(place, name)
            if not os.path.islink(below):
                with contextlib.suppress(OSError):
                    os.chmod(below, 0o700)
    shutil.rmtree(directory, ignore_errors=True)


def _needs_no_disk(item: pytest.Item) -> bool:
    if item.get_closest_marker("in_memory"):
        return True
    if any(item.get_closest_marker(name) for name in ("on_disk", "torture")):
        return False
    return any(item.path.is_relative_to(place) for place in _IN_MEMORY)


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest) -> Path:
    """The test's own directory, in memory or on the disk by the rule at the top of this file."""
    if not _needs_no_disk(request.node):
        on_disk: Path = request.getfixturevalue("tmp_path")
        return on_disk
    place: Path = request.getfixturevalue("memory_directory") / "place"
    place.mkdir(0o700)
    return place


@pytest.fixture(autouse=True)
def holdfast_home(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """An empty directory for stores, the test's own, already named by HOLDFAST_HOME."""
    if _needs_no_disk(request.node):
        home: Path = request.getfixturevalue("memory_directory") / "holdfast-home"
        home.mkdir(0o700)
    else:
        home = tmp_path_factory.mktemp("holdfast-home")
    monkeypatch.setenv("HOLDFAST_HOME", str(home))
    return home


@pytest.fixture
def ordinary_permissions() -> Iterator[None]:
    """Permission bits bind this test and its child processes, even where root runs the suite."""
    with privileges.none():
        yield


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """Randomness that the seed in the run's first lines repeats, different for each test."""
    return random.Random(f"{torture_seed()}:{request.node.nodeid}")


@pytest.fixture
def torture_seconds(request: pytest.FixtureRequest) -> float:
    """This campaign's share of TORTURE_S, so that all of them together end in time."""
    campaigns = [item for item in request.session.items if item.get_closest_marker("torture")]
    workers = min(int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), len(campaigns))
    total = float(os.environ.get("TORTURE_S", "600"))
    shares = sum(map(_share, campaigns))
    # A campaign is never longer than the whole, and what workers cannot divide evenly is left.
    return min(total, total * workers * _share(request.node) / max(shares, 1.0))


def _share(item: pytest.Item) -> float:
    mark = item.get_closest_marker("torture_share")
    return float(mark.args[0]) if mark else 1.0


def torture_seed() -> int:
    return int(os.environ.get("TORTURE_SEED") or DEFAULT_SEED)

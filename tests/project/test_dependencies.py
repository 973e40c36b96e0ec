"""Dependencies: each has a reason, is locked with hashes, and names no registry."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.project.repository import ROOT, files, relative

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DEV_LOCK = ROOT / "requirements" / "dev.lock"
SETUP_LOCK = ROOT / "requirements" / "setup.lock"
SITE_LOCK = ROOT / "requirements" / "site.lock"
LOCKS = (DEV_LOCK, SETUP_LOCK, SITE_LOCK)

# Put together here, so that this file does not find itself.
REGISTRY_HOSTS = tuple(
    ".".join(parts).encode()
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("pypi", "python", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("crates", "io"),
        ("anaconda", "org"),
        ("docker", "io"),
        ("ghcr", "io"),
    )
)


def _normal(requirement: str) -> str:
    """The normalised name at the head of a requirement."""
    match = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match[0]).lower()


def _declared() -> set[str]:
    project = PYPROJECT["project"]
    requirements = [*project["dependencies"], *PYPROJECT["build-system"]["requires"]]
    for extra in project.get("optional-dependencies", {}).values():
        requirements += extra
    for group in PYPROJECT["dependency-groups"].values():
        requirements += [entry for entry in group if isinstance(entry, str)]
    return {_normal(requirement) for requirement in requirements}


def _explained() -> set[str]:
    table = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    return {_normal(name) for name in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)}


def _locked(lock: Path) -> dict[str, str]:
    """Each locked name with its entry: version, marker and hashes."""
    entries = re.split(r"\n(?=\S)", lock.read_text("utf-8").strip())
    return {_normal(entry): entry for entry in entries}


def test_every_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    assert _explained() == _declared()


def test_locks_name_no_address() -> None:
    address = re.compile(r"^.*://.*|^\s*--(?:index|extra-index|find-links|trusted).*", re.MULTILINE)
    texts = {relative(lock): lock.read_text("utf-8") for lock in LOCKS}
    assert [(lock, line) for lock, text in texts.items() for line in address.findall(text)] == []


def test_everything_locked_has_one_exact_version_and_its_hashes() -> None:
    pinned = re.compile(
        r"[\w.-]+==[\w.+!-]+( ; [^;]+)? \\(\n    --hash=sha256:[0-9a-f]{64}( \\)?)+\n*"
    )
    wrong = [
        f"{relative(lock)}: {name}"
        for lock in LOCKS
        for name, entry in _locked(lock).items()
        if not pinned.fullmatch(entry)
    ]
    assert wrong == []


def test_the_locks_hold_every_declared_dependency() -> None:
    site = {_normal(requirement) for requirement in PYPROJECT["dependency-groups"]["site"]}
    assert site <= _locked(SITE_LOCK).keys()
    assert _declared() - site <= _locked(DEV_LOCK).keys()


def test_the_locks_agree_on_what_both_hold() -> None:
    everything = _locked(DEV_LOCK)
    for name, entry in _locked(SETUP_LOCK).items():
        assert everything.get(name) == entry


def test_no_file_names_a_package_registry() -> None:
    named = [
        f"{relative(path)}: {host.decode()}"
        for path in files()
        for host in REGISTRY_HOSTS
        if host in path.read_bytes().lower()
    ]
    assert named == []

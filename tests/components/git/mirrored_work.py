"""What a mirror of checkpoints looks like, read with plain git."""

from __future__ import annotations

from pathlib import Path

from tests.components.git.repositories import Picture, git

BRANCH = "holdfast-checkpoints"


def others(seen: Picture) -> tuple[object, ...]:
    """Everything but the mirror itself."""
    refs = {
        ref: oid
        for ref, oid in seen.refs.items()
        if ref != f"refs/heads/{BRANCH}" and not ref.startswith(f"refs/{BRANCH}/")
    }
    return seen.head, seen.index, refs, seen.operation, seen.untouched, seen.status


def trailer(place: Path, rev: str, key: str) -> list[str]:
    form = f"--format=%(trailers:key={key},valueonly,unfold)"
    return git(place, "log", "-1", form, rev, "--").strip("\n").split("\n")


def ids(place: Path, rev: str = BRANCH) -> list[str]:
    form = "--format=%(trailers:key=Holdfast-Id,valueonly,separator=)"
    return git(place, "log", form, rev, "--").split()


def names(place: Path) -> dict[str, str]:
    """Names below the mirror's refs to the checkpoint of each."""
    listed = git(place, "for-each-ref", "--format=%(refname)", f"refs/{BRANCH}").split()
    return {
        ref.removeprefix(f"refs/{BRANCH}/"): trailer(place, ref, "Holdfast-Id")[0] for ref in listed
    }

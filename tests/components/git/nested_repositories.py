"""A workspace with repositories inside it, and pictures of all of them."""

from __future__ import annotations

from pathlib import Path

from holdfast import SessionCheckpointer
from holdfast.domain.ids import SessionId
from holdfast.engine.components.manifests import read_states
from tests.behind_the_api import engine_of
from tests.components.git.repositories import SCENES, Picture, git, picture, staged
from tests.support.composition import configure


def with_nested(place: Path) -> Path:
    """A repository with a submodule that is ahead of the index, and a clone that git does not
    know of, with something staged."""
    SCENES["submodule"](place)
    staged(place / "vendor/tool")
    configure(place, git_nested="on")
    return place


def nested(place: Path) -> tuple[Path, Path]:
    return place / "lib", place / "vendor/tool"


def pictures(place: Path) -> list[Picture]:
    return [picture(at) for at in (place, *nested(place))]


def references(place: Path) -> list[str]:
    return git(place, "for-each-ref", "--format=%(refname)", "refs/holdfast").split()


def facts_of(session: SessionCheckpointer, reference: str) -> dict[str, object]:
    vault = engine_of(session).vault
    checkpoint = engine_of(session).resolve(SessionId("s"), reference)
    (state,) = [s for s in read_states(vault.objects, checkpoint) if s.name == "git"]
    return dict(state.facts)

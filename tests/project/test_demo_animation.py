"""The animation in the README is the demo's real output, and any browser may show it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from holdfast.interfaces.cli.demonstration import Step
from tests.project.demo_animation import (
    LENGTH_S,
    PICTURE,
    Line,
    drawn,
    normalised,
    picture,
    steps_of_a_demonstration,
)
from tests.project.repository import ROOT

_MOST_BYTES = 60_000


@pytest.fixture(scope="module")
def steps() -> list[Step]:
    return steps_of_a_demonstration()


@pytest.mark.requirement("CL-1")
def test_the_animation_is_what_the_demo_prints(steps: list[Step]) -> None:
    remedy = "run: python -m tests.project.demo_animation --write"
    assert PICTURE.read_text("utf-8") == picture(steps), remedy


@pytest.mark.requirement("CL-1")
def test_the_readme_prints_what_undo_prints(steps: list[Step]) -> None:
    undo = next(step for step in steps if "undo" in step.commands[0])
    printed = "\n".join([f"$ {undo.commands[0]}", *undo.result[:-1]])
    readme = (ROOT / "README.md").read_text("utf-8")
    (block,) = re.findall(
        r"^```console\n(\$ holdfast undo.*?)\n```", readme, re.DOTALL | re.MULTILINE
    )
    assert normalised(block) == normalised(printed)


def test_the_animation_is_small_has_no_script_and_loads_nothing() -> None:
    text = PICTURE.read_text("utf-8")
    assert len(text.encode()) <= _MOST_BYTES
    elements = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(text).iter()}
    assert elements <= {"svg", "title", "style", "rect", "path", "circle", "text", "tspan"}
    outside = text.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|url\(|@import|href|\bon\w+=", outside)
    assert "prefers-color-scheme:dark" in text
    assert "prefers-reduced-motion:reduce" in text


def test_the_animation_lasts_fifteen_seconds_and_the_readme_shows_it() -> None:
    lengths = set(re.findall(r"([\d.]+)s infinite", PICTURE.read_text("utf-8")))
    assert lengths == {f"{LENGTH_S:g}"} == {"15"}
    assert PICTURE.relative_to(ROOT).as_posix() in (ROOT / "README.md").read_text("utf-8")


def test_times_and_ids_are_normalised_and_nothing_else() -> None:
    before = (
        "✓ saved (just now) as 00112233445566778899, 5 files, 264 ms; a test event ran in 1.2 s"
    )
    assert normalised(before) == "✓ saved as 3f2a9c81d4e05b7a6c21, 5 files; a test event ran"


def test_text_cannot_break_the_picture() -> None:
    ElementTree.fromstring(drawn([Line("$ cat <a> & b", "plain", 1.0, typed=True)]))

"""The documents tell the truth: links, paths, commands, targets and settings in them exist."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from holdfast.domain.repair_plan import RepairType
from holdfast.domain.settings import schema as settings
from tests.project.cli_reference import reference
from tests.project.repository import ROOT, commands, documents, relative

CLI_REFERENCE = ROOT / "docs" / "reference" / "cli.md"
DEFAULTS = ROOT / "docs" / "design" / "defaults.md"
JSON_REFERENCE = ROOT / "docs" / "reference" / "json.md"
SETTINGS_REFERENCE = ROOT / "docs" / "reference" / "settings.md"

# What this version promises of the command line.
PROMISED_COMMANDS = frozenset(
    "init status checkpoint log show diff restore undo redo attempt annotate search approve reset"
    " delete cleanup accept export import replay why sessions ui watch daemon serve mcp hook"
    " install uninstall config stats check repair purge doctor demo".split()
)

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)|!\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"^```[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_REPOSITORY_PATH = re.compile(r"(?:\.ci|bench|changelog|docs|requirements|src|tests)/[\w./-]*")


def _links(path: Path) -> list[str]:
    text = _FENCE.sub("", path.read_text("utf-8"))
    return [first or second for first, second in _LINK.findall(text)]


def _code(path: Path) -> list[str]:
    """What is set as code: each inline span, each line of a fenced block."""
    text = path.read_text("utf-8")
    lines = [line for block in _FENCE.findall(text) for line in block.splitlines()]
    return _CODE.findall(_FENCE.sub("", text)) + lines


def _slugs(path: Path) -> set[str]:
    """The anchors of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", path.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _verbs(code: str) -> list[str]:
    """The commands of `holdfast VERB`, also behind a prompt, an environment or `-C DIR`."""
    called = r"(?:^|(?<!from)[\s;&|(/])holdfast (?:-C \S+ |--session \S+ )*([a-z][a-z-]*)"
    return re.findall(called, code)


def test_every_link_leads_somewhere() -> None:
    assert [broken for path in documents() for broken in _broken_links(path)] == []


def _broken_links(path: Path) -> Iterator[str]:
    for link in _links(path):
        if re.match(r"[a-z]+:", link):
            continue
        target, _, anchor = link.partition("#")
        place = (path.parent / target).resolve() if target else path
        exists = place.exists() and place.is_relative_to(ROOT)
        if not exists or (anchor and anchor not in _slugs(place)):
            yield f"{relative(path)}: {link}"


def _named(pattern: str) -> set[tuple[str, str]]:
    """What the code of each document names by a pattern, with the document."""
    return {
        (relative(path), name)
        for path in documents()
        for code in _code(path)
        for name in re.findall(pattern, code)
    }


def _unknown(named: set[tuple[str, str]], known: Iterable[str]) -> set[tuple[str, str]]:
    return {(path, name) for path, name in named if name not in set(known)}


def test_every_path_of_the_repository_that_is_named_exists() -> None:
    named = _named(rf"^{_REPOSITORY_PATH.pattern}$")
    assert {(path, name) for path, name in named if not (ROOT / name).exists()} == set()


def test_every_command_that_is_named_exists() -> None:
    named = {(relative(p), verb) for p in documents() for code in _code(p) for verb in _verbs(code)}
    assert _unknown(named, {*commands(), "help"}) == set()


def test_every_make_target_that_is_named_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    assert _unknown(_named(r"^(?:\$ )?make ([a-z-]+)"), targets) == set()


def test_every_setting_that_is_named_exists() -> None:
    named = _named(r"\bconfig (?:get|set) ([a-z_]+)")
    assert _unknown(named, settings.KEYS) == set()


@pytest.mark.requirement("CL-1")
def test_every_promised_command_has_a_file_of_its_own() -> None:
    assert commands().keys() >= PROMISED_COMMANDS


@pytest.mark.requirement("CL-1")
def test_the_command_reference_is_the_help_of_the_commands() -> None:
    remedy = "run: python -m tests.project.cli_reference --write"
    assert CLI_REFERENCE.read_text("utf-8") == reference(), remedy


@pytest.mark.requirement("CL-5")
def test_the_json_of_every_command_is_described() -> None:
    headings = re.findall(r"^## ([a-z-]+)$", JSON_REFERENCE.read_text("utf-8"), re.MULTILINE)
    # An agent's hook answers in the words of that agent.
    assert set(headings) == set(commands()) - {"hook"}


@pytest.mark.requirement("ST-4")
def test_every_step_of_a_repair_is_named_in_the_reference() -> None:
    section = JSON_REFERENCE.read_text("utf-8").partition("\n## repair\n")[2].partition("\n## ")[0]
    listed = re.search(r"Types are `([a-z,\s-]+)`", section)
    assert listed is not None
    assert re.split(r",\s+", listed[1]) == [step.value for step in RepairType]


@pytest.mark.requirement("SE-11")
def test_every_setting_has_a_row_that_says_what_its_default_can_cost() -> None:
    rows = [line.split("|")[1] for line in DEFAULTS.read_text("utf-8").splitlines() if "|" in line]
    explained = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert set(settings.KEYS) - explained == set()


def test_every_setting_is_described_in_the_reference() -> None:
    reference = SETTINGS_REFERENCE.read_text("utf-8")
    assert [key for key in settings.KEYS if f"`{key}`" not in reference] == []


def test_the_defaults_in_the_reference_are_those_of_the_settings() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(.*?)` \|", SETTINGS_REFERENCE.read_text("utf-8"), re.M)
    told = {key: settings.check_setting(key, tomllib.loads(f"x = {v}")["x"]) for key, v in rows}
    assert told == {key: getattr(settings.Settings(), key) for key in settings.KEYS}


@pytest.mark.parametrize(
    ("code", "verbs"),
    [
        ("$ holdfast checkpoint 'why'", ["checkpoint"]),
        ("HOLDFAST_HOME=/x holdfast -C proj restore HEAD~1", ["restore"]),
        ("holdfast status && holdfast log", ["status", "log"]),
        (".venv/bin/holdfast demo", ["demo"]),
        ("from holdfast import SessionCheckpointer", []),
        ("holdfast --help", []),
    ],
)
def test_commands_are_recognised_in_code(code: str, verbs: list[str]) -> None:
    found = [] if code.startswith("from ") else _verbs(code)
    assert found == verbs

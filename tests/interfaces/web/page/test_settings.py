"""The settings view: what the fields hold, where values come from, and what may be changed here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from holdfast import SessionCheckpointer
from holdfast.domain.settings.schema import DEFAULTS, KEYS
from tests.interfaces.web.page.conftest import Tabs
from tests.interfaces.web.page.server_process import serving
from tests.support.hostile_trees import fill

pytestmark = [pytest.mark.requirement("WB-3"), pytest.mark.in_memory]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = tmp_path / "project"
    fill(project / "notes.txt", b"one\n")
    fill(project / "secret.env", b"one\n")
    fill(project / ".gitignore", b"*.env\n")
    with SessionCheckpointer(project, "work") as session:
        session.checkpoint("Everything works")
    return project


@pytest.fixture
def page(new_tab: Tabs, project: Path) -> Iterator[Page]:
    environment = {**os.environ, "HOLDFAST_AUTO_INTERVAL": "12"}
    with serving(project, environment) as server:
        yield new_tab(server).open("/settings")


def field(page: Page, key: str) -> Locator:
    return page.locator(f"#setting-{key}")


def setting(page: Page, key: str) -> Locator:
    return page.locator(".setting").filter(has=field(page, key))


def stored(project: Path, key: str) -> object:
    with SessionCheckpointer(project, "work") as session:
        value: object = session.opened.settings.stored().get(key)
        return value


def change(project: Path, key: str, value: object) -> None:
    """By another program."""
    with SessionCheckpointer(project, "work") as session:
        session.opened.settings.set(key, value)


def test_every_setting_has_a_field_and_its_origin(page: Page) -> None:
    expect(page.locator(".setting")).to_have_count(len(KEYS) - 1)  # retention is a table
    expect(page.locator(".origin")).to_have_count(len(KEYS))
    expect(setting(page, "auto_files").locator(".origin")).to_have_text("default")
    expect(setting(page, "auto_interval").locator(".origin")).to_have_text(
        "from HOLDFAST_AUTO_INTERVAL"
    )
    expect(field(page, "auto_interval")).to_be_disabled()
    # One file of the user has these for all workspaces.
    expect(field(page, "total_budget")).to_be_disabled()
    expect(setting(page, "total_budget")).to_contain_text("holdfast config edit --user")


def test_half_typed_text_stays_while_settings_change_elsewhere(page: Page, project: Path) -> None:
    most = page.get_by_label("risky command: at most")
    most.press_sequentially("4")
    change(project, "auto_files", 9)
    expect(field(page, "auto_files")).to_have_value("9")
    expect(setting(page, "auto_files").locator(".origin")).to_contain_text("set here")
    expect(most).to_have_value("4")
    ignore = field(page, "ignore")
    ignore.press_sequentially("*.lo")
    change(project, "auto_files", 7)
    expect(field(page, "auto_files")).to_have_value("7")
    expect(ignore).to_have_value("*.lo")


def test_a_commit_message_template_keeps_its_line_breaks(page: Page, project: Path) -> None:
    template = field(page, "accept_template")
    expect(template).to_have_value(str(DEFAULTS["accept_template"]))
    template.press("End")
    template.press("Control+End")
    template.press_sequentially("!")
    template.press("Tab")
    expect(page.get_by_role("status").filter(has_text="Saved “Commit message”")).to_be_visible()
    assert stored(project, "accept_template") == f"{DEFAULTS['accept_template']}!"


def test_a_choice_offers_every_word_that_is_accepted(page: Page, project: Path) -> None:
    watch = field(page, "watch")
    expect(watch.locator("option")).to_have_text(["on", "off", "paranoid"])
    watch.select_option("paranoid")
    expect(setting(page, "watch").locator(".origin")).to_contain_text("set here")
    assert stored(project, "watch") == "paranoid"
    setting(page, "watch").get_by_role("button", name="Reset to default").click()
    expect(watch).to_have_value("on")


def test_an_invalid_value_is_explained_at_its_field_and_stays_in_it(
    page: Page, project: Path
) -> None:
    end_of_day = field(page, "end_of_day")
    end_of_day.fill("25:00")
    end_of_day.press("Tab")
    expect(setting(page, "end_of_day").get_by_role("alert")).to_contain_text("no such time of day")
    expect(end_of_day).to_have_attribute("aria-invalid", "true")
    expect(end_of_day).to_have_value("25:00")
    assert stored(project, "end_of_day") is None


def test_retention_rules_are_changed_and_reset(page: Page, project: Path) -> None:
    expect(page.get_by_label("merge into main: kept for")).to_have_value("30 days")
    before = page.get_by_label("tool call: before messages")
    expect(before).to_have_value("30 days")
    before.fill("2 weeks")
    before.press("Tab")
    table = page.locator(".with-origin")
    expect(table).to_contain_text("set here")
    rule = {"age": "7 days", "before_messages": "2 weeks"}
    assert stored(project, "retention") == {"tool": rule}
    table.get_by_role("button", name="Reset to default").click()
    expect(before).to_have_value("30 days")
    assert stored(project, "retention") is None


def test_what_is_left_out_is_listed_live(page: Page, project: Path) -> None:
    left_out = page.locator(".box", has_text="Not saved now")
    expect(left_out).to_contain_text("secret.env")
    include = field(page, "include")
    include.fill("secret.env")
    include.press("Tab")
    expect(left_out).not_to_contain_text("secret.env")
    fill(project / "other.env", b"two\n")
    with SessionCheckpointer(project, "work") as session:
        session.checkpoint("The agent went on")
    expect(left_out).to_contain_text("other.env")

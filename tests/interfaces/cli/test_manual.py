"""Manual pages: one for each command, with every option, in roff that prints as it is written."""

from __future__ import annotations

import re

import pytest

from holdfast.interfaces.cli.manual import command_pages, manual_pages
from holdfast.interfaces.cli.verbs import TOPICS, VERBS

_REQUESTS = re.compile(r"\.(?:TH|SH|SS|PP|TP|B|BR|nf|fi)\b")


def printed(page: str) -> str:
    """What a reader sees, without requests and escapes."""
    text = re.sub(r"^\.(?:TH|SH|SS|PP|TP|BR?|nf|fi) ?", "", page, flags=re.MULTILINE)
    for escape, character in {
        "\\(aq": "'",
        "\\(ga": "`",
        "\\(ti": "~",
        "\\(ha": "^",
        "\\&": "",
        "\\-": "-",
        "\\e": "\\",
    }.items():
        text = text.replace(escape, character)
    return text


@pytest.mark.requirement("CL-1")
def test_every_command_and_every_topic_is_in_a_manual_page() -> None:
    pages = manual_pages()
    assert pages.keys() == {"holdfast.1", *(f"holdfast-{verb}.1" for verb in VERBS)}
    for topic in TOPICS:
        assert f"\n{topic.upper()}\n" in printed(pages["holdfast.1"])


@pytest.mark.requirement("CL-1")
def test_a_manual_page_has_every_option_of_its_command() -> None:
    pages = manual_pages()
    for page in command_pages():
        assert page.usage.startswith(f"holdfast {page.name}")
        text = printed(pages[f"holdfast-{page.name}.1"])
        assert page.usage in text
        for option in (*page.options, *page.shared_options):
            assert f"{option.shown}\n{option.meaning}" in text, page.name


@pytest.mark.requirement("CL-1")
def test_an_option_with_a_value_names_it() -> None:
    (page,) = (page for page in command_pages() if page.name == "checkpoint")
    shown = [option.shown for option in page.options]
    assert "--name NAME" in shown
    assert "--reuse" in shown


@pytest.mark.requirement("CL-1")
def test_text_that_looks_like_a_request_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOPICS, "dots", ".env is a file\n'quoted' \\n -- text\n")
    page = manual_pages()["holdfast.1"]
    assert "\n.env is a file\n'quoted' \\n -- text\n" in printed(page)
    for line in page.splitlines():
        assert _REQUESTS.match(line) or not line.startswith((".", "'")), line

"""Notebooks compared by cell, and as text where they are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.compare.content_diff import BytesContent, ContentDiff, compare_content
from holdfast.engine.compare.notebooks import NOTEBOOK_BYTES
from tests.support.hunk_model import apply_hunks

pytestmark = pytest.mark.requirement("CP-4")

Cell = dict[str, Any]


def code(source: str | list[str], cell_id: str | None = None, **fields: Any) -> Cell:
    cell: Cell = {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None}
    cell |= {"source": source} | fields
    return cell if cell_id is None else cell | {"id": cell_id}


def markdown(source: str, **fields: Any) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": source} | fields


def notebook(*cells: Cell, metadata: object = None, **fields: Any) -> bytes:
    document = {"cells": cells, "metadata": metadata or {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document | fields, indent=1).encode()


def compare(old: bytes | None, new: bytes | None, path: bytes = b"work/plan.ipynb") -> ContentDiff:
    before = None if old is None else BytesContent(old)
    after = None if new is None else BytesContent(new)
    return compare_content(path, before, after)


def summary(diff: ContentDiff) -> list[tuple[int | None, int | None, str, str]]:
    assert diff.kind == "notebook"
    return [(cell.index_old, cell.index_new, cell.cell_type, cell.change) for cell in diff.cells]


def test_a_rewritten_cell_has_the_hunks_of_its_source() -> None:
    diff = compare(
        notebook(markdown("# Plan"), code(["a = 1\n", "b = 2\n", "c = 3"])),
        notebook(markdown("# Plan"), code(["a = 1\n", "b = 5\n", "c = 3"], execution_count=4)),
    )
    assert summary(diff) == [(1, 1, "code", "modified")]
    old, new = b"a = 1\nb = 2\nc = 3", b"a = 1\nb = 5\nc = 3"
    assert apply_hunks(old, diff.cells[0].hunks) == new


@pytest.mark.parametrize(
    ("fields", "change"),
    [
        ({"outputs": [{"output_type": "stream", "text": "2"}]}, "outputs"),
        ({"execution_count": 7}, "outputs"),
        ({"metadata": {"tags": ["slow"]}}, "metadata"),
        ({"id": "other"}, "metadata"),
        ({"attachments": {"a.png": {}}}, "metadata"),
        ({"execution_count": 7, "metadata": {"collapsed": True}}, "outputs_and_metadata"),
    ],
)
def test_a_change_that_left_the_source_alone_is_named_as_such(
    fields: dict[str, Any], change: str
) -> None:
    diff = compare(notebook(code("1 + 1")), notebook(code("1 + 1", **fields)))
    assert summary(diff) == [(0, 0, "code", change)]
    assert diff.cells[0].hunks == ()


def test_truth_is_not_one() -> None:
    diff = compare(
        notebook(code("x", metadata={"a": 1})), notebook(code("x", metadata={"a": True}))
    )
    assert summary(diff) == [(0, 0, "code", "metadata")]


def test_added_and_removed_cells_are_where_they_belong() -> None:
    old = notebook(code("import os\n"), code("first()\n"), markdown("gone\n"), code("last()\n"))
    new = notebook(code("import os\n"), markdown("new\n"), code("first()\n"), code("last()\n"))
    diff = compare(old, new)
    assert summary(diff) == [(None, 1, "markdown", "added"), (2, None, "markdown", "removed")]
    assert apply_hunks(b"", diff.cells[0].hunks) == b"new\n"
    assert apply_hunks(b"gone\n", diff.cells[1].hunks) == b""


def test_an_edited_cell_is_found_again_beside_new_ones() -> None:
    long = "x = load()\ny = clean(x)\nz = fit(y)\nplot(z)\n"
    old = notebook(code("unrelated()\n"), code(long))
    new = notebook(code(long.replace("clean", "scrub")), code("something_else()\n"))
    assert summary(compare(old, new)) == [
        (0, None, "code", "removed"),
        (1, 0, "code", "modified"),
        (None, 1, "code", "added"),
    ]


def test_an_id_tells_a_rewritten_cell_from_a_new_one() -> None:
    old = notebook(code("a = 1", "aa"), code("b = 1", "bb"))
    rewritten = notebook(code("a = 1", "aa"), code("c = 9", "bb"))
    replaced = notebook(code("a = 1", "aa"), code("c = 9", "cc"))
    assert summary(compare(old, rewritten)) == [(1, 1, "code", "modified")]
    assert summary(compare(old, replaced)) == [
        (1, None, "code", "removed"),
        (None, 1, "code", "added"),
    ]


def test_ids_recreated_by_a_tool_do_not_hide_that_cells_are_the_same() -> None:
    old = notebook(code("a = 1", "1"), code("b = 1", "2"))
    new = notebook(code("a = 1", "3"), code("b = 2", "4"))
    assert summary(compare(old, new)) == [(0, 0, "code", "metadata"), (1, 1, "code", "modified")]


def test_a_cell_that_became_another_type_is_modified() -> None:
    diff = compare(
        notebook(code("# Title", "aa")),
        notebook(markdown("# Title", id="aa", outputs=[], execution_count=None)),
    )
    assert summary(diff) == [(0, 0, "markdown", "modified")]


def test_a_new_notebook_has_all_its_cells_added_and_a_deleted_one_removed() -> None:
    document = notebook(markdown("# Title\n"), code("x\n"))
    assert [cell.change for cell in compare(None, document).cells] == ["added", "added"]
    assert [cell.change for cell in compare(document, None).cells] == ["removed", "removed"]


def test_metadata_of_the_notebook_itself_is_named() -> None:
    diff = compare(notebook(code("x")), notebook(code("x"), metadata={"kernel": "other"}))
    assert (summary(diff), diff.notebook_metadata_changed) == ([], True)
    assert not compare(None, notebook(code("x"))).notebook_metadata_changed


def test_layout_is_not_a_change_of_cells_but_shows_in_the_text() -> None:
    old = notebook(code("x"))
    new = json.dumps(json.loads(old)).encode()
    diff = compare(old, new)
    assert (summary(diff), diff.notebook_metadata_changed) == ([], False)
    assert apply_hunks(old, diff.hunks()) == new


def test_half_a_surrogate_pair_is_a_source_too() -> None:
    diff = compare(notebook(code("a = '\ud83d'\n")), notebook(code("a = '\ud83e'\n")))
    assert summary(diff) == [(0, 0, "code", "modified")]


def test_a_thousand_cells_rewritten_at_once_are_still_all_reported() -> None:
    old = notebook(*(code(f"old_{number}()") for number in range(1_000)))
    new = notebook(*(code(f"new_{number}()") for number in range(1_000)))
    changes = [cell.change for cell in compare(old, new).cells]
    assert (changes.count("removed"), changes.count("added")) == (1_000, 1_000)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b'"cells"',
        b"{}",
        b'{"nbformat": 4, "cells": {}}',
        b'{"nbformat": 4, "cells": ["x"]}',
        b'{"nbformat": 4, "cells": [{}]}',
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": 7}]}',
        b'{"nbformat": 4, "cells": [{"cell_type": "code", "source": [7]}]}',
        b'{"nbformat": 4, "cells": [{"cell_type": null, "source": ""}]}',
        b'{"nbformat": "4", "cells": []}',
        b'{"nbformat": 3, "cells": [], "worksheets": []}',
        b'{"nbformat": 4, "cells": [], "a": ' + b"9" * 5_000 + b"}",
        b'{"nbformat": 4, "cells": [], "a": "\xff"}',
        b"[" * 50_000,
        notebook(code("x" * 1_100_000)),
        notebook(code("x", outputs=["x" * NOTEBOOK_BYTES])),
        notebook(code("x", outputs=["," * 600_000])),
        notebook(*[code("")] * 6_000),
    ],
    ids=lambda raw: repr(raw[:60]),
)
def test_what_is_not_a_notebook_is_compared_as_text(raw: bytes) -> None:
    for old, new in ((raw, notebook(code("x"))), (notebook(code("x")), raw), (raw, None)):
        diff = compare(old, new)
        assert diff.kind in ("text", "too_large")
        assert diff.cells == ()
        if diff.kind == "text":
            assert apply_hunks(old or b"", diff.hunks()) == (new or b"")


def test_only_the_name_makes_a_notebook() -> None:
    document = notebook(code("x"))
    assert compare(document, None, b"plan.json").kind == "text"
    assert compare(document, None, b"PLAN.IPYNB").kind == "notebook"


SOURCES = st.sampled_from(["", "a", "a\n", "a\nb", "a\nb\nc\n", "x = 1", "x = 2"])
CELLS = st.lists(st.builds(code, SOURCES, st.sampled_from([None, "1", "2", "3", "4"])), max_size=8)


@given(old=CELLS, new=CELLS)
def test_every_cell_is_reported_once_and_the_hunks_are_exact(
    old: list[Cell], new: list[Cell]
) -> None:
    """Cells that are not mentioned are equal, in order; those that are lead from old to new."""
    diff = compare(notebook(*old), notebook(*new))
    gone = {cell.index_old for cell in diff.cells if cell.change == "removed"}
    came = {cell.index_new for cell in diff.cells if cell.change == "added"}
    changed = {
        (cell.index_old, cell.index_new): cell
        for cell in diff.cells
        if cell.change not in ("added", "removed")
    }
    rows = [index for index in range(len(old)) if index not in gone]
    columns = [index for index in range(len(new)) if index not in came]
    for i, j in zip(rows, columns, strict=True):
        cell = changed.pop((i, j), None)
        if cell is None:
            assert old[i] == new[j]
        else:
            source = old[i]["source"].encode()
            assert apply_hunks(source, cell.hunks) == new[j]["source"].encode()
    assert changed == {}

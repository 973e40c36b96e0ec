"""From the books to the lines of the table: which measurement stands against which, under which
bound.

A bound is one of the promises PF-1 to PF-9, HK-3 or WB-3. It is judged only on sound measurements;
what cannot be judged says why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from bench import command_line, growth, hook_process, memory, watched_saves, web_api, web_page
from bench import operations as ops
from bench.contest import Book
from bench.measure import Measurement, Refusal, over_bare, ratio
from bench.peers import HOLDFAST, REFERENCE, WATCHED

SAMPLES_FOR_P95 = 40
MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class Bound:
    """A promise: the figure of this kind stays at or under the limit."""

    promise: str
    limit: float
    kind: Literal["ratio", "median", "p95"] = "ratio"


@dataclass(frozen=True, slots=True)
class Row:
    """One line: the tools' measurements of one operation on one tree."""

    tree: str
    operation: str
    values: Mapping[str, Measurement]
    floor: float | None = None
    baseline: str = REFERENCE.title
    bound: Bound | None = None
    title: str = HOLDFAST.title

    @property
    def own(self) -> Measurement | None:
        return self.values.get(self.title)

    def judge(self) -> bool | Refusal | None:
        """Whether the bound holds, why that cannot be said, or None without a bound."""
        if self.bound is None:
            return None
        own = self.own
        if self.bound.kind == "ratio":
            figure = ratio(own, self.values.get(self.baseline))
            return figure if isinstance(figure, Refusal) else figure <= self.bound.limit
        if own is None or not own.sound:
            return Refusal("; ".join(own.faults) if own and own.faults else "not measured")
        if self.bound.kind == "median":
            return own.median <= self.bound.limit
        if len(own.samples) < SAMPLES_FOR_P95:
            return Refusal(f"p95 needs {SAMPLES_FOR_P95} samples, had {len(own.samples)}")
        return own.p95 <= self.bound.limit


def of_trial(tree: str, files: int, book: Book) -> Iterator[Row]:
    """The lines of one tree."""
    walk, fsync = book.pages[ops.WALK][ops.FLOOR], book.pages[ops.FSYNC][ops.FLOOR]
    floor = walk.median + fsync.median
    for operation in (ops.FIRST, ops.NOTHING, ops.FIVE, ops.SHARE, ops.BACK_FIVE, ops.BACK_SHARE):
        page = book.pages[operation]
        yield Row(tree, operation, page, floor, bound=_trial_bound(operation, files))
        if operation == ops.FIVE and WATCHED.title in page:
            name, bound = f"{operation}, watched", _watched_bound(files)
            yield Row(tree, name, page, floor, bound=bound, title=WATCHED.title)
        if operation == ops.BACK_FIVE and ops.CHECKOUT in page:
            name = f"{operation}, to {ops.CHECKOUT}"
            bound = Bound("PF-3", 0.9) if files == 10_000 else None
            yield Row(tree, name, page, floor, ops.CHECKOUT, bound)
        if (bound := _floor_bound(operation, files)) is not None:
            name = f"{operation}, to a bare walk"
            yield Row(tree, name, {**page, ops.FLOOR: walk}, floor, ops.FLOOR, bound)
    for operation in (ops.DIFF_FIVE, ops.DIFF_SHARE):
        yield Row(tree, operation, book.pages[operation], bound=_trial_bound(operation, files))
    if files == 10_000:
        name, bound = f"{ops.DIFF_SHARE}, in time", Bound("PF-7", 0.2, "median")
        yield Row(tree, name, book.pages[ops.DIFF_SHARE], bound=bound)
    yield Row(tree, ops.STORE_FIRST, book.pages[ops.STORE_FIRST])
    if files == 1_000:
        for operation, limit in ((ops.FIVE, 0.1), (ops.BACK_FIVE, 0.5), (ops.BACK_SHARE, 0.5)):
            bound = Bound("PF-5", limit, "p95")
            yield Row(tree, f"p95 of {operation}", book.pages[operation], floor, bound=bound)


def _trial_bound(operation: str, files: int) -> Bound | None:
    """Against shadow git on the same tree."""
    if operation == ops.FIRST:
        return Bound("PF-2", 0.4 if files <= 1_000 else 0.25)
    if operation == ops.FIVE:
        return Bound("PF-1", 0.75 if files <= 10_000 else 0.8)
    if operation == ops.BACK_FIVE and files == 10_000:
        return Bound("PF-3", 0.05)
    if operation in (ops.SHARE, ops.BACK_SHARE, ops.DIFF_SHARE):
        return Bound("PF-8", 1.0)
    return None


def _floor_bound(operation: str, files: int) -> Bound | None:
    """Against a bare walk of the same tree, with one lstat per file."""
    if operation == ops.FIVE:
        return Bound("PF-1", 0.9)
    if operation == ops.BACK_FIVE and files == 10_000:
        return Bound("PF-3", 1.1)
    return None


def _watched_bound(files: int) -> Bound | None:
    limits = {10_000: 0.1, 100_000: 0.02}
    return Bound("PF-1", limits[files]) if files in limits else None


def of_growth(tree: str, steps: int, book: Book, *, promised: bool) -> Iterator[Row]:
    """The lines on store size; those of the long history carry the promise."""
    names = growth.named(steps)
    for name in (names.disk, names.apparent):
        page = book.pages[name]
        judged = promised and name == names.disk
        yield Row(tree, name, page, bound=Bound("PF-4", 0.5) if judged else None)
        if growth.COLLECTED in page:
            collected = f"{name}, to {growth.COLLECTED}"
            bound = Bound("PF-4", 1.5) if judged else None
            yield Row(tree, collected, page, baseline=growth.COLLECTED, bound=bound)


def of_command_line(tree: str, files: int, book: Book) -> Iterator[Row]:
    """The lines on wall time of commands; their floor is the bare interpreter. The promise is about
    10,000 files, and what a command takes above that floor."""
    for operation, limit in command_line.LIMITS_OVER_BARE_S.items():
        page = book.pages[operation]
        bare = page.get(ops.FLOOR)
        floor = bare.median if bare and bare.samples else None
        yield Row(tree, operation, page, floor)
        over = over_bare(operation)
        bound = Bound("PF-7", limit, "median") if files == 10_000 else None
        yield Row(tree, over, book.pages[over], floor, bound=bound)


def of_hook(tree: str, files: int, book: Book) -> Iterator[Row]:
    """The lines on what an agent waits for, and on the commands that may ask the daemon; the
    promises are about 10,000 files."""
    bare = book.pages[hook_process.HOOK].get(ops.FLOOR)
    floor = bare.median if bare and bare.samples else None
    bounds = {
        hook_process.HOOK: Bound("HK-3", 0.045, "median"),
        over_bare(hook_process.HOOK): Bound("HK-3", 0.025, "median"),
        hook_process.HOOK_AFTER: Bound("HK-3", 0.045, "median"),
        over_bare(hook_process.HOOK_AFTER): Bound("HK-3", 0.025, "median"),
        over_bare(hook_process.STATUS): Bound("PF-7", 0.06, "median"),
        over_bare(hook_process.LOG): Bound("PF-7", 0.06, "median"),
    }
    for operation, bound in bounds.items():
        judged = bound if files == 10_000 else None
        yield Row(tree, operation, book.pages[operation], floor, bound=judged)


def of_watched(tree: str, book: Book) -> Iterator[Row]:
    """The lines on saves of a watched workspace in a row."""
    for operation in (watched_saves.P50, watched_saves.P99):
        yield Row(tree, operation, book.pages[operation], title=WATCHED.title)


def of_memory(tree: str, book: Book) -> Iterator[Row]:
    """The lines on memory."""
    for operation in (memory.FIRST, memory.SECOND):
        bound = Bound("PF-5", 50 * MEGABYTE, "median")
        yield Row(tree, operation, book.pages[operation], bound=bound)


def of_web(tree: str, book: Book) -> Iterator[Row]:
    """The lines on the HTTP API and the web page: each with its ratio to git, then the 95th
    percentile under its bound. Where one figure is all there is, the bound is on that."""
    limits_ms = {**web_api.LIMITS_MS, **web_page.LIMITS_MS}
    for operation, page in book.pages.items():
        promise = "WB-3" if operation in web_page.LIMITS_MS else "PF-9"
        limit_s = limits_ms.get(operation, 0) / 1000
        if operation in (web_api.MIXED, web_page.SLOWEST_FRAME):
            yield Row(tree, operation, page, bound=Bound(promise, limit_s, "median"))
            continue
        yield Row(tree, operation, page)
        if limit_s:
            yield Row(tree, f"p95 of {operation}", page, bound=Bound(promise, limit_s, "p95"))

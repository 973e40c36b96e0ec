"""Generated trees with ignore files in them, biased to what is hard about patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import strategies as st

from tests.domain.ignore_oracle import Workspace

NAMES = st.sampled_from(
    (
        *rb"a b c ab abc aab A Ab .a a.b a.b.c 1 x-1 * ** ? [a] ] [ - ^a !a ! #a #".split(),
        *rb"a\ \ : :a".split(),
        *(b"\xff", b"a\xff", b"\xc3\xa9", b"\x7f", b"\x01", b"\xef\xbb\xbfa"),
        *(b" ", b"a ", b" a", b"a  ", b"\t", b"a\t", b"a\r", b"\r", b"\n", b"a\nb"),
    )
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(b"/".join)
TOKENS = st.sampled_from(
    (
        *rb"a b c A . 1 - ^ : ! # * * * ** *** ? / / / **/ /** /**/".split(),
        *rb"\ \a \* \? \[ \\ \/ \# \!".split(),
        *rb"[ab] [!a] [^b] [a-c] [c-a] []a] [!]a] [a-] [-a] [--a] [a-c-e] [\]] [\a-\c]".split(),
        *rb"[*?] [a/b] [!/] [.] [[:alpha:]] [![:alnum:]] [[:digit:]x] [[:space:]]".split(),
        *rb"[[:bad:]] [ ] [a [! [] [: :] [[:] [[::]] [[:alpha:]".split(),
        *(b" ", b"\\ ", b"\t", b"\r", b"\0", b"\xff", b"\xc3\xa9", b"[ -~]", b"[\x80-\xff]"),
    )
)
FREE_PATTERNS = st.lists(TOKENS, min_size=1, max_size=6).map(b"".join)
# Made once: to check a strategy at its first use costs Hypothesis more than to draw from it.
WILD = st.sampled_from(
    (b"?", b"*", b"**", b"\\", b"[!/]", b"[^x]", b"[[:alnum:]]", b"[![:punct:]]", b"[x%b]", b"\\%b")
)
WHOLE_NAMES = st.sampled_from((b"", b"", b"", b"*", b"**", b"**/*", b"?*"))
JOINTS = st.sampled_from((b"/", b"/", b"/**/", b"**/", b"\\/"))
BEFORE = st.sampled_from((b"", b"", b"", b"", b"!", b"!", b"/", b"!/", b"**/", b"#", b" "))
AFTER = st.sampled_from((b"", b"", b"", b"/", b"/**", b"/*", b" ", b"  ", b"\\ ", b"\r"))
LINE_ENDS = st.sampled_from((b"\n", b"\n", b"\r\n"))
MARKS = st.sampled_from((b"", b"", b"", b"\xef\xbb\xbf"))
SMALL_NUMBERS = st.integers(0, 11)
KINDS = st.sampled_from(("like", "like", "like", "free"))
COIN = st.booleans()
ENTRIES = st.lists(
    st.builds(bytes.__add__, PATHS, st.sampled_from((b"", b"", b"/"))), min_size=4, max_size=14
)


def _pattern_like(draw: st.DrawFn, paths: Sequence[bytes]) -> bytes:
    """A path of the tree, part of it turned into wildcards: likely to match."""
    names = paths[draw(SMALL_NUMBERS) % len(paths)].rstrip(b"/").split(b"/")
    names = names[draw(SMALL_NUMBERS) % len(names) :]
    at = draw(SMALL_NUMBERS) % len(names)
    name = names[at]
    cut = draw(SMALL_NUMBERS) % len(name)
    wild = draw(WILD).replace(b"%b", name[cut : cut + 1])
    names[at] = draw(WHOLE_NAMES) or name[:cut] + wild + name[cut + draw(COIN) :]
    return draw(JOINTS).join(names)


def _ignore_file(draw: st.DrawFn, paths: Sequence[bytes]) -> bytes:
    lines: list[bytes] = []
    for _ in range(draw(SMALL_NUMBERS) % 7):
        kind = draw(KINDS)
        body = _pattern_like(draw, paths) if kind == "like" else draw(FREE_PATTERNS)
        lines.append(draw(BEFORE) + body + draw(AFTER))
    end = draw(LINE_ENDS)
    return draw(MARKS) + end.join(lines) + (end if draw(COIN) else b"")


def _consistent(paths: Sequence[bytes]) -> Iterator[bytes]:
    """The paths, those with something below them as directories."""
    parents = {path[:at] for path in paths for at in range(len(path)) if path[at : at + 1] == b"/"}
    for path in paths:
        yield path.rstrip(b"/") + b"/" if path.rstrip(b"/") in parents else path


@st.composite
def workspaces(draw: st.DrawFn) -> Workspace:
    """A tree, an ignore file in its root and in up to three directories, and an exclude file."""
    paths = sorted(set(_consistent(draw(ENTRIES))))
    directories = sorted(Workspace(frozenset(paths), {}).children())
    chosen = {directories[draw(SMALL_NUMBERS) % len(directories)] for _ in range(3)}
    gitignores = {directory: _ignore_file(draw, paths) for directory in sorted({b"", *chosen})}
    return Workspace(frozenset(paths), gitignores, exclude=_ignore_file(draw, paths))

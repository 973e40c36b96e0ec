"""The animation at the top of the README, made from the output of `holdfast demo`.

python -m tests.project.demo_animation --write     draw docs/assets/undo.svg again

Times and ids are normalised, because they differ from run to run. The picture has no script: each
line has its own CSS animation, which begins with the same clock and repeats every 15 seconds.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from holdfast.interfaces.cli.demonstration import Step, demonstration
from tests.project.repository import ROOT

PICTURE = ROOT / "docs" / "assets" / "undo.svg"
SHOWN = (0, 2, 3)
"""The steps in the picture: the hooks are installed, the agent deletes src, undo."""
LENGTH_S = 15.0
COLUMNS = 88

_FADE_S = 14.6
_FIRST_S = 0.3
_LAST_S = 10.0
_LINE_PX = 21
_TOP_PX = 62
_LEFT_PX = 24
_WIDTH_PX = 800
_COLUMN_PX = 8.43
_MARKS = {"✓": "good", "✗": "bad"}
_STYLE = """\
:root{--back:#fff;--bar:#f6f8fa;--edge:#d0d7de;--text:#1f2328;--dim:#59636e;--good:#1a7f37;--bad:#cf222e}
@media(prefers-color-scheme:dark){:root{--back:#0d1117;--bar:#161b22;--edge:#30363d;--text:#e6edf3;\
--dim:#9198a1;--good:#3fb950;--bad:#f85149}}
text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;\
fill:var(--text);white-space:pre}
.title{font-weight:600}
.dim{fill:var(--dim)}
.good{fill:var(--good);font-weight:600}
.bad{fill:var(--bad);font-weight:600}
.window{fill:var(--back);stroke:var(--edge)}
.bar{fill:var(--bar)}
.dot{fill:var(--edge)}
.line{opacity:0}
@media(prefers-reduced-motion:reduce){.line{opacity:1!important;animation:none!important;\
clip-path:none!important}}
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the terminal. `pause` is the weight of the wait before it; `typed` for commands."""

    text: str
    kind: str
    pause: float
    typed: bool = False


def normalised(text: str) -> str:
    text = re.sub(r"\b[0-9a-f]{20}\b", "3f2a9c81d4e05b7a6c21", text)
    text = re.sub(r" \((just now|[^()]* ago)\)", "", text)
    return re.sub(r"(,| in) \d+(\.\d+)? m?s\b", "", text)


def lines_of(steps: Iterable[Step]) -> Iterator[Line]:
    for number, step in enumerate(steps):
        if number:
            yield Line("", "dim", 2.0)
        yield Line(f"# {step.title}", "title", 1.0)
        prompt = "agent> " if step.by_agent else "$ "
        for command in step.commands:
            yield Line(prompt + command, "plain", 1.5, typed=True)
        for place, text in enumerate(step.result):
            kind = "plain" if text[:1] in _MARKS else "dim"
            parts = textwrap.wrap(
                normalised(text), COLUMNS, subsequent_indent="  ", drop_whitespace=False
            )
            for part in parts:
                yield Line(part.rstrip(), kind, 0.7 if place else 4.0)


def drawn(lines: list[Line]) -> str:
    """The picture. Each line appears when the weights before it are spent."""
    whole = sum(line.pause for line in lines)
    height = _TOP_PX + _LINE_PX * len(lines)
    style, body, spent = [_STYLE], [], 0.0
    for number, line in enumerate(lines):
        spent += line.pause
        if not line.text:
            continue
        begin = _FIRST_S + (_LAST_S - _FIRST_S) * spent / whole
        style.append(_keyframes(number, begin, line))
        y = _TOP_PX + _LINE_PX * number
        body.append(
            f'<text class="line {line.kind} l{number}" x="{_LEFT_PX}" y="{y}">'
            f"{_coloured(line)}</text>"
        )
    dots = "".join(f'<circle class="dot" cx="{x}" cy="17" r="5"/>' for x in (22, 40, 58))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH_PX} {height}" role="img"'
        ' aria-labelledby="t"><title id="t">An agent runs rm -rf src. holdfast undo brings every'
        " file back.</title>\n"
        f"<style>\n{''.join(style)}</style>\n"
        f'<rect class="window" x=".5" y=".5" width="{_WIDTH_PX - 1}" height="{height - 1}"'
        ' rx="8"/>\n'
        f'<path class="bar" d="M1 34V9a8 8 0 0 1 8-8h{_WIDTH_PX - 18}a8 8 0 0 1 8 8v25z"/>{dots}\n'
        f'<text class="dim" x="{_WIDTH_PX // 2}" y="22" text-anchor="middle">holdfast demo</text>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


def _coloured(line: Line) -> str:
    """As the terminal paints it: only the mark has a colour, and the prompt is faint."""
    first, space, rest = escape(line.text, quote=False).partition(" ")
    if line.typed:
        return f'<tspan class="dim">{first}</tspan>{space}{rest}'
    if first in _MARKS:
        return f'<tspan class="{_MARKS[first]}">{first}</tspan>{space}{rest}'
    return escape(line.text, quote=False)


def _keyframes(number: int, begin: float, line: Line) -> str:
    """Hidden, then shown until all fade. A command is uncovered letter by letter."""
    start, end, fade = (100 * s / LENGTH_S for s in (begin, begin + 0.9, _FADE_S))
    name = f"k{number}"
    rule = f".l{number}{{animation:{name} {LENGTH_S:g}s infinite}}\n"
    shown = f"{start + 0.01:.2f}%,{fade:.2f}%{{opacity:1}}"
    frames = f"@keyframes {name}{{0%,{start:.2f}%{{opacity:0}}{shown}100%{{opacity:0}}}}\n"
    if not line.typed:
        return rule + frames
    letters = len(line.text)
    prompt_px = _COLUMN_PX * (line.text.index(" ") + 1)
    rest = letters - line.text.index(" ") - 1
    cover = _COLUMN_PX * letters + 4 - prompt_px
    typing = (
        f"@keyframes t{number}{{0%,{start:.2f}%{{clip-path:inset(-4px {cover:.0f}px -4px 0);"
        f"animation-timing-function:steps({rest})}}{end:.2f}%,100%"
        "{clip-path:inset(-4px -4px -4px 0)}}\n"
    )
    rule = (
        f".l{number}{{animation:{name} {LENGTH_S:g}s infinite,t{number} {LENGTH_S:g}s infinite}}\n"
    )
    return rule + frames + typing


def picture(steps: list[Step]) -> str:
    assert all(step.verified is not False for step in steps)
    return drawn(list(lines_of(steps[number] for number in SHOWN)))


def steps_of_a_demonstration() -> list[Step]:
    with demonstration() as running:
        return list(running.steps())


if __name__ == "__main__" and "--write" in sys.argv:
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(steps_of_a_demonstration()), "utf-8")

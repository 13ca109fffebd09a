"""The yield of search terms as a picture: posts a day, and the share on topic, by days."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from echo_hf.collect.keyword_yield import KeywordYield, Yield, Yields
from echo_hf.collect.yield_windows import DayWindow
from echo_hf.thread_view import plain

MOST_TERMS = 12
WIDTH, ROW, TOP, LEFT, GAP = 860, 84, 64, 180, 40
PANEL = (WIDTH - LEFT - 2 * GAP) // 2
HEIGHT = 52  # of the part of a row that is drawn in
STYLE = """
svg{background:#fff;font:12px system-ui,sans-serif}
text{fill:#333}.dim{fill:#777}.name{font-weight:600}
.found{fill:#c9d4e5}.passed{fill:#2f5d9b}.axis{stroke:#bbb;stroke-width:1}
.range{stroke:#2f5d9b;stroke-opacity:.35;stroke-width:3}.share{fill:#2f5d9b}
"""
Shown = tuple[DayWindow, Yield]


def yield_plot(found: Yields) -> str:
    """Draws the terms with the most posts on topic, and all together.

    Args:
        found: What the terms brought.

    Returns:
        An SVG document without anything from elsewhere: on the left the posts of each window as
        posts a day, those on topic darker, each row to its own scale; on the right the share on
        topic from 0 to 100 % with its 95 % interval.
    """
    dated = [at for at, one in enumerate(found.windows) if one.start is not None]
    used = [at for at in dated if found.together.windows[at].found]
    shown = dated[: used[-1] + 1 - dated[0]] if used else []
    rows = [found.together, *found.keywords[:MOST_TERMS]]
    height = TOP + ROW * len(rows) + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Posts a day and share on topic by search term and days since the release</title>",
        f"<style>{STYLE}</style>",
        *_head(len(found.keywords)),
    ]
    for number, one in enumerate(rows):
        windows = [(found.windows[at], one.windows[at]) for at in shown]
        parts += _row(one, windows, TOP + ROW * number)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _head(terms: int) -> Iterator[str]:
    cut = f" ({MOST_TERMS} of {terms:,} terms)" if terms > MOST_TERMS else ""
    yield _text(LEFT, 22, f"posts a day, those on topic darker{cut}")
    yield _text(LEFT + PANEL + GAP, 22, "share of scored posts on topic, 95 % interval")
    yield _text(LEFT, 40, "days since the release; each row has its own scale", "dim")


def _row(one: KeywordYield, windows: Sequence[Shown], top: int) -> Iterator[str]:
    name = "all terms" if one.keyword is None else plain(one.keyword, 21)
    total = one.total
    share = "-" if total.share is None else f"{100 * total.share:.0f} %"
    yield _text(12, top + 22, name, "name")
    yield _text(12, top + 40, f"{total.found:,} posts, {share} on topic", "dim")
    right = LEFT + PANEL + GAP
    yield from _axes(LEFT, top, windows)
    yield from _axes(right, top, windows)
    most = max((_a_day(window, counts.found) for window, counts in windows), default=0)
    yield _text(LEFT - 6, top + 10, f"{most:,.0f}" if most >= 10 else f"{most:.1f}", "dim", "end")
    yield _text(right - 6, top + 10, "100 %", "dim", "end")
    for window, counts in windows:
        x, width = _place(window, windows)
        for kind, count in (("found", counts.found), ("passed", counts.passed)):
            high = HEIGHT * _a_day(window, count) / most if most else 0
            y = top + HEIGHT - high
            yield f'<rect class="{kind}" x="{LEFT + x:.1f}" y="{y:.1f}" ' + (
                f'width="{max(width - 1, 0.5):.1f}" height="{high:.1f}"/>'
            )
        yield from _share(counts, right + x + width / 2, top)


def _share(counts: Yield, x: float, top: int) -> Iterator[str]:
    if counts.share is None or counts.interval is None:
        return
    low, high = (top + HEIGHT * (1 - end) for end in counts.interval)
    yield f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'
    said = f"{counts.passed:,} of {counts.scored:,}"
    middle = top + HEIGHT * (1 - counts.share)
    yield f'<circle class="share" cx="{x:.1f}" cy="{middle:.1f}" r="2.5">'
    yield f"<title>{said}</title></circle>"


def _axes(left: int, top: int, windows: Sequence[Shown]) -> Iterator[str]:
    y = top + HEIGHT
    yield f'<line class="axis" x1="{left}" x2="{left + PANEL}" y1="{y}" y2="{y}"/>'
    if windows:
        first, last = windows[0][0].start, windows[-1][0].end
        yield _text(left, y + 14, str(first), "dim")
        yield _text(left + PANEL, y + 14, f"{last}", "dim", "end")


def _place(window: DayWindow, windows: Sequence[Shown]) -> tuple[float, float]:
    """Where a window begins in a panel, and how wide it is."""
    first, last = windows[0][0].start or 0, windows[-1][0].end or 0
    scale = PANEL / (last - first)
    start, end = window.start or 0, window.end or 0
    return (start - first) * scale, (end - start) * scale


def _a_day(window: DayWindow, count: int) -> float:
    return count / ((window.end or 0) - (window.start or 0))


def _text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(said)}</text>'

"""A board as a piece of HTML, in which nothing that others wrote is markup."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, get_args

from echo_hf.hub.leaderboard.board import (
    Board,
    Line,
    judge_board,
    may_stand_together,
    metrics_of,
    published_board,
    verdict,
)
from echo_hf.hub.leaderboard.scored import ScoredRelease
from echo_hf.scores.rule import Protocol
from echo_hf.scoring.board import BETTER
from echo_hf.thread_view import plain

NOTHING, EVERY = "-", "all judges"
LONGEST, LONGEST_NOTE = 60, 400
STYLE = """<style>
.echo-board .wide{overflow-x:auto}
.echo-board table{border-collapse:collapse;width:100%;min-width:42rem;margin:.5rem 0 1rem}
.echo-board :is(table,thead,tbody,tr){border:0!important}
.echo-board table :is(th,td){white-space:nowrap;text-align:right!important;
padding:.4rem .7rem!important;border:0!important;border-bottom:1px solid #8884!important;
font-variant-numeric:tabular-nums}
.echo-board table :is(th,td):first-child{text-align:left!important;min-width:9rem;
white-space:normal;overflow-wrap:anywhere}
.echo-board table th{font-weight:600;opacity:.75}
.echo-board svg{width:12rem;height:1rem;display:block;margin-left:auto}
.echo-board .quiet{opacity:.75}.echo-board .flag{color:#d4622a;font-weight:600}
</style>"""


def shown(
    releases: Sequence[ScoredRelease],
    tag: str | None,
    split: str | None,
    protocol: str | None = "corrected",
    judge: str | None = None,
    beside: str | None = None,
    problem: str = "",
) -> str:
    """The page for what a visitor chose.

    Args:
        releases: All releases of a repository.
        tag: Of one of them.
        split: One of its splits.
        protocol: `published` or `corrected`.
        judge: One of its judges; null, or `all judges`, for all.
        beside: Tag of a release to compare with; null for none.
        problem: Why the releases may not be the newest; empty where they are.

    Returns:
        HTML.
    """
    start = [_note(problem)] if problem else []
    return _page([*start, *_chosen(releases, tag, split, protocol, judge, beside)])


def _page(parts: Sequence[str]) -> str:
    return f'{STYLE}<div class="echo-board">{"".join(parts)}</div>'


def _chosen(
    releases: Sequence[ScoredRelease],
    tag: str | None,
    split: str | None,
    protocol: str | None,
    judge: str | None,
    beside: str | None,
) -> list[str]:
    by_tag = {each.tag: each for each in releases}
    release = by_tag.get(tag or "")
    if release is None:
        return [_note("no such release" if releases else "no release to show")]
    if release.problem:
        return [_note(release.problem)]
    if not split or protocol not in get_args(Protocol):
        return [_note("choose a split and a protocol")]
    arithmetic: Protocol = "published" if protocol == "published" else "corrected"
    alone = None if judge in (None, EVERY) else judge
    parts = list(_release(release, split, arithmetic, alone))
    if beside and beside != tag:
        parts += _compared(release, by_tag.get(beside), split, arithmetic, alone)
    return parts


def _release(
    release: ScoredRelease, split: str, protocol: Protocol, judge: str | None
) -> Iterator[str]:
    yield f"<h3>{_text(release.tag)}: {_text(split)}</h3>"
    board = (
        judge_board(release, split, protocol, judge)
        if judge
        else published_board(release, split, protocol)
    )
    yield _note(_about(release, board, protocol, computed=bool(judge)))
    for name, flags in board.flags.items():
        yield f'<p class="flag">{_text(name)} failed its audit: {_text(", ".join(flags))}</p>'
    yield _win_rates(board) if board.lines else _note("no win rates here")
    if board.note:
        yield _note(board.note)
    yield from _metrics(metrics_of(release, split, protocol))


def _about(release: ScoredRelease, board: Board, protocol: str, *, computed: bool) -> str:
    judges = ", ".join(plain(each, LONGEST) for each in board.judges) or "nobody"
    samples = "" if board.samples is None else f"; {board.samples} samples"
    source = "; computed from the released ratings" if computed else ""
    target = plain(release.target, LONGEST)
    return f"posts about {target}; protocol {protocol}; judged by {judges}{samples}{source}"


def _compared(
    a: ScoredRelease,
    b: ScoredRelease | None,
    split: str,
    protocol: Protocol,
    judge: str | None,
) -> list[str]:
    if b is None or b.problem:
        return [_note(f"nothing to compare with: {b.problem if b else 'no such release'}")]
    said = verdict(a, b, split, protocol)
    parts = [f"<h3>{_text(a.tag)} and {_text(b.tag)}</h3>", _note(said)]
    return [*parts, *_release(b, split, protocol, judge)] if may_stand_together(said) else parts


def _win_rates(board: Board) -> str:
    heads = ("system", "win rate", "95 %", "0 to 1, line at 0.5", "tier", "coverage")
    rows = (
        (
            _text(line.system),
            _number(line.value),
            _interval(line),
            _bar(line),
            NOTHING if line.tier is None else str(line.tier),
            _share(line.coverage),
        )
        for line in board.lines
    )
    return _table(heads, rows)


def _metrics(metrics: Mapping[str, Sequence[Line]]) -> Iterator[str]:
    if metrics:
        yield "<h4>What people complain about</h4>"
    for metric, lines in metrics.items():
        arrow = BETTER.get(metric, "")
        reasons = {line.missing for line in lines}
        if len(reasons) == 1 and (why := lines[0].missing) is not None:
            yield _note(f"{metric} {arrow}: {why}")
            continue
        heads = (f"{metric} {arrow}", "value", "95 %", "n", "coverage")
        rows = (
            (
                _text(line.system),
                _number(line.value),
                _interval(line),
                NOTHING if line.n is None else str(line.n),
                _share(line.coverage),
            )
            for line in lines
        )
        yield _table(heads, rows)


def _table(heads: Sequence[str], rows: Any) -> str:
    """A table of cells that are markup already."""
    head = "".join(f'<th scope="col">{_text(each)}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _bar(line: Line) -> str:
    """A dot with its interval between 0 and 1."""
    if line.value is None or not math.isfinite(line.value):
        return ""
    low, high = (_across(end) for end in line.interval or (line.value, line.value))
    said = f"{_number(line.value)}, {_interval(line)}"
    return (
        f'<svg viewBox="0 0 200 16" role="img" aria-label="{said}">'
        '<path d="M0 8H200" stroke="#8886"/><path d="M100 0V16" stroke="#888" '
        f'stroke-dasharray="3"/><path d="M{low} 8H{high}" stroke="#0969da" stroke-width="6" '
        f'stroke-opacity=".45"/><circle cx="{_across(line.value)}" cy="8" r="4" fill="#0969da"/>'
        "</svg>"
    )


def _across(value: float) -> str:
    inside = min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.0
    return f"{200 * inside:.1f}"


def _note(text: str) -> str:
    return f'<p class="quiet">{_text(text, LONGEST_NOTE)}</p>'


def _text(text: str, longest: int = LONGEST) -> str:
    return escape(plain(text, longest))


def _number(value: float | None) -> str:
    return NOTHING if value is None or not math.isfinite(value) else f"{value:.3f}"


def _interval(line: Line) -> str:
    ends = [_number(end) for end in line.interval or ()]
    return f"{ends[0]} to {ends[1]}" if ends and NOTHING not in ends else NOTHING


def _share(value: float | None) -> str:
    return NOTHING if value is None or not math.isfinite(value) else f"{100 * value:.0f} %"

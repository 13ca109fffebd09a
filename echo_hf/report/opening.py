"""The opening of a report: who leads, what the leader fails at, and what changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from markupsafe import Markup

from echo_hf._infra.text import clean, pluralize
from echo_hf.hub.ruler import describe_lead
from echo_hf.judging.results import SavedFailureRate, SavedSplit
from echo_hf.report.markup import UNIT, AxisScale, number, render, round_scale, share, titled
from echo_hf.report.run_data import RunData
from echo_hf.scores.win_rate import BoardRow

MAX_NAME = 60
MAX_NAMED = 3  # systems of a shared lead that are named, and not counted


class Sentence(NamedTuple):
    """A plain sentence, and the section of the page that has its figures."""

    text: str
    section: str | None


class Board(NamedTuple):
    """The board of a split: by win rates, or by choices between two outputs."""

    split: str
    rows: tuple[BoardRow, ...]  # the best first
    is_choices: bool
    judges: tuple[str, ...]
    untested: str | None  # why no test tells systems apart

    @property
    def section(self) -> str:
        return "choices" if self.is_choices else "win-rates"

    @property
    def tiers(self) -> list[list[BoardRow]]:
        return [list(tier) for _, tier in groupby(self.rows, attrgetter("tier"))]

    @property
    def leader(self) -> str:
        return self.rows[0].system

    @property
    def rivals(self) -> list[str]:
        """The systems that are not told apart from the leader."""
        return [row.system for row in self.rows[1:] if row.tier == self.rows[0].tier]


def write_sentences(data: RunData) -> tuple[Sentence, Sentence, Sentence]:
    """Write the three sentences that a report opens with, from its figures alone."""
    boards = read_boards(data)
    return (
        _describe_leaders(data, boards),
        _describe_complaints(data, boards),
        _describe_since(data),
    )


def build_opening(data: RunData) -> Markup:
    """Build the first part of the page: the sentences, and one picture of all boards."""
    boards = [(board, _choose_scale(board)) for board in read_boards(data)]
    return render("opening.html.jinja", sentences=write_sentences(data), boards=boards)


def read_boards(data: RunData) -> list[Board]:
    """Read the board of each split that has one, by choices where these are the board."""
    return [board for name in data.splits if (board := _read_board(data, name))]


def _read_board(data: RunData, split: str) -> Board | None:
    rates, choices = data.results.rates(split), data.results.details[split].choices
    choices = choices if choices and choices.is_board else None
    if choices:
        rows = data.results.choice_board(split)
        judges, reasons = choices.strengths.definition.get("judges", ()), choices.strengths.reasons
    else:
        rows = data.results.board(split)
        judges, reasons = (rates.per_judge, rates.reasons) if rates else ((), {})
    rows = tuple(row for row in rows if row.value is not None)
    if not rows:
        return None
    untested = None
    if rows[0].tier is None:
        reason = reasons.get(rows[0].system)
        untested = reason.meaning if reason else "its place was not tested"
    return Board(split, rows, choices is not None, tuple(map(str, judges)), untested)


def _choose_scale(board: Board) -> AxisScale:
    if not board.is_choices:
        return UNIT
    return round_scale(
        end for row in board.rows for end in (row.value, *(row.interval or ())) if end is not None
    )


def _describe_leaders(data: RunData, boards: list[Board]) -> Sentence:
    if not boards:
        return Sentence("No judge has rated an output yet, so nobody leads.", None)
    text = "; ".join(map(_describe_leader, boards))
    return Sentence(f"{text}{''.join(_describe_doubts(data, boards))}.", boards[0].section)


def _describe_leader(board: Board) -> str:
    best, split = board.rows[0], titled(board.split).lower()
    measure = "strength" if board.is_choices else "win rate"
    ends = best.interval
    figure = f"{measure} {number(best.value, 2)}"
    figure += f", {number(ends[0], 2)} to {number(ends[1], 2)}" if ends else ", no interval"
    lead = f"{_name(best.system)} is ahead in {split} ({figure})"
    if len(board.rows) == 1:
        return f"{lead}, alone on its board"
    if board.untested:
        return f"{lead} but not surely: {board.untested}"
    if not board.rivals:
        return f"{lead} and surely so, told apart from every other system"
    named, more = board.rivals[:MAX_NAMED], len(board.rivals) - MAX_NAMED
    names = [*map(_name, named), *([pluralize(more, "other")] if more > 0 else [])]
    return f"{lead} but not surely, as no test tells it apart from {_join(names)}"


def _describe_doubts(data: RunData, boards: list[Board]) -> Iterator[str]:
    """Name what stands against all judges of the boards."""
    judges = {(judge, board.is_choices) for board in boards for judge in board.judges}
    if judges and all(judge in data.failures for judge, _ in judges):
        yield "; every judge failed its audit"
    if judges and all(
        judge in data.results.uncertified.get("pairwise" if is_choices else "pointwise", {})
        for judge, is_choices in judges
    ):
        yield "; no judge has a certificate that holds here"


def _describe_complaints(data: RunData, boards: list[Board]) -> Sentence:
    section = "complaints" if data.checks or data.unchecked else None
    titles = {check.key: check.title for check in data.checks if check.status == "kept"}
    for board in boards:
        details = data.results.details[board.split]
        if worst := _find_worst(details, board.leader, titles):
            return Sentence(_describe_failure(worst, titles, board), section)
    subject = _name(boards[0].leader) if boards else "a system"
    if data.unchecked:
        group = data.unchecked[0]
        text = (
            f"People complain most about “{_name(group.keyword)}” "
            f"({pluralize(group.threads, 'thread')}), and no proven question says how often "
            f"{subject} fails so."
        )
    elif titles:
        text = f"No rate says yet how often {subject} fails at what people complain about."
    else:
        text = f"No complaint has become a question yet, so no rate says what {subject} fails at."
    return Sentence(text, section)


def _find_worst(
    details: SavedSplit, system: str, titles: Mapping[str, str]
) -> SavedFailureRate | None:
    """Find the complaint that holds for most outputs of a system."""
    rates = [
        rate
        for rate in details.checks
        if rate.system == system and rate.value is not None and rate.check in titles
    ]
    return max(rates, key=lambda rate: rate.value or 0.0, default=None)


def _describe_failure(rate: SavedFailureRate, titles: Mapping[str, str], board: Board) -> str:
    ends = f" ({share(rate.interval[0])} to {share(rate.interval[1])})" if rate.interval else ""
    return (
        f"Of what people complain about, {_name(rate.system)} fails most at "
        f"“{_name(titles[rate.check])}”: {share(rate.value)}{ends} of its outputs in "
        f"{titled(board.split).lower()}."
    )


def _describe_since(data: RunData) -> Sentence:
    """Describe what is new beside the release before, and who leads across releases."""
    since = data.analysis.since.found if data.analysis else None
    parts, section = list[str](), "since" if since else None
    if since and data.analysis:
        samples = data.analysis.samples
        parts.append(
            f"Since {_name(since.name)}, {samples - since.shared:,} of "
            f"{pluralize(samples, 'sample')} are new"
        )
        moved = since.tasks.moved[0] if since.tasks.moved else None
        if moved and moved.change:
            before, now = (
                moved.before / max(since.tasks.before, 1),
                moved.now / max(since.tasks.now, 1),
            )
            parts.append(
                f"{titled(moved.name).lower()} moved most, from {share(before)} to {share(now)} of "
                "the tasks"
            )
    scales = data.ruler.splits.values() if data.ruler else ()
    if lead := next(filter(None, map(describe_lead, scales)), None):
        parts.append(lead)
        section = section or "through-time"
    if not parts:
        text = "No release before this one is known here, so nothing says what changed."
        return Sentence(text, None)
    return Sentence(f"{'; '.join(parts)}.", section)


def _join(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if names[1:] else names[0]


def _name(text: str) -> str:
    return clean(text, MAX_NAME)

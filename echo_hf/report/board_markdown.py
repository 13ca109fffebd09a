"""The board as a Markdown table, for a model card or a post."""

from __future__ import annotations

from collections.abc import Iterator

from echo_hf.hub.markdown import escaped, table_row
from echo_hf.report.markup import shown
from echo_hf.report.numbers import NOTHING, interval, number, share
from echo_hf.report.parts import titled
from echo_hf.report.run_data import RunData
from echo_hf.report.sections.board import tiers_of

HEAD = "| system | win rate | 95 % | tier | coverage |\n|---|---:|---:|---:|---:|"


def board_markdown(data: RunData) -> str:
    """The win rates of every split in Markdown.

    Args:
        data: The run.

    Returns:
        A heading and a table for each split that was rated, and who judged.
    """
    return "\n".join(line for split in data.splits for line in _split(data, split)) + "\n"


def _split(data: RunData, split: str) -> Iterator[str]:
    found, rates = data.results.details[split].win_rate, data.results.rates(split)
    yield f"### {titled(split)}\n"
    if rates is None or found is None:
        yield "No judge has rated an output of this split.\n"
        return
    yield HEAD
    tiers, known = tiers_of(rates, found), any(rates.interval.values())
    for at, tier in enumerate(tiers, 1):
        for system in tier:
            cells = (
                _cell(system),
                number(rates.win_rate[system]),
                interval(rates.interval.get(system)),
                str(at) if known else NOTHING,
                share(rates.coverage.get(system)),
            )
            yield table_row(*cells)
    judges = ", ".join(_judge(data, judge) for judge in rates.per_judge)
    yield f"\nProtocol {data.results.protocol}, judged by {judges}.\n"


def _judge(data: RunData, judge: str) -> str:
    failed = data.failures.get(judge)
    said = f"{judge} (failed its audit: {', '.join(failed)})" if failed else judge
    return _cell(said)


def _cell(text: str) -> str:
    return escaped(shown(text))

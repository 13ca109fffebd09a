"""Build the section of boards by slice, since a day, and by what people ask for."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from echo_hf._infra.text import pluralize
from echo_hf.judging.slices import describe_slices, list_rated
from echo_hf.report.markup import render
from echo_hf.report.run_data import RunData
from echo_hf.scores.win_rate import BoardRow, rank_rows


def build_slices(data: RunData) -> Markup | None:
    """Show what was asked for beside the board of all samples; null where nothing was."""
    splits, models = [], data.results.system_models
    for name in data.splits:
        saved, rates = data.results.details[name].slices, data.results.rates(name)
        if saved is None or rates is None:
            continue
        plain = saved.board or rates
        faces: list[tuple[str, Any]] = []
        if saved.board or saved.demand:
            days = f", since {saved.since}" if saved.since else ""
            faces.append((f"Every sample counts once{days}", plain))
        if saved.demand:
            asked = f"As people ask, by {pluralize(saved.demand.asked, 'request')}"
            faces.append((asked, saved.demand.result))
        boards = [
            {
                "title": title,
                "rows": rank_rows(
                    BoardRow(
                        system,
                        value,
                        board.interval.get(system),
                        missing=why.meaning if (why := board.reasons.get(system)) else None,
                        in_place_of=models[system].in_place_of if system in models else None,
                    )
                    for system, value in board.win_rate.items()
                ),
            }
            for title, board in faces
        ]
        order = rank_rows(BoardRow(system, value) for system, value in plain.win_rate.items())
        strata = saved.demand.result.strata.items() if saved.demand else ()
        splits.append(
            {
                "name": name,
                "boards": boards,
                "effective": saved.demand.result.effective_n if saved.demand else {},
                "strata": sorted(strata, key=lambda pair: -pair[1].asked),
                "systems": [row.system for row in order],
                "columns": [
                    (column, rows)
                    for column, sliced in saved.by.items()
                    if (rows := list_rated(column, sliced))
                ],
                "sentences": list(describe_slices(saved)),
            }
        )
    return render("slices.html.jinja", splits=splits) if splits else None

"""The page of a person who ranks, as HTML: texts of posts are escaped, no system is named."""

from __future__ import annotations

import string
from collections.abc import Callable
from html import escape

from echo_hf.apps.rank.session import View

LETTERS = string.ascii_uppercase
Address = Callable[[str], str]
MOST_KEYS = 8


def letter(item: int) -> str:
    again, at = divmod(item, len(LETTERS))
    return LETTERS[at] + (str(again + 1) if again else "")


def board(view: View, address: Address, answer: int = 0) -> str:
    count = len(view.outputs)
    names = {
        "person": view.person,
        "subject": view.sample.task.sample_id,
        "count": str(count),
        "answer": str(answer),
    }
    data = " ".join(f'data-{name}="{escape(value)}"' for name, value in names.items())
    state = " impossible" if view.ranking.impossible else ""
    cards = "".join(_card(view, item, address) for item in range(count))
    return (
        f'<div class="board{state}" {data}>{_head(view)}'
        f'<main><aside aria-label="Task" tabindex="0">{_task(view, address)}</aside>'
        f'<section class="grid" style="--columns:{columns(count)};--rows:'
        f'{-(-count // columns(count))}" aria-label="Images">{cards}</section></main>'
        f"{_rail(view)}{_foot(view)}</div>"
    )


def columns(count: int) -> int:
    return count if count < 4 else -(-count // 2)


def _head(view: View) -> str:
    saved = "nothing to save yet"
    if view.saved is not None:
        at = view.saved.isoformat(timespec="seconds")
        saved = f'saved <time datetime="{at}">{view.saved:%H:%M} UTC</time>'
    done = len(view.finished)
    all_done = " · all ranked, thank you" if done == view.total else ""
    return (
        f'<header><strong>Sample {view.number} of {view.total}</strong><span class="done">'
        f'{done} ranked{all_done}</span><progress max="{view.total}" value="{done}" '
        'aria-label="Samples ranked"></progress>'
        f'<span class="saved" role="status">{saved}</span>'
        f'<span class="who">{escape(view.person)}</span></header>'
    )


def _task(view: View, address: Address) -> str:
    task = view.sample.task
    inputs = "".join(
        f'<img class="zoom" src="{address(one.sha256)}" alt="Input image {number}" tabindex="0">'
        for number, one in enumerate(task.inputs, 1)
    )
    title = f"<h2>Input{'s' if len(task.inputs) > 1 else ''}</h2>" if inputs else ""
    return (
        f'<h2>Instruction</h2><p class="prompt" dir="auto">{escape(task.prompt)}</p>'
        f'{title}<div class="inputs">{inputs}</div>'
    )


def _card(view: View, item: int, address: Address) -> str:
    name, rank = letter(item), view.ranking.ranks[item]
    barred = item in view.ranking.barred
    place = "not ranked" if rank is None else f"rank {rank}"
    shown = "–" if rank is None else str(rank)
    said = "cannot be ranked" if barred else place
    state = " barred" if barred else ("" if rank is None else " ranked")
    return (
        f'<article class="card{state}" tabindex="0" draggable="true" data-item="{item}" '
        f'aria-label="Image {name}, {said}">'
        f'<img src="{address(view.outputs[item].output)}" alt="Image {name}" draggable="false">'
        f'<div class="bar"><b>{name}</b>{_button("bar", "✕", "Cannot rank this image", barred)}'
        f"{_button('worse', '▼', 'Worse')}<output>{shown}</output>"
        f"{_button('better', '▲', 'Better')}</div></article>"
    )


def _button(kind: str, sign: str, said: str, pressed: bool | None = None) -> str:
    state = "" if pressed is None else f' aria-pressed="{str(pressed).lower()}"'
    return (
        f'<button type="button" tabindex="-1" data-act="{kind}" aria-label="{said}" '
        f'title="{said}"{state}>{sign}</button>'
    )


def _rail(view: View) -> str:
    slots = "".join(_slot(view, rank) for rank in range(1, len(view.outputs) + 1))
    return (
        f'<nav class="rail" aria-label="Ranks"><span class="end">best</span>{slots}'
        '<span class="end">worst</span></nav>'
    )


def _slot(view: View, rank: int) -> str:
    chips = "".join(
        f'<span class="chip" draggable="true" data-item="{item}">{letter(item)}</span>'
        for item, one in enumerate(view.ranking.ranks)
        if one == rank
    )
    return (
        f'<i class="gap" data-insert="{rank}"></i><div class="slot" data-rank="{rank}" '
        f'role="button" aria-label="Rank {rank}"><small>{rank}</small>{chips}</div>'
    )


def _hints(count: int) -> str:
    last = min(count, MOST_KEYS)
    hints = {
        f"A to {letter(last - 1)}": "choose an image",
        f"1 to {min(count, 9)}": "its rank; the same number is a tie",
        f"Shift and 1 to {min(count, 9)}": "insert there",
        "↑ ↓": "a rank better, worse",
        "← →": "another image",
        "Backspace": "no rank",
        "Space": "full size; then ← → show the others",
        "X": "cannot rank this image",
        "I": "cannot rank the sample",
        "U": "undo",
        "Enter": "next",
        "P": "back",
    }
    return "".join(f"<span><kbd>{keys}</kbd> {what}</span>" for keys, what in hints.items())


def _foot(view: View) -> str:
    hints = _hints(len(view.outputs))
    given_up = str(view.ranking.impossible).lower()
    undo = "" if view.can_undo else " disabled"
    ready = ' class="ready"' if view.ranking.is_complete else ""
    return (
        '<footer><button type="button" data-act="back">Back</button>'
        f'<button type="button" data-act="undo"{undo}>Undo</button>'
        f'<button type="button" data-act="impossible" aria-pressed="{given_up}">'
        f'Cannot rank this sample</button><details class="hints"><summary>Keys</summary>'
        f'<div>{hints}</div></details><button type="button" data-act="next"{ready}>Next</button>'
        "</footer>"
    )

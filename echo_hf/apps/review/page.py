"""The page of a reviewer, as HTML: every text from a post is escaped.

What the page can do is in `page.js` and `boxes.js`; it only asks, and shows what comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from echo_hf.apps.events import Event
from echo_hf.apps.review.page_pictures import pictures, screenshot
from echo_hf.apps.review.view import TOLD, View
from echo_hf.context.answers import LONGEST_PROMPT
from echo_hf.curate.decision import Decision
from echo_hf.curate.edit import QUALITIES
from echo_hf.report.markup import shown

Address = Callable[[str], str]
KEYS = (
    ("K", "keep"),
    ("R", "remove"),
    ("F", "flag for somebody else"),
    ("E", "edit the prompt"),
    ("Esc", "leave a field"),
    ("U", "undo"),
    ("N", "next"),
    ("P", "back"),
)


def desk_page(view: View, address: Address, answer: int = 0) -> str:
    """The page with a sample.

    Args:
        view: What it shows.
        address: Where the page finds a picture, by its digest.
        answer: Number of the request that this answers; the page waits for it.

    Returns:
        HTML.
    """
    names = {
        "person": view.person,
        "subject": view.case.row["id"],
        "base": str(view.base),
        "answer": str(answer),
        "problem": "yes" if view.problem else "",
    }
    data = " ".join(f'data-{name}="{escape(value)}"' for name, value in names.items())
    # What was typed and refused may hold what no page can.
    return shown(
        f'<div class="desk" {data}>{_head(view)}{_messages(view)}{_triage(view)}'
        f"{_conflict(view)}<main><section class='task' aria-label='Task'>{_fields(view)}"
        f"{pictures(view, address)}{screenshot(view, address)}</section>"
        f"<section class='said' aria-label='What people said'>{_feedback(view)}"
        f"{_thread(view)}</section></main>{_foot(view)}</div>"
    )


def _head(view: View) -> str:
    saved = "nothing to save yet"
    if view.saved is not None:
        saved = f"saved {_time(view.saved.isoformat(timespec='seconds'))} by {escape(view.person)}"
    return (
        f"<header><strong>Sample {view.number} of {view.total}</strong>"
        f'<span class="done">{view.done} decided</span>'
        f'<progress max="{view.total}" value="{view.done}" aria-label="Samples decided"></progress>'
        f'<span class="saved" role="status">{saved}</span>'
        f'<span class="who">{escape(view.person)}</span></header>'
    )


def _messages(view: View) -> str:
    lines = []
    if view.problem:
        lines.append(f'<p class="problem" role="alert">Not saved: {escape(view.problem)}</p>')
    if view.told:
        lines.append(f'<p class="told" role="status">{escape(view.told)}</p>')
    if view.lent:
        until = _time(view.lent.until.isoformat(timespec="seconds"))
        lines.append(
            f'<p class="lent">{escape(view.lent.person)} has this sample until {until}: '
            "<b>N</b> takes you to another one</p>"
        )
    return "".join(lines)


def _triage(view: View) -> str:
    kind = {"Benchmark": "good", "Discard": "bad"}.get(view.triage.verdict, "doubt")
    # What is open stands first in the list already.
    items = "".join(f"<li>{escape(one)}</li>" for one in view.triage.look_at)
    list_ = f"<ul>{items}</ul>" if items else "<p>nothing in particular to look at</p>"
    return (
        f'<section class="triage {kind}" aria-label="Triage"><h2>{escape(view.triage.verdict)}'
        f"</h2>{list_}{_state(view.decision)}</section>"
    )


def _state(decision: Decision | None) -> str:
    if decision is None:
        return '<p class="state">not decided yet</p>'
    when = f" {_time(decision.at)}" if decision.at else ""
    who = f" by {escape(decision.reviewer)}" if decision.reviewer else ""
    note = f": <q>{escape(decision.note)}</q>" if decision.note else ""
    what = TOLD.get(decision.decision, decision.decision)
    changed = decision.changed
    parts = f" ({escape(', '.join(changed.named))} changed)" if changed else ""
    return f'<p class="state"><b>{escape(what)}</b>{parts}{when}{who}{note}</p>'


def _conflict(view: View) -> str:
    if not view.conflict:
        return ""
    sides = "".join(_side(event) for event in view.conflict)
    return (
        '<section class="conflict" aria-label="Conflict"><h2>Two people disagree</h2>'
        "<p>Neither saw what the other decided. Take one of the two, or decide yourself.</p>"
        f'<div class="sides">{sides}</div></section>'
    )


def _side(event: Event) -> str:
    changes = event.payload.get("changes") or {}
    prompt = (changes.get("prompt") or {}).get("text")
    named = [name for name in ("prompt", "quality", "roles", "crops") if changes.get(name)]
    note = event.payload.get("note")
    parts = f"<p>changed: {', '.join(named)}</p>" if named else "<p>nothing changed</p>"
    parts += f'<p class="prompt" dir="auto">{escape(prompt)}</p>' if prompt else ""
    parts += f"<p><q>{escape(note)}</q></p>" if note else ""
    return (
        f"<article><h3>{escape(event.person)}: {escape(TOLD.get(event.action, event.action))}</h3>"
        f'{parts}<button type="button" data-take="{event.id}">Take this</button></article>'
    )


def _fields(view: View) -> str:
    options = "".join(
        f"<option{' selected' if name == view.form.quality else ''}>{name}</option>"
        for name in QUALITIES
    )
    kind = "modified" if view.shown["prompt_modified"] else "as written in the thread"
    return (
        f'<label class="prompt"><span>Prompt <small>{kind}</small></span>'
        f'<textarea name="prompt" dir="auto" rows="5" maxlength="{LONGEST_PROMPT}" '
        f'spellcheck="false">{escape(view.form.prompt)}</textarea></label>'
        f'<div class="row"><label><span>Quality</span><select name="quality">{options}</select>'
        '</label><label class="note"><span>Note</span><input name="note" maxlength="1000" '
        f'autocomplete="off" value="{escape(view.form.note)}"></label></div>'
    )


def _feedback(view: View) -> str:
    said = view.shown["community_feedback"] or ()
    items = "".join(
        f'<li dir="auto">{escape(one["feedback"] or "")}'
        f"<small>{escape(', '.join(filter(None, (one['verdict'], one['keyword']))))}</small></li>"
        for one in said
    )
    return f"<h2>Feedback</h2><ul class='feedback'>{items or '<li>none</li>'}</ul>"


def _thread(view: View) -> str:
    own = set(view.case.row["post_urls"] or ())
    depths: list[int] = []
    posts = []
    for post in view.case.context:
        depths.append(0 if post["parent"] < 0 else depths[post["parent"]] + 1)
        posts.append(_post(post, depths[-1], post["url"] in own))
    return f"<h2>Thread</h2><ol class='thread'>{''.join(posts)}</ol>"


def _post(post: Mapping[str, Any], depth: int, is_own: bool) -> str:
    text = escape(post["text"] or f"({post['missing'] or 'no text'})")
    count = len(post["pictures"] or ())
    shown = f" · {count} picture{'' if count == 1 else 's'}" if count else ""
    described = _described(post["pictures"] or ())
    return (
        f'<li class="{"own" if is_own else "other"}" style="--depth:{min(depth, 6)}">'
        f"<b><bdi>{escape(post['author'] or 'somebody')}</bdi></b><small>{shown}"
        f"{' · a source of the sample' if is_own else ''}</small>"
        f'<p dir="auto">{text}</p>{described}</li>'
    )


def _described(shown: Sequence[Mapping[str, Any]]) -> str:
    texts = [one["alt_text"] for one in shown if one["alt_text"]]
    return "".join(f'<p class="alt" dir="auto">described as: {escape(text)}</p>' for text in texts)


def _foot(view: View) -> str:
    hints = "".join(f"<span><kbd>{keys}</kbd> {what}</span>" for keys, what in KEYS)
    undo = "" if view.can_undo else " disabled"
    buttons = "".join(
        f'<button type="button" class="{kind}" data-act="{kind}">{name}</button>'
        for kind, name in (("keep", "Keep"), ("remove", "Remove"), ("flag", "Flag"))
    )
    return (
        f'<footer><div class="buttons">{buttons}'
        f'<button type="button" data-act="undo"{undo}>Undo</button>'
        '<button type="button" data-act="back">Back</button>'
        '<button type="button" data-act="next">Next</button></div>'
        '<form class="goto"><input name="wanted" aria-label="Id of a sample" '
        f'placeholder="{escape(view.case.row["id"])}" autocomplete="off" spellcheck="false">'
        '<button type="submit">Go to</button></form>'
        f'<details class="hints"><summary>Keys</summary><div>{hints}</div></details></footer>'
    )


def _time(at: str) -> str:
    return f'<time datetime="{escape(at)}">{escape(at[11:16])} UTC</time>'

"""The page of a reviewer, as HTML: every text from a post is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from typing import Any

from echo_hf.apps.events import Event, Lease
from echo_hf.builder.review import Case, Triage
from echo_hf.curate.decisions import Changes, Decision
from echo_hf.curate.edits import QUALITIES, ROLES, Edit
from echo_hf.curate.provenance import INPUT, OUTPUT
from echo_hf.errors import ImageError, ReviewError
from echo_hf.images.store import ImageStore
from echo_hf.report.markup import printable
from echo_hf.samples.boxes import upright_size
from echo_hf.samples.thread_parts import LONGEST_PROMPT

MOST_FIELDS = 1000
LONGEST_FIELD = 20_000
NUMBERS = re.compile(r"\s*(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})[\s,;]+(\d{1,9})\s*", re.ASCII)


@dataclass(frozen=True)
class Form:
    prompt: str
    quality: str
    note: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    boxes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, values: object, shown: Form) -> Form:
        """Reads what a page sent, which may be anything."""
        said = values if isinstance(values, Mapping) else {}
        roles = said.get("roles")
        boxes = said.get("boxes")
        return cls(
            _text(said.get("prompt"), shown.prompt),
            _text(said.get("quality"), shown.quality),
            _text(said.get("note"), shown.note),
            {**shown.roles, **_roles(roles)} if isinstance(roles, Mapping) else shown.roles,
            _boxes(boxes) if isinstance(boxes, list) else shown.boxes,
        )


def form_of(row: Mapping[str, Any], changes: Changes | None, note: str | None) -> Form:
    roles: dict[str, str] = {}
    boxes: list[tuple[str, str]] = []
    for role in (INPUT, OUTPUT):
        cut = row[f"{role}_bboxs"] or []
        boxes += [(role, ", ".join(str(int(side)) for side in box)) for box in cut]
        roles |= dict.fromkeys((row[f"{role}_images"] or [])[len(cut) :], role)
    roles |= {one.sha256: one.role for one in changes.roles} if changes else {}
    return Form(row["prompt"] or "", row["quality"], note or "", roles, tuple(boxes))


def own_note(last: Decision | None, person: str) -> str | None:
    """Somebody else's note is shown, but not put into one's mouth."""
    return last.note if last is not None and last.reviewer == person else None


def edit_of(row: Mapping[str, Any], form: Form) -> Edit:
    boxes = None
    if row["screenshot"] and (form.boxes or row["is_screenshot"]):
        boxes = [(role, _numbers(text)) for role, text in form.boxes]
    return Edit(form.prompt, form.quality, form.roles, boxes)


def _numbers(text: str) -> tuple[int, int, int, int]:
    found = NUMBERS.fullmatch(text)
    if found is None:
        raise ReviewError(
            f"box {text[:60]!r} is not four whole numbers: expected left, top, right, bottom in "
            "pixels of the screenshot"
        )
    left, top, right, bottom = map(int, found.groups())
    return left, top, right, bottom


def _text(value: object, otherwise: str) -> str:
    return value[:LONGEST_FIELD] if isinstance(value, str) else otherwise


def _roles(given: Mapping[Any, Any]) -> dict[str, str]:
    known = ((name, role) for name, role in given.items() if isinstance(role, str))
    return {str(name): role for name, role in list(known)[:MOST_FIELDS]}


def _boxes(given: list[Any]) -> tuple[tuple[str, str], ...]:
    pairs = (one for one in given[:MOST_FIELDS] if isinstance(one, list) and len(one) == 2)
    return tuple((str(role), str(text)[:100]) for role, text in pairs)


TOLD = {"keep": "kept", "remove": "removed", "flag": "flagged", "edit": "changed"}


@dataclass(frozen=True)
class View:
    person: str
    case: Case
    images: ImageStore
    shown: Mapping[str, Any]
    form: Form
    triage: Triage
    open_reasons: Sequence[str]
    decision: Decision | None
    conflict: Sequence[Event]
    base: int
    number: int
    total: int
    done: int
    lent: Lease | None
    can_undo: bool
    saved: datetime | None
    problem: str = ""
    told: str = ""


Address = Callable[[str], str]
TITLES = {INPUT: "Inputs", OUTPUT: "Outputs", "neither": "Other images of the thread"}


def images(view: View, address: Address) -> str:
    shown: dict[str, list[str]] = {role: [] for role in TITLES}
    for digest, role, is_cut in _every(view):
        shown[role].append(_card(digest, role, is_cut, digest in view.case.taken, address))
    sides = "".join(_group(role, shown[role]) for role in (INPUT, OUTPUT))
    others = _group("neither", shown["neither"]) if shown["neither"] else ""
    return f'<div class="both">{sides}</div>{others}'


def _group(role: str, cards: list[str]) -> str:
    inside = "".join(cards) or "<p>none</p>"
    return f'<div><h2>{TITLES[role]}</h2><div class="images">{inside}</div></div>'


def screenshot(view: View, address: Address) -> str:
    digest = view.case.row["screenshot"]
    if digest is None:
        return ""
    size = _size(view, digest)
    if size is None:
        return "<h2>Screenshot</h2><p>it cannot be shown</p>"
    rows = "".join(_box(role, text) for role, text in view.form.boxes)
    return (
        f"<h2>Screenshot <small>{size[0]} × {size[1]} pixels</small></h2>"
        f'<div class="boxes" data-width="{size[0]}" data-height="{size[1]}">'
        f'<div class="shot"><img src="{address(digest)}" alt="Screenshot" draggable="false"></div>'
        f'<div class="list" aria-label="Boxes: left, top, right, bottom">{rows}</div>'
        '<p class="hint">Draw a box with the mouse, or type left, top, right, bottom.</p>'
        '<button type="button" data-box="add">Add a box</button></div>'
    )


def _every(view: View) -> Iterator[tuple[str, str, bool]]:
    """Digest, role, and whether it was cut out, each image once."""
    seen = {view.case.row["screenshot"]}
    for role in (INPUT, OUTPUT):
        cut = len(view.shown[f"{role}_bboxs"] or ())
        for number, digest in enumerate(view.shown[f"{role}_images"] or ()):
            seen.add(digest)
            yield digest, role if number < cut else view.form.roles.get(digest, role), number < cut
    around = [one["sha256"] for post in view.case.context for one in post["pictures"] or ()]
    row = view.case.row
    cuts = {  # the images that were cut out before any change
        row[f"{role}_images"][n]
        for role in (INPUT, OUTPUT)
        for n in range(len(row[f"{role}_bboxs"] or ()))
    }
    before = [*(view.case.row["input_images"] or ()), *(view.case.row["output_images"] or ())]
    for digest in dict.fromkeys([*before, *around]):
        if digest and digest not in seen and digest not in cuts:
            seen.add(digest)
            yield digest, view.form.roles.get(digest, "neither"), False


def _card(digest: str, role: str, is_cut: bool, is_taken: bool, address: Address) -> str:
    if is_cut:
        below = "<small>cut from the screenshot: change its box</small>"
    elif is_taken and role == "neither":
        below = "<small>belongs to another sample</small>"
    else:
        choices = "".join(
            f'<button type="button" data-role="{one}" aria-pressed="{str(one == role).lower()}">'
            f"{one}</button>"
            for one in ROLES
        )
        below = f'<div class="roles" role="group" aria-label="Role">{choices}</div>'
    data = "" if is_cut else f' data-image="{escape(digest)}" data-as="{escape(role)}"'
    return (
        f'<figure{data}><img class="zoom" src="{address(digest)}" alt="{escape(role)} image" '
        f'tabindex="0" loading="lazy">{below}</figure>'
    )


def _box(role: str, text: str) -> str:
    options = "".join(
        f"<option{' selected' if one == role else ''}>{one}</option>" for one in (INPUT, OUTPUT)
    )
    return (
        f'<div class="box"><select aria-label="Role of the box">{options}</select>'
        f'<input value="{escape(text)}" aria-label="Left, top, right, bottom" '
        'autocomplete="off" inputmode="numeric">'
        '<button type="button" data-box="drop" aria-label="Remove the box">✕</button></div>'
    )


def _size(view: View, digest: str) -> tuple[int, int] | None:
    try:
        return upright_size(view.images.open(digest))
    except ImageError:
        return None


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
    names = {
        "person": view.person,
        "subject": view.case.row["id"],
        "base": str(view.base),
        "answer": str(answer),
        "problem": "yes" if view.problem else "",
    }
    data = " ".join(f'data-{name}="{escape(value)}"' for name, value in names.items())
    # What was typed and refused may hold what no page can.
    return printable(
        f'<div class="desk" {data}>{_head(view)}{_messages(view)}{_triage(view)}'
        f"{_conflict(view)}<main><section class='task' aria-label='Task'>{_fields(view)}"
        f"{images(view, address)}{screenshot(view, address)}</section>"
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
    shown = f" · {count} image{'' if count == 1 else 's'}" if count else ""
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

"""An engine without a model: takes what posts state explicitly, and abstains otherwise."""

from __future__ import annotations

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from PIL import ImageOps
from pydantic import ValidationError

from echo_hf.engines.base import ABSTAINED, Completion, ModelFreeEngine, Request, register
from echo_hf.engines.phrases import Phrases, any_of_pattern, lower_words, read_words, straighten
from echo_hf.engines.reference_images import QUOTED, asks_for_image, needs_image
from echo_hf.images.loader import BadImageError, open_image
from echo_hf.images.panes import find_runs

RequestInputs = Mapping[str, Any]
AnswerFields = dict[str, Any]
WORDS = Path(__file__).with_suffix(".yaml")
MODULES = ("rules", "phrases", "reference_images")  # what answers come from, with their words


@register("rules", "no model: takes what is marked, and leaves the rest to a model")
class RulesEngine(ModelFreeEngine):
    def signature(self) -> dict[str, Any]:
        return {"kind": "rules", "source": _hash_source()}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            rule, completion = RULES.get(request.task), ABSTAINED
            if rule and (answer := rule(request.inputs)) is not None:
                text = json.dumps(answer, ensure_ascii=False)
                with suppress(ValidationError):
                    if request.answer:
                        request.answer.model_validate_json(text)
                    completion = Completion(text)
            yield number, completion


@cache
def _hash_source() -> str:
    files = (WORDS.with_name(f"{name}{end}") for name in MODULES for end in (".py", ".yaml"))
    source = b"".join(file.read_bytes() for file in files if file.exists())
    return hashlib.sha256(source).hexdigest()


@cache
def _read_phrases(*path: str) -> Phrases:
    phrases: Any = read_words(WORDS)
    for name in path:
        phrases = phrases[name]
    return Phrases(phrases)


def _has(text: str, *path: str) -> bool:
    return _read_phrases(*path).match(text)


@lru_cache(maxsize=64)
def _names(*names: str) -> Phrases:
    return Phrases(filter(None, names))


# Marks and keys of our own requests and answers, which nobody needs in a prompt.
REQUEST_MARKS = re.compile(r"</?(?:post|thread|sample)\b|\"(?:score|samples|verdict)\"\s{0,4}:")


@lru_cache(maxsize=32)
def _is_order_to_reader(text: str) -> bool:
    return bool(REQUEST_MARKS.search(text)) or _has(text, "orders_readers")


FENCE = re.compile(r"```[\w+-]{0,20}[ \t]*\n?(.*?)\s*```", re.DOTALL)
QUOTES = {"“": "”", "„": "“", "«": "»", "「": "」", "『": "』", '"': '"', "‘": "’"}
LEADING_MARKS = re.compile(r"(?:\s|\*\*|__|[👇⬇🔽↓➡→\ufe0f]|>\s)+")
# What ends a post: hashtags (a color is none), handles, links, pointing hands.
TRAILING_EXTRA = re.compile(
    r"#(?![0-9a-fA-F]{3,8}\b)\w\S*|[@＠]\w\S*|(?:https?://|www\.|pic\.twitter)\S+|[👇⬇🔽↓🧵\ufe0f]+|\*\*"
)
ADDRESSEES = re.compile(r"\s*(?:[@＠][\w.-]+(?:@[\w.-]+)?\s+)+")
MAX_LEAD = 80
MAX_REMARK = 100
UNFINISHED = re.compile(r"(?:[,;:，；：、—–-]|…|\.\.\.)\Z")
PART_NUMBER = re.compile(r"\s*\(?(\d{1,2})\s?/\s?\d{1,2}\)?[\s:.)-]*")


@cache
def _label_patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a label's word, of a whole label, and of what may precede it."""
    words = read_words(WORDS)["label"]
    word, suffix, opening = (any_of_pattern(words[name]) for name in ("word", "after", "before"))
    label = (
        rf"(?:{word})(?P<number>\s?#?\d{{1,2}})?"
        rf"(?:\s?[(（][^()（）\n]{{1,40}}[)）]|\s?(?:{suffix})){{0,3}}"
        r"[*_ \t]{0,9}(?:[:：→➡]|[^\w\n?？]{0,9}\n)"
    )
    mark = r"[@＠]\S+\s|\d{1,2}/\d{1,2}|\d{1,2}[.)、]|[^\w\n\"“「『'@＠]"
    lead = rf"(?:^|[.!?。！？]\s)(?:{mark})*?(?:(?:{opening})[ \t]?){{0,4}}\Z"
    announced = "|".join(map(re.escape, words["word"]))
    return re.compile(announced), re.compile(label, re.IGNORECASE), re.compile(lead, re.IGNORECASE)


def _find_labels(text: str) -> Iterator[re.Match[str]]:
    lower, (word, label, lead) = lower_words(text)[0], _label_patterns()
    text, label_end = straighten(text), 0
    aligned = len(lower) == len(text)  # a few letters have more than one small letter
    for start in (match.start() for match in word.finditer(lower)) if aligned else range(len(text)):
        match = label.match(text, start) if start >= label_end else None
        if match is None:
            continue
        label_end = match.end()
        line_start = max(text.rfind("\n", 0, match.start()) + 1, match.start() - MAX_LEAD)
        # A letter stands for what is left out of a long line, so that none begins there.
        placeholder = "" if line_start == 0 or text[line_start - 1] == "\n" else "x"
        if lead.search(placeholder + text[line_start : match.start()]):
            yield match


def find_prompts(text: str) -> list[str]:
    labels = list(_find_labels(text))
    if not (labels or "```" in text) or _is_order_to_reader(text):
        return []
    if not labels:
        fenced = [prompt.strip() for prompt in FENCE.findall(text)]
        return fenced if len(fenced) == 1 and _is_image_request(fenced[0]) else []
    # "Prompts:" above "Prompt 1:"
    parts = [text[label.end() : following.start()].strip() for label, following in pairwise(labels)]
    labels = [label for label, body in zip(labels, [*parts, "all"], strict=True) if body]
    # Without numbers, a label inside a prompt is part of it.
    starts = [label for label in labels if label["number"]] or labels[:1]
    ends = [*(text.rfind("\n", 0, label.start()) for label in starts[1:]), len(text)]
    prompts = [
        _clean_prompt(text[label.end() : end]) for label, end in zip(starts, ends, strict=True)
    ]
    return [prompt for prompt in prompts if prompt]


def _is_image_request(prompt: str) -> bool:
    return _has(prompt, "images") or _has(prompt, "looks")


def _remove_prompts(text: str, prompts: Iterable[str]) -> str:
    for prompt in prompts:
        text = text.replace(prompt, "\n")
    return text


def _clean_prompt(text: str) -> str:
    """Strip a prompt of surrounding marks, remarks to readers, hashtags and links."""
    start = LEADING_MARKS.match(text)
    text = text[start.end() :] if start else text
    if fenced := FENCE.match(text):
        return fenced[1].strip()
    text = _strip_trailing_extra(remove_notes(text))
    body, _, last = text.rpartition("\n")
    if body.strip() and len(last) <= MAX_REMARK:
        is_remark = _read_phrases("remark").pattern.match(straighten(last.strip()))
        text = _strip_trailing_extra(body) if is_remark else text
    if text[:1] in QUOTES:
        inside, _, tail = text[1:].partition(QUOTES[text[0]])
        if not tail:
            text = inside.strip()
        elif len(inside) > len(tail):  # a prompt with a remark, or one that begins with a title
            return ""
    return "" if _read_phrases("pointer").match_all(text) else text


# A line that names what follows, as the parts of a prompt may.
FIELD = re.compile(r"^[^\w\n\"“「『]{0,12}\w[\w &/'-]{0,30}[*_ ]{0,3}[:：](?!//)", re.MULTILINE)
ADMONITION = r"\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]"
BLANK_LINE = re.compile(r"\n[ \t\r]*\n\Z")
LINK_LINE = re.compile(r"[^\n]*(?:https?://|www\.|[@＠]\w)")
MIN_FIELDS = 2  # of a list, in which a note is one as well
MAX_NOTES = 200  # that are looked at: each may stand in a quote that began far above


@cache
def _note_pattern() -> re.Pattern[str]:
    words = read_words(WORDS)
    note, source = any_of_pattern(words["note"]), any_of_pattern(words["source"])
    return re.compile(
        rf"^[^\w\n\"“「『]{{0,12}}(?:{ADMONITION}|(?:(?P<note>{note})|(?P<source>{source}))"
        r"(?:\s?[(（][^()（）\n]{1,40}[)）])?[*_ ]{0,3}[:：])",
        re.IGNORECASE | re.MULTILINE,
    )


def remove_notes(text: str) -> str:
    """Remove trailing notes from a prompt, such as "Notes: works best at 16:9"."""
    fields = [field.start() for field in FIELD.finditer(text)]
    notes = list(islice(_note_pattern().finditer(text), MAX_NOTES))
    note_starts = {note.start() for note in notes}
    last = max((start for start in fields if start not in note_starts), default=-1)
    for note in notes:
        start = note.start()
        opening = text[:start]
        is_paragraph = bool(BLANK_LINE.search(opening))
        is_alone = bool(note["source"]) and bool(LINK_LINE.match(text, note.end()))
        is_field = bisect_left(fields, start) >= MIN_FIELDS and (start < last or not is_paragraph)
        if not opening.strip() or _is_open(opening) or (is_field and not is_alone):
            continue
        if is_paragraph or note["source"]:
            return opening.rstrip()
    return text


def _is_open(text: str) -> bool:
    """Return whether a text ends inside an open fence, quote or bracket."""
    pairs = [("{", "}"), ("“", "”"), ("«", "»"), ("「", "」"), ("『", "』")]
    return (
        text.count("```") % 2 == 1
        or text.count('"') % 2 == 1
        or any(text.count(begin) > text.count(end) for begin, end in pairs)
    )


def _strip_trailing_extra(text: str) -> str:
    text = text.rstrip()
    while text and TRAILING_EXTRA.fullmatch(last := text.rsplit(maxsplit=1)[-1]):
        text = text[: -len(last)].rstrip()
    return text


PostsByNumber = Mapping[int, RequestInputs]
QUALITIES = ("Benchmark", "Analysis", "Trash")


def extract(inputs: RequestInputs) -> AnswerFields | None:
    """Return the labelled prompts of a thread, and clear verdicts on their results."""
    posts: PostsByNumber = {post["number"]: post for post in inputs["posts"]}
    samples: dict[str, AnswerFields] = {}
    owners: dict[int, AnswerFields] = {}
    for number, post in posts.items():
        sources = [post["text"] or "", *post["alt_texts"]]
        prompts = next(filter(None, map(find_prompts, sources)), [])
        for prompt in prompts:
            numbers, full = [number], prompt
            for part in _find_next_parts(post, posts) if UNFINISHED.search(prompt) else ():
                numbers.append(part["number"])
                full += " " + _clean_prompt(PART_NUMBER.sub("", part["text"], count=1))
            quality = _decide_quality(post, full, posts, inputs["target"])
            if len(prompts) > 1 and post["pictures"]:  # whose are they?
                quality = max(quality, "Analysis", key=QUALITIES.index)
            fresh = {"prompt": full, "quality": quality, "posts": numbers, "feedback": []}
            sample = samples.setdefault(" ".join(full.split()), fresh)
            if sample is not fresh:
                sample["posts"] += numbers
            owners.update(dict.fromkeys(numbers, sample))
    for sample in samples.values():
        # Who gives the prompt below their own images means those.
        upper: RequestInputs = posts[sample["posts"][0]]
        author = upper["author"]
        while not upper["pictures"] and (upper := posts.get(upper["parent"], {})):
            if upper["author"] != author or author is None or upper["number"] in owners:
                break
            if upper["pictures"]:
                sample["posts"].append(upper["number"])
                owners[upper["number"]] = sample
    for number, post in posts.items():
        ancestor = number
        while ancestor in posts and ancestor not in owners:
            ancestor = posts[ancestor]["parent"]
        if ancestor in owners and number not in owners:
            text = post["text"] or ""
            is_addressed = "@" in text or "＠" in text
            comment = (ADDRESSEES.sub("", text, count=1) if is_addressed else text).strip()
            if find_verdict(comment) is not None:
                owners[ancestor]["feedback"].append({"post": number, "feedback": comment})
    return {"samples": list(samples.values())} if samples else None


def _find_next_parts(post: RequestInputs, posts: PostsByNumber) -> Iterator[RequestInputs]:
    """Yield the posts that continue one numbered "1/3"."""
    number = PART_NUMBER.match(post["text"] or "")
    for candidate in posts.values():
        mark = PART_NUMBER.match(candidate["text"] or "") if number else None
        is_below = (candidate["parent"], candidate["author"]) == (post["number"], post["author"])
        if number and mark and is_below and int(mark[1]) == int(number[1]) + 1:
            post, number = candidate, mark
            yield candidate


def _decide_quality(
    post: RequestInputs, prompt: str, posts: PostsByNumber, target: RequestInputs
) -> str:
    around = (post["text"] or "").replace(prompt, " ")
    root = next(iter(posts.values()))
    if root["author"] == post["author"]:
        around += " " + (root["text"] or "").replace(prompt, " ")
    has_target = _names(target["name"], *target["aliases"]).match(around)
    return "Trash" if not has_target and _names(*target["others"]).match(around) else "Benchmark"


SEVERAL_WORDS = re.compile(r"\w[\s-]\w")


def relevance(inputs: RequestInputs) -> AnswerFields | None:
    """Score a post that names a model beside images, or labels a prompt for one."""
    target, texts = inputs["target"], [inputs["text"], *inputs["alt_texts"]]
    labelled = list(map(find_prompts, texts))
    prompts, text = " ".join(chain(*labelled)), _remove_prompts(texts[0], labelled[0])
    name, aliases = target["name"], target["aliases"]
    multiword_names = _names(name, *filter(SEVERAL_WORDS.search, aliases))
    is_labelled = bool(prompts) and (
        bool(inputs["pictures"]) or _is_image_request(prompts) or multiword_names.match(text)
    )
    if not is_labelled and not _has(multiword_names.remove_from(text), "images"):
        return None
    if any(map(_is_order_to_reader, texts)):
        return None
    score, all_names = 4 if is_labelled else None, _names(name, *aliases)
    if _names(*target["others"]).match(text):
        score = None if all_names.match(text) else 2
    elif (all_names if is_labelled else multiword_names).match(text):
        score = 5
    return None if score is None else {"score": score, "note": None}


SENTENCE_END = re.compile(r"[.!?。！？\n]")
SIDES = ("left", "right")
PLACES: tuple[Any, ...] = (1, 2, 3, 4, *SIDES)


def roles(inputs: RequestInputs) -> AnswerFields | None:
    """Return the role of each image of a sample, where captions or descriptions tell all.

    The only image of a post with one labelled prompt is assumed to be its output, where no word
    speaks of an input. Asked for an image that is not there, that there is one, where words point
    at it.
    """
    if "placeholders" not in inputs:
        return {"needs_absent_image": True} if _is_absent(inputs) else None
    if inputs["placeholders"]:
        return None
    images = {image["number"]: image for image in inputs["pictures"] if not image.get("same_as")}
    kinds = {
        number: _find_role(image["alt_text"] or "", inputs) for number, image in images.items()
    }
    collage = None
    for post in inputs["posts"]:
        own = [number for number in post["pictures"] if number in images]
        text = post["text"] or ""
        text = _remove_prompts(text, find_prompts(text)).replace(inputs["prompt"], "\n")
        captions = _read_captions(text, inputs["target"])
        if _has_both_sides(captions) and len(own) == 1:
            collage = own[0]
            kinds[collage] = "collage" if kinds[collage] is None else "unclear"
        elif set(captions) == {str(place) for place in range(1, len(own) + 1)}:
            for place, number in enumerate(own, 1):
                is_consistent = kinds[number] in (None, captions[str(place)])
                kinds[number] = captions[str(place)] if is_consistent else "unclear"
    assumed = [*kinds.values()] == [None] and _is_output(inputs)
    if assumed:
        kinds = dict.fromkeys(kinds, "output")
    by_role = {
        role: [number for number, kind in kinds.items() if kind == role]
        for role in set(kinds.values())
    }
    max_screenshots = max(len(by_role.get(role, [])) for role in ("conversation", "collage"))
    if {None, "unclear"} & set(by_role) or max_screenshots > 1:
        return None
    sample = {
        "inputs": by_role.get("input", []),
        "outputs": by_role.get("output", []),
        "posts": [post["number"] for post in inputs["posts"] if post["own"]],
        "conversation": next(iter(by_role.get("conversation", [])), None),
        "collage": collage,
    }
    return {"samples": [sample], **({"assumed": True} if assumed else {})}


def _is_output(inputs: RequestInputs) -> bool:
    """Return whether the words are about one labelled prompt and its result alone."""
    (image,) = inputs["pictures"]
    post = next(post for post in inputs["posts"] if post["number"] == image["post"])
    prompts = find_prompts(post["text"] or "") or find_prompts(image["alt_text"] or "")
    texts = [
        _remove_prompts(post["text"] or "", prompts) for post in inputs["posts"] if post["own"]
    ]
    return (
        len(prompts) == 1
        and not _is_absent(inputs)
        and not any(_has(text, "given") for text in (inputs["prompt"], *texts))
        and not any(_has(text, "caption", "input") or _has(text, "several") for text in texts)
        and not any(_names(*inputs["target"]["others"]).match(text) for text in texts)
    )


def _is_absent(inputs: RequestInputs) -> bool:
    own = (post["text"] or "" for post in inputs["posts"] if post["own"])
    texts = (text.replace(inputs["prompt"], "\n") for text in own)
    return needs_image(inputs["prompt"]) or any(map(asks_for_image, texts))


def _find_role(alt: str, inputs: RequestInputs) -> str | None:
    window = inputs["target"]["chat_window"]
    if window and _names(window).match(alt) and _has(alt, "alt", "conversation"):
        return "conversation" if _has(alt, "images") else "unclear"
    roles_found = [role for role in ("input", "output") if _alt_text_pattern(role).match(alt)]
    return roles_found[0] if len(roles_found) == 1 else "unclear" if roles_found else None


@cache
def _alt_text_pattern(role: str) -> re.Pattern[str]:
    words = read_words(WORDS)["alt"]
    role_words, nouns = any_of_pattern(words[role]), any_of_pattern(words["nouns"])
    return re.compile(
        rf"\W*(?:the\s)?(?:{role_words})(?:\s?(?:{nouns})\s?\d{{0,2}}\b|\s?\d{{0,2}}\s*(?:\Z|[:：(（\[]|[—–-]\s))",
        re.IGNORECASE,
    )


@cache
def _place_pattern() -> re.Pattern[str]:
    captions = read_words(WORDS)["caption"]
    return re.compile(
        "|".join(f"(?P<p{name}>{any_of_pattern(captions[name])})" for name in PLACES), re.IGNORECASE
    )


def _read_captions(text: str, target: RequestInputs) -> dict[str, str]:
    """Read roles by stated place ("1", "2", "left"); empty where one is unclear."""
    if sum(_has(text, "caption", name) for name in PLACES) < 2:  # as of nearly all texts
        return {}
    marks = list(_place_pattern().finditer(text))
    places = [str(mark.lastgroup)[1:] for mark in marks]
    if len(places) < 2 or len(set(places)) < len(places):
        return {}
    starts, ends = [0, *(mark.end() for mark in marks)], [mark.start() for mark in marks]
    pieces = [text[a:b] for a, b in zip(starts, [*ends, len(text)], strict=True)]
    pieces[0] = SENTENCE_END.split(pieces[0])[-1]
    pieces[-1] = SENTENCE_END.split(pieces[-1])[0]
    parts: list[str | None] = []
    for piece in pieces:
        roles_found = {role for role in ("input", "output") if _has(piece, "caption", role)}
        if _names(target["name"], *target["aliases"]).match(piece):
            roles_found.add("output")
        is_clear = len(roles_found) == 1 and not _has(piece, "caption", "tries")
        parts.append(roles_found.pop() if is_clear else None)
    roles = parts[1:] if parts[0] is None else parts[:-1] if parts[-1] is None else []
    return {} if None in roles else dict(zip(places, map(str, roles), strict=False))


def _has_both_sides(captions: Mapping[str, str]) -> bool:
    return set(captions) == set(SIDES) and set(captions.values()) == {"input", "output"}


FLAT_LEVELS = 24  # levels of 255 between darkest and lightest that JPEG leaves in one flat color
MAX_GUTTER_SHARE = 0.08  # of the width: what is wider may be part of an image


def screenshots(inputs: RequestInputs) -> AnswerFields | None:
    """Return the two images of a collage whose caption says which side was the input."""
    texts = (_remove_prompts(text, find_prompts(text)) for text in inputs["posts"])
    captioned = [captions for text in texts if (captions := _read_captions(text, inputs["target"]))]
    if len(captioned) != 1 or not _has_both_sides(captioned[0]):
        return None
    if (panels := _find_panels(inputs["file"])) is None:
        return None
    boxes = {captioned[0][side]: [box] for side, box in zip(SIDES, panels, strict=True)}
    return {"prompt": None, "inputs": boxes["input"], "outputs": boxes["output"]}


def _find_panels(file: Path) -> list[tuple[int, int, int, int]] | None:
    """Find two images parted by a vertical gutter; null where that is uncertain."""
    try:
        with open_image(file) as image:
            pixels = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    except BadImageError:
        return None
    is_flat = np.ptp(pixels, axis=0).max(axis=-1) <= FLAT_LEVELS
    if not is_flat.any():
        return None
    ground = np.median(pixels[::32, is_flat], axis=(0, 1))
    content = ((pixels < ground - FLAT_LEVELS) | (pixels > ground + FLAT_LEVELS)).any(axis=-1)
    boxes = []
    for left_edge, right_edge in find_runs(content.any(axis=0)):
        rows = find_runs(content[:, left_edge:right_edge].any(axis=1))
        if len(rows) != 1:  # more than one image, or a label beside it
            return None
        boxes.append((left_edge, rows[0][0], right_edge, rows[0][1]))
    height, width = content.shape
    if len(boxes) != 2 or boxes[1][0] - boxes[0][2] > MAX_GUTTER_SHARE * width:
        return None
    offsets = np.ptp([(top, bottom) for _, top, _, bottom in boxes], axis=0)
    return boxes if offsets.max() <= MAX_GUTTER_SHARE * height else None


UPPERCASE_WORD = re.compile(r"\b[A-Z]{3,}\b")


def feedback(inputs: RequestInputs) -> AnswerFields | None:
    """Return the task of a prompt and the verdicts on it, where all are clear."""
    if "comments" not in inputs:  # asked for a phrase, which no list of words can give
        return None
    task = guess_task(inputs["prompt"], inputs["inputs"])
    if task is None or inputs["quality"] != "Benchmark":
        return None
    judged = []
    for comment in inputs["comments"]:
        if (outcome := find_verdict(comment["text"])) is None:
            return None
        judged.append({"comment": comment["comment"], "verdict": outcome[0], "keyword": outcome[1]})
    return {"kind": "task", "task": task, "feedback": judged}


def find_verdict(text: str) -> tuple[str, str | None] | None:
    """Find a clear verdict on a result, with the failure that it names; else null."""
    is_praised = _has(text, "praise")
    faults = [name for name in read_words(WORDS)["complaint"] if _has(text, "complaint", name)]
    if is_praised == bool(faults) or "?" in text or "？" in text or _is_order_to_reader(text):
        return None
    tail = re.sub(r"(?<=\w)n't\b", " not", straighten(text))
    for name in faults:
        tail = _read_phrases("complaint", name).pattern.sub(" ", tail)
    if _has(tail, "unclear"):
        return None
    return ("success", None) if is_praised else ("failure", next(filter(None, faults), None))


def guess_task(prompt: str, images: int) -> str | None:
    """Guess the task kind of a prompt with so many images; null where it is unclear."""
    if _has(prompt, "probe") or _is_order_to_reader(prompt):
        return None
    if not images:
        if _has(prompt, "given") or needs_image(prompt):
            return None
        asks_lettering, has_quote = _has(prompt, "lettering"), bool(QUOTED.search(prompt))
        if asks_lettering != has_quote or (not asks_lettering and UPPERCASE_WORD.search(prompt)):
            return None
        return "text_rendering" if asks_lettering else "text_to_image"
    kinds: tuple[str, ...] = ("composition",)
    if images == 1:
        kinds = ("restoration", "sketch_to_image", "style_transfer", "edit")
    matches = [kind for kind in kinds if _has(prompt, kind)]
    return matches[0] if len(matches) == 1 or matches[:1] == ["restoration"] else None


RULES: Mapping[str, Callable[[RequestInputs], AnswerFields | None]] = {
    rule.__name__: rule for rule in (relevance, extract, roles, screenshots, feedback)
}

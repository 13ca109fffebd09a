"""No model: takes what posts mark in so many words, and abstains from the rest."""

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

from echo_hf.engines.base import ABSTAINED, Completion, ModelFree, Request, register
from echo_hf.engines.phrases import Phrases, lower_words, one_of, read_words, straight
from echo_hf.engines.reference_images import QUOTED, asks_for_image, needs_image
from echo_hf.images.loader import BadImageError, open_image
from echo_hf.images.panes import runs

Inputs = Mapping[str, Any]
Answer = dict[str, Any]
WORDS = Path(__file__).with_suffix(".yaml")
MODULES = ("rules", "phrases", "reference_images")  # what answers come from, with their words


@register("rules", "no model: takes what is marked, and leaves the rest to a model")
class RulesEngine(ModelFree):
    def signature(self) -> dict[str, Any]:
        return {"kind": "rules", "source": _source()}

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
def _source() -> str:
    files = (WORDS.with_name(f"{name}{end}") for name in MODULES for end in (".py", ".yaml"))
    read = b"".join(file.read_bytes() for file in files if file.exists())
    return hashlib.sha256(read).hexdigest()


@cache
def _phrases(*path: str) -> Phrases:
    phrases: Any = read_words(WORDS)
    for name in path:
        phrases = phrases[name]
    return Phrases(phrases)


def _says(text: str, *path: str) -> bool:
    return _phrases(*path).are_in(text)


@lru_cache(maxsize=64)
def _names(*names: str) -> Phrases:
    return Phrases(filter(None, names))


# Marks and keys of our own requests and answers, which nobody needs in a prompt.
OF_REQUESTS = re.compile(r"</?(?:post|thread|sample)\b|\"(?:score|samples|verdict)\"\s{0,4}:")


@lru_cache(maxsize=32)
def _orders_readers(text: str) -> bool:
    return bool(OF_REQUESTS.search(text)) or _says(text, "orders_readers")


FENCE = re.compile(r"```[\w+-]{0,20}[ \t]*\n?(.*?)\s*```", re.DOTALL)
QUOTES = {"“": "”", "„": "“", "«": "»", "「": "」", "『": "』", '"': '"', "‘": "’"}
DECORATION = re.compile(r"(?:\s|\*\*|__|[👇⬇🔽↓➡→\ufe0f]|>\s)+")
# What ends a post: hashtags (a color is none), handles, links, pointing hands.
ADDED = re.compile(
    r"#(?![0-9a-fA-F]{3,8}\b)\w\S*|[@＠]\w\S*|(?:https?://|www\.|pic\.twitter)\S+|[👇⬇🔽↓🧵\ufe0f]+|\*\*"
)
ADDRESSEES = re.compile(r"\s*(?:[@＠][\w.-]+(?:@[\w.-]+)?\s+)+")
LONGEST_LEAD = 80
LONGEST_REMARK = 100
UNFINISHED = re.compile(r"(?:[,;:，；：、—–-]|…|\.\.\.)\Z")
PART = re.compile(r"\s*\(?(\d{1,2})\s?/\s?\d{1,2}\)?[\s:.)-]*")


@cache
def _label() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """The word of a label, a label, and what may stand before: a start of a line, "my full"."""
    words = read_words(WORDS)["label"]
    word, after, before = (one_of(words[name]) for name in ("word", "after", "before"))
    label = (
        rf"(?:{word})(?P<number>\s?#?\d{{1,2}})?"
        rf"(?:\s?[(（][^()（）\n]{{1,40}}[)）]|\s?(?:{after})){{0,3}}"
        r"[*_ \t]{0,9}(?:[:：→➡]|[^\w\n?？]{0,9}\n)"
    )
    mark = r"[@＠]\S+\s|\d{1,2}/\d{1,2}|\d{1,2}[.)、]|[^\w\n\"“「『'@＠]"
    lead = rf"(?:^|[.!?。！？]\s)(?:{mark})*?(?:(?:{before})[ \t]?){{0,4}}\Z"
    announced = "|".join(map(re.escape, words["word"]))
    return re.compile(announced), re.compile(label, re.IGNORECASE), re.compile(lead, re.IGNORECASE)


def _labels(text: str) -> Iterator[re.Match[str]]:
    lower, (word, label, lead) = lower_words(text)[0], _label()
    text, done = straight(text), 0
    same = len(lower) == len(text)  # a few letters have more than one small letter
    for start in (one.start() for one in word.finditer(lower)) if same else range(len(text)):
        found = label.match(text, start) if start >= done else None
        if found is None:
            continue
        done = found.end()
        first = max(text.rfind("\n", 0, found.start()) + 1, found.start() - LONGEST_LEAD)
        # A letter stands for what is left out of a long line, so that none begins there.
        cut = "" if first == 0 or text[first - 1] == "\n" else "x"
        if lead.search(cut + text[first : found.start()]):
            yield found


def labelled_prompts(text: str) -> list[str]:
    labels = list(_labels(text))
    if not (labels or "```" in text) or _orders_readers(text):
        return []
    if not labels:
        fenced = [one.strip() for one in FENCE.findall(text)]
        return fenced if len(fenced) == 1 and _asks_for_an_image(fenced[0]) else []
    # "Prompts:" above "Prompt 1:"
    says = [text[one.end() : two.start()].strip() for one, two in pairwise(labels)]
    labels = [one for one, said in zip(labels, [*says, "all"], strict=True) if said]
    # Without numbers, a label inside a prompt is part of it.
    starts = [one for one in labels if one["number"]] or labels[:1]
    ends = [*(text.rfind("\n", 0, one.start()) for one in starts[1:]), len(text)]
    found = [_clean(text[one.end() : end]) for one, end in zip(starts, ends, strict=True)]
    return [one for one in found if one]


def _asks_for_an_image(prompt: str) -> bool:
    return _says(prompt, "images") or _says(prompt, "looks")


def _beside(text: str, prompts: Iterable[str]) -> str:
    """What a text says beside its labelled prompts."""
    for prompt in prompts:
        text = text.replace(prompt, "\n")
    return text


def _clean(text: str) -> str:
    """A prompt without what was put around it: marks, remarks to readers, hashtags, links."""
    start = DECORATION.match(text)
    text = text[start.end() :] if start else text
    if fenced := FENCE.match(text):
        return fenced[1].strip()
    text = _without_added(without_notes(text))
    body, _, last = text.rpartition("\n")
    if body.strip() and len(last) <= LONGEST_REMARK:
        is_remark = _phrases("remark").pattern.match(straight(last.strip()))
        text = _without_added(body) if is_remark else text
    if text[:1] in QUOTES:
        inside, _, rest = text[1:].partition(QUOTES[text[0]])
        if not rest:
            text = inside.strip()
        elif len(inside) > len(rest):  # a prompt with a remark, or one that begins with a title
            return ""
    return "" if _phrases("pointer").are_all(text) else text


# A line that names what follows, as the parts of a prompt may.
FIELD = re.compile(r"^[^\w\n\"“「『]{0,12}\w[\w &/'-]{0,30}[*_ ]{0,3}[:：](?!//)", re.MULTILINE)
ADMONITION = r"\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]"
BLANK_LINE = re.compile(r"\n[ \t\r]*\n\Z")
LINKED = re.compile(r"[^\n]*(?:https?://|www\.|[@＠]\w)")
FEWEST_FIELDS = 2  # of a list, in which a note is one as well
MOST_NOTES = 200  # that are looked at: each may stand in a quote that began far above


@cache
def _note() -> re.Pattern[str]:
    words = read_words(WORDS)
    note, source = one_of(words["note"]), one_of(words["source"])
    return re.compile(
        rf"^[^\w\n\"“「『]{{0,12}}(?:{ADMONITION}|(?:(?P<note>{note})|(?P<source>{source}))"
        r"(?:\s?[(（][^()（）\n]{1,40}[)）])?[*_ ]{0,3}[:：])",
        re.IGNORECASE | re.MULTILINE,
    )


def without_notes(text: str) -> str:
    """A prompt without the notes on it that follow: "Notes: works best at 16:9"."""
    fields = [field.start() for field in FIELD.finditer(text)]
    notes = list(islice(_note().finditer(text), MOST_NOTES))
    named = {note.start() for note in notes}
    last = max((start for start in fields if start not in named), default=-1)
    for note in notes:
        start = note.start()
        before = text[:start]
        is_paragraph = bool(BLANK_LINE.search(before))
        is_alone = bool(note["source"]) and bool(LINKED.match(text, note.end()))
        is_field = bisect_left(fields, start) >= FEWEST_FIELDS and (
            start < last or not is_paragraph
        )
        if not before.strip() or _is_open(before) or (is_field and not is_alone):
            continue
        if is_paragraph or note["source"]:
            return before.rstrip()
    return text


def _is_open(text: str) -> bool:
    """Whether what follows a text stands in its fence, quotes or brackets."""
    pairs = [("{", "}"), ("“", "”"), ("«", "»"), ("「", "」"), ("『", "』")]
    return (
        text.count("```") % 2 == 1
        or text.count('"') % 2 == 1
        or any(text.count(begin) > text.count(end) for begin, end in pairs)
    )


def _without_added(text: str) -> str:
    text = text.rstrip()
    while text and ADDED.fullmatch(last := text.rsplit(maxsplit=1)[-1]):
        text = text[: -len(last)].rstrip()
    return text


Posts = Mapping[int, Inputs]
QUALITIES = ("Benchmark", "Analysis", "Trash")


def extract(inputs: Inputs) -> Answer | None:
    """The labelled prompts of a thread, and clear verdicts on their results."""
    posts: Posts = {post["number"]: post for post in inputs["posts"]}
    samples: dict[str, Answer] = {}
    owner: dict[int, Answer] = {}
    for number, post in posts.items():
        sources = [post["text"] or "", *post["alt_texts"]]
        prompts = next(filter(None, map(labelled_prompts, sources)), [])
        for prompt in prompts:
            numbers, whole = [number], prompt
            for part in _next_parts(post, posts) if UNFINISHED.search(prompt) else ():
                numbers.append(part["number"])
                whole += " " + _clean(PART.sub("", part["text"], count=1))
            quality = _quality(post, whole, posts, inputs["target"])
            if len(prompts) > 1 and post["pictures"]:  # whose are they?
                quality = max(quality, "Analysis", key=QUALITIES.index)
            new = {"prompt": whole, "quality": quality, "posts": numbers, "feedback": []}
            sample = samples.setdefault(" ".join(whole.split()), new)
            if sample is not new:
                sample["posts"] += numbers
            owner.update(dict.fromkeys(numbers, sample))
    for sample in samples.values():
        # Who gives the prompt below their own images means those.
        at: Inputs = posts[sample["posts"][0]]
        author = at["author"]
        while not at["pictures"] and (at := posts.get(at["parent"], {})):
            if at["author"] != author or author is None or at["number"] in owner:
                break
            if at["pictures"]:
                sample["posts"].append(at["number"])
                owner[at["number"]] = sample
    for number, post in posts.items():
        above = number
        while above in posts and above not in owner:
            above = posts[above]["parent"]
        if above in owner and number not in owner:
            text = post["text"] or ""
            is_addressed = "@" in text or "＠" in text
            said = (ADDRESSEES.sub("", text, count=1) if is_addressed else text).strip()
            if verdict(said) is not None:
                owner[above]["feedback"].append({"post": number, "feedback": said})
    return {"samples": list(samples.values())} if samples else None


def _next_parts(post: Inputs, posts: Posts) -> Iterator[Inputs]:
    """The posts that go on where one numbered "1/3" stops."""
    number = PART.match(post["text"] or "")
    for below in posts.values():
        following = PART.match(below["text"] or "") if number else None
        is_below = (below["parent"], below["author"]) == (post["number"], post["author"])
        if number and following and is_below and int(following[1]) == int(number[1]) + 1:
            post, number = below, following
            yield below


def _quality(post: Inputs, prompt: str, posts: Posts, target: Inputs) -> str:
    around = (post["text"] or "").replace(prompt, " ")
    root = next(iter(posts.values()))
    if root["author"] == post["author"]:
        around += " " + (root["text"] or "").replace(prompt, " ")
    ours = _names(target["name"], *target["aliases"]).are_in(around)
    return "Trash" if not ours and _names(*target["others"]).are_in(around) else "Benchmark"


OF_WORDS = re.compile(r"\w[\s-]\w")


def relevance(inputs: Inputs) -> Answer | None:
    """The score of a post that names a model beside images, or labels a prompt for one."""
    target, texts = inputs["target"], [inputs["text"], *inputs["alt_texts"]]
    found = list(map(labelled_prompts, texts))
    prompts, text = " ".join(chain(*found)), _beside(texts[0], found[0])
    name, aliases = target["name"], target["aliases"]
    plain = _names(name, *filter(OF_WORDS.search, aliases))
    labelled = bool(prompts) and (
        bool(inputs["pictures"]) or _asks_for_an_image(prompts) or plain.are_in(text)
    )
    if not labelled and not _says(plain.replaced(text), "images"):
        return None
    if any(map(_orders_readers, texts)):
        return None
    score, every = 4 if labelled else None, _names(name, *aliases)
    if _names(*target["others"]).are_in(text):
        score = None if every.are_in(text) else 2
    elif (every if labelled else plain).are_in(text):
        score = 5
    return None if score is None else {"score": score, "note": None}


SENTENCE_END = re.compile(r"[.!?。！？\n]")
SIDES = ("left", "right")
PLACES: tuple[Any, ...] = (1, 2, 3, 4, *SIDES)


def roles(inputs: Inputs) -> Answer | None:
    """What the images of a sample are, where descriptions or captions say it of each of them.

    The only image of a post with one labelled prompt is assumed to be its output, where no word
    speaks of an input. Asked for an image that is not there, that there is one, where words point
    at it.
    """
    if "placeholders" not in inputs:
        return {"needs_absent_image": True} if _lacks_image(inputs) else None
    if inputs["placeholders"]:
        return None
    images = {one["number"]: one for one in inputs["pictures"] if not one.get("same_as")}
    said = {number: _described(one["alt_text"] or "", inputs) for number, one in images.items()}
    collage = None
    for post in inputs["posts"]:
        own = [number for number in post["pictures"] if number in images]
        text = post["text"] or ""
        text = _beside(text, labelled_prompts(text)).replace(inputs["prompt"], "\n")
        captions = _captions(text, inputs["target"])
        if _tells_sides(captions) and len(own) == 1:
            collage = own[0]
            said[collage] = "collage" if said[collage] is None else "unclear"
        elif set(captions) == {str(place) for place in range(1, len(own) + 1)}:
            for place, number in enumerate(own, 1):
                agree = said[number] in (None, captions[str(place)])
                said[number] = captions[str(place)] if agree else "unclear"
    assumed = [*said.values()] == [None] and _is_output(inputs)
    if assumed:
        said = dict.fromkeys(said, "output")
    of = {role: [n for n, one in said.items() if one == role] for role in set(said.values())}
    screens = max(len(of.get(one, [])) for one in ("conversation", "collage"))
    if {None, "unclear"} & set(of) or screens > 1:
        return None
    sample = {
        "inputs": of.get("input", []),
        "outputs": of.get("output", []),
        "posts": [one["number"] for one in inputs["posts"] if one["own"]],
        "conversation": next(iter(of.get("conversation", [])), None),
        "collage": collage,
    }
    return {"samples": [sample], **({"assumed": True} if assumed else {})}


def _is_output(inputs: Inputs) -> bool:
    """Whether an image that nobody describes stands beside one labelled prompt and no input."""
    (image,) = inputs["pictures"]
    post = next(post for post in inputs["posts"] if post["number"] == image["post"])
    prompts = labelled_prompts(post["text"] or "") or labelled_prompts(image["alt_text"] or "")
    beside = [_beside(post["text"] or "", prompts) for post in inputs["posts"] if post["own"]]
    return (
        len(prompts) == 1
        and not _lacks_image(inputs)
        and not any(_says(text, "given") for text in (inputs["prompt"], *beside))
        and not any(_says(text, "caption", "input") for text in beside)
    )


def _lacks_image(inputs: Inputs) -> bool:
    own = (post["text"] or "" for post in inputs["posts"] if post["own"])
    beside = (text.replace(inputs["prompt"], "\n") for text in own)
    return needs_image(inputs["prompt"]) or any(map(asks_for_image, beside))


def _described(alt: str, inputs: Inputs) -> str | None:
    window = inputs["target"]["chat_window"]
    if window and _names(window).are_in(alt) and _says(alt, "alt", "conversation"):
        return "conversation" if _says(alt, "images") else "unclear"
    found = [role for role in ("input", "output") if _alt(role).match(alt)]
    return found[0] if len(found) == 1 else "unclear" if found else None


@cache
def _alt(role: str) -> re.Pattern[str]:
    words = read_words(WORDS)["alt"]
    said, nouns = one_of(words[role]), one_of(words["nouns"])
    return re.compile(
        rf"\W*(?:the\s)?(?:{said})(?:\s?(?:{nouns})\s?\d{{0,2}}\b|\s?\d{{0,2}}\s*(?:\Z|[:：(（\[]|[—–-]\s))",
        re.IGNORECASE,
    )


@cache
def _places() -> re.Pattern[str]:
    captions = read_words(WORDS)["caption"]
    return re.compile(
        "|".join(f"(?P<p{name}>{one_of(captions[name])})" for name in PLACES), re.IGNORECASE
    )


def _captions(text: str, target: Inputs) -> dict[str, str]:
    """Roles by the place that a text gives them: "1", "2", "left"; none where one is unclear."""
    if sum(_says(text, "caption", name) for name in PLACES) < 2:  # as of nearly all texts
        return {}
    marks = list(_places().finditer(text))
    places = [str(mark.lastgroup)[1:] for mark in marks]
    if len(places) < 2 or len(set(places)) < len(places):
        return {}
    starts, ends = [0, *(mark.end() for mark in marks)], [mark.start() for mark in marks]
    pieces = [text[a:b] for a, b in zip(starts, [*ends, len(text)], strict=True)]
    pieces[0] = SENTENCE_END.split(pieces[0])[-1]
    pieces[-1] = SENTENCE_END.split(pieces[-1])[0]
    said: list[str | None] = []
    for piece in pieces:
        found = {role for role in ("input", "output") if _says(piece, "caption", role)}
        if _names(target["name"], *target["aliases"]).are_in(piece):
            found.add("output")
        is_clear = len(found) == 1 and not _says(piece, "caption", "tries")
        said.append(found.pop() if is_clear else None)
    named = said[1:] if said[0] is None else said[:-1] if said[-1] is None else []
    return {} if None in named else dict(zip(places, map(str, named), strict=False))


def _tells_sides(captions: Mapping[str, str]) -> bool:
    return set(captions) == set(SIDES) and set(captions.values()) == {"input", "output"}


FLAT = 24  # levels of 255 between darkest and lightest that JPEG leaves in one flat color
WIDEST_GUTTER = 0.08  # of the width: what is wider may be part of an image


def screenshots(inputs: Inputs) -> Answer | None:
    """The two images of a collage whose caption says which side went in; nothing else."""
    beside = (_beside(text, labelled_prompts(text)) for text in inputs["posts"])
    said = [found for text in beside if (found := _captions(text, inputs["target"]))]
    if len(said) != 1 or not _tells_sides(said[0]):
        return None
    if (panels := _panels(inputs["file"])) is None:
        return None
    boxes = {said[0][side]: [box] for side, box in zip(SIDES, panels, strict=True)}
    return {"prompt": None, "inputs": boxes["input"], "outputs": boxes["output"]}


def _panels(file: Path) -> list[tuple[int, int, int, int]] | None:
    """Boxes of two images that a gutter parts from top to bottom; null where it is not sure."""
    try:
        with open_image(file) as opened:
            pixels = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
    except BadImageError:
        return None
    flat = np.ptp(pixels, axis=0).max(axis=-1) <= FLAT
    if not flat.any():
        return None
    ground = np.median(pixels[::32, flat], axis=(0, 1))
    strange = ((pixels < ground - FLAT) | (pixels > ground + FLAT)).any(axis=-1)
    found = []
    for left, right in runs(strange.any(axis=0)):
        rows = runs(strange[:, left:right].any(axis=1))
        if len(rows) != 1:  # more than one image, or a label beside it
            return None
        found.append((left, rows[0][0], right, rows[0][1]))
    height, width = strange.shape
    if len(found) != 2 or found[1][0] - found[0][2] > WIDEST_GUTTER * width:
        return None
    apart = np.ptp([(top, bottom) for _, top, _, bottom in found], axis=0)
    return found if apart.max() <= WIDEST_GUTTER * height else None


LETTERED = re.compile(r"\b[A-Z]{3,}\b")


def feedback(inputs: Inputs) -> Answer | None:
    """The task of a prompt with its verdicts, where all of them are clear."""
    if "comments" not in inputs:  # asked for a phrase, which no list of words can give
        return None
    task = task_of(inputs["prompt"], inputs["inputs"])
    if task is None or inputs["quality"] != "Benchmark":
        return None
    judged = []
    for one in inputs["comments"]:
        if (found := verdict(one["text"])) is None:
            return None
        judged.append({"comment": one["comment"], "verdict": found[0], "keyword": found[1]})
    return {"kind": "task", "task": task, "feedback": judged}


def verdict(text: str) -> tuple[str, str | None] | None:
    """A clear verdict on a result with the failure that it names; null where there is none."""
    praised = _says(text, "praise")
    named = [name for name in read_words(WORDS)["complaint"] if _says(text, "complaint", name)]
    if praised == bool(named) or "?" in text or "？" in text or _orders_readers(text):
        return None
    rest = re.sub(r"(?<=\w)n't\b", " not", straight(text))
    for name in named:
        rest = _phrases("complaint", name).pattern.sub(" ", rest)
    if _says(rest, "unclear"):
        return None
    return ("success", None) if praised else ("failure", next(filter(None, named), None))


def task_of(prompt: str, images: int) -> str | None:
    """The kind of task of a prompt that comes with so many images; null where it is not clear."""
    if _says(prompt, "probe") or _orders_readers(prompt):
        return None
    if not images:
        if _says(prompt, "given") or needs_image(prompt):
            return None
        letters, shown = _says(prompt, "lettering"), bool(QUOTED.search(prompt))
        if letters != shown or (not letters and LETTERED.search(prompt)):
            return None
        return "text_rendering" if letters else "text_to_image"
    kinds: tuple[str, ...] = ("composition",)
    if images == 1:
        kinds = ("restoration", "sketch_to_image", "style_transfer", "edit")
    said = [kind for kind in kinds if _says(prompt, kind)]
    return said[0] if len(said) == 1 or said[:1] == ["restoration"] else None


RULES: Mapping[str, Callable[[Inputs], Answer | None]] = {
    rule.__name__: rule for rule in (relevance, extract, roles, screenshots, feedback)
}

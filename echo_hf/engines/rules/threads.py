"""Relevance and extraction by plain rules."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Literal, NamedTuple

from echo_hf.engines.rules import words as han
from echo_hf.engines.rules.words import (
    ADDRESSEES,
    BLANK,
    COMPLAINT,
    FEWEST_WORDS,
    JSON_START,
    LINK,
    MOST_WORDS_OF_A_REMARK,
    PRAISE,
    SELF,
    TRIED,
    Label,
    Names,
    Reading,
    begins_as_order,
    fold,
    instructs,
    is_impersonal,
    is_order,
    is_order_for_picture,
    labels,
    names_of,
    only_describes,
    only_points,
    points_elsewhere,
    points_to_description,
)
from echo_hf.samples.thread_parts import MOST_POSTS, MOST_SAMPLES

LONGEST_FEEDBACK = 2000
COMPLAINED = re.compile(
    r"(?:n['’]t|\bnot|\bnever|\bcannot|\bdoesnt|\bdidnt|\bcant|\bwont)\s(?:\w{1,12}\s){0,2}"
    r"(?:work|working|look|get|let|follow|understand|do|match|generate|change|keep)\b"
    r"|content polic|policy violation|violates|(?:extra|missing|six|too many|wrong) fingers"
    r"|yellow(?:ish)? (?:tint|filter)|too (?:dark|yellow|smooth|generic)|looks (?:like ai|fake|off)"
    r"|no (?:me )?funcion|ne (?:marche|fonctionne) pas|funktioniert (?:\w{1,12} )?nicht"
    r"|klappt (?:\w{1,12} )?nicht|não funcion|non funziona|no se parece|sieht \w{0,12} ?aus wie ki"
)
PRAISED = re.compile(
    r"so good|well done|nailed it|spot on|blown away|on point|(?:pretty|so) close|10/10"
)
HAD_TRIED = re.compile(
    r"\b(?:my|our) (?:version|turn|try|take|go|own|attempt)|\bhere['’]?s m(?:ine|y)|\bgot this"
    r"|\bi got\b|\b(?:same|your|this) prompt|\bmi versi[oó]n|\bma version|\bmeine version"
    r"|\bminha versão|\bla mia versione|\bo meu\b|\bel mío|\bil mio\b|\bmeins?\b"
)
EMOJI_PRAISE = re.compile("[😍🔥👏🤩💯🙌👌❤🥰👍🤯😻💖🎉]")
EMOJI_COMPLAINT = re.compile("[👎🤮😬🙄💩😕😞😡]")
LAST_WORD = re.compile(r"\s+(?:https?://\S+|@[\w.-]+)\s*\Z")
QUESTION = re.compile(r"[?？]\W*\Z")


def judges(said: Reading) -> bool:
    """Whether a post praises or complains about a result."""
    return _complains(said) or (_praises(said) and not QUESTION.search(said.text.rstrip()[-8:]))


def judges_own(said: Reading) -> bool:
    """Whether words beside an author's own prompt judge the result."""
    if said.has_han and (
        han.HAN_PRAISE.search(said.folded) or han.HAN_COMPLAINT.search(said.folded)
    ):
        return True
    like_a_sentence = not said.words.isdisjoint(SELF) or "!" in said.text
    return like_a_sentence and judges(said)


def says_tried(said: Reading) -> bool:
    """Whether a post says that its author used the prompt."""
    if not said.signs.isdisjoint(TRIED) or HAD_TRIED.search(said.folded):
        return True
    return said.has_han and han.HAN_TRIED.search(said.folded) is not None


def feedback_text(text: str) -> str | None:
    """What a post says, as feedback is kept.

    Example:
        >>> feedback_text("@mira_draws the hands are wrong, @tomo see? https://example.org/1")
        'the hands are wrong, @tomo see?'
    """
    leading = ADDRESSEES.match(text)
    said = text[leading.end() :] if leading else text
    last = LAST_WORD.search(said[-400:])
    while last:
        said = said[: len(said) - len(last.group())]
        last = LAST_WORD.search(said[-400:])
    said = said.strip()
    return said if 0 < len(said) <= LONGEST_FEEDBACK else None


def _complains(said: Reading) -> bool:
    if not said.signs.isdisjoint(COMPLAINT) or COMPLAINED.search(said.folded):
        return True
    if said.text.isascii():
        return False
    return bool(
        EMOJI_COMPLAINT.search(said.text)
        or (said.has_han and han.HAN_COMPLAINT.search(said.folded))
    )


def _praises(said: Reading) -> bool:
    if not said.signs.isdisjoint(PRAISE) or PRAISED.search(said.folded):
        return True
    if said.text.isascii():
        return False
    return bool(
        EMOJI_PRAISE.search(said.text) or (said.has_han and han.HAN_PRAISE.search(said.folded))
    )


LONGEST_PROMPT = 8000
MOST_CHATTER_LINES = 8
MOST_WORDS_OF_CHATTER = 16
NOT_SPACE = re.compile(r"\S+")
LINE = re.compile(r"[^\n]+")
# The end of a post: hashtags (a colour is none), links, handles, pointing hands and faces.
TAIL_WORD = re.compile(
    r"#(?![0-9a-fA-F]{3,8}$)\w\S*|[@＠]\w\S*|(?:https?://|www\.|pic\.)\S+"
    r"|[👇⬇🔽↓🧵😂🤣😍🤩🔥✨🙌🙏😅😱🤯💯👀❤😭🥹💖\ufe0f]+|\*\*|__|```|[-–—_*=~]{3,}"
)
HEAD = re.compile(r"(?:\s|\*\*|__|[👇⬇🔽↓➡→\ufe0f]|[>|]\s|[@＠][\w.-]+(?=\s))+")
CHATTER = re.compile(
    r"follow (?:me|for|us)\b|let me know|what do you think|thoughts\?|reply with|retweet|repost"
    r"|(?:share|post|drop|show) (?:me )?yours?\b|bookmark|save (?:this|it) for|inspired by"
    r"|thanks to|credits?(?: to|:| goes)|\bh/t\b|prompt by|your turn|link in"
    r"|subscribe|try it (?:yourself|out|with)|have fun|^enjoy"
    r"|^\W*mine(?: is| was|\W*$)|more prompts|^\W*results?\W*$|can'?t wait|let'?s see"
    r"|sígueme|qué (?:os|te|les) parece|comparte|abonnez|suivez|qu'en pensez|folgt mir"
    r"|was (?:meint|denkt) ihr|me siga|o que (?:vocês )?acha|seguimi|che ne pensate"
    r"|关注我|點讚|点赞|转发|评论区|收藏|フォロー|いいね|シェアして|参考に"
)
MADE_WITH = re.compile(
    r"(?:made|created|generated|done|edited) (?:with|by|in|using|via)|hech[oa] con|fait avec"
    r"|(?:gemacht|erstellt) mit|feit[oa] com|fatt[oa] con"
)
# A verdict in a line of its own begins like one; a line of a prompt that praises does not.
REMARK = re.compile(
    r"\W{0,4}(?:i|i['’]m|it|this|that|these|so|love|loved|wow|omg|came|turned|works?|worked|results?"
    r"|honestly|not|me|esto|quedó|qué|j['’]adore|c['’]est|ich|das|sieht|ficou|adorei|è|mi)\b"
)


class Span(NamedTuple):
    """A place in a text, from its first character to the one after its last."""

    start: int
    end: int

    def of(self, text: str) -> str:
        """What stands there."""
        return text[self.start : self.end]


def trimmed(text: str, span: Span, names: Names) -> Span | None:
    """A span without the chatter at its end and the decoration at its beginning."""
    head = HEAD.match(text, span.start, span.end)
    start = head.end() if head else span.start
    end = _end(text, Span(start, span.end), names)
    if end <= start or end - start > LONGEST_PROMPT or not _says_something(text[start:end]):
        return None
    return Span(start, end)


def _end(text: str, span: Span, names: Names) -> int:
    chatter, end = 0, span.end
    while end > span.start:
        line = Span(max(span.start, text.rfind("\n", span.start, end) + 1), end)
        last = _line_end(text, line)
        if last > line.start:
            only = not text[span.start : line.start].strip()
            if (
                only
                or chatter == MOST_CHATTER_LINES
                or not _is_chatter(text[line.start : last], names)
            ):
                return last
            chatter += 1
        end = line.start - 1
    return span.start


def _line_end(text: str, line: Span) -> int:
    words = list(NOT_SPACE.finditer(text, *line))
    while words and TAIL_WORD.fullmatch(words[-1].group()):
        words.pop()
    return words[-1].end() if words else line.start


def _is_chatter(text: str, names: Names) -> bool:
    said = Reading(text, names)
    if said.length > MOST_WORDS_OF_CHATTER:
        return False
    if CHATTER.search(said.folded):
        return True
    if MADE_WITH.search(said.folded) and (said.target or said.other or said.artificial):
        return True
    like_a_remark = said.has_han or REMARK.match(said.folded) is not None
    return like_a_remark and said.looks < 1 and judges_own(said)


def _says_something(text: str) -> bool:
    return sum(letter.isalnum() for letter in text[:200]) > 1


def lines_of(text: str) -> Iterator[Span]:
    """The lines of a text that are not empty, without their ends."""
    return (Span(*line.span()) for line in LINE.finditer(text))


# Never the opening mark inside: a run of opening marks would be searched again from each of them.
QUOTED = re.compile(
    rf'(?<!\w)"(?=\S)([^"]{{1,{LONGEST_PROMPT}}})"(?!\w)|(?<!\w)‘([^‘’]{{1,{LONGEST_PROMPT}}})’(?!\w)|'
    + "|".join(
        rf"{opening}([^{opening}{closing}]{{1,{LONGEST_PROMPT}}}){closing}"
        for opening, closing in ("“”", "„“", "«»", "「」", "『』")
    )
)
JSON_TOKEN = re.compile(r"\\.|[{}\"]")
FENCE = "```"
LANGUAGE = re.compile(r"[\w+-]{0,20}\n")


def quoted(text: str, span: Span) -> Iterator[Span]:
    """The insides of quotation marks in a part of a text."""
    for match in QUOTED.finditer(text, *span):
        yield Span(*match.span(match.lastindex or 0))


def fenced(text: str, start: int = 0) -> Iterator[Span]:
    """The insides of code fences, from a place on."""
    opening = text.find(FENCE, start)
    while opening >= 0:
        closing = text.find(FENCE, opening + len(FENCE))
        if closing < 0:
            return
        language = LANGUAGE.match(text, opening + len(FENCE), closing)
        yield Span(language.end() if language else opening + len(FENCE), closing)
        opening = text.find(FENCE, closing + len(FENCE))


def json_objects(text: str) -> Iterator[Span]:
    """The outermost JSON objects with a key; only brackets and strings are looked at.

    Example:
        >>> text = 'use {"style": {"look": "a } b"}} now {x}'
        >>> [span.of(text) for span in json_objects(text)]
        ['{"style": {"look": "a } b"}}']
    """
    depth, opening, in_string = 0, 0, False
    for match in JSON_TOKEN.finditer(text):
        mark = match.group()
        if mark == '"':
            in_string = depth > 0 and not in_string
        elif mark == "{" and not in_string:
            opening = opening if depth else match.start()
            depth += 1
        elif mark == "}" and depth and not in_string:
            depth -= 1
            if not depth and JSON_START.match(text, opening):
                yield Span(opening, match.end())


FEWEST_WORDS_IN_QUOTES = 3
LONGEST_LEAD = 400


class Found(NamedTuple):
    """A prompt in a post."""

    prompt: str
    before: str = ""
    label: str = ""
    after: str = ""
    marked: bool = True
    alone: bool = True


def labelled_prompt(text: str, folded: str, names: Names) -> Found | None:
    """Finds the prompt that a post's labels announce."""
    found = list(_labelled(text, folded, names))
    if not found:
        return None
    (label, first), (_, last) = found[0], found[-1]
    alone = len({span.of(text) for _, span in found}) == 1
    whole = first if alone else Span(first.start, last.end)
    before = text[: min(label.start, whole.start)]
    after = text[last.end :]
    return Found(whole.of(text), before, text[label.start : label.inside], after, alone=alone)


def _labelled(text: str, folded: str, names: Names) -> Iterator[tuple[Label, Span]]:
    found = labels(folded)
    ends = [*(label.start for label in found), len(text)][1:]
    for label, end in zip(found, ends, strict=True):
        span = trimmed(text, Span(label.inside, end), names)
        span = span and _unwrapped(text, span, names)
        if span and not only_points(span.of(folded)):
            start = _order_before(text, label.start, names)
            yield label, span if start is None else Span(start, span.end)


def _order_before(text: str, mark: int, names: Names) -> int | None:
    # "Make a poster from my photo, using the following prompt: ..." begins before its label.
    line = text.rfind("\n", max(0, mark - LONGEST_LEAD), mark) + 1
    lead = Reading(text[line:mark], names)
    if lead.length >= FEWEST_WORDS and lead.picture and is_order(lead):
        return line
    return None


def _unwrapped(text: str, span: Span, names: Names) -> Span:
    if text.startswith(FENCE, span.start):
        inner = next(fenced(text, span.start), None)
        return (inner and trimmed(text, inner, names)) or span
    inner = next(quoted(text, span), None)
    if inner is None or inner.start != span.start + 1:
        return span
    rest = text[inner.end + 1 : span.end].lstrip()
    return inner if _is_complete(inner.of(text), rest, names) else span


def _is_complete(quote: str, rest: str, names: Names) -> bool:
    # A prompt may begin with a quotation: "Tea Time": a poster in ...
    if not rest:
        return True
    says = Reading(quote, names)
    if says.length < FEWEST_WORDS_IN_QUOTES:
        return False
    goes_on = rest[0].islower() or rest[0] in ":,："
    return not goes_on or is_order(says) or judges_own(Reading(rest, names))


FEWEST_LOOKS_ABOVE = 3
MOST_ENCLOSED = 16


def find_prompt(
    text: str, alt_texts: Sequence[str], names: Names, *, pictures: int
) -> Found | None:
    """Finds the prompt in a post."""
    folded = fold(text)
    return (
        labelled_prompt(text, folded, names)
        or _enclosed(text, names)
        or _described(text, folded, alt_texts, names)
        or _whole(text, folded, names, pictures)
    )


def _enclosed(text: str, names: Names) -> Found | None:
    whole = Span(0, len(text))
    for spans, holds in (
        (_objects(text, names), _speaks_of_looks),
        (fenced(text), _is_prompt),
        (quoted(text, whole), _is_prompt),
    ):
        some = [one for one in islice(spans, MOST_ENCLOSED) if holds(Reading(one.of(text), names))]
        clean = [span for one in some if (span := trimmed(text, one, names))]
        if clean:
            span = Span(clean[0].start, clean[-1].end)
            before, after = text[: span.start], text[span.end :]
            return Found(span.of(text), before, "", after, alone=len(clean) == 1)
    return None


def _objects(text: str, names: Names) -> Iterator[Span]:
    return (_with_lead(text, span, names) for span in json_objects(text))


def _with_lead(text: str, span: Span, names: Names) -> Span:
    # The line above an object often says what to do with it.
    above = text[max(0, span.start - LONGEST_LEAD) : span.start].rstrip()
    line = above.rfind("\n") + 1
    lead = Reading(above[line:], names)
    if is_order(lead) or ("json" in lead.words and not lead.is_remark):
        start = max(0, span.start - LONGEST_LEAD) + line
        return Span(_beginning(text, start, names), span.end)
    return span


def _beginning(text: str, start: int, names: Names) -> int:
    # What stands above an instruction may already describe the picture.
    above = Reading(text[:start], names)
    if above.looks < FEWEST_LOOKS_ABOVE or not is_impersonal(above):
        return start
    return 0


def _described(text: str, folded: str, alt_texts: Sequence[str], names: Names) -> Found | None:
    pointed = points_to_description(folded)
    for alt in alt_texts:
        found = labelled_prompt(alt, fold(alt), names)
        if found is None and (pointed or is_order_for_picture(Reading(alt, names))):
            span = trimmed(alt, Span(0, len(alt)), names)
            found = Found(span.of(alt)) if span else None
        if found:
            return found._replace(before=text, label="", after="")
    return None


def _whole(text: str, folded: str, names: Names, pictures: int) -> Found | None:
    line = next(_instructing_lines(text, folded), None)
    start = _beginning(text, line.start, names) if line else 0
    span = trimmed(text, Span(start, len(text)), names)
    if span is None or (line and LINK.search(line.of(text))):
        return None
    said = Reading(span.of(text), names)
    if not (instructs(said, pictures) if line else only_describes(said, pictures)):
        return None
    return Found(span.of(text), text[: span.start], "", text[span.end :], marked=False)


def _instructing_lines(text: str, folded: str) -> Iterator[Span]:
    for line in lines_of(text):
        if begins_as_order(line.of(folded)):
            yield line


def _is_prompt(said: Reading) -> bool:
    if said.length < FEWEST_WORDS_IN_QUOTES:
        return False
    return is_order_for_picture(said) or said.description


def _speaks_of_looks(said: Reading) -> bool:
    return said.picture or said.look


@dataclass(frozen=True, slots=True)
class Post:
    """One post of a tree."""

    number: int
    parent: int
    author: str | None
    text: str
    alt_texts: Sequence[str]
    pictures: int
    said: Reading
    found: Found | None
    points: bool


@dataclass(frozen=True)
class Thread:
    """The posts of a tree, depth first."""

    posts: Mapping[int, Post]
    names: Names = field(repr=False)

    def __iter__(self) -> Iterator[Post]:
        return iter(self.posts.values())

    def parent(self, post: Post) -> Post | None:
        """The post it replies to, null when that one is not shown."""
        above = self.posts.get(post.parent)
        return above if above and above.number < post.number else None

    def continues(self, post: Post) -> bool:
        """Whether it replies to a post of its own author."""
        above = self.parent(post)
        return above is not None and same_author(above, post)


def same_author(one: Post, other: Post) -> bool:
    """Whether two posts have the same author, and it is known."""
    return one.author is not None and one.author == other.author


def read_thread(posts: Sequence[Mapping[str, Any]], names: Names) -> Thread:
    """Reads the posts of an extraction request."""
    return Thread({post["number"]: _read(post, names) for post in posts}, names)


def _read(post: Mapping[str, Any], names: Names) -> Post:
    text, pictures = post["text"] or "", post["pictures"]
    said = Reading(text, names)
    return Post(
        post["number"],
        post["parent"],
        post["author"],
        text,
        post["alt_texts"],
        pictures,
        said,
        find_prompt(text, post["alt_texts"], names, pictures=pictures),
        points_elsewhere(said.folded),
    )


Quality = Literal["Benchmark", "Analysis", "Trash"]
ORDER_OF_QUALITY: tuple[Quality, ...] = ("Benchmark", "Analysis", "Trash")
SAMPLES_FEWEST_WORDS = 2
# What encloses a prompt is no part of what stands beside it.
OPENING, CLOSING = ' \t\r\n"“„«「『`*_', ' \t\r\n"”“»」』`*_,.;'


@dataclass
class Draft:
    """A sample in the making."""

    primary: Post
    prompt: str
    quality: Quality
    marked: bool = False
    around: list[Reading] = field(default_factory=list)
    posts: list[int] = field(default_factory=list)
    feedback: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.posts.append(self.primary.number)
        self.template = BLANK.search(self.prompt) is not None

    def join(self, post: Post) -> bool:
        """Takes in another post with its pictures, while there is room."""
        if len(self.posts) < MOST_POSTS:
            self.posts.append(post.number)
            return True
        return False

    def hear(self, post: Post, text: str) -> bool:
        """Takes in what a post says about the result, while there is room."""
        said = feedback_text(text)
        if said is None or post.number in self.feedback or len(self.feedback) == MOST_POSTS:
            return False
        self.feedback[post.number] = said
        return True

    def hear_beside(self, post: Post, names: Names) -> None:
        """Takes in what a post says about the result beside its prompt; the first such words."""
        found = post.found
        pieces = (found.before.rstrip(OPENING), found.after.lstrip(CLOSING)) if found else ()
        for piece in pieces:
            if piece and judges_own(Reading(piece, names)) and self.hear(post, piece):
                return

    def as_answer(self) -> dict[str, Any]:
        """The sample as an extraction answers it."""
        return {
            "prompt": self.prompt,
            "quality": self.quality,
            "posts": self.posts,
            "feedback": [{"post": post, "feedback": text} for post, text in self.feedback.items()],
        }


@dataclass
class Samples:
    """The samples of a thread, as far as they are found."""

    thread: Thread
    drafts: dict[int, Draft] = field(default_factory=dict)
    owner: dict[int, Draft] = field(default_factory=dict)

    def add_prompt(self, post: Post, found: Found) -> None:
        """Begins a sample with the prompt that a post holds."""
        names = self.thread.names
        around = [Reading(said, names) for said in (found.before + found.label, found.after)]
        quality = _quality(Reading(found.prompt, names), alone=found.alone)
        self._add(Draft(post, found.prompt, quality, found.marked, around))

    def add_comment(self, post: Post, quality: Quality) -> None:
        """Begins a sample with a post that holds no prompt, unless it is too long for one."""
        text = feedback_text(post.text) or post.text.strip()
        if 0 < len(text) <= LONGEST_PROMPT:
            self._add(Draft(post, text, quality))

    def _add(self, draft: Draft) -> None:
        self.drafts[draft.primary.number] = self.owner[draft.primary.number] = draft

    def settled(self) -> list[Draft]:
        """The samples that an answer has room for, the best ones, in the order of their posts."""
        drafts = list(self.drafts.values())
        for draft in drafts:
            elsewhere = any(said.other for said in draft.around)
            if elsewhere and not any(said.target for said in draft.around):
                draft.quality = "Trash"
        drafts.sort(key=lambda draft: ORDER_OF_QUALITY.index(draft.quality))
        return sorted(drafts[:MOST_SAMPLES], key=lambda draft: draft.primary.number)


def _quality(prompt: Reading, *, alone: bool) -> Quality:
    if prompt.text_use and not prompt.looks:
        return "Trash"
    enough = prompt.length >= SAMPLES_FEWEST_WORDS or prompt.looks > 0
    return "Benchmark" if alone and enough else "Analysis"


ANNOUNCED_FEWEST_WORDS = 4
PART = re.compile(r"\s*(?:@[\w.-]+\s+)*\(?(\d{1,2})\s?/\s?\d{0,2}\)?[\s:.)-]*")
FINISHED = re.compile(r"[.!?。！？…\"”»」』)\]}]\s*\Z")


def follow_pointers(samples: Samples) -> None:
    """Takes an author's next words for the prompt that a post of theirs has announced."""
    answered = _answered(samples)
    announced: dict[int, int] = {}
    for post in samples.thread:
        if post.points and not post.found:
            announced[post.number] = post.number
        elif post.parent in announced and samples.thread.continues(post):
            by = announced[post.number] = announced[post.parent]
            found = None if post.found or by in answered else _pointed(post, samples)
            if found:
                answered.add(by)
                samples.add_prompt(post, found)


def _answered(samples: Samples) -> set[int]:
    """The posts below which their own authors give a prompt."""
    answered: set[int] = set()
    for draft in samples.drafts.values():
        at: Post | None = draft.primary
        while at and samples.thread.continues(at) and at.parent not in answered:
            answered.add(at.parent)
            at = samples.thread.parent(at)
    return answered


def _pointed(post: Post, samples: Samples) -> Found | None:
    said = post.said
    if said.length < ANNOUNCED_FEWEST_WORDS or (judges(said) and not said.looks):
        return None
    span = trimmed(post.text, Span(0, len(post.text)), samples.thread.names)
    return span and Found(span.of(post.text))


def join_parts(samples: Samples) -> None:
    """Adds to an unfinished prompt of a numbered post what its author's next number says."""
    for post in samples.thread:
        above = samples.owner.get(post.parent)
        if above and post.number not in samples.owner and _is_next_part(post, above, samples):
            rest = _part(post, samples)
            if rest and len(above.prompt) + 1 + len(rest) <= LONGEST_PROMPT and above.join(post):
                above.prompt += " " + rest
                samples.owner[post.number] = above


def _is_next_part(post: Post, above: Draft, samples: Samples) -> bool:
    before = samples.thread.parent(post)
    if before is None or not same_author(before, post) or above.posts[-1] != before.number:
        return False
    first, second = PART.match(before.text), PART.match(post.text)
    if first is None or second is None or FINISHED.search(above.prompt[-8:]):
        return False
    return int(second[1]) == int(first[1]) + 1


def _part(post: Post, samples: Samples) -> str | None:
    number = PART.match(post.text)
    start = number.end() if number else 0
    span = trimmed(post.text, Span(start, len(post.text)), samples.thread.names)
    return span and span.of(post.text)


def lend_upwards(samples: Samples) -> None:
    """Gives samples the posts above them that show the pictures of their prompts."""
    for draft in list(samples.drafts.values()):
        at = samples.thread.parent(draft.primary)
        while at and at.number not in samples.owner and _announces(at, draft):
            samples.owner[at.number] = draft
            draft.around.append(at.said)
            if at.pictures:
                draft.join(at)
            at = samples.thread.parent(at)


def _announces(above: Post, draft: Draft) -> bool:
    if same_author(above, draft.primary):
        return draft.marked or above.points or not draft.primary.pictures
    return draft.marked and above.points and above.author is None is draft.primary.author


PERHAPS = 3


class Signs(NamedTuple):
    """What a score is decided from."""

    said: Reading
    described: Reading
    pictures: int


class Verdict(NamedTuple):
    """A score from 1 (certainly not) to 5 (certainly), with a note where it is unsure."""

    score: int
    note: str | None = None


class Rung(NamedTuple):
    """One line of the ladder: the verdict, and when it holds."""

    verdict: Verdict
    holds: Callable[[Signs], bool]


def relevance(inputs: Mapping[str, Any]) -> str | None:
    """Answers a relevance request."""
    names = names_of(inputs["target"])
    said = Reading(inputs["text"] or "", names)
    verdict = judge(said, inputs["alt_texts"], inputs["pictures"], names)
    return ANSWERS[verdict] if verdict else None


def judge(said: Reading, alt_texts: Sequence[str], pictures: int, names: Names) -> Verdict | None:
    """Scores a post."""
    described = Reading("\n".join(alt_texts), names) if alt_texts else NOTHING
    signs = Signs(said, described, pictures)
    verdict = next(rung.verdict for rung in LADDER if rung.holds(signs))
    return verdict if verdict.score > PERHAPS or said.covered else None


def _about_another(signs: Signs) -> bool:
    return signs.said.other and not signs.said.target


def _text_only(signs: Signs) -> bool:
    said = signs.said
    if not said.text_use or said.picture or said.generation or said.looks > 1:
        return False
    return said.target or said.developer or said.artificial or said.prompt


def _asks(said: Reading) -> bool:
    return said.order or said.template or said.description


def _target_and_making(signs: Signs) -> bool:
    said = signs.said
    if said.target:
        return _generation_shown(said) or (said.picture and _made_or_judged(said))
    a_model = said.artificial or said.model
    return said.developer and (said.generation or (said.picture and a_model))


def _generation_shown(said: Reading) -> bool:
    return said.generation or _asks(said) or said.turned_into or (said.prompt and said.look)


def _made_or_judged(said: Reading) -> bool:
    return said.prompt or ((said.making or said.verdict) and not said.looking)


def _looks_only(signs: Signs) -> bool:
    said = signs.said
    named = said.target or said.developer
    return named and said.picture and said.looking and not _generation_shown(said)


def _in_description(signs: Signs) -> bool:
    described = signs.described
    return described.prompt or described.generation or described.order


def _remarkable(signs: Signs) -> bool:
    said = signs.said
    return said.wonder or signs.pictures > 0 or said.is_remark


NO_NAMES = names_of({"name": "", "developer": "", "aliases": (), "others": (), "chat_window": None})
NOTHING = Reading("", NO_NAMES)
# The first that holds decides.
LADDER = (
    Rung(Verdict(2), _about_another),
    Rung(Verdict(2), _text_only),
    Rung(Verdict(3, "the model may only be shown pictures"), _looks_only),
    Rung(Verdict(5), _target_and_making),
    Rung(Verdict(4), lambda signs: signs.said.prompt or signs.said.generation),
    Rung(Verdict(4), lambda signs: signs.said.target and signs.said.picture),
    Rung(Verdict(4), lambda signs: _asks(signs.said) or signs.said.turned_into),
    Rung(Verdict(4), lambda signs: signs.said.artificial and signs.said.picture),
    Rung(Verdict(4), _in_description),
    Rung(
        Verdict(3, "pictures are spoken of beside the maker, but not how they are made"),
        lambda signs: signs.said.developer and signs.said.picture,
    ),
    Rung(
        Verdict(3, "the target is named, but not what it was used for"),
        lambda signs: signs.said.target and _remarkable(signs),
    ),
    Rung(Verdict(2), lambda signs: signs.said.target or signs.said.developer),
    Rung(
        Verdict(3, "a picture, or talk of one, without a word on how it was made"),
        lambda signs: signs.pictures > 0 and (signs.said.is_remark or signs.said.picture),
    ),
    Rung(
        Verdict(3, "amazement without its object"),
        lambda signs: signs.said.wonder and (signs.said.is_remark or signs.pictures > 0),
    ),
    Rung(Verdict(2), lambda signs: signs.said.artificial),
    Rung(Verdict(1), lambda signs: True),  # noqa: ARG005 - the last rung always holds
)
ANSWERS = {rung.verdict: json.dumps(rung.verdict._asdict()) for rung in LADDER}


def assign(samples: Samples) -> None:
    """Gives every post of the thread to a sample, as far as it belongs to one."""
    for post in samples.thread:
        own = samples.owner.get(post.number)
        if own is None:
            _reply(post, samples)
        elif own.primary is post:
            own.hear_beside(post, samples.thread.names)
        elif judges_own(post.said):
            own.hear(post, post.text)


def fall_back(samples: Samples) -> None:
    """Makes a sample of the first post that says something, when the thread has none."""
    posts = [post for post in samples.thread if post.text.strip()]
    root = next(iter(samples.thread), None)
    first = next((p for p in posts if p is root or p.said.length >= ANNOUNCED_FEWEST_WORDS), None)
    if first:
        quality: Quality = "Analysis" if _score(first, samples) >= PERHAPS else "Trash"
        samples.add_comment(first, quality)
        assign(samples)


def _reply(post: Post, samples: Samples) -> None:
    above = samples.owner.get(post.parent)
    if above and _takes_part(post, above, samples):
        samples.owner[post.number] = above
    elif _comments(post, above, samples):
        samples.add_comment(post, "Analysis")
    elif above:
        samples.owner[post.number] = above


def _takes_part(post: Post, above: Draft, samples: Samples) -> bool:
    joined = _shows(post, above) and above.join(post)
    if post.found:
        above.hear_beside(post, samples.thread.names)
        return joined
    speaks = post.said.length > 0 or not joined
    return (speaks and judges(post.said) and above.hear(post, post.text)) or joined


def _shows(post: Post, above: Draft) -> bool:
    """Whether its pictures are what somebody made from the sample's prompt."""
    said = post.said
    if not post.pictures or (said.other and not said.target):
        return False
    if _wordless(post) or post.found or says_tried(said):
        return True
    filled_in = above.template and said.length <= 2 * MOST_WORDS_OF_A_REMARK
    return filled_in or (same_author(post, above.primary) and said.is_remark)


def _comments(post: Post, above: Draft | None, samples: Samples) -> bool:
    said = post.said
    if said.length < ANNOUNCED_FEWEST_WORDS or said.asks_for_prompt:
        return False
    among_pictures = said.picture and (post.pictures > 0 or above is not None)
    return (among_pictures and not said.is_remark) or _score(post, samples) > PERHAPS


def _score(post: Post, samples: Samples) -> int:
    verdict = judge(post.said, post.alt_texts, post.pictures, samples.thread.names)
    return verdict.score if verdict else 0


def _wordless(post: Post) -> bool:
    words = (word for word in post.said.text.split() if not word.startswith("#"))
    return not any(letter.isalnum() for word in words for letter in word)


def extract(inputs: Mapping[str, Any]) -> str | None:
    """Answers an extraction request."""
    thread = read_thread(inputs["posts"], names_of(inputs["target"]))
    drafts = samples_of(thread).settled()
    unspoken = not drafts and any(post.text.strip() for post in thread)
    if unspoken or not _covered(thread, drafts):
        return None
    return json.dumps({"samples": [draft.as_answer() for draft in drafts]}, ensure_ascii=False)


def samples_of(thread: Thread) -> Samples:
    """Finds the samples of a thread, the posts that show them, and what was said about them."""
    samples = Samples(thread)
    _find_prompts(samples)
    follow_pointers(samples)
    join_parts(samples)
    lend_upwards(samples)
    assign(samples)
    if not samples.drafts:
        fall_back(samples)
    return samples


def _find_prompts(samples: Samples) -> None:
    known: set[str] = set()
    for post in samples.thread:
        # Who repeats a prompt has tried it.
        if post.found and (prompt := " ".join(post.found.prompt.split())) not in known:
            known.add(prompt)
            samples.add_prompt(post, post.found)


def _covered(thread: Thread, drafts: list[Draft]) -> bool:
    """Whether the word lists cover what the thread's first author and the samples' authors say."""
    root = next(iter(thread), None)
    primary = {draft.primary.number for draft in drafts}
    matters = [
        post
        for post in thread
        if post is root or post.number in primary or (root and same_author(root, post))
    ]
    total = sum(len(post.text) for post in matters)
    unknown = sum(len(post.text) for post in matters if not post.said.covered)
    return 2 * unknown <= total

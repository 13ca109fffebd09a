"""Cut a prompt's place in a text clean of what plainly is not part of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from echo_hf.engines.rules.feedback import judges_own
from echo_hf.engines.rules.names import Names
from echo_hf.engines.rules.reading import Reading

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
    """A span without the chatter at its end and the decoration at its beginning.

    Args:
        text: What a post says.
        span: Where its prompt stands, roughly.
        names: The names around the target.

    Returns:
        Where the prompt stands; null when nothing is left, or more than a prompt may have.
    """
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

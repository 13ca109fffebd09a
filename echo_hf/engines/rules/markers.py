"""Find where a post says "here is the prompt": labels, and hints that it stands elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from echo_hf.engines.rules.folding import LETTER, words_of
from echo_hf.engines.rules.han_words import HAN_OR_KANA
from echo_hf.engines.rules.phrases import END, START, one_of
from echo_hf.engines.rules.words import PROMPT_BY_COLON, words

HAN = r"提示词|提示詞|提示语|提示語|咒语|咒語|描述词|プロンプト|呪文"
LABEL_WORD = rf"(?:{START}(?:prompts?|promts?)(?![a-z])|{HAN})"
# At the beginning of a line other words serve as well: "Consigne :", "指令："
LABEL_AT_START = rf"(?:{START}{one_of(PROMPT_BY_COLON)}{END}|指令|指示文?|プロンプト文)"
SEPARATOR = r"(?:(?P<colon>[:：])|\s?(?:=>|->|→|➡\ufe0f?|=)|\s[—–|-](?=\s))"
LABEL = re.compile(
    rf"(?P<word>{LABEL_WORD})(?P<tail>[^\n:：.!?。！？=→➡|]{{0,40}}?){SEPARATOR}"
    rf"|(?P<other>{LABEL_AT_START})\s?(?:\d{{1,2}}\s?)?[:：]"
)
# A line that holds nothing else.
HEADING = re.compile(
    r"(?m)^[^\w\n]{0,8}(?:(?:the|my|full|image|here|s|is|are|new|your|free|master|base|exact|chatgpt"
    r"|gpt|4o|el|le|der|mein|meu|o|il|mi|mon|\d{1,2})[^\w\n]{1,3}){0,5}"
    rf"{LABEL_WORD}"
    r"(?:[^\w\n]{1,3}(?:share|sharing|used|below|here|i|for|this|these|image|one|it|\d{1,2}|usado|abajo"
    r"|aquí|ci|dessous|unten|hier|abaixo|aqui|qui|sotto|以下|如下|分享|はこちら|↓)){0,5}"
    r"(?:如下|分享|はこちら|以下|は以下)?[^\w\n:：{\[(\"“「『`]{0,12}$"
)
PLAIN_TAIL = re.compile(
    r"(?:\W{0,2}(?:i|used|was|is|here|below|for|this|one|it|image|again|usado|utilizado|utilisé|war|era"
    r"|foi|usei|usé|\d{1,2}|：|如下|はこちら|は))*\W{0,3}"
)
# Of another kind, or the key of a JSON object.
NOT_A_LABEL = re.compile(r"(?:(?:negative|negativer?|反向)\W{0,2}|[\"'])$")
NOT_A_TAIL = re.compile(r"\s*(?:engineer|inject|hack|librar|guide|tips?\b|book)|\s*//")
MOST_LABELS = 64
LONGEST_LEAD = 40
MOST_WORDS_OF_A_LEAD = 4
LEAD_WORD = re.compile(rf"{LETTER}+|[\u3040-\u9fff]{{1,4}}")
HERE = r"below|👇|⬇|↓|🔽|abajo|ci-dessous|unten|abaixo|sotto|下方|下面|下に|以下"
ELSEWHERE = (
    r"(?:in|en|im|nos|nei|dans)\s(?:(?:the|den|der|los|les|first|next|my)\s){0,3}"
    r"(?:comment|repl|thread|posts?(?!\w|-|\soffice)|tweet|alt\b|kommentar|antwort|coment|respuest"
    r"|répons|respost|commenti|rispost|hilo|fil\b)|🧵|(?:next|first|following)\s(?:post|tweet|comment|reply)"
    r"|\balt\b|评论|評論|留言|回复|回覆|リプ|返信|コメント|ツリー|ALT"
)
POINTER = re.compile(
    rf"{LABEL_WORD}[^\n]{{0,30}}?(?:{HERE}|{ELSEWHERE})"
    rf"|(?:{ELSEWHERE}|see comments?|{HERE})[^\n]{{0,24}}?{LABEL_WORD}"
)
IN_DESCRIPTION = re.compile(
    rf"{LABEL_WORD}[^\n]{{0,24}}?(?<![a-z])alt(?![a-z])|(?<![a-z])alt(?![a-z])[^\n]{{0,16}}?{LABEL_WORD}"
)


# What a label is followed by when it only points; see `only_points`.
POINTING_WORD = words(
    en="""in the my see check is are first next comment comments reply replies thread post tweet alt
    alts text description descriptions below here down on for and of this it at bottom image
    images""",
    es="en los el comentarios abajo respuesta respuestas hilo",
    fr="dans les commentaires ci dessous",
    de="im in den kommentaren unten",
    pt="nos comentários abaixo",
    it="nei commenti sotto",
)


class Label(NamedTuple):
    """A place that announces a prompt.

    Attributes:
        start: Where the label begins.
        inside: Where what it labels begins.
    """

    start: int
    inside: int


def labels(folded: str) -> list[Label]:
    r"""The labels in a text.

    Args:
        folded: The text, folded.

    Returns:
        In order; inside a line only the first of the text counts, so that a prompt may speak of
        prompts.

    Example:
        >>> labels("fox\nprompt: a fox, using the prompt: red")
        [Label(start=4, inside=11)]
    """
    return sorted({*_with_separator(folded), *_headings(folded)})


def _with_separator(folded: str) -> Iterator[Label]:
    first = True
    for match in islice(LABEL.finditer(folded), MOST_LABELS):
        # Looked for nearby only: a text of one line with many labels stays cheap.
        near = max(0, match.start() - LONGEST_LEAD - 2)
        line = max(near, folded.rfind("\n", near, match.start()) + 1)
        lead = folded[line : match.start()]
        if NOT_A_LABEL.search(lead[-12:]) or NOT_A_TAIL.match(match["tail"] or ""):
            continue
        if _begins_line(lead):
            yield Label(line, match.end())
        elif first and match["colon"] and PLAIN_TAIL.fullmatch(match["tail"]):
            yield Label(match.start(), match.end())
        else:
            continue
        first = False


def _begins_line(lead: str) -> bool:
    return len(lead) <= LONGEST_LEAD and len(LEAD_WORD.findall(lead)) <= MOST_WORDS_OF_A_LEAD


def _headings(folded: str) -> Iterator[Label]:
    found = islice(HEADING.finditer(folded), MOST_LABELS)
    return (Label(match.start(), match.end()) for match in found)


def points_elsewhere(folded: str) -> bool:
    """Whether a text says that the prompt stands below, in a reply, or in a description.

    Example:
        >>> points_elsewhere("look at this! prompt in the comments"), points_elsewhere("a prompt")
        (True, False)
    """
    return POINTER.search(folded) is not None


def only_points(folded: str) -> bool:
    """Whether what follows a label is no prompt, but says where the prompt is.

    Example:
        >>> only_points("in the comments 👇"), only_points("a city below the clouds")
        (True, False)
    """
    if HAN_OR_KANA.search(folded):
        return len(folded) <= LONGEST_LEAD // 2 and points_elsewhere("prompt " + folded)
    return POINTING_WORD.issuperset(words_of(folded))


def points_to_description(folded: str) -> bool:
    """Whether a text says that the prompt stands in a picture's description.

    Example:
        >>> points_to_description("prompt in alt")
        True
    """
    return IN_DESCRIPTION.search(folded) is not None

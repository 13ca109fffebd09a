"""Find screenshots of conversations, and pictures that show what went in beside what came out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from echo_hf.engines.rules.folding import fold, words_of
from echo_hf.engines.rules.instructions import is_order_for_picture
from echo_hf.engines.rules.multimodal.collages import collages_among
from echo_hf.engines.rules.multimodal.edits import Edit
from echo_hf.engines.rules.multimodal.looks import Look
from echo_hf.engines.rules.multimodal.role_sample import Picture, Post, Sample
from echo_hf.engines.rules.multimodal.role_words import END, START
from echo_hf.engines.rules.multimodal.windows import Window
from echo_hf.engines.rules.names import Names

SHOT = re.compile(
    rf"{START}(?:screen ?(?:shots?|grabs?|caps?|capture)|captura(?: de pantalla)?"
    rf"|capture d['’]écran|bildschirmfoto|bildschirmaufnahme|print da tela|schermata){END}"
    "|截图|截圖|截屏|スクショ|スクリーンショット"
)
CHAT = re.compile(
    rf"{START}(?:chats?|conversations?|convo|chat (?:window|log|history)|dialog(?:ue)?"
    rf"|conversación|conversation|unterhaltung|gespräch|chatverlauf|conversa|conversazione){END}"
    "|对话|對話|聊天|チャット|会話|やり取り|やりとり"
)
# Windows of other products, whatever the config names.
ELSEWHERE = re.compile(
    rf"{START}(?:chatgpt|gemini|copilot|claude|grok|discord|telegram|whatsapp|slack|bing|poe"
    rf"|perplexity|meta ai|mistral|le chat|deepseek|midjourney|photoshop){END}|豆包|文心|通义|元宝"
)
INTERFACE = re.compile(
    rf"{START}(?:ui|ux|app|apps|interface|dashboard|website|web ?page|landing page|tweet|messages?"
    rf"|interfaz|oberfläche|infographic|infografía|infografik){END}|界面|网页|アプリ|画面|信息图"
)
PICTURE_SHOWN = re.compile(
    rf"{START}(?:pictures?|images?|photos?|drawings?|posters?|illustrations?|results?|generated"
    rf"|drawn|imagen|foto|bild|imagem|immagine|dibujo|dessin|affiche|plakat){END}|图|圖|画像|絵"
    r"|イラスト|海报"
)
MOST_ABOVE = 2


@dataclass
class Screens:
    """The pictures of a sample that are no plain inputs or outputs.

    Attributes:
        conversations: Screenshots of conversations with the target, one for each conversation.
        collages: Pictures that show what went in beside what came out.
        others: Pictures that are neither: windows of other products, second shots of the same.
        unsure: Whether there is one that rules cannot place.
    """

    conversations: list[int] = field(default_factory=list)
    collages: list[int] = field(default_factory=list)
    others: set[int] = field(default_factory=set)
    unsure: bool = False

    @property
    def all(self) -> set[int]:
        """The numbers of all of them."""
        return {*self.conversations, *self.collages, *self.others}


def find_screens(sample: Sample, edit: Edit, looks: Mapping[int, Look | None]) -> Screens:
    """Finds the screenshots and collages among a sample's pictures.

    Args:
        sample: The sample.
        edit: What its prompt asks for.
        looks: Its pictures as plain measures see them, by number.

    Returns:
        What was found.
    """
    screens = Screens()
    for post, pictures in sample.with_pictures():
        shots = [one for one in pictures if _is_shot(sample, post, one, looks[one.number], screens)]
        screens.conversations += _one_for_each(shots, looks, screens)
        rest = [one for one in pictures if one.number not in screens.all]
        screens.collages += collages_among(rest, post, sample, edit, looks)
    return screens


def _one_for_each(
    shots: Sequence[Picture], looks: Mapping[int, Look | None], screens: Screens
) -> list[int]:
    """Of several shots in one post, which are of one conversation, the one that shows most."""
    if not shots:
        return []
    best = max(shots, key=lambda one: _content(looks[one.number]))
    screens.others |= {one.number for one in shots if one is not best}
    return [best.number]


def _content(look: Look | None) -> tuple[bool, int]:
    if look is None:
        return (False, 0)
    window = Window(look)
    return (window.shows_a_picture, len(window.blocks))


def _is_shot(
    sample: Sample, post: Post, picture: Picture, look: Look | None, screens: Screens
) -> bool:
    """Whether a picture is a conversation with the target; notes windows of other products."""
    told, window = _Told(sample, post, picture), Window(look) if look else None
    if not (told.by_alt_text or (window and _looks_so(window, told, sample))):
        return False
    shows = window is None or window.shows_a_picture or told.with_picture
    if told.of_another or not shows:
        screens.others.add(picture.number)
        return False
    screens.unsure |= not told.of_target
    return told.of_target


def _looks_so(window: Window, told: _Told, sample: Sample) -> bool:
    if told.by_text:
        return window.is_conversation
    if not told.is_task:
        if told.names_window:
            return window.is_conversation or window.shows_a_picture_among_others
        return window.is_conversation and window.shows_a_picture
    if any(one.search(fold(sample.prompt)) for one in (SHOT, CHAT, INTERFACE)):
        return False  # It may be what was asked for.
    return window.is_conversation and window.shows_a_picture and window.has_controls


def _is_task(sample: Sample) -> bool:
    """Whether the prompt is one, not a comment as a whole."""
    prompt, first = sample.read(sample.prompt), sample.primary
    part = first is not None and first.holds_prompt and sample.read(first.beside).length > 0
    return part or is_order_for_picture(prompt) or prompt.description or prompt.template


class _Told:
    """What the posts say about a picture that may be a screenshot."""

    def __init__(self, sample: Sample, post: Post, picture: Picture) -> None:
        above = [one.text for one, _ in zip(sample.above(post), range(MOST_ABOVE), strict=False)]
        # A comment that was taken for a prompt speaks of the picture.
        self.is_task = _is_task(sample)
        self.alt = fold(picture.alt_text)
        self.text = fold(post.beside if self.is_task else post.text)
        self.around = fold("\n".join(above))
        self.sample = sample

    @property
    def by_alt_text(self) -> bool:
        """Whether its description calls it a screenshot of a conversation."""
        shot, window = SHOT.search(self.alt), self._names_window(self.alt)
        return bool(window and (shot or CHAT.search(self.alt))) or bool(
            shot and self._chats(self.alt)
        )

    @property
    def by_text(self) -> bool:
        """Whether its post speaks of a screenshot or a conversation."""
        return SHOT.search(self.text) is not None or self._chats(self.text)

    @property
    def names_window(self) -> bool:
        """Whether its post names the target's chat window."""
        return self._names_window(self.text)

    @property
    def of_target(self) -> bool:
        """Whether it can be taken for the target's own window."""
        if self.sample.window is None:
            return False
        named = any(map(self._names_window, (self.alt, self.text, self.around)))
        return named or self.by_alt_text or self.by_text or self._names_target()

    @property
    def of_another(self) -> bool:
        """Whether it is said to be another product's window."""
        if self.sample.window is None:
            return True
        if any(map(self._names_window, (self.alt, self.text))):
            return False
        return self._names_another(self.alt) or (
            self._names_another(self.text) and not self._names_target()
        )

    @property
    def with_picture(self) -> bool:
        """Whether its description speaks of a picture in it."""
        return PICTURE_SHOWN.search(self.alt) is not None

    def _chats(self, folded: str) -> bool:
        # "Chat" in the name of a window is no conversation.
        names = self.sample.window
        words = frozenset(words_of(folded))
        places = [one.span() for one in names.clear.finditer(folded, words)] if names else []
        found = CHAT.finditer(folded)
        return any(not any(at <= one.start() < end for at, end in places) for one in found)

    def _names_window(self, folded: str) -> bool:
        window = self.sample.window
        return window is not None and _named(window, folded)

    def _names_target(self) -> bool:
        return _named(self.sample.names, self.alt) or _named(self.sample.names, self.text)

    def _names_another(self, folded: str) -> bool:
        others = self.sample.names.others.finditer(folded, frozenset(words_of(folded)))
        return any(True for _ in others) or ELSEWHERE.search(folded) is not None


def _named(names: Names, folded: str) -> bool:
    return names.names_target(folded, frozenset(words_of(folded)))

"""Find what fills the blanks of a template in each of its pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from echo_hf.engines.rules.folding import fold, words_of
from echo_hf.engines.rules.han_words import HAN_OR_KANA
from echo_hf.engines.rules.multimodal.blank_values import (
    MOST_PIECES,
    SEPARATORS,
    Blank,
    Listing,
    listings,
    named,
    sentences,
    value_of,
)
from echo_hf.engines.rules.multimodal.role_sample import Picture, Post, Sample
from echo_hf.engines.rules.multimodal.role_words import END, START
from echo_hf.engines.rules.multimodal.templates import Template, read_template
from echo_hf.engines.rules.multimodal.value_words import LEAD

Filling = tuple[tuple[str, str], ...]

FEWEST_WORDS_OF_AN_ALT_TEXT = 4
MOST_WORDS_UNANNOUNCED = 3
LONGEST_CAPTION = 12
WITH_ARTICLE = re.compile(r"(?:an?|un[ae]?|eine?n?|uma?)\s", re.IGNORECASE)
INVITES = re.compile(
    rf"{START}(?:your own|yours|your turn|fill (?:in|it|the)|reply with|comment with|replace|swap"
    r"|put your|drop your|pick (?:a|an|your|any)|choose (?:a|an|your|any)|try it with|change the"
    r"|template|placeholder|brackets?|plantilla|rellena|completa|reemplaza|pon (?:tu|el|la)"
    r"|tu propi[oa]|corchetes|modèle|remplace[zr]?|complète[zr]?|à vous|crochets|vorlage"
    r"|ersetz\w*|setz\w*|füll\w*|eigene[ns]?|klammern|modelo|preench\w*|substitu\w*|coloque"
    rf"|colchetes|sostituisci|riempi|modello|parentesi){END}|填空|替换|替換|换成|換成|模板|交作业"
    r"|填[入上]|テンプレ|入れ替え|入れて|穴埋め|置き換え|括弧|好きな"
)


def fillings_of(sample: Sample, outputs: Sequence[Picture]) -> dict[int, Filling]:
    """Finds what fills the blanks of a template in each of its pictures.

    Args:
        sample: The sample.
        outputs: Its pictures that came out.

    Returns:
        Placeholder and value of every blank, by the number of the picture. A picture about which
        posts do not say all of them has none.
    """
    template = read_template(sample.prompt, sample.placeholders)
    if template is None:
        return {}
    invited = sample.primary is not None and bool(INVITES.search(fold(sample.primary.beside)))
    found: dict[int, Filling] = {}
    for post, _ in sample.with_pictures():
        pictures = [one for one in outputs if one.post == post.number]
        reader = _Reader(template, chatty=_is_chatty(sample, post), invited=invited)
        for picture, values in zip(pictures, reader.read(post, pictures), strict=True):
            if values and not any(map(sample.names_a_model, values)):
                found[picture.number] = _filling(template, values)
    return found


def _is_chatty(sample: Sample, post: Post) -> bool:
    own = sample.by_task_author(post)
    return post is sample.primary or (own and sample.read(post.beside).length > LONGEST_CAPTION)


def _filling(template: Template, values: Sequence[str]) -> Filling:
    return tuple(
        (one.placeholder, value) for one, value in zip(template.blanks, values, strict=True)
    )


class _Reader:
    """Reads the values of one post's pictures.

    Args:
        template: The template.
        chatty: Whether it is one of the template's author that says much else.
        invited: Whether that post asks others to fill in the blanks.
    """

    def __init__(self, template: Template, *, chatty: bool, invited: bool) -> None:
        self.template = template
        self.blanks = template.blanks
        self.chatty = chatty
        self.invited = invited

    def read(self, post: Post, pictures: Sequence[Picture]) -> Iterator[Sequence[str] | None]:
        """The values of each picture, null where they are not known."""
        several = self._one_each(post, len(pictures)) if len(pictures) > 1 else None
        for at, picture in enumerate(pictures):
            values = several[at] if several else self._values(post, picture)
            fits = values is not None and agrees(picture.alt_text, values)
            yield values if fits else None

    def _values(self, post: Post, picture: Picture) -> Sequence[str] | None:
        said = self.template.followed_by(post.beside) | named(post.beside, self.blanks)
        shown = self.template.followed_by(picture.alt_text) | named(picture.alt_text, self.blanks)
        return (
            self._complete(said)
            or self._listed(post, picture)
            or self._complete(shown)
            or self._complete(shown | said)
            or self._by_default(said, post)
        )

    def _complete(self, found: Mapping[Blank, str]) -> Sequence[str] | None:
        values = [found[blank] for blank in self.blanks if blank in found]
        return values if len(values) == len(self.blanks) else None

    def _listed(self, post: Post, picture: Picture) -> Sequence[str] | None:
        some = list(listings(post.beside, self.blanks))
        announced = {one.values for one in some if one.announced}
        if announced:
            return announced.pop() if len(announced) == 1 else None
        plain = [one for one in some if self._is_clear(one, picture)]
        return plain[0].values if plain and not self.chatty else None

    def _is_clear(self, listing: Listing, picture: Picture) -> bool:
        """Whether a sentence that nothing announces lists values and is no remark."""
        if len(self.blanks) > 1:
            return True
        value = listing.values[0]
        if self.blanks[0] in self.template.defaults and not any(map(str.isalnum, value)):
            return True  # a pictograph for another one
        if WITH_ARTICLE.match(value) or _has_word_of(picture.alt_text, [value]):
            return True
        return self.invited and len(value.split()) <= MOST_WORDS_UNANNOUNCED

    def _by_default(self, said: Mapping[Blank, str], post: Post) -> Sequence[str] | None:
        """The template's own values, where its post, or one that names others, says no more."""
        if any(True for _ in listings(post.beside, self.blanks)) or not (self.chatty or said):
            return None
        return self._complete({**self.template.defaults, **said})

    def _one_each(self, post: Post, pictures: int) -> list[Sequence[str]] | None:
        """The values of several pictures, where a post lists them in order."""
        some = [one.values for one in listings(post.beside, self.blanks)]
        if len(set(some)) == len(some) == pictures:
            return list(some)
        return self._in_one_sentence(post, pictures) if len(self.blanks) == 1 else None

    def _in_one_sentence(self, post: Post, pictures: int) -> list[Sequence[str]] | None:
        for sentence in sentences(post.beside):
            lead = LEAD.match(fold(sentence))
            for separator in SEPARATORS[:3]:
                pieces = separator.split(sentence[lead.end() if lead else 0 :], MOST_PIECES)
                values = [value_of(piece, self.blanks[0]) for piece in pieces]
                known = [[value] for value in values if value]
                if len(pieces) == len(known) == pictures:
                    return list(known)
        return None


def agrees(alt_text: str, values: Sequence[str]) -> bool:
    """Whether a picture's description does not speak of something else.

    Args:
        alt_text: The description, perhaps empty.
        values: What is thought to fill the blanks.

    Returns:
        False when it says enough and has no word of any value; true in another script.

    Example:
        >>> agrees("A red stamp with a kettle", ["a kettle"]), agrees("Two cats on a sofa", ["fox"])
        (True, False)
    """
    folded = fold(alt_text)
    enough = len(set(words_of(folded))) >= FEWEST_WORDS_OF_AN_ALT_TEXT
    if not enough or HAN_OR_KANA.search(folded) or not any(map(_long_words, values)):
        return True
    return _has_word_of(alt_text, values)


def _has_word_of(alt_text: str, values: Sequence[str]) -> bool:
    said = words_of(fold(alt_text))
    meant = [word for value in values for word in _long_words(value)]
    # "fox" is meant by "foxes", "watercolour" by "watercolor".
    return any(one.startswith(word[:5]) for word in meant for one in said)


def _long_words(value: str) -> list[str]:
    return [word for word in words_of(fold(value)) if len(word) > 2]

"""Read what a sentence says of what somebody asked for, beside what they got."""

from __future__ import annotations

import re
from collections.abc import Sequence

from echo_hf.engines.rules.verdicts import failures
from echo_hf.engines.rules.verdicts.sentences import Sentence
from echo_hf.engines.rules.words import words

ASKED = words(
    en="asked asking requested ordered told wanted said specified prompted typed",
    es="pedí",
    fr="demandé",
    de="gebeten wollte",
    pt="pedi",
    it="chiesto",
)
GAVE = words(
    en="""got gave gives get gets made came returned did drew painted redid redrew changed replaced
    removed added turned""",
    es="puso dio salió",
    fr="donné",
    de="bekommen bekam",
    pt="deu saiu",
    it="dato uscito",
)
SHOWS = frozenset({"this is", "this looks", "it is", "it looks", "there are"})
# After "got" they say nothing that was not asked for.
AS_ASKED = frozenset({"this", "these", "it", "exactly", "that"})
WHEN = frozenset({"when", "although", "while", "not", "cuando", "quand", "als", "quando", "wenn"})
NUMBERS = words(
    en="""one two three four five six seven eight nine ten eleven twelve 1 2 3 4 5 6 7 8 9 10 11
    12""",
    es="dos tres cuatro cinco seis siete ocho nueve",
    fr="deux trois quatre cinq sept huit neuf",
    de="zwei drei vier fünf sechs sieben acht neun",
    pt="três quatro sete oito",
    it="due tre quattro cinque sei sette otto nove",
)
COLOURS = words(
    en="""red orange yellow green blue purple pink white black brown grey gray beige teal gold
    silver""",
    es="rojo naranja amarillo verde azul rosa blanco negro",
    fr="rouge jaune vert bleu blanc noir",
    de="rot gelb grün blau weiß schwarz",
    pt="vermelho amarelo branco preto",
    it="rosso giallo blu bianco nero",
)
WHERE = re.compile(
    r"\bwhere(?:'s| is| are| did| has| have)\b|\bdónde est|\bwo (?:ist|sind)\b|\boù (?:est|sont)\b"
    r"|\bcadê\b|\bonde est|\bdov'è\b|\bdove sono\b"
)
# What people look for on the page, not in the picture.
SOUGHT = re.compile(
    r"prompt|link|option|button|setting|download|\byou\b|\bapp\b|thread|enlace|lien|tutorial"
    r"|\bget\b|\bfind\b|menu|\bthis\b"
)
# At the beginning of a question they leave open whether something is good or bad.
OPEN_QUESTION = words(
    en="""can could does do did is are was were will would has have should any anyone anybody what
    which who when if may am""",
    es="puede puedes podría se qué cuál quién cuándo hay alguien funciona",
    fr="est peut peux tu vous quel quelle comment y avez qui",
    de="kann können geht ist sind welche welches wer wann wie hast gibt funktioniert kannst",
    pt="pode consegue qual quem como dá alguém",
    it="può puoi quale chi come c qualcuno",
)
OPENING = words(
    en="and but so ok okay hey wait omg wow lol also", es="y", fr="et", de="und", it="e"
)


def mismatch(said: Sequence[str]) -> str | None:
    """The failure that words speak of by saying what was asked for and what came.

    Args:
        said: Plain words.

    Returns:
        The failure; null where they do not say both.

    Example:
        >>> mismatch("asked for seven candles and got nine".split())
        'counting'
    """
    asked = next((at for at, word in enumerate(said) if word in ASKED), None)
    gave = next((at for at in range(len(said)) if _gives(said, at)), None)
    if asked is None or gave is None or not AS_ASKED.isdisjoint(said[gave + 1 : gave + 2]):
        return None
    first, second = sorted((asked, gave))
    if gave < asked and WHEN.isdisjoint(said[first:second]):
        return None
    return _differing(said[first:second], said[second:])


def recounts(said: Sequence[str]) -> bool:
    """Whether two numbers stand with a denial between them.

    Example:
        >>> recounts("there should be three owls not four".split())
        True
    """
    numbers = [at for at, word in enumerate(said) if word in NUMBERS][:3]
    if len(numbers) != 2 or numbers[1] - numbers[0] > 5:
        return False
    return not {"not", "instead"}.isdisjoint(said[numbers[0] : numbers[1]])


def misses(sentence: Sentence) -> bool:
    """Whether a sentence asks where something in the picture has gone."""
    return bool(WHERE.search(sentence.text)) and not SOUGHT.search(sentence.text)


def leaves_open(sentence: Sentence) -> bool:
    """Whether a sentence only asks whether something is so."""
    opening = next((word for word in sentence.words if word not in OPENING), None)
    return sentence.asks and opening in OPEN_QUESTION


def _gives(said: Sequence[str], at: int) -> bool:
    return said[at] in GAVE or (at > 0 and " ".join(said[at : at + 2]) in SHOWS)


def _differing(before: Sequence[str], after: Sequence[str]) -> str:
    if not NUMBERS.isdisjoint(before) and not NUMBERS.isdisjoint(after):
        return failures.COUNTING
    if not COLOURS.isdisjoint(before) and not COLOURS.isdisjoint(after):
        return failures.COLOUR
    return failures.IGNORED

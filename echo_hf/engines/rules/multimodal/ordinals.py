"""Find which of several pictures a text speaks of: "the first two", "2枚目", "left", "the rest"."""

from __future__ import annotations

import re
from typing import Literal

from echo_hf.engines.rules.multimodal.role_words import END, START

Which = int | Literal["last", "rest"]

NUMBER_WORDS = {
    1: r"first|1st|primer[ao]?|1ª|1º|premi[eè]re?|1re|1er|1ère|erste[srnm]?|primeir[ao]|prim[ao]",
    2: r"second|2nd|segund[ao]|2ª|2º|deuxième|seconde|2e|2ème|zweite[srnm]?|second[ao]",
    3: r"third|3rd|tercer[ao]?|3ª|3º|troisième|3e|3ème|dritte[srnm]?|terceir[ao]|terz[ao]",
    4: r"fourth|4th|cuart[ao]|4ª|4º|quatrième|4e|4ème|vierte[srnm]?|quart[ao]",
}
LAST_WORDS = r"last|final (?:one|picture|image|pic)|últim[ao]|derni[eè]re?|letzte[srnm]?|ultim[ao]"
PICTURE = (
    r"(?:pics?|pictures?|images?|img|photos?|fotos?|imagen|imagem|immagine|bild|slide|#|no\.?)"
)
COUNT = r"(?:two|dos|deux|zwei|beiden|dois|duas|due|2|three|tres|trois|drei|três|tre|3)"
# "first try" is no picture.
NOT_A_TRY = (
    r"(?!\s(?:try|tries|time|times|attempt|prompt|of all|go|shot|look|impression|day|week|version"
    r"|edit|pass|run|intento|vez|fois|essai|mal|versuch|tentativa|volta))"
)
NUMERAL = "[1-9１-９一二两兩三四]"
REST = (
    rf"{START}(?:(?:the )?rest|(?:the )?others?|(?:the )?other (?:one|two|three)|las otras"
    r"|l[oa]s demás|la otra|les autres|l['’]autre|das andere|die anderen|die andere|as outras"
    rf"|a outra|le altre|l['’]altra){END}|其他|其余|其餘|另一[张張]|另外|もう[1一]枚|残り"
)
FIRST_FEW = (
    rf"{START}(?:(?:first|primer[oa]s|premi[eè]re?s|ersten|primeir[oa]s|prim[ei]|pictures"
    rf"|images) {COUNT}|{COUNT} (?:primer[oa]s|premi[eè]re?s|ersten|primeir[oa]s|prim[ei])){END}"
    rf"|前{NUMERAL}[张張枚]|最初の{NUMERAL}枚"
)
LAST_FEW = (
    rf"{START}(?:(?:last|últim[oa]s|derni[eè]re?s|letzten|ultim[ei]) {COUNT}|{COUNT} (?:últim[oa]s"
    rf"|derni[eè]re?s|letzten|ultim[ei])){END}|[后後]{NUMERAL}[张張枚]|最後の{NUMERAL}枚"
)
# A bare digit only where a list of pictures is told.
DIGIT = (
    r"(?<![\w.:/,-])[1-9](?=\s?(?:[=:：)&+→]|->|[-–]\s?[2-9]|\.\s|,\s?[2-9]|/\s?[2-9]|(?:is|are"
    rf"|and|y|et|und|e|ist|es|est|é|è|was|were|sind|son|sont|são|sono){END}))"
    r"|(?<=[:：=]\s)[1-9](?![\d.:/x×%])"
)
NTH = (
    rf"{START}{PICTURE}\s?[#.]?\s?[1-9](?![\d:x×])|第{NUMERAL}[张張枚幅个個]|{NUMERAL}枚目"
    rf"|[图圖]{NUMERAL}|(?:写真|画像){NUMERAL}|{DIGIT}"
)
LEFT = (
    rf"{START}(?:left|top|izquierda|arriba|gauche|haut|links|oben|esquerda|cima|sinistra"
    rf"|sopra){END}|左(?:边|邊|侧|图|圖|が|は|の|：|:)|上(?:图|圖|が|は|段)"
)
RIGHT = (
    rf"{START}(?:right|bottom|derecha|abajo|droite|bas|rechts|unten|direita|baixo|destra"
    rf"|sotto){END}|右(?:边|邊|侧|图|圖|が|は|の|：|:)|下(?:图|圖|が|は|段)"
)
DIGITS = str.maketrans("１２３４５６７８９一二两兩三四", "123456789122234")
COUNTS = {"three": 3, "tres": 3, "trois": 3, "drei": 3, "três": 3, "tre": 3, "3": 3}
LAST_WORD = re.compile(r"\w+")


def nth_of(said: str) -> int:
    """The number that a text gives to a picture.

    Example:
        >>> nth_of("picture #2"), nth_of("第三张"), nth_of("２枚目")
        (2, 3, 2)
    """
    return int(next(one for one in said.translate(DIGITS) if one.isdigit()))


def count_of(said: str) -> int:
    """How many pictures a text speaks of, which is two unless it says three or another numeral.

    Example:
        >>> count_of("first three"), count_of("前两张"), count_of("die ersten beiden")
        (3, 2, 2)
    """
    for word in LAST_WORD.findall(said):
        if word in COUNTS:
            return COUNTS[word]
    digits = [one for one in said.translate(DIGITS) if one.isdigit()]
    return int(digits[0]) if digits else 2

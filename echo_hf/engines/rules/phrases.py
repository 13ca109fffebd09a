"""Phrases that plain rules look for in folded text; every repetition in them is bounded."""

from __future__ import annotations

import re
from collections.abc import Set

from echo_hf.engines.rules.folding import LETTER
from echo_hf.engines.rules.words import OPENERS, ORDER, WEAK_ORDER

END = rf"(?!{LETTER})"
START = rf"(?<!{LETTER})"


def one_of(words: Set[str]) -> str:
    """An alternation of whole words.

    Example:
        >>> one_of({"draw", "redraw"})
        '(?:draw|redraw)'
    """
    return "(?:" + "|".join(sorted(words)) + ")"


def _phrases(*alternatives: str) -> re.Pattern[str]:
    return re.compile(START + "(?:" + "|".join(alternatives) + ")")


GENERATION = _phrases(
    r"(?:image|img|picture|photo)[\s-]?gen(?:s|eration|erations|erator|erators|erated|erating)?"
    + END,
    r"images?\s(?:edit|editing|editor|editors|model|models|creation|creator)" + END,
    r"(?:text|txt|im(?:age|g))[\s-]?(?:to|2)[\s-]?im(?:age|g)",
    r"(?:generat(?:e|es|ed|ing)\s(?:\w{1,12}\s){0,2}|ai[\s-]?|ai[\s-]generated\s|generated\s)"
    r"(?:images?|pictures?|photos?|art|artwork|portraits?|illustrations?|selfies?)" + END,
    r"ai[\s-]generated" + END,
    r"(?:images?|pictures?|photos?)\s(?:was |were )?(?:made|created|generated|edited)"
    r"\s(?:with|by|using|in)",
    r"(?:generaci[oó]n|generador|creaci[oó]n|edici[oó]n)\sde\sim[aá]genes",
    r"im[aá]gen(?:es)?\s(?:generad|cread|hech|con\sia|de\sia)",
    r"(?:generar|crear|generando|generad[ao]s?)\s(?:\w{1,12}\s){0,2}im[aá]gen(?:es)?",
    r"(?:g[eé]n[eé]ration|g[eé]n[eé]rateur|cr[eé]ation|retouche)\sd['’]\s?images?",
    r"images?\s(?:g[eé]n[eé]r[eé]e?s?|par\s(?:l['’])?ia|ia)" + END,
    r"(?:g[eé]n[eé]rer|cr[eé]er)\s(?:\w{1,12}\s){0,2}images?",
    r"bild(?:er)?[\s-]?(?:generierung|generator|erzeugung|generieren|erstellen|erzeugen|bearbeitung)",
    r"ki[\s-]?(?:bild|bilder|kunst|generiert\w{0,3})" + END,
    r"(?:generierte|erzeugte|erstellte)[nrs]?\sbild",
    r"(?:gera[cç][aã]o|gerador|cria[cç][aã]o|edi[cç][aã]o)\sde\simagens",
    r"imag(?:em|ens)\s(?:gerad|criad|feit|com\sia|de\sia)",
    r"(?:gerar|criar|gerou|gerei)\s(?:\w{1,12}\s){0,2}imag(?:em|ens)",
    r"(?:generazione|generatore|creazione)\sdi\simmagini",
    r"immagin[ei]\s(?:generat|creat|con\sia)",
    r"(?:generare|creare)\s(?:\w{1,12}\s){0,2}immagin[ei]",
)
PROMPT_MEANT = re.compile(
    r"prompts?(?:\s[^\s:：.!?]{1,15}){0,6}\s?[:：]"
    r"|prompts?[\s\W]{0,3}[👇⬇↓🧵]"
    rf"|{START}(?:the|my|this|that|new|your|full|same|share|sharing|copy|free|image|following|best"
    r"|these|another|today'?s|fun|favou?rite|el|este|mi|nuevo|los|le|mon|ce|ton|les|nouveau|der|mein"
    r"|dieser|den|dem|diesem|neuer|o|meu|esse|este|novo|il|mio|questo|nuovo|4o|gpt|chatgpt)\s"
    rf"(?:\w{{1,12}}\s)?prompts?{END}(?!\s(?:respon|repl[iy]|action|return|pay|service|attention|deliver))"
    r"|prompts?\s(?:share|sharing|below|in|used|i used|is|was|here|pack|thread|ideas?|template|drop"
    r"|credit|usado|utilizado|abajo|en|aqui|aquí|utilisé|ci|dans|unten|im|hier|abaixo|nos|nei|sotto"
    r"|usato)" + END
)
PROMPT_ASKED = re.compile(
    r"prompts?\s?(?:please|pls|plz|por favor|bitte|svp|stp|per favore|\?)"
    r"|(?:what|which|share|drop|send|whats|what's|got)\W(?:\w{1,8}\W){0,3}prompts?"
    r"|(?:qu[eé]|cu[aá]l|quel|welche[rn]?|qual|che)\s(?:\w{1,8}\s){0,2}prompts?"
    r"|prompts?\s(?:did|do)\syou"
)
COLON = re.compile(r"(?m)^\W{0,8}\w{3,15}\s?[:：]")
ABBREVIATED = re.compile(r"(?<![^\W\d_])(?:Gen)?(?:AI|IA|KI)(?![^\W\d_])|(?<!\w)#(?:ai|ia|ki)\b")
# An order stands at the beginning of a line or sentence, after at most a few polite words.
ORDER_AT = (
    rf"\W{{0,8}}(?:{one_of(OPENERS)}{END}\W{{1,3}}){{0,4}}"
    rf"(?:{one_of(ORDER | WEAK_ORDER)}){END}"
    r"(?!\W{1,2}(?:sure|america|no mistake|money|sense|up your|it to|history|love|fun of"
    r"|(?:on|off|left|right|up|down|out|around)\b))(?=\W{1,3}\w)"
)
ORDER_LINE = re.compile(rf"(?:^|[.!?:：\n…]){ORDER_AT}")
ORDER_START = re.compile(ORDER_AT)
INTO = re.compile(
    rf"{START}(?:turn|turns|turned|turning|transform\w{{0,5}}|convert\w{{0,5}}|convert[ií]\w{{0,3}}"
    r"|convier\w{2,4}|verwandel\w{1,2}|mach\w{0,2}|gemacht|transformé\w{0,2})"
    rf"[^.!?\n]{{1,80}}?{START}(?:into|to|en|em|in|zu|als)\s"
)
BLANK = re.compile(r"\[[^\[\]\n(]{2,60}\](?!\()|【[^【】\n]{1,60}】|\{[^{}\n\":]{2,60}\}")
JSON_START = re.compile(r"[{\[]\s{0,40}\"[^\"\n]{1,80}\"\s{0,5}:\s{0,5}[\"{\[\dtf]")
EMOJI_WONDER = re.compile("[🤯😱🔥😍🤩👀😮😲🥹]")

"""How the result of an edit differs from what went in, where a look at the two can tell."""

from __future__ import annotations

import re
from typing import Literal

from echo_hf.engines.rules.multimodal.role_words import END, NOUN, PICTURED, START

Change = Literal["add_colour", "take_colour", "from_sketch", "to_sketch", "darken", "brighten"]

SKETCH = (
    r"sketch(?:es)?|line ?art|line drawing|doodles?|drawings?|scribbles?|wireframe|blueprint"
    r"|floor ?plan|boceto|dibujo|garabato|croquis|esquisse|dessin|skizze|zeichnung|kritzelei"
    r"|esboço|rascunho|desenho|schizzo|disegno|bozzetto"
)
SKETCH_HAN = "線画|ラフ|下書き|下絵|落書き|らくがき|スケッチ|草图|草圖|线稿|線稿|手稿|涂鸦"
NO_COLOUR = (
    r"black[\s-](?:and|&)[\s-]white|monochrome|gr[ae]yscale|sepia|blanco y negro|noir et blanc"
    r"|schwarz-?wei(?:ß|ss)|preto e branco|bianco e nero"
)
NO_COLOUR_HAN = "黑白|白黒|モノクロ"
# What follows one of these is there already.
THERE = (
    r"(?:this|these|my|our|the attached|the uploaded|old|est[aeo]|mi|cett?e?|ce|ma|mon|dies(?:e|es"
    r"|er|en)|mein(?:e|en)?|minha|meu|quest[ao])\s(?:[\w-]{1,14}\s){0,3}?"
)
LIGHT = frozenset({"darken", "brighten"})
PICTURE_THERE = re.compile(rf"{START}{THERE}{PICTURED}")
CHANGES: tuple[tuple[Change, re.Pattern[str]], ...] = (
    (
        "to_sketch",
        re.compile(
            r"(?:into|to|as|como|en|em|in|zu|als)\s(?:an?\s|un[ae]?\s|uma?\s"
            rf"|eine[rn]?\s)?(?:[\w-]{{1,14}}\s){{0,3}}?(?:{SKETCH}|colou?ring (?:page|book)){END}"
            rf"|(?:{SKETCH_HAN})(?:に|風|化)|[变變成为]{{1,2}}(?:{SKETCH_HAN})"
        ),
    ),
    (
        "from_sketch",
        re.compile(
            rf"{START}{THERE}(?:{SKETCH}){END}|(?:この|[这這此]\w{{0,2}}?"
            rf"|我的)(?:\w{{0,4}}?)(?:{SKETCH_HAN})"
        ),
    ),
    (
        "add_colour",
        re.compile(
            rf"{START}(?:colou?ri[sz]e|colou?r (?:it|this|in)\b|restore|(?:add|natural|realistic"
            r"|full) colou?rs?|restaura|colorea|restaure|colorise|koloriere|restauriere|colora"
            rf"|{THERE}(?:{NO_COLOUR})\s{NOUN}){END}|色を(?:塗|つけ|付け)|着色|カラー化|上色|彩色"
            r"|修复|修復|復元"
        ),
    ),
    ("take_colour", re.compile(rf"{START}(?:{NO_COLOUR}){END}|{NO_COLOUR_HAN}")),
    (
        "darken",
        re.compile(
            rf"{START}(?:night|nighttime|midnight|moonlight|moonlit|noche|nuit|nacht|noite"
            rf"|notte){END}|夜"
        ),
    ),
    (
        "brighten",
        re.compile(
            rf"{START}(?:daylight|daytime|sunny|midday|noon|brighten|snowy|snow){END}|白天|昼|雪"
        ),
    ),
)


def change_in(folded: str) -> Change | None:
    """Reads how the result of an edit differs from what went in.

    Args:
        folded: A prompt that edits a picture, folded.

    Returns:
        The first change that the prompt speaks of; null when it speaks of none that a look at
        the pictures can tell, or of both day and night.

    Example:
        >>> change_in("make this night photo a sunny day"), change_in("make this dog smile")
        ('brighten', None)
    """
    # "This night photo" is one already.
    wanted = PICTURE_THERE.sub(" ", folded)
    found = [
        change
        for change, pattern in CHANGES
        if pattern.search(wanted if change in LIGHT else folded)
    ]
    return None if not found or set(found) >= LIGHT else found[0]

"""The words by which people say which picture went in and which came out, as patterns.

They are searched for in folded text (see `folding`); every repetition in them is bounded. A word
that is common in other talk counts only beside the word that makes it one about pictures.
"""

from __future__ import annotations

import re

from echo_hf.engines.rules.folding import LETTER

START, END = rf"(?<!{LETTER})", rf"(?!{LETTER})"
NOUN = (
    r"(?:photos?|photographs?|pictures?|images?|pics?|sketch(?:es)?|drawings?|doodles?|selfies?"
    r"|scans?|portraits?|paintings?|characters?|oc|logo|room|house|garden|car|bike|cat|kitten|dog"
    r"|puppy|pet|face|design|mug|product|outfit|jacket|dress|kids?|son|daughter|wife|husband|mum"
    r"|mom|dad|grandma|grandpa|grandmother|grandfather|snapshot|screenshot|napkin|line ?art"
    r"|handwriting)"
)
PICTURED = r"(?:photos?|photographs?|pictures?|images?|pics?|selfies?|drawings?|sketch(?:es)?)"
# What stands beside a word that means a picture only there: "before:", "the after", "(before)".
BESIDE = r"(?=\s?(?:[:：/&)→➡=|]|->|pic|photo|image|picture|shot|is\b|was\b|\n|$))"

_IN = {
    "en": rf"originals?(?:\s{NOUN})?|original version|inputs?|unedited|untouched|source {NOUN}"
    rf"|references?(?:\s{NOUN})?|raw (?:photo|image|scan|file)|before{BESIDE}|old {NOUN}"
    rf"|base {NOUN}|(?:my|our)\s(?:(?!ai\b|generated|edited|new\b|final|finished|result|version"
    rf"|first|second|last|favou?rite|latest|best)[\w'’-]{{1,14}}\s){{0,2}}?{NOUN}"
    r"|starting (?:point|image|photo|picture)|sketch(?:es)?|doodles?|scribbles?|line ?art|scans?"
    r"|(?:i|we)\s(?:gave|fed|uploaded|drew|took|shot|scanned|sketched|handed|started (?:with"
    rf"|from)|photographed|provided|attached)|{NOUN}\s(?:(?:that|which)\s)?(?:i|we)\s(?:used|sent"
    r"|put in|had)",
    "es": r"originale?s?|entradas?|antes" + BESIDE + r"|boceto|garabato|escaneo|referencias?"
    r"|mis? (?:propi[oa]s? )?(?:fotos?|dibujos?|bocetos?|gat[oa]|perr[oa]|retrato|imagen|selfie"
    r"|cuarto|habitación|casa|personaje)|foto (?:original|real|antigua|vieja)|(?:le|que) (?:di"
    r"|pasé|subí)",
    "fr": r"originale?s?|avant" + BESIDE + r"|croquis|esquisse|brouillon|entrée|référence|scan"
    r"|(?:ma|mes) (?:photos?|images?|chambre|maison)|mon (?:dessin|croquis|chat|chien|portrait"
    r"|personnage|logo)|photo de départ|(?:j['’]ai|je lui ai) (?:donnée?|fournie?|envoyée?"
    r"|dessinée?)",
    "de": r"original(?:foto|bild|e|s)?|vorher|skizze|vorlage|eingabe|ausgangs(?:bild|foto"
    r"|material)|kritzelei|scan|referenz|mein(?:e|em|en)? (?:eigene[sn]? )?(?:foto|bild|zeichnung"
    r"|skizze|katze|kater|hund|zimmer|figur|selfie|haus)|ich (?:\w{1,12} ){0,2}(?:gegeben"
    r"|hochgeladen|gezeichnet|gescannt)",
    "pt": r"originai?s?|entradas?|esboço|rascunho|rabisco|referência|minha foto|meu (?:desenho"
    r"|gato|cachorro|rascunho|retrato|quarto|personagem)|que (?:eu )?(?:dei|enviei|mandei)"
    r"|eu desenhei",
    "it": r"originale|prima" + BESIDE + r"|schizzo|bozzetto|scarabocchio|riferimento|scansione"
    r"|mia (?:foto|casa|stanza|immagine)|mio (?:disegno|cane|gatto|schizzo|ritratto|personaggio)"
    r"|(?:gli )?ho (?:dato|caricato|disegnato)",
}
_OUT = {
    "en": rf"results?|outputs?|after{BESIDE}|edit(?:ed)?(?: version| photo| one| picture)?"
    r"|generated|came (?:out|back)|(?:gave|handed|sent|got|gives) (?:me )?back|gave me|i got"
    r"|returned"
    r"|turn(?:ed|s|ing)? (?:[\w'’-]{1,14} ){0,4}?into|(?:final|finished)(?: image| result"
    r"| version| picture| piece)?|(?:ai|new|its|edited|restored) (?:version|take|attempt)"
    r"|renders?|rendered|restored|restoration|colou?ri[sz]ed|remixed|transformed|what (?:it"
    r"|the model|ai) (?:made|did)|made of (?:it|them)",
    "es": r"resultados?|después|salidas?|editad[oa]s?|generad[oa]s?|lo que (?:hizo|salió|me dio)"
    r"|(?:me )?(?:salió|devolvió|dio)|restaurad[oa]|final",
    "fr": r"résultats?|après|sorties?|retouchée?s?|générée?s?|rendu|final|ce qu['’](?:il"
    r"|elle) (?:en )?a (?:fait|rendu|donné|sorti)|restaurée?",
    "de": r"ergebnis(?:se)?|nachher|ausgaben?|bearbeitete?[sn]?|generierte?[sn]?|daraus"
    r"|fertige?[sn]?|rausgekommen|herausgekommen|draus gemacht|restauriert",
    "pt": r"resultados?|depois|editad[oa]s?|gerad[oa]s?|saídas?|ficou|devolveu",
    "it": r"risultat[oi]|dopo|modificat[oa]|generat[oa]|finale|uscit[oa]|restituito|restaurat[oa]",
}
_IN_HAN = (
    "原图|原圖|原片|原照片?|原稿|底图|底圖|草图|草圖|线稿|線稿|手稿|输入图?|輸入|参考图|參考圖"
    "|素材|之前|处理前|修改前|修复前|我(?:自己)?(?:拍|画|家)的|我的(?:照片|图|画|猫|狗|自拍|线稿"
    "|涂鸦|房间|角色)|上传的|扫描|老照片|元(?:の|画像|写真|絵|ネタ)|線画|ラフ|下書き|下絵|落書き"
    "|らくがき|スケッチ|原画|入力|参考(?:画像|写真)|ビフォー|自分の(?:写真|絵)|私の(?:写真|絵)"
    "|撮った|描いた|スキャン"
)
_OUT_HAN = (
    "结果|結果|效果图?|效果圖|成品|成图|成圖|输出|輸出|生成[的图圖后後]|之后|之後|处理后|修改后"
    "|修复后|改完|修图后|修好|出力|アフター|完成|仕上がり|できた|出来た|(?:変換|加工|編集"
    "|生成)(?:後|結果)"
)


def _any(by_language: dict[str, str], of_han: str) -> str:
    return f"(?:{START}(?:{'|'.join(by_language.values())}){END}|{of_han})"


# "The original prompt" is no picture.
NO_WORDS = r"(?!\s(?:prompts?|posts?|threads?|tweets?|ideas?|authors?|text|poster|thread)\b)"
IN, OUT = _any(_IN, _IN_HAN) + NO_WORDS, _any(_OUT, _OUT_HAN)
# Not by whom: "my cat" is mostly what a result shows.
POSSESSIVE = re.compile(r"my |our |mis? |m[ao]s? |mon |mein|meus? |minhas? |mi[ao] |我|自分の|私の")
# Said of both at once, in this order or the other; of a single picture it means two in one.
JOINT = r"\W{1,3}(?:(?:and|vs|y|et|und|e|a)\W{1,3})?"
BEFORE_AFTER = (
    rf"{START}(?:before{JOINT}after|antes{JOINT}(?:después|despues|depois)|avant{JOINT}après"
    rf"|vorher{JOINT}nachher|prima{JOINT}dopo){END}|前后对比|前後比較|ビフォー\W?アフター"
    r"|使用前\W?使用後"
)
AFTER_BEFORE = (
    rf"{START}(?:after{JOINT}before|(?:después|depois){JOINT}antes|après{JOINT}avant"
    rf"|nachher{JOINT}vorher|dopo{JOINT}prima){END}"
)
# A picture of the sample that is neither: what it is like in life, or only made people laugh.
NEITHER = (
    rf"{START}(?:irl|in real life|real life version|the real (?:one|thing|place)|reminds me|meme"
    rf"|reaction|meanwhile|actual photo|unrelated|off.topic){END}|现实中|实物图|実物|本物"
)
# Beside the place of a picture: "the second is my sofa", "the first two are mine".
OWNED = (
    rf"{START}(?:mine|ours|míos?|mías?|les miens|meus|minhas|miei|(?:my|our|mis?|ma|mon|mein(?:e"
    r"|en)?|meu|minha|mio|mia)\s(?!results?|version|attempt|prompt|favou?rite|take|edit|turn|try"
    rf"|go|fav|best|last|first|second)\w{{2,20}}){END}|我的"
)
AGAIN = (
    rf"{START}(?:another|again|also|more|second (?:try|attempt)|next try|v2|otr[oa]|encore|aussi"
    rf"|noch|auch|outr[oa]|altr[oa]|ancora){END}|再来|又|もう一|もう1|別の"
)


def first_of(*patterns: tuple[str, str]) -> re.Pattern[str]:
    """One pattern of several named ones; where two match at a place, the first counts.

    Example:
        >>> first_of(("red", "r+"), ("any", "[a-z]+")).match("rrr").lastgroup
        'red'
    """
    return re.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns))

"""Roles of images, blanks of templates and screenshots by plain rules."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice, pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps
from scipy import ndimage

from echo_hf.engines.rules.threads import judges, says_tried
from echo_hf.engines.rules.words import (
    COMPLAINT,
    FAMILIAR,
    FIRST_PERSON,
    HAN_OR_KANA,
    HERE,
    LETTER,
    LINK,
    MARKERS_ELSEWHERE,
    PRAISE,
    SELF,
    TRIED,
    Names,
    Reading,
    fold,
    is_order_for_picture,
    names_of,
    words,
    words_of,
)
from echo_hf.errors import PictureError
from echo_hf.images.loader import upright_rgb
from echo_hf.images.store import FORMATS, MOST_PIXELS
from echo_hf.samples.blanks import Place, default_of, name_of, places

Array = NDArray[np.float32]

LONGEST_SIDE = 192
SHORTEST_SIDE = 32  # of a picture that shows anything
STRUCTURE = 32
CLEAR_EDGE = 12.0  # beyond it an edge counts no more: those of a night are as good
LUMA = np.array([0.299, 0.587, 0.114], dtype=np.float32)
PAPER_CHROMA, PAPER_TOLERANCE, FEWEST_PAPER = 48, 45, 0.72
FEWEST_INK, MOST_INK = 0.004, 0.28
BLANK_SPREAD = 2.0


@dataclass(frozen=True)
class Look:
    """A picture as plain measures see it."""

    rgb: Array
    size: tuple[int, int]

    @cached_property
    def grey(self) -> Array:
        """Its brightness."""
        return self.rgb @ LUMA

    @cached_property
    def chroma(self) -> Array:
        """How far each pixel is from grey."""
        spread: Array = self.rgb.max(axis=2) - self.rgb.min(axis=2)
        return spread

    @cached_property
    def brightness(self) -> float:
        """Its mean brightness, 0 to 255."""
        return float(self.grey.mean())

    @cached_property
    def colourfulness(self) -> float:
        """How many colours it has, by the measure of Hasler and Suesstrunk; 0 for one tint."""
        red, green, blue = np.moveaxis(self.rgb, 2, 0)
        one, other = red - green, (red + green) / 2 - blue
        return float(np.hypot(one.std(), other.std()))

    @cached_property
    def is_line_drawing(self) -> bool:
        """Whether it is little but strokes on paper."""
        ground = float(np.percentile(self.grey, 80))
        paper = float((np.abs(self.grey - ground) < PAPER_TOLERANCE).mean())
        ink = float((self.grey < ground - 2 * PAPER_TOLERANCE).mean())
        coloured = float(np.percentile(self.chroma, 92))
        return paper > FEWEST_PAPER and FEWEST_INK < ink < MOST_INK and coloured < PAPER_CHROMA

    @cached_property
    def is_empty(self) -> bool:
        """Whether it shows nothing: too small, or all of one colour."""
        return min(self.size) < SHORTEST_SIDE or float(self.grey.std()) < BLANK_SPREAD

    @cached_property
    def structure(self) -> Array:
        """Where its edges are, as numbers of mean 0 and length 1; zeros where it has none."""
        return structure_of(self.grey)

    def part(self, rows: slice, columns: slice) -> Look:
        """A part of it."""
        return Look(self.rgb[rows, columns], self.size)


def structure_of(grey: Array) -> Array:
    """Where the edges of a picture are."""
    rows, columns = np.gradient(grey) if min(grey.shape) > 1 else (grey * 0, grey * 0)
    edges = Image.fromarray(np.minimum(np.hypot(rows, columns), CLEAR_EDGE).astype(np.float32))
    coarse = np.asarray(edges.resize((STRUCTURE, STRUCTURE), Image.Resampling.BOX))
    flat = (coarse - coarse.mean()).ravel()
    length = float(np.linalg.norm(flat))
    return flat / length if length > 1e-6 else np.zeros_like(flat)


def alike(one: Look, other: Look) -> float:
    """How far two pictures have their edges in the same places."""
    return float(one.structure @ other.structure)


def look_at(file: Path | None) -> Look | None:
    """Looks at a picture."""
    if file is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(file, formats=FORMATS) as picture:
                return _seen(picture)
    except Exception:  # a decoder fed with hostile bytes raises whatever it trips over
        return None


def _seen(picture: Image.Image) -> Look | None:
    size = picture.size
    if size[0] * size[1] > MOST_PIXELS:
        return None
    picture.draft("RGB", (2 * LONGEST_SIDE, 2 * LONGEST_SIDE))
    shown = ImageOps.exif_transpose(_opaque(picture))
    shown.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.BOX, reducing_gap=2.0)
    return Look(np.asarray(shown, dtype=np.float32), size)


def _opaque(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    clear = picture.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear).convert("RGB")


LEVELS = 6
MARGIN = 0.1
FEWEST = 3


def blend_among(looks: Sequence[Look | None]) -> int | None:
    """Finds the picture that has the colours of each of the others."""
    shares = [_palette(look) for look in looks if look]
    if len(shares) < max(FEWEST, len(looks)):
        return None
    common = [min(_common(one, other) for other in shares if other is not one) for one in shares]
    second, best = sorted(common)[-2:]
    return common.index(best) if best - second > MARGIN else None


def _palette(look: Look) -> Array:
    levels = (look.rgb * (LEVELS / 256)).astype(np.int64).reshape(-1, 3)
    codes = levels @ np.array([LEVELS * LEVELS, LEVELS, 1])
    counts: Array = np.bincount(codes, minlength=LEVELS**3).astype(np.float32)
    return counts / np.float32(codes.size)


def _common(one: Array, other: Array) -> float:
    return float(np.minimum(one, other).sum())


Pixels = NDArray[np.int16]
Mask = NDArray[np.bool_]
Rectangle = tuple[int, int, int, int]

RECTANGLES_TOLERANCE = 4
BRIDGE = 5  # pixels of ground inside a picture, or between letters
EDGE = 2  # how far in an edge is sharp
SMALLEST, SHORTEST = 0.004, 24  # of the screenshot; pixels
GROUND, FILLED, RING = 0.3, 0.85, 0.8
RECTANGLES_LEVELS, FEWEST_COLOURS, MOST_PLAIN = 6, 10, 0.8
SUBJECT = (0.4, 0.98)  # of both sides: a drawing on paper, not lines of text, not a frame
HIGHEST_LINE, LONG = 32, 3
COLLAGE, STEP, SEAM, SMALLEST_PIECE = 0.5, 10, 0.6, 0.15
DEEPEST = 4


def pictures_in(rgb: Pixels) -> list[Rectangle]:
    """The pictures that stand in a screenshot or collage."""
    if min(rgb.shape[:2]) < SHORTEST:
        return []
    whole = (0, 0, rgb.shape[1], rgb.shape[0])
    on_ground = _margin(rgb) is not None or _near(rgb, _commonest(rgb)).mean() > GROUND
    found = _inside(rgb, whole, _size(whole), 0) if on_ground else _pieces(rgb, whole)
    return sorted(set(found), key=lambda one: (one[1], one[0]))


def _inside(rgb: Pixels, region: Rectangle, whole: int, depth: int) -> Iterator[Rectangle]:
    for box, marked in _blocks(rgb, region):
        if min(box[2] - box[0], box[3] - box[1]) < SHORTEST or _size(box) < SMALLEST * whole:
            continue
        filled = ndimage.binary_fill_holes(marked).mean() > FILLED
        deeper = depth < DEEPEST and _size(box) < _size(region)
        deeper = deeper and (not filled or _has_words(rgb, box))
        within = list(_inside(rgb, box, whole, depth + 1)) if deeper else []
        yield from within
        if not within and filled and _is_picture(_part(rgb, box)):
            yield from _pieces(rgb, box) if _size(box) > COLLAGE * whole else [box]


def _blocks(rgb: Pixels, region: Rectangle) -> Iterator[tuple[Rectangle, Mask]]:
    """What stands on the ground of a region, and where in its box it does."""
    part, (left, top, _, _) = _part(rgb, region), region
    margin = _margin(part)
    marked = ~_near(part, _commonest(part) if margin is None else margin)
    joined = ndimage.binary_closing(np.pad(marked, BRIDGE), np.ones((BRIDGE, BRIDGE)))
    labels, _ = ndimage.label(joined[BRIDGE:-BRIDGE, BRIDGE:-BRIDGE])
    for rows, columns in ndimage.find_objects(labels):
        box = (left + columns.start, top + rows.start, left + columns.stop, top + rows.stop)
        yield box, marked[rows, columns]


def _has_words(rgb: Pixels, box: Rectangle) -> bool:
    """Whether it is a bubble or a panel: plain all around, with words on it."""
    if _margin(_part(rgb, box)) is None:
        return False
    left, top, right, bottom = box
    return any(
        one[2] - one[0] > LONG * (one[3] - one[1]) and one[3] - one[1] < HIGHEST_LINE
        for one, _ in _blocks(rgb, box)
        if left < one[0] and top < one[1] and one[2] < right and one[3] < bottom
    )


def _is_picture(part: Pixels) -> bool:
    """Whether it has many colours, or is a drawing with one large subject."""
    apart = ~_near(part, _commonest(part))
    colours = np.count_nonzero(np.bincount(_codes(part, RECTANGLES_LEVELS)))
    if colours >= FEWEST_COLOURS and apart.mean() > 1 - MOST_PLAIN:
        return True
    labels, _ = ndimage.label(ndimage.binary_closing(apart, np.ones((3, 3))))
    (least, most), sides = SUBJECT, np.array(part.shape[:2])
    shares = (
        np.array([at.stop - at.start for at in found]) / sides
        for found in ndimage.find_objects(labels)
    )
    return any(bool((share > least).all() and (share < most).all()) for share in shares)


def _pieces(rgb: Pixels, box: Rectangle) -> list[Rectangle]:
    """The pictures of a collage without ground between them, cut where edges run right through."""
    part, (left, top, right, bottom) = _part(rgb, box), box
    across = [(left + a, top, left + b, bottom) for a, b in _stretches(part.swapaxes(0, 1))]
    down = [(left, top + a, right, top + b) for a, b in _stretches(part)]
    pieces = max(across, down, key=len)
    return [piece for piece in pieces if _is_picture(_part(rgb, piece))]


def _stretches(part: Pixels) -> list[tuple[int, int]]:
    steps = (np.abs(np.diff(part, axis=0)).max(axis=2) > STEP).mean(axis=1)
    cuts = [0, *(np.flatnonzero(steps > SEAM) + 1), len(part)]
    ends = [(int(a), int(b)) for a, b in pairwise(cuts)]
    return [(a, b) for a, b in ends if b - a > SMALLEST_PIECE * len(part)]


def _margin(part: Pixels) -> NDArray[np.int64] | None:
    """The colour all around, if it is one; corners may be round."""
    ring = np.concatenate([part[EDGE], part[~EDGE], part[:, EDGE], part[:, ~EDGE]])
    colour = _commonest(ring)
    return colour if _near(ring, colour).mean() > RING else None


def _near(pixels: Pixels, colour: NDArray[np.int64]) -> Mask:
    near: Mask = np.abs(pixels - colour).max(axis=-1) <= RECTANGLES_TOLERANCE
    return near


def _commonest(pixels: Pixels) -> NDArray[np.int64]:
    code = int(np.bincount(_codes(pixels, 256)).argmax())
    return np.array([code >> 16, code >> 8 & 255, code & 255])


def _codes(pixels: Pixels, levels: int) -> NDArray[np.int64]:
    coarse = pixels.reshape(-1, 3).astype(np.int64) * levels // 256
    codes: NDArray[np.int64] = coarse @ np.array([levels * levels, levels, 1])
    return codes


def _part(rgb: Pixels, box: Rectangle) -> Pixels:
    left, top, right, bottom = box
    return rgb[top:bottom, left:right]


def _size(box: Rectangle) -> int:
    return (box[2] - box[0]) * (box[3] - box[1])


LONGEST_TEXT = 8000
MOST_POSTS, MOST_PICTURES = 256, 256
WORD = re.compile(r"\w+")
WHITE_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a sample."""

    number: int
    post: int
    alt_text: str
    file: Path | None


@dataclass(frozen=True, slots=True)
class Post:
    """A post of a sample, or one that stands around it."""

    number: int
    parent: int
    author: str | None
    text: str
    beside: str
    holds_prompt: bool
    own: bool


@dataclass(frozen=True)
class Sample:
    """A sample with its pictures."""

    prompt: str
    placeholders: Sequence[str]
    posts: Mapping[int, Post]
    pictures: Mapping[int, Picture]
    names: Names
    window: Names | None

    @cached_property
    def primary(self) -> Post | None:
        """The post that states the task: the first that holds the prompt, else the first."""
        own = [post for post in self.posts.values() if post.own]
        if not own:
            return None
        whole = next((post for post in own if post.holds_prompt), None)
        wanted = set(WORD.findall(self.prompt.lower()))
        return whole or max(
            own, key=lambda post: len(wanted & set(WORD.findall(post.text.lower())))
        )

    def of_post(self, number: int) -> list[Picture]:
        """The pictures of a post, in order."""
        return [one for one in self.pictures.values() if one.post == number]

    def with_pictures(self) -> Iterator[tuple[Post, list[Picture]]]:
        """The posts that have pictures, and these."""
        for post in self.posts.values():
            if pictures := self.of_post(post.number):
                yield post, pictures

    def above(self, post: Post) -> Iterator[Post]:
        """The posts above one, the nearest first."""
        for _ in range(len(self.posts)):
            parent = self.posts.get(post.parent)
            if parent is None:
                return
            yield parent
            post = parent

    def by_task_author(self, post: Post) -> bool:
        """Whether a post is by the author of the task."""
        first = self.primary
        if first is None or post is first:
            return post is first
        return post.author is not None and post.author == first.author

    def names_a_model(self, text: str) -> bool:
        """Whether a text names the target, its maker, or another model."""
        folded = fold(text)
        words = frozenset(words_of(folded))
        names = self.names
        return names.names_target(folded, words) or any(
            any(listed.finditer(folded, words)) for listed in (names.developer, names.others)
        )

    def read(self, text: str) -> Reading:
        """The signs in a text."""
        return Reading(text, self.names)


def read_sample(inputs: Mapping[str, Any]) -> Sample:
    """Reads a request about the pictures of a sample."""
    prompt, target = inputs["prompt"], inputs["target"]
    posts = [_post(post, prompt) for post in inputs["posts"][:MOST_POSTS]]
    pictures = [_picture(one) for one in inputs["pictures"][:MOST_PICTURES]]
    return Sample(
        prompt[:LONGEST_TEXT],
        list(inputs["placeholders"]),
        {post.number: post for post in posts},
        {one.number: one for one in pictures},
        names_of(target),
        _window(target["chat_window"]),
    )


def _post(post: Mapping[str, Any], prompt: str) -> Post:
    text = (post["text"] or "")[:LONGEST_TEXT]
    pieces = text.split(prompt, maxsplit=1) if prompt else [text]
    return Post(
        post["number"],
        post["parent"],
        post["author"],
        _spaced(text),
        _spaced("\n".join(pieces)),
        len(pieces) > 1,
        post["own"],
    )


def _picture(one: Mapping[str, Any]) -> Picture:
    alt = (one["alt_text"] or "")[:LONGEST_TEXT]
    return Picture(one["number"], one["post"], _spaced(alt), one["file"])


def _spaced(text: str) -> str:
    # Patterns that may begin with white space would try a long run of it from each of its places.
    return WHITE_SPACE.sub(lambda run: "\n" if "\n" in run.group() else " ", text).strip()


def _window(name: str | None) -> Names | None:
    if not name:
        return None
    bare = {"developer": "", "aliases": (), "others": (), "chat_window": None}
    return names_of({"name": name, **bare})


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


# Names, and where the colour lies: hue in degrees from and to.
HUES: dict[str, tuple[str, str, float, float]] = {
    "red": (
        r"red|scarlet|crimson|rojo|roja|rouge|rote[rnsm]?|rot|vermelh[oa]|ross[oa]",
        "红|紅|赤",
        -15,
        14,
    ),
    "orange": (r"orange|naranja|laranja|arancione", "橙|橘|オレンジ", 14, 42),
    "yellow": (r"yellow|amarill[oa]|jaune|gelbe?[rnsm]?|amarel[oa]|giall[oa]", "黄", 42, 68),
    "green": (r"green|verde|vert|verte|grüne?[rnsm]?", "绿|綠|緑", 75, 165),
    "blue": (r"blue|navy|azul|bleue?|blaue?[rnsm]?|blu|azzurr[oa]", "蓝|藍|青", 190, 255),
    "purple": (
        r"purple|violet|lilac|morad[oa]|púrpura|violette?|lila|rox[oa]|viola",
        "紫",
        255,
        300,
    ),
    "pink": (r"pink|magenta|ros[ae]|rosada|rosado", "粉|ピンク", 300, 345),
}
NAMES = {
    hue: re.compile(rf"{START}(?:{latin}){END}|{han}") for hue, (latin, han, _, _) in HUES.items()
}
CLAUSE = re.compile(r"[^.,;:!?\n。，、；：！？]+")
# In such a clause colours are there already, or go away.
NOT_WANTED = re.compile(
    rf"{START}(?:keep|same|remove|without|don['’]t|not|no|leave|instead of|mantén|sin|garde|sans"
    rf"|ohne|behalte|mantenha|sem|senza|mantieni){END}|保持|去掉|不要|そのまま|変えない"
)
FROM = re.compile(
    rf"{START}(?:from|this|the|my|de"
    rf"|von)\s(?:\w{{1,12}}\s){{0,2}}?\w{{3,10}}(?:\s\w{{1,14}}){{0,3}}?\s(?=(?:to|into|a|zu"
    r"|en)\s)"
)
WEIGHT = 2.0
MORE, MOST, TIMES, TOLERANCE = 0.05, 0.4, 1.6, 0.01
SAME_SCENE, DIFFERENT, FEWEST_CHANGED = 0.5, 40.0, 0.004
SATURATED, BRIGHT = 0.3, 50.0


def gains_colours(prompt: str, one: Look, other: Look) -> float:
    """Whether one of two pictures has more of the colours that a prompt asks for."""
    wanted = wanted_colours(prompt)
    if not wanted:
        return 0.0
    where = _changed(one, other)
    if where is not None:
        mine, others = (_shares(look, wanted, where) for look in (one, other))
        return WEIGHT * (_has_gained(mine, others, MOST) - _has_gained(others, mine, MOST))
    mine, others = (_shares(look, wanted) for look in (one, other))
    return WEIGHT * (_has_gained(mine, others, MORE) - _has_gained(others, mine, MORE))


def _has_gained(before: list[float], after: list[float], least: float) -> bool:
    """Whether one of several shares has clearly grown, and none has shrunk."""
    pairs = list(zip(before, after, strict=True))
    grown = any(much - few > least and much > TIMES * few for few, much in pairs)
    return grown and all(few <= much + TOLERANCE for few, much in pairs)


def _changed(one: Look, other: Look) -> NDArray[np.bool_] | None:
    """Where two pictures of the same scene differ; null where they are of different ones."""
    if one.rgb.shape != other.rgb.shape or alike(one, other) < SAME_SCENE:
        return None
    differs: NDArray[np.bool_] = np.abs(one.rgb - other.rgb).max(axis=2) > DIFFERENT
    return differs if float(differs.mean()) > FEWEST_CHANGED else None


def wanted_colours(prompt: str) -> list[str]:
    """The colours that a prompt asks for."""
    clauses = CLAUSE.findall(fold(prompt))
    asked = " , ".join(FROM.sub(" ", one) for one in clauses if not NOT_WANTED.search(one))
    return [hue for hue, pattern in NAMES.items() if pattern.search(asked)]


def _shares(look: Look, hues: list[str], where: NDArray[np.bool_] | None = None) -> list[float]:
    """How much of a picture, or of a part of it, has each of some colours."""
    hue, clear = _hues(look)
    shares = []
    for name in hues:
        low, high = HUES[name][2:]
        inside = (((hue - low) % 360) < (high - low)) & clear
        shares.append(float((inside if where is None else inside[where]).mean()))
    return shares


def _hues(look: Look) -> tuple[Array, NDArray[np.bool_]]:
    red, green, blue = np.moveaxis(look.rgb, 2, 0)
    hue = np.degrees(np.arctan2(np.sqrt(3) * (green - blue), 2 * red - green - blue))
    brightest = look.rgb.max(axis=2)
    return hue, (brightest > BRIGHT) & (look.chroma > SATURATED * brightest)


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


LIVING = (
    r"(?:person|people|man|men|woman|women|girl|boy|guy|lady|baby|child|couple|family|animal|actor"
    r"|robot|monster|creature|mascot|figure|statue|hero)"
)
THING = (
    r"(?:object|icon|scene|place|landscape|street|building|apartment|kitchen|bedroom|bathroom"
    r"|living room|yard|shop|poster|book|cover|bottle|shoe|shoes|chair|sofa|plant|meme|map"
    r"|floor ?plan|artwork|art|subject|item|cartoon|comic|panel|page|text|menu|sign|card|render"
    r"|figurine|toy|doll|plushie|screenshot|frame|background)"
)
GIVEN = rf"(?:{NOUN}|{LIVING}|{THING})"
VERB = (
    r"(?:turn|make|transform|convert|restore|redraw|recreate|reimagine|restyle|retexture|put|place"
    r"|draw|paint|render|show|dress|edit|change|give|upscale|colou?ri[sz]e)"
)
# "In this image we can see ..." tells what to draw.
TELLS = (
    r"(?!,?\s(?:is|are|was|were|we|i|you|there|shows?|showing|consists?|contains?|has|have|can"
    r"|could|features?|depicts?|of|a|an|exudes|captures?|conveys|plane|must|should|will)\b)(?!,)"
)
ENGLISH = "|".join(
    (
        rf"(?:my|our)\s(?:[\w'-]{{1,14}}\s){{0,2}}?{GIVEN}",
        rf"(?:this|these)\s(?:[\w'-]{{1,14}}\s)?{NOUN}{TELLS}",
        rf"{VERB}\s(?:this|these|the (?:two|three)|both|me|us|my)",
        r"(?:turn|transform|convert|restore|redraw|edit|retexture|restyle|change)\sthe\s"
        rf"(?:\w{{1,14}}\s){{0,2}}?(?:{NOUN}|{LIVING}|subjects?)",
        rf"(?:{NOUN}|{LIVING}|subjects?)\s(?:in|from|on)\s(?:the|this|my)\s(?:\w{{1,12}}\s)?"
        rf"{PICTURED}",
        rf"(?:this|these)\s(?:{LIVING}|{THING}){TELLS}(?=[^.!?]{{0,200}}(?:$|[.!?\n]))",
        r"attach(?:ed|ment)s?(?!\s(?:to|with|on|by|at)\b)|uploaded",
        r"(?:provided|given|supplied|reference|input|original|source)\s"
        rf"(?:\w{{1,12}}\s){{0,2}}?{PICTURED}",
        r"(?:in|from|on|based on|using)\s(?:the|this|that|each|both)\s"
        r"(?:(?:first|second|third|1st|2nd|3rd|last|other|left|right|two|same)\s)?"
        rf"{PICTURED}{TELLS}",
        rf"(?:first|second|1st|2nd|both|two)\s{PICTURED}\s(?!of|frames?)",
        rf"{PICTURED}\s(?:one|two|[12])",
        r"(?:these|the|both|all)\s(?:two|three|four|2|3|4)"
        r"(?=\s(?:\w{1,12}\s)?(?:together|into|in one))",
        r"(?:of|as|with|like|featuring|around|behind|beside)\sme",
        r"(?:keep|preserve|maintain|retain|leave)\s(?:[\w',-]{1,16}\s){1,8}?"
        r"(?:the same|unchanged|exactly|intact|identical|as (?:it|they) (?:is|are)|where)",
        r"(?:do not|don['’]t|without)\s(?:change|changing|alter|altering)",
        r"(?:same|exact)\s(?:face|pose|person|composition|facial features)",
    )
)
_DEICTIC = {
    "en": ENGLISH,
    "es": r"(?:est[aeo]s?|mis?|la|el|las|los) (?:\w{1,12} )?(?:foto|fotos|fotografía|imagen"
    r"|imágenes|boceto|dibujo|retrato|garabato|selfie) (?:adjunt[ao]s?|de arriba|original"
    r"|subid[ao])|(?:est[aeo]s?|mis?) (?:\w{1,12} )?(?:foto|fotos|fotografía|imagen|imágenes"
    r"|boceto|dibujo|retrato|garabato|selfie|personaje|persona|gat[oa]|perr[oa]|casa|habitación"
    r"|cuarto|logo|robot)|(?:en|de) la (?:primera |segunda )?(?:foto|imagen)|est[ao]s dos"
    r"|sin cambiar|no cambies|conviérte(?:me|lo)|mantén (?:\w{1,12} ){1,5}igual",
    "fr": r"(?:cette|ces|ma|mes) (?:\w{1,12} )?(?:photos?|images?|esquisse|personne|maison|pièce"
    r"|chambre)|(?:ce|cet|mon) (?:\w{1,12} )?(?:dessin|croquis|portrait|personnage|logo|chat"
    r"|chien|robot|gribouillage)|(?:photo|image) (?:jointe|ci-jointe|d['’]origine|fournie)|(?:sur"
    r"|de) la (?:première |deuxième )?photo|ces deux|sans (?:changer|modifier)|ne (?:change"
    r"|modifie|touche)",
    "de": r"(?:dies(?:e|es|er|en|em)|mein(?:e|es|er|en|em)?) (?:\w{1,14} )?(?:foto|fotos|bild"
    r"|bilder|zeichnung|skizze|person|figur|katze|kater|hund|zimmer|haus|porträt|logo|roboter"
    r"|selfie|kritzelei)|(?:auf|aus|im) (?:dem|den)? ?(?:ersten |zweiten )?(?:foto|angehängten)"
    r"|beigefügte[sn]?|angehängte[sn]?|diese beiden|ohne (?:\w{1,12} ){0,3}zu (?:ändern"
    r"|verändern)|(?:lass|lasse) (?:\w{1,12} ){1,6}(?:wie|gleich|unverändert)",
    "pt": r"(?:est[ae]s?|ess[ae]s?|minhas?|meus?) (?:\w{1,12} )?(?:fotos?|imagem|imagens|desenho"
    r"|esboço|rascunho|personagem|pessoa|gat[oa]|cachorr[oa]|quarto|casa|retrato|logo|robô"
    r"|selfie)|(?:foto|imagem) (?:anexa|em anexo|original)|(?:da|na) (?:primeira "
    r"|segunda )?(?:foto|imagem)|sem (?:mudar|alterar)|não mude",
    "it": r"(?:quest[aeo]|mi[ao]|mie|miei) (?:\w{1,12} )?(?:foto|immagin[ei]|schizzo|disegno"
    r"|bozzetto|personaggio|persona|gatt[oa]|cane|stanza|casa|ritratto|logo|robot|selfie)|(?:foto"
    r"|immagine) (?:allegata|originale)|(?:nella|dalla|della) (?:prima |seconda )?(?:foto"
    r"|immagine)|queste due|senza (?:cambiare|modificare)",
}
_DEICTIC_HAN = (
    "[这這此](?:[张張幅个個]|些|两张|兩張|几张)?(?:老|旧|手绘)?(?:照片|图|圖|画|畫|相片|线稿|線稿"
    "|草图|涂鸦|人物|角色|人|猫|狗|机器人|房间|logo)|[图圖](?:中|里|裡|上)(?!的?(?:文字|标题))"
    "|(?:照片|图片|圖片|画面)(?:中的|里的|裡的|里|上的)|(?:根据|根據|基于|使用|将|將|把)(?:照片"
    "|图片|圖片|图像|圖像)|所附|图片人物|该(?:照片|图)|上传|上傳|附件|附图|参考[图圖]|參考[图圖]"
    "|原[图圖]|我的(?:照片|自拍|头像|猫|狗|画|脸)|[这這](?:两|兩|几|幾)[张張个]|第[一二12][张張]"
    "|[图圖][一二12]|保持[^。\n]{0,16}不变|不要改[变動动]|不变(?:。|，|$)|[将將把](?:他|她|它|我"
    "|背景)|この(?:\\w{0,6}?)(?:写真|画像|絵|線画|イラスト|スケッチ|落書き|らくがき|ラフ|キャラ"
    "|人物|人|子|猫|犬|ロボット|部屋|ロゴ|家|風景)|添付|この[2２二3３三]|[1１一]枚目|写真の(?:人"
    "|中|猫|犬)|(?:私|僕|俺|うち|自分)の(?:写真|顔|猫|犬|絵|部屋|子)|変えないで|そのまま(?:に|で"
    "|残)|変更しないで|参考画像|元の(?:写真|画像|絵)"
)
# An instruction that begins like this changes something that is there.
_FIRST = (
    r"(?:(?:please|pls|can you|could you|now|then|ok|okay|just|let['’]s|bitte"
    r"|por favor)\W{1,2}){0,3}(?:remove|erase|delete|get rid of|replace|swap|restore|colou?ri[sz]e"
    r"|recolou?r|unblur|deblur|sharpen|retouch|relight|denoise|upscale|uncrop|outpaint|inpaint"
    r"|enhance|clean up|fix|repair|crop|add|retexture|what if (?:the|there|he|she)|(?:there|he|she"
    r"|it|they) should|(?:put|place) (?:an? |some |the )?(?:\w{1,14} ){1,5}?(?:to|on|onto|in|into"
    r"|next to|behind|near|under|over|beside) (?:the|it|him|her|them|his|their|its)|(?:change|turn"
    r"|make|let|give|have|open|close|take away) (?:the|his|her|its|their|him|it|all|them)|(?:quita"
    r"|elimina|borra|cambia|reemplaza|restaura|colorea|añade|agrega|enlève|supprime|retire"
    r"|remplace|restaure|colorise|ajoute|entferne|ersetze|ändere|restauriere|koloriere|remova|tire"
    r"|troque|restaure|adicione|rimuovi|togli|sostituisci|restaura|colora|aggiungi))"
)
_FIRST_HAN = (
    "(?:请|請|帮我|幫我)?(?:去掉|去除|移除|换成|換成|把背景|抠|摳|修复|修復|给.{0,8}上色|上色)"
)
DEICTIC = re.compile(f"{START}(?:{'|'.join(_DEICTIC.values())}){END}|{_DEICTIC_HAN}")
FIRST = re.compile(rf"\W{{0,6}}(?:{_FIRST}{END}|{_FIRST_HAN})")
SEVERAL = re.compile(
    rf"{START}(?:(?:these|the|both|my) (?:two|three|2|3)|both (?:of )?(?:the |these )?{PICTURED}"
    rf"|(?:second|2nd|third|3rd|last|other) {PICTURED}|{PICTURED} (?:two|three|[23])|est[ao]s dos"
    r"|segunda (?:foto|imagen|imagem)|ces deux|deuxième (?:photo|image)|diese beiden"
    rf"|zweiten (?:foto|bild)|queste due|seconda (?:foto|immagine)|estas duas){END}"
    "|[这這][两兩]|第[二2][张張]|[图圖][二2]|この[2２二]|[2２二]枚目"
)
THREE = re.compile(
    rf"{START}(?:(?:these|the|all|my) (?:three|3)|(?:third|3rd) {PICTURED}|{PICTURED} (?:three"
    rf"|3)){END}"
    "|[这這](?:三|3)|第[三3][张張]|[图圖][三3]|この[3３三]|[3３三]枚目"
)


@dataclass(frozen=True)
class Edit:
    """What a prompt needs beside words."""

    inputs: int
    change: Change | None


def read_edit(prompt: str) -> Edit:
    """Reads what a prompt needs beside words."""
    folded = fold(prompt)
    if not (DEICTIC.search(folded) or FIRST.match(folded)):
        return Edit(0, None)
    several = 3 if THREE.search(folded) else 2 if SEVERAL.search(folded) else 1
    return Edit(several, change_in(folded))


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


Role = Literal["input", "output", "neither"]

MOST_TOKENS = 400
NEARBY = 24
# The same place of a text may match several: the first counts.
TOKEN = first_of(
    ("idiom", BEFORE_AFTER),
    ("reversed", AFTER_BEFORE),
    ("few", FIRST_FEW),
    ("last_few", LAST_FEW),
    ("rest", REST),
    ("nth", NTH),
    *((f"n{n}", rf"{START}(?:{word}){END}{NOT_A_TRY}") for n, word in NUMBER_WORDS.items()),
    (
        "last",
        rf"{START}(?:{LAST_WORDS}){END}(?!\s(?:night|month"
        rf"|year)){NOT_A_TRY}|最[后後](?:一[张張])?",
    ),
    ("left", LEFT),
    ("right", RIGHT),
    ("neither", NEITHER),
    ("input", IN),
    ("output", OUT),
    ("owned", OWNED),
    ("stop", r"(?:[;!?\n…！？；。]|\.(?=\s|$))+"),
    ("pause", rf"[,，、/|·→➡]|->|{START}(?:and|y|et|und|e){END}|[和と]"),
)
ROLES: dict[str, Role] = {"input": "input", "output": "output", "neither": "neither"}
# Who owns or made a picture says its role where nothing else does.
HINTS: dict[str, Role] = {"owned": "input", "maker": "output"}
NO_PICTURE = frozenset({*ROLES, *HINTS, "idiom", "reversed", "stop", "pause"})


class Token(NamedTuple):
    """A word of a text that says a role, or which picture is meant, or where a clause ends."""

    kind: str
    start: int
    end: int
    text: str


def tokens_of(folded: str, names: Names) -> list[Token]:
    """The tokens of a folded text; the target's name counts as who made a result."""
    found = [
        Token(str(match.lastgroup), *match.span(), match.group())
        for match in islice(TOKEN.finditer(folded), MOST_TOKENS)
    ]
    words = frozenset(words_of(folded))
    found += [
        Token("maker", *one.span(), one.group()) for one in names.clear.finditer(folded, words)
    ]
    for other in islice(names.others.finditer(folded, words), MOST_TOKENS):
        if _made(folded, other, names):
            found += [Token("neither", *other.span(), other.group())]
    return sorted(found, key=lambda token: token.start)


def _made(folded: str, other: re.Match[str], names: Names) -> bool:
    # "better than Paintbox" is not by Paintbox.
    around = folded[max(0, other.start() - NEARBY) : other.end() + NEARBY]
    return names.uses_other(around, frozenset(words_of(around)))


def parts_of(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens between pauses; one that begins a sentence has its end before them."""
    part: list[Token] = []
    for token in tokens:
        if token.kind in ("stop", "pause"):
            yield part
            part = [token] if token.kind == "stop" else []
        else:
            part.append(token)
    yield part


LONGEST_JOINT = 8  # characters between two words that belong together
STOP = Token("stop", 0, 0, "")


@dataclass
class Said:
    """What a text says about the pictures of its post."""

    roles: dict[int, Role] = field(default_factory=dict)
    order: tuple[Role, ...] | None = None
    mentioned: set[Role] = field(default_factory=set)
    names_input: bool = False
    sides: bool = False


def said_about(text: str, pictures: int, names: Names) -> Said:
    """Reads what a text says about the pictures of its post."""
    tokens = tokens_of(fold(text), names)
    kinds = {token.kind for token in tokens}
    sides = {"left", "right"} <= kinds
    about = Said(
        order=_order(tokens, pictures),
        mentioned={ROLES[kind] for kind in kinds if kind in ROLES},
        names_input=any(map(_names_input, tokens)),
        sides=sides,
    )
    if kinds & {"idiom", "reversed"}:
        about.mentioned |= {"input", "output"}
    given = [one for clause in _clauses(tokens) for one in _assigned(clause)]
    _settle(about, given, pictures, sides=sides)
    return about


def _names_input(token: Token) -> bool:
    return token.kind == "input" and not POSSESSIVE.match(token.text)


def _order(tokens: Sequence[Token], pictures: int) -> tuple[Role, ...] | None:
    for token in tokens:
        if token.kind == "idiom":
            return ("input", "output")
        if token.kind == "reversed":
            return ("output", "input")
    for listed in _lists_of_roles(tokens):
        near = all(other.start - one.end <= LONGEST_JOINT for one, other in pairwise(listed))
        told = tuple(_role_of(token) for token in listed)
        # Two roles in a sentence are mostly a story: "I gave it my photo and the result is great".
        complete = len(told) == max(2, pictures) and {"input", "output"} <= set(told)
        if complete and (near or len(told) > 2):
            return told
    return None


def _lists_of_roles(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The words that name roles one by one in a sentence: "my cat, my sofa, the result"."""
    told: list[Token] = []
    for part in [*parts_of(tokens), [STOP]]:
        if part and part[0].kind == "stop":
            yield told
            told = []
        spoken = [one for one in part if one.kind in ROLES]
        spoken = spoken or [one for one in part if one.kind in HINTS]
        if len({_role_of(one) for one in spoken}) == 1 and not any(map(_is_meant, part)):
            told.append(spoken[0])


def _role_of(token: Token) -> Role:
    return ROLES.get(token.kind) or HINTS[token.kind]


def _clauses(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens by clause; in "inputs: 1, 2" a pause ends none."""
    clause: list[Token] = []
    for part in parts_of(tokens):
        new_sentence = bool(part) and part[0].kind == "stop"
        if new_sentence or (_has_role(clause) and not _lists(clause, part)):
            yield clause
            clause = []
        clause += [token for token in part if token.kind != "stop"]
    yield clause


def _lists(clause: Sequence[Token], part: Sequence[Token]) -> bool:
    near = bool(part) and part[0].start - clause[-1].end <= LONGEST_JOINT
    told = _is_meant(clause[-1]) and not _is_meant(clause[0])
    return near and told and all(map(_is_meant, part))


def _has_role(clause: Sequence[Token]) -> bool:
    return any(token.kind in ROLES or token.kind in HINTS for token in clause)


def _is_meant(token: Token) -> bool:
    return token.kind not in NO_PICTURE


def _assigned(clause: Sequence[Token]) -> Iterator[tuple[list[Token], Role]]:
    """Which pictures a clause gives which role."""
    spoken = [token for token in clause if token.kind in ROLES]
    meant = [token for token in clause if _is_meant(token)]
    if not meant:
        return
    kinds = {token.kind for token in spoken}
    if not spoken:
        hints = [HINTS[token.kind] for token in clause if token.kind in HINTS]
        if hints:
            yield meant, hints[-1]
    elif len(kinds) == 1:
        yield meant, ROLES[spoken[0].kind]
    elif len(meant) == 1:
        # "the edit of my photo", "my photo, edited"
        yield meant, "output" if "output" in kinds else "neither"
    else:
        yield from _one_by_one(clause)


def _one_by_one(clause: Sequence[Token]) -> Iterator[tuple[list[Token], Role]]:
    """A clause such as "1 original 2 result", or "original first result second"."""
    told = [token for token in clause if token.kind in ROLES or _is_meant(token)]
    role_first = told[0].kind in ROLES
    pending: list[Token] = []
    for token in told:
        if role_first and token.kind not in ROLES and pending:
            yield [token], ROLES[pending.pop().kind]
        elif not role_first and token.kind in ROLES and pending:
            yield pending, ROLES[token.kind]
            pending = []
        elif (token.kind in ROLES) == role_first:
            pending.append(token)


def _settle(
    about: Said, given: Sequence[tuple[list[Token], Role]], pictures: int, *, sides: bool
) -> None:
    roles: dict[int, set[Role]] = {}
    rest: Role | None = None
    for tokens, role in given:
        for token in tokens:
            if token.kind == "rest":
                rest = role
            elif token.kind in ("left", "right") and not (sides and pictures == 2):
                continue
            else:
                for at in _places(token, pictures):
                    roles.setdefault(at, set()).add(role)
    if any(not 1 <= at <= pictures for at in roles):
        return  # It counts something else.
    about.roles = {at: some.pop() for at, some in sorted(roles.items()) if len(some) == 1}
    if rest and about.roles:
        about.roles |= {at: rest for at in range(1, pictures + 1) if at not in roles}


def _places(token: Token, pictures: int) -> Sequence[int]:
    if token.kind == "nth":
        return [nth_of(token.text)]
    if token.kind == "few":
        return range(1, count_of(token.text) + 1)
    if token.kind == "last_few":
        return range(pictures - count_of(token.text) + 1, pictures + 1)
    fixed = {"left": 1, "right": 2, "last": pictures, "n1": 1, "n2": 2, "n3": 3, "n4": 4}
    return [fixed[token.kind]]


ROLE_IN_ALT_TEXT, MOST_BY_WORDS, SEEN = 2.0, 2.0, 3.0
TIMES_MORE_COLOUR, LESS_LIGHT = 1.6, 25.0
STEM, SHORTEST_WORD = 5, 4
SENTENCE = re.compile(r"[^.;:!?\n。；：！？]+")
KEEPS = re.compile(
    r"\b(?:keep|same|unchanged|preserve|do not|don['’]t|without chang\w{0,3}|leave|maintain|mantén"
    r"|igual|garde|lass|mantenha|mantieni)\b"
)
REMOVES = re.compile(
    r"\b(?:remove|erase|delete|get rid of|without|clean up|fix|repair|quita|elimina|borra|sin"
    r"|enlève|supprime|retire|entferne|ohne|remova|tire|rimuovi|togli)\b"
)
GONE = re.compile(
    r"\b(?:removed|gone|without|erased|cleaned|repaired|fixed|no longer|no more|sin|sans|ohne|sem"
    r"|senza)\b"
)
ADDS = re.compile(r"\b(?:add|into|replace|with|put|y añade|ajoute|füge|adicione|aggiungi)\b")


@dataclass(frozen=True)
class Candidate:
    """A picture that may have gone in or come out."""

    alt_text: str
    look: Look | None


def input_weight(one: Candidate, other: Candidate, prompt: str, edit: Edit, names: Names) -> float:
    """How much speaks for one of two pictures as what went in, and the other as what came out."""
    weight = alt_weight(one.alt_text, prompt, names) - alt_weight(other.alt_text, prompt, names)
    if one.look and other.look:
        weight += change_weight(edit, one.look, other.look)
        weight += gains_colours(prompt, one.look, other.look)
    return weight


def alt_weight(alt_text: str, prompt: str, names: Names) -> float:
    """How much a description speaks for a picture as what went in."""
    if not alt_text:
        return 0.0
    roles = said_about(alt_text, 1, names).mentioned - {"neither"}
    weight = 0.0
    if len(roles) == 1:
        weight = ROLE_IN_ALT_TEXT if "input" in roles else -ROLE_IN_ALT_TEXT
    folded = fold(alt_text)
    said = _stems([folded])
    removed, added = _asked(prompt)
    spoken = 2.0 * len(said & removed)
    by_words = (-spoken if GONE.search(folded) else spoken) - len(said & (added - removed))
    return weight + max(-MOST_BY_WORDS, min(MOST_BY_WORDS, by_words))


def change_weight(edit: Edit, one: Look, other: Look) -> float:
    """How much the looks of two pictures speak for one as what went in."""
    return SEEN * (_evidence_changed(edit, one, other) - _evidence_changed(edit, other, one))


def _evidence_changed(edit: Edit, before: Look, after: Look) -> bool:
    match edit.change:
        case "from_sketch":
            return before.is_line_drawing and not after.is_line_drawing
        case "to_sketch":
            return after.is_line_drawing and not before.is_line_drawing
        case "add_colour":
            return before.colourfulness * TIMES_MORE_COLOUR < after.colourfulness
        case "take_colour":
            return after.colourfulness * TIMES_MORE_COLOUR < before.colourfulness
        case "darken":
            return after.brightness + LESS_LIGHT < before.brightness
        case "brighten":
            return before.brightness + LESS_LIGHT < after.brightness
        case None:
            return before.is_line_drawing and not after.is_line_drawing


def _asked(prompt: str) -> tuple[set[str], set[str]]:
    """Stems of what a prompt takes away, and of what else it asks for."""
    removed: list[str] = []
    added: list[str] = []
    for sentence in SENTENCE.findall(fold(prompt)):
        kept = KEEPS.search(sentence)
        asked = sentence[: kept.start()] if kept else sentence
        away = REMOVES.search(asked)
        onto = ADDS.search(asked, away.end()) if away else None
        if away:
            end = onto.start() if onto else len(asked)
            removed.append(asked[away.end() : end])
            added.append(asked[: away.start()] + " " + asked[end:])
        else:
            added.append(asked)
    return _stems(removed), _stems(added)


def _stems(texts: Sequence[str]) -> set[str]:
    words = [word for text in texts for word in words_of(text)]
    return {word[:STEM] for word in words if len(word) >= SHORTEST_WORD and word not in FAMILIAR}


SCREENSHOTS_LONGEST_SIDE = 2000  # what is larger is looked at in a smaller size
SCREENSHOTS_COLLAGE = 0.5  # of the area: in a window there is more than pictures
LEANS = 0.1  # of the width
SMALLER = 0.6


def screenshots(inputs: Mapping[str, Any]) -> str | None:
    """Answers a request about a screenshot."""
    try:
        picture = upright_rgb(inputs["file"])
    except PictureError:
        return None
    shrink = -(-max(picture.size) // SCREENSHOTS_LONGEST_SIDE)
    seen = pictures_in(np.asarray(picture.reduce(shrink), dtype=np.int16))
    ends = picture.size * 2
    boxes = [[min(at * shrink, end) for at, end in zip(box, ends, strict=True)] for box in seen]
    areas = ((box[2] - box[0]) * (box[3] - box[1]) for box in boxes)
    is_collage = sum(areas) > SCREENSHOTS_COLLAGE * picture.width * picture.height
    went_in = 1 if is_collage else _went_in(boxes, picture.width)
    if went_in >= len(boxes):
        return None
    told = {"inputs": boxes[:went_in], "outputs": boxes[went_in:]}
    return json.dumps({"prompt": None, **told})


def _went_in(boxes: Sequence[Sequence[int]], width: int) -> int:
    """How many pictures of a window people put in, those being the first ones."""
    above = [box for box in boxes if box[1] < boxes[0][3]]
    below = boxes[len(above) :]
    if not below:
        return 0
    leans = min(box[0] for box in above) - min(box[0] for box in below) > LEANS * width
    small, wide = (max(box[2] - box[0] for box in some) for some in (above, below))
    return len(above) if leans or small < SMALLER * wide else 0


MIDDLE = 0.06  # how far from the middle a seam may be, in parts of the side
SEAMS_STEP = 14.0
FEWEST_STEPS = 0.62
FEWEST_MORE_THAN_ELSEWHERE = 0.3
GUTTER_SPREAD = 6.0
HALF_SPREAD = 12.0
ALIKE = 0.36
SMALLEST_SIDE = 24


def is_split(look: Look) -> bool:
    """Whether a picture falls into two halves with a seam or a gutter between them."""
    return bool(_halves(look))


def is_pair(look: Look) -> bool:
    """Whether a picture shows the same thing twice, as pictures before and after an edit do."""
    return any(alike(*halves) > ALIKE for halves in _halves(look))


def _halves(look: Look) -> list[tuple[Look, Look]]:
    """The ways in which a picture falls into halves; at its seam, and in the very middle."""
    height, width = look.grey.shape
    found = []
    for at in _cuts(look.rgb) if width >= 2 * SMALLEST_SIDE else ():
        sides = look.part(slice(None), slice(0, at[0])), look.part(slice(None), slice(at[1], width))
        found.append(sides)
    for at in _cuts(look.rgb.swapaxes(0, 1)) if height >= 2 * SMALLEST_SIDE else ():
        sides = (
            look.part(slice(0, at[0]), slice(None)),
            look.part(slice(at[1], height), slice(None)),
        )
        found.append(sides)
    return [halves for halves in found if all(one.grey.std() > HALF_SPREAD for one in halves)]


def _cuts(rgb: Array) -> list[tuple[int, int]]:
    seam, middle = _seam(rgb), rgb.shape[1] // 2
    return [seam, (middle, middle)] if seam else []


def _seam(rgb: Array) -> tuple[int, int] | None:
    """Where the left part ends and the right one begins; null when there is no seam."""
    width = rgb.shape[1]
    reach = max(2, round(MIDDLE * width))
    low, high = width // 2 - reach, width // 2 + reach
    return _gutter(rgb, low, high) or _edge(rgb, low, high)


def _gutter(rgb: Array, low: int, high: int) -> tuple[int, int] | None:
    spread = rgb.std(axis=0).max(axis=1)
    plain = np.flatnonzero(spread[low:high] < GUTTER_SPREAD) + low
    if not plain.size:
        return None
    start, end = int(plain[0]), int(plain[-1]) + 1
    # A plain ground on both sides is no gutter.
    left, right = spread[max(0, start - 6) : start], spread[end : end + 6]
    bounded = min(left.max(initial=0), right.max(initial=0)) > 2 * GUTTER_SPREAD
    return (start, end) if bounded and plain.size == end - start else None


def _edge(rgb: Array, low: int, high: int) -> tuple[int, int] | None:
    steps = (np.abs(np.diff(rgb, axis=1)).max(axis=2) > SEAMS_STEP).mean(axis=0)
    usual = float(np.median(np.delete(steps, range(low, high))))
    least = max(FEWEST_STEPS, usual + FEWEST_MORE_THAN_ELSEWHERE)
    edges = np.flatnonzero(steps[low:high] >= least) + low
    if not edges.size:
        return None
    start, end = int(edges[0]) + 1, int(edges[-1]) + 1
    # Two edges, each blurred over two columns, with one colour between are sides of a gutter.
    between = rgb[:, start + 1 : end - 1].reshape(-1, 3)
    if between.size and float(between.std(axis=0).max()) > GUTTER_SPREAD:
        start = end = low + int(steps[low:high].argmax()) + 1
    return start, end


SIDE_BY_SIDE = re.compile(
    rf"{START}(?:side[ -]by[ -]side|collage|split(?:[ -]screen)?|diptych|two halves|left half"
    rf"|next to each other|lado a lado|côte à côte|nebeneinander|fianco a fianco){END}|对比图|並べ"
    r"|拼图"
)


def collages_among(
    pictures: Sequence[Picture],
    post: Post,
    sample: Sample,
    edit: Edit,
    looks: Mapping[int, Look | None],
) -> Iterator[int]:
    """Finds the collages among the pictures of a post."""
    alone = len(pictures) == 1
    by_text = alone and _tells_of_two(post.beside, sample.names)
    for picture in pictures:
        look = looks[picture.number]
        by_alt = _tells_of_two(picture.alt_text, sample.names)
        if look is None:
            found = by_alt and SIDE_BY_SIDE.search(fold(picture.alt_text)) is not None
        elif by_alt or by_text:
            found = is_split(look)
        else:
            found = alone and edit.inputs > 0 and is_pair(look)
        if found:
            yield picture.number


def _tells_of_two(text: str, names: Names) -> bool:
    """Whether a text about one picture speaks of what went in and what came out, by side."""
    said = said_about(text, 2, names)
    both = {"input", "output"} <= said.mentioned
    sided = said.sides and len(set(said.roles.values()) & {"input", "output"}) > 0
    return sided or said.order is not None or (both and SIDE_BY_SIDE.search(fold(text)) is not None)


# "mine:", "I went with", "我的："
LEAD = re.compile(
    rf"\W{{0,6}}(?:{START}(?:(?:here(?:['’]s| is| are)\s)?(?:mine|ours|my (?:version|turn|try|take"
    r"|go|one|attempt|example|values?|words?|pick|picks|choice|entry)|(?:the )?(?:first|second"
    r"|third|next) one|this one|(?:an? |one |my )?example|e\.?g|for (?:example|instance)"
    r"|filled in(?: with| as)?)|(?:i|we)(?: just)? (?:did|used|chose|picked|went (?:with|for)"
    r"|tried(?: it with)?|asked for|put(?: in)?|filled in|typed|took|made|entered|swapped in)"
    r"|went with|tried(?: it)? with|with|used|chose|picked|typed|(?:la m[ií]a|el m[ií]o|m[ií]o"
    r"|yo (?:puse|usé|elegí)|puse|probé con|con|ejemplo|por ejemplo)|(?:la mienne|le mien|moi"
    r"|j['’]ai (?:mis|pris|choisi|essayé)|avec|exemple|par exemple)|(?:meins|meine|bei mir"
    r"|ich (?:habe|hab|nahm)|mit|beispiel|zum beispiel|z\.\s?b)|(?:a minha|o meu|eu (?:usei"
    r"|coloquei|pus|escolhi)|usei|coloquei|exemplo|por exemplo)|(?:la mia|il mio|io ho (?:messo"
    rf"|usato|scelto)|ho (?:messo|usato|scelto)|esempio|per esempio)){END}|我的(?:是)?"
    r"|我用的?(?:是)?|我填的?(?:是)?|我选的?(?:是)?|例如|比如|示例|举例|例|这张(?:是|填)?|第一张"
    r"|(?:私|僕|俺|自分|うち)(?:は|の(?:は)?)|例えば|今回は|入れたのは)(?:\s?(?:is|are|was|were"
    rf"|it['’]s|es|est|ist|é|è|是|は){END})?(?P<colon>\s?[:：=→]|\s[-–—]\s)?\s{{0,3}}"
)
# With a noun behind them these make one thing, not two.
ATTRIBUTES = words(
    en="""red orange yellow green blue purple pink brown black white grey gray golden silver big
    small tiny giant little old young baby sea polar hot ice space school street""",
)
# A remark has one of these; what people put into blanks has not.
REMARKS = (
    FIRST_PERSON
    | PRAISE
    | COMPLAINT
    | SELF
    | TRIED
    | words(
        en="""you your yours it its this that these those is are was were be am do did does dont
        didnt cant wont can could would should will so too very really just how what why where when
        who please pls thanks thank thx hello hi yes no not never prompt prompts version attempt try
        first time times again everyone everybody here there got get looks look like wow lol lmao
        omg ok okay same still even only because if then than but let lets share sharing model image
        picture generation morning happy more less another bit what
        to below above comments comment reply replies alt link thread following next""",
        es="esto eso es está son que por favor gracias muy pero cuando si yo tú",
        fr="ceci cela est sont que merci très mais quand si tu vous moi",
        de="dies ist sind dass danke sehr aber wenn du ihr bitte",
        pt="isso isto é são que obrigado obrigada muito mas quando se você",
        it="questo è sono che grazie molto ma quando se tu",
    )
)
HAN_REMARK = re.compile(
    "[了吗呢吧啊呀嘛！？我你您这那]|什么|怎么|真的|可以|太|很|非常|好看|喜欢|です|ます|した|ない"
    "|でし|ください|かわい|すご|ね$|よ$|感謝|谢谢"
)
# Alone they are a reaction, whatever the blank.
REACTIONS = frozenset(
    "😍🔥👏🤩💯🙌👌❤🥰👍🤯😻💖🎉😂🤣😅😭🥹😱😮👀🙏✨👎🤮😬🙄💩😊😎🤔🫶💀🚀💪\ufe0f\u200d"
)


MOST_WORDS, MOST_LETTERS, MOST_HAN = 7, 60, 24
MOST_SENTENCES = 24
SENTENCE_END = re.compile(r"[\n!?。！？]+|\.(?=\s|$)|…")
# The clearer a separator, the earlier it is tried.
SEPARATORS = (
    re.compile(r"\s*(?:[/|;；·+&×→➡]|\s[x–—-]\s)\s*"),
    re.compile(r"\s*[,，、](?:\s*(?:and|y|et|und|e)\s)?\s*"),
    re.compile(rf"\s*(?:[,，、]|{START}(?:and|y|et|und|e){END})\s*|\s*[和と跟]\s*"),
    re.compile(r"\s+(?:and|with|as|in|y|con|et|avec|und|mit|e|com)\s+|\s*[和と跟]\s*"),
)
PIECE_END = re.compile(r"[,，、;；/|]|\s(?:and|y|et|und)\s")
WHOLE = re.compile(r"(?!)")
MOST_PIECES = 32
EDGES = " \t\r\n\"'“”„«»‘’「」『』《》[]【】(){}<>*_`~,，、.。:：;；!！?？…-–—=/|&+"
PICTOGRAPHS = re.compile(
    "[\u2190-\u21ff\u2300-\u27bf\u2b00-\u2bff\ufe0f\u200d\U0001f000-\U0001faff]+"
)
HANDLES = re.compile(r"(?:\s*[@＠][\w.-]+[:,]?)+\s*|#\w+")
JOINING = re.compile(r"(?:and|with|y|con|et|avec|und|mit|e|com|和|と)\s+")
ARTICLE = re.compile(
    r"(?:an?|the|some|un[ae]?|el|la|los|las|le|les|eine?n?|der|die|das|den|uma?|o|il|lo)\s+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Blank:
    """A blank of a template."""

    placeholder: str
    name: str
    after_article: bool
    start: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """Values for all blanks, as one sentence lists them."""

    values: tuple[str, ...]
    announced: bool


def listings(text: str, blanks: Sequence[Blank]) -> Iterator[Listing]:
    """The sentences of a text that list a value for each blank."""
    for sentence in sentences(text):
        lead = LEAD.match(fold(sentence))
        said = sentence[lead.end() :] if lead else sentence
        values = listed(said, blanks)
        if values:
            yield Listing(values, lead is not None or _names_any(said, blanks))


def named(text: str, blanks: Sequence[Blank]) -> dict[Blank, str]:
    """The values that a text gives by the names of the blanks, as in "animal: fox"."""
    found: dict[Blank, set[str]] = {}
    for sentence in sentences(text):
        for piece in PIECE_END.split(sentence, maxsplit=MOST_PIECES):
            blank = _named(piece, blanks)
            value = value_of(piece, blank) if blank else None
            if blank and value:
                found.setdefault(blank, set()).add(value)
    return {blank: values.pop() for blank, values in found.items() if len(values) == 1}


def _names_any(said: str, blanks: Sequence[Blank]) -> bool:
    return any(_named(piece, blanks) for piece in PIECE_END.split(said, maxsplit=MOST_PIECES))


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, without links, handles and hashtags."""
    plain = HANDLES.sub(" ", LINK.sub(" ", text))
    pieces = (piece.strip() for piece in SENTENCE_END.split(plain))
    yield from islice((piece for piece in pieces if piece), MOST_SENTENCES)


def listed(said: str, blanks: Sequence[Blank]) -> tuple[str, ...] | None:
    """The values that a piece of text lists, one for each blank."""
    if len(blanks) == 1 and said.count(",") > 1:
        return None  # It lists several things.
    for part in (said, _without_remark(said)):
        for separator in SEPARATORS if len(blanks) > 1 else (WHOLE,):
            pieces = separator.split(part, maxsplit=MOST_PIECES)
            values = _in_order(pieces, blanks) if len(pieces) == len(blanks) else None
            if values:
                return values
    return _by_words(said, blanks)


def _by_words(said: str, blanks: Sequence[Blank]) -> tuple[str, ...] | None:
    # "a turtle postman", for an animal and its job.
    value = value_of(said, Blank("", "", after_article=True))
    words_said = value.split() if value else []
    told = ARTICLE.match(said.strip(EDGES)) and not ATTRIBUTES.intersection(map(fold, words_said))
    if len(blanks) != 2 or len(words_said) != 2 or not told:
        return None
    return _in_order(words_said, blanks)


def _without_remark(said: str) -> str:
    # "a hen, came out great" lists one thing.
    head, comma, tail = said.rpartition(",")
    return head if comma and not REMARKS.isdisjoint(words_of(fold(tail))) else said


def _in_order(pieces: Sequence[str], blanks: Sequence[Blank]) -> tuple[str, ...] | None:
    named = {at: blank for at, piece in enumerate(pieces) if (blank := _named(piece, blanks))}
    rest = iter([blank for blank in blanks if blank not in named.values()])
    if len(set(named.values())) < len(named):
        return None
    values: dict[Blank, str] = {}
    for at, piece in enumerate(pieces):
        blank = named.get(at) or next(rest)
        value = value_of(piece, blank)
        if value is None:
            return None
        values[blank] = value
    return tuple(values[blank] for blank in blanks)


def _named(piece: str, blanks: Sequence[Blank]) -> Blank | None:
    folded = fold(piece)
    return next((blank for blank in blanks if blank.name and _name(blank).match(folded)), None)


def _name(blank: Blank) -> re.Pattern[str]:
    return re.compile(
        rf"(?:\W{{0,4}}(?:(?:and|with|y|et|und|e)\s)?(?:(?:the|my|el|la|le|der|die|das|o|a|il)\s)?"
        rf"\W?{re.escape(blank.name)}\W?\s?(?:is|was|es|est|ist|é|è){END}"
        rf"|[^\n]{{0,30}}?(?<![^\W_]){re.escape(blank.name)}\W?\s?(?:[:：=→]|是|は|为|為))\s?"
    )


def value_of(piece: str, blank: Blank) -> str | None:
    """The value that a piece of text gives to a blank."""
    named = _name(blank).match(fold(piece)) if blank.name else None
    bare = piece[named.end() :] if named else piece
    value = (PICTOGRAPHS.sub(" ", bare).strip(EDGES)) or bare.strip(EDGES)
    joining = JOINING.match(value.lower())
    value = value[joining.end() :] if joining else value
    article = ARTICLE.match(value)
    if blank.after_article and article:
        value = value[article.end() :]
    return value if _is_value(value) else None


def _is_value(value: str) -> bool:
    folded = fold(value)
    if len(value) > MOST_LETTERS or not any(map(_shows, value)):
        return False
    if REACTIONS.issuperset(value.replace(" ", "")):
        return False
    if HAN_OR_KANA.search(value):
        return len(value) <= MOST_HAN and HAN_REMARK.search(value) is None
    found = words_of(folded.replace("'", "").replace("’", ""))
    return len(found) <= MOST_WORDS and REMARKS.isdisjoint(found)


def _shows(sign: str) -> bool:
    return sign.isalnum() or PICTOGRAPHS.match(sign) is not None


MOST_BLANKS = 12
MOST_AROUND = 3
TEMPLATES_NEARBY, LONGEST_VALUE, LONGEST_GAP = 80, 64, 400
MOST_FOUND = 8
TEMPLATES_SHORTEST_WORD, FEWEST_HAN = 4, 2
HAN = r"[\u3040-\u30ff\u3400-\u9fff]"
TEMPLATES_WORD = re.compile(rf"{HAN}|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
BREAK = re.compile(r"[.!?;:\n。！？；：，,]")
AN = r"(?:an?|the|un[ae]?|el|la|los|las|le|les|eine?[nrms]?|der|die|das|den|uma?|o|il|lo)"
TEMPLATES_ARTICLE = re.compile(AN)
ARTICLE_BEFORE = re.compile(rf"(?:^|[^\w]){AN}\s+(?:[\w-]{{1,14}}\s)?$")
VALUE = r"([^\n.!?。！？]{1,60}?)"
FEW_WORDS = rf"((?:{AN}\s+)?(?:[^\W_]{{2,20}}[ -])?[^\W_]{{2,20}}|{HAN}{{1,6}})"
SAYS = r"(?:(?:is|was|says|reads|es|est|ist|é|è)\W{1,3}|是|は)?"
OVER = r"\W{0,3}(?:$|(?=[\n.,;!?，。；！？]))"


@dataclass(frozen=True, slots=True)
class Context:
    """The words around a blank."""

    blank: Blank
    before: tuple[str, ...]
    after: tuple[str, ...]
    between: tuple[str, ...]


class Step(NamedTuple):
    """Patterns for the words before a blank, behind its value, and before the next blank."""

    before: str
    end: str
    onwards: str


@dataclass(frozen=True)
class Template:
    """A prompt with blanks."""

    contexts: Sequence[Context]

    @property
    def blanks(self) -> list[Blank]:
        """The blanks in order."""
        return [context.blank for context in self.contexts]

    @property
    def defaults(self) -> dict[Blank, str]:
        """The values that the template itself proposes; a pictograph in a blank is one."""
        proposed = ((blank, _proposed(blank)) for blank in self.blanks)
        return {blank: value for blank, value in proposed if value}

    def followed_by(self, text: str) -> dict[Blank, str]:
        """What a text that follows the template's words has in the places of the blanks."""
        whole = self._read_through(text)
        if whole:
            return whole
        found = {one.blank: set(islice(_values(one, text), MOST_FOUND)) for one in self.contexts}
        return {blank: some.pop() for blank, some in found.items() if len(some) == 1}

    def _read_through(self, text: str) -> dict[Blank, str] | None:
        """The values in a text that has all of the words between the blanks, in order."""
        folded = fold(text)
        said = [word for one in self.contexts for word in (*one.before, *one.after)]
        if not _tell(said):
            return None
        for start in islice(re.finditer(self._steps[0].before, folded), MOST_FOUND):
            values = list(self._follow(text, folded, start.end()))
            if len(values) == len(self.blanks) and all(values):
                return {one: value for one, value in zip(self.blanks, values, strict=True) if value}
        return None

    def _follow(self, text: str, folded: str, at: int) -> Iterator[str | None]:
        # Each step takes the nearest match: a text made to be searched for long stays cheap.
        for blank, step in zip(self.blanks, self._steps, strict=True):
            over = _next(step.end or OVER, folded, at + 1, LONGEST_VALUE)
            further = _next(step.onwards, folded, over.start(), LONGEST_GAP) if over else None
            if over is None or further is None:
                return
            yield value_of(text[at : over.start()], blank)
            at = further.end()

    @cached_property
    def _steps(self) -> list[Step]:
        last = self.contexts[-1]
        return [*map(_step, self.contexts[:-1]), Step(*map(_joined, (last.before, last.after, ())))]


def read_template(prompt: str, known: Sequence[str]) -> Template | None:
    """Reads a prompt as a template."""
    found = [place for place in places(prompt) if place.of(prompt) in known]
    first = {_key(place, prompt): place for place in reversed(found)}
    some = sorted(first.values())
    if not 0 < len(some) <= MOST_BLANKS:
        return None
    return Template([_context(prompt, place, found) for place in some])


def _key(place: Place, prompt: str) -> tuple[int, str]:
    placeholder = place.of(prompt)
    return (0 if name_of(placeholder) else place.start, placeholder)


def _context(prompt: str, place: Place, found: Sequence[Place]) -> Context:
    start = max([one.end for one in found if one.end <= place.start], default=0)
    end = min([one.start for one in found if one.start >= place.end], default=len(prompt))
    before = fold(prompt[max(start, place.start - TEMPLATES_NEARBY) : place.start])
    after = fold(prompt[place.end : end])
    placeholder = place.of(prompt)
    article = ARTICLE_BEFORE.search(before) is not None
    blank = Blank(placeholder, name_of(placeholder), article, place.start)
    near = BREAK.split(before)[-1], BREAK.split(after[:TEMPLATES_NEARBY])[0]
    return Context(
        blank,
        tuple(TEMPLATES_WORD.findall(near[0])[-MOST_AROUND:]),
        tuple(TEMPLATES_WORD.findall(near[1])[:MOST_AROUND]),
        tuple(TEMPLATES_WORD.findall(after)),
    )


def _step(one: Context) -> Step:
    ends = one.between[:MOST_AROUND], one.between[-MOST_AROUND:]
    return Step(*map(_joined, (one.before, *ends)))


def _next(pattern: str, text: str, start: int, reach: int) -> re.Match[str] | None:
    return re.compile(pattern).search(text, start, min(len(text), start + reach))


def _values(context: Context, text: str) -> Iterator[str]:
    folded = fold(text)
    for pattern in _patterns(context):
        found = [
            value_of(text[slice(*match.span(1))], context.blank)
            for match in islice(pattern.finditer(folded), MOST_FOUND)
        ]
        if any(found):
            yield from filter(None, found)
            return


def _patterns(context: Context) -> Iterator[re.Pattern[str]]:
    """Ways to find the blank's value, the surest first."""
    before, after = context.before, context.after
    for count in (3, 2, 1):
        around = before[-count:], after[:count]
        if all(around) and _tell((*around[0], *around[1])):
            yield re.compile(_joined(around[0]) + VALUE + _joined(around[1]))
    if _tell(before[-2:]) and len(before) > 1:
        onwards = rf"|(?=\W{{1,3}}{re.escape(after[0])}(?![^\W_]))" if after else ""
        yield re.compile(_joined(before[-2:]) + SAYS + VALUE + f"(?:{OVER}{onwards})")
    if _tell(after[:2]) and len(after) > 1:
        yield re.compile(rf"(?:^|[\W_]){FEW_WORDS}{_joined(after[:2])}")


def _tell(words: Sequence[str]) -> bool:
    """Whether words are ones that other texts hardly have by chance."""
    han = sum(HAN_OR_KANA.match(word) is not None for word in words)
    return han >= FEWEST_HAN or any(
        len(word) >= TEMPLATES_SHORTEST_WORD and word not in FAMILIAR for word in words
    )


def _joined(words: Sequence[str]) -> str:
    """A pattern for words one after the other, and the space around them."""
    if not words:
        return ""
    edges = [r"\W{0,3}" if HAN_OR_KANA.match(one) else r"\W{1,3}" for one in (words[0], words[-1])]
    inner = r"\W{0,3}".join(
        AN if TEMPLATES_ARTICLE.fullmatch(one) else re.escape(one) for one in words
    )
    return rf"(?:^|{edges[0]}){inner}(?:$|{edges[1]})"


def _proposed(blank: Blank) -> str | None:
    default = default_of(blank.placeholder)
    pictograph = blank.name and not any(sign.isalnum() for sign in blank.name)
    return default or (blank.name if pictograph else None)


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
    """Finds what fills the blanks of a template in each of its pictures."""
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
    """Reads the values of one post's pictures."""

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
    """Whether a picture's description does not speak of something else."""
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


CLEAR = 2.0  # the least weight that decides
MOST_WEIGHED = 6
ORDER = 2.0  # of words such as "before / after", which only name an order
BLEND = 2.0  # of colours that only one picture shares with all others


@dataclass(frozen=True)
class Weighing:
    """A sample whose pictures are weighed."""

    sample: Sample
    edit: Edit
    looks: Mapping[int, Look | None]

    def inputs_among(self, pictures: Sequence[Picture], said: Said) -> Sequence[Picture] | None:
        """Finds the pictures that went in."""
        if len(pictures) > MOST_WEIGHED:
            return None
        listed = said.order.count("input") if said.order else 0
        count = min(max(1, self.edit.inputs, listed), len(pictures) - 1)
        ways = {some: self._weight(said, pictures, some) for some in combinations(pictures, count)}
        best, *others = sorted(ways, key=lambda some: -ways[some])
        if ways[best] < CLEAR or any(ways[best] - ways[one] < CLEAR for one in others):
            return None
        return best

    def _weight(self, said: Said, pictures: Sequence[Picture], inputs: Sequence[Picture]) -> float:
        """How much speaks for some pictures as the inputs: the least of it over all pairs."""
        rest = [one for one in pictures if one not in inputs]
        weight = min(
            input_weight(
                self._candidate(one),
                self._candidate(other),
                self.sample.prompt,
                self.edit,
                self.sample.names,
            )
            for one in inputs
            for other in rest
        )
        if said.order and len(said.order) == len(pictures):
            told = [one for one, role in zip(pictures, said.order, strict=True) if role == "input"]
            weight += ORDER if told == list(inputs) else -ORDER
        if len(inputs) > 1 and len(rest) == 1:
            blend = blend_among([self.looks[one.number] for one in pictures])
            weight += 0 if blend is None else BLEND if pictures[blend] is rest[0] else -BLEND
        return weight

    def _candidate(self, picture: Picture) -> Candidate:
        return Candidate(picture.alt_text, self.looks[picture.number])


PICTURE_ROLES_LONGEST_CAPTION = 16
KEEPS_STRUCTURE, HAS_ANOTHER = 0.45, 0.25
INPUT_FOLLOWS = re.compile(rf"{IN}[^\n.!?]{{0,30}}?(?:{HERE}|{MARKERS_ELSEWHERE})")
OFFERS_INPUT = re.compile(
    rf"{START}(?:use|try|take|start (?:with|from)|work with|edit|restyle|here(?:['’]s"
    rf"| is))\s(?:this|my|the|a)\s(?:\w{{1,12}}\s){{0,2}}?{NOUN}{END}|素材|この(?:写真|画像"
    r"|線画)(?:で|を使)"
)
ANOTHER = re.compile(AGAIN)
NO_RESULT = re.compile(NEITHER)


class Unsure(Exception):  # noqa: N818 - no error: rules abstain
    """Pictures that rules cannot tell apart."""


@dataclass
class PictureRoles:
    """The roles of a sample's pictures, all but its screenshots and collages."""

    sample: Sample
    edit: Edit
    looks: Mapping[int, Look | None]
    apart: set[int]
    roles: dict[int, Role] = field(default_factory=dict)

    def decide(self) -> dict[int, Role]:
        """Decides."""
        for post, pictures in self.sample.with_pictures():
            some = [one for one in pictures if one.number not in self.apart]
            shown = [one for one in some if not self._is_empty(one)]
            self.roles |= {one.number: "neither" for one in some if one not in shown}
            if len(pictures) > 1 and shown:
                self.roles |= self._several(post, pictures, shown)
            elif shown:
                self.roles[shown[0].number] = self._single(post)
        self._settle_singles()
        self._leave_out_others()
        return self.roles

    def _is_empty(self, picture: Picture) -> bool:
        look = self.looks[picture.number]
        return look is not None and look.is_empty

    def _several(
        self, post: Post, pictures: Sequence[Picture], shown: Sequence[Picture]
    ) -> dict[int, Role]:
        said = self._said(post, len(pictures))
        told = {pictures[at - 1].number: role for at, role in said.roles.items()}
        known = {one.number: told[one.number] for one in shown if one.number in told}
        rest = [one for one in shown if one.number not in known]
        if {"input", "output"} & set(known.values()):
            return known | self._by_elimination(known, rest)
        if self._are_all_inputs(post, said):
            return known | dict.fromkeys((one.number for one in rest), "input")
        if len(rest) > 1 and self._may_have_inputs(said):
            return known | self._weighed(said, rest)
        return known | dict.fromkeys((one.number for one in rest), "output")

    def _are_all_inputs(self, post: Post, said: Said) -> bool:
        """Whether the task's author shows what went in here, and what came out elsewhere."""
        only = said.names_input and "output" not in said.mentioned
        return only and self.sample.by_task_author(post) and self._shows_more(post)

    def _shows_more(self, post: Post) -> bool:
        """Whether the task's author shows pictures in another post as well."""
        others = (other for other, _ in self.sample.with_pictures() if other is not post)
        return any(map(self.sample.by_task_author, others))

    def _may_have_inputs(self, said: Said) -> bool:
        spoken = said.order is not None or "input" in said.mentioned
        return self.edit.inputs > 0 or spoken or not self._understood

    def _by_elimination(
        self, known: Mapping[int, Role], rest: Sequence[Picture]
    ) -> dict[int, Role]:
        given = set(known.values())
        missing = "input" not in given and 0 < len(rest) <= self.edit.inputs
        return dict.fromkeys((one.number for one in rest), "input" if missing else "output")

    def _weighed(self, said: Said, pictures: Sequence[Picture]) -> dict[int, Role]:
        inputs = self._weighing.inputs_among(pictures, said)
        if inputs is None and (self.edit.inputs or not self._understood):
            raise Unsure
        return {one.number: "input" if one in (inputs or ()) else "output" for one in pictures}

    @property
    def _weighing(self) -> Weighing:
        return Weighing(self.sample, self.edit, self.looks)

    @property
    def _understood(self) -> bool:
        return self.sample.read(self.sample.prompt).covered

    def _said(self, post: Post, pictures: int) -> Said:
        """What the author says, there or in an answer that has no picture."""
        said = said_about(post.beside, pictures, self.sample.names)
        for reply in self.sample.posts.values():
            own = reply.parent == post.number and reply.author == post.author is not None
            if not said.roles and own and not self.sample.of_post(reply.number):
                said.roles = said_about(reply.beside, pictures, self.sample.names).roles
        return said

    def _single(self, post: Post) -> Role:
        """The role of the only picture of a post, as far as its words say."""
        said = self.sample.read(post.beside)
        told = said_about(post.beside, 1, self.sample.names)
        if post is not self.sample.primary and self._is_foreign(said):
            return "neither"
        if not self.sample.by_task_author(post):
            return "output"
        if post is self.sample.primary:
            offered = OFFERS_INPUT.search(said.folded) and self._others_answer(post)
            return "input" if self.edit.inputs and offered else "output"
        is_input = self._are_all_inputs(post, told) and said.length <= PICTURE_ROLES_LONGEST_CAPTION
        return "input" if is_input or self._follows_pointer(post) else "output"

    def _is_foreign(self, said: Reading) -> bool:
        """Whether a post shows what another model made, or no result at all."""
        return (said.other and not said.target) or NO_RESULT.search(said.folded) is not None

    def _settle_singles(self) -> None:
        """Looks again at two posts of the task's author with one picture each."""
        sample = self.sample
        own = [
            (post, pictures[0])
            for post, pictures in sample.with_pictures()
            if sample.by_task_author(post) and len(pictures) == 1
        ]
        own = [(post, one) for post, one in own if self.roles.get(one.number) == "output"]
        if not self.edit.inputs or len(own) != 2:
            return
        (first, one), (second, other) = own
        if "input" in self.roles.values() or self._tells_of_result(first, second):
            return
        if self._offers_result(first, second):
            self.roles[one.number] = "input"
        else:
            self.roles |= self._weighed(Said(), [one, other])

    def _tells_of_result(self, first: Post, second: Post) -> bool:
        """Whether the second post speaks of its picture as of another result."""
        said = self.sample.read(second.beside)
        told = said_about(second.beside, 1, self.sample.names).mentioned
        more = ANOTHER.search(said.folded) or says_tried(said) or judges(said)
        return bool(more or "output" in told) and not self._offers_result(first, second)

    def _offers_result(self, first: Post, second: Post) -> bool:
        """Whether the first post names its picture as an input, the second one as its result."""
        names = self.sample.names
        told = [said_about(post.beside, 1, names).mentioned for post in (first, second)]
        return [one & {"input", "output"} for one in told] == [{"input"}, {"output"}]

    def _leave_out_others(self) -> None:
        """Leaves out what others made of pictures that they do not show: it is another task."""
        shown = list(self.sample.with_pictures())
        own = [one for post, some in shown if self.sample.by_task_author(post) for one in some]
        inputs = self._with_role(own, "input")
        if self.sample.placeholders or not self._keeps_structure(
            inputs, self._with_role(own, "output")
        ):
            return
        for post, pictures in shown:
            results = self._with_role(pictures, "output")
            told = self.sample.by_task_author(post) or self._with_role(pictures, "input")
            if not told and self._shows_another(inputs, results):
                self.roles |= {one.number: "neither" for one in results}

    def _with_role(self, pictures: Sequence[Picture], role: Role) -> list[Picture]:
        return [one for one in pictures if self.roles.get(one.number) == role]

    def _keeps_structure(self, inputs: Sequence[Picture], results: Sequence[Picture]) -> bool:
        return any(self._alike(one, other) > KEEPS_STRUCTURE for one in inputs for other in results)

    def _shows_another(self, inputs: Sequence[Picture], some: Sequence[Picture]) -> bool:
        return all(self._alike(one, other) < HAS_ANOTHER for one in inputs for other in some)

    def _alike(self, one: Picture, other: Picture) -> float:
        looks = self.looks[one.number], self.looks[other.number]
        return alike(looks[0], looks[1]) if looks[0] and looks[1] else HAS_ANOTHER

    def _others_answer(self, post: Post) -> bool:
        return any(other is not post for other, _ in self.sample.with_pictures())

    def _follows_pointer(self, post: Post) -> bool:
        primary = self.sample.primary
        above = self.sample.posts.get(post.parent)
        if primary is None or above is not primary or not self.edit.inputs:
            return False
        return INPUT_FOLLOWS.search(fold(primary.beside)) is not None


FEWEST_GROUND, MOST_GROUND_CHROMA = 0.3, 36
WINDOWS_TOLERANCE = 5.0  # an answer's bubble is often but a shade from the ground
SHADES, TINTS = 24, 6
SMALLEST_BLOCK = 0.0015  # of the window
SMALLEST_PICTURE, LARGEST_PICTURE = 0.03, 0.75
FULL = 0.8
FEWEST_TINTS, MOST_GROUND_INSIDE = 10, 0.3
WINDOWS_MOST_PLAIN, MOST_PLAIN_IF_TALL, FEWEST_HIGH, WINDOWS_FEWEST_COLOURS = 0.62, 0.85, 0.18, 15.0
ACROSS, MOST_ROWS_OF_A_LINE = 0.7, 2
FEWEST_OTHERS = 2
OFF_CENTRE = 0.16


@dataclass(frozen=True)
class Block:
    """Something that stands on the ground of a window."""

    top: float
    bottom: float
    left: float
    right: float
    full: float
    ground: float
    plain: float
    tints: int
    colours: float

    @property
    def area(self) -> float:
        """The size of its box, in parts of the window."""
        return (self.bottom - self.top) * (self.right - self.left)

    @property
    def is_picture(self) -> bool:
        """Whether it is a filled rectangle of many colours."""
        fits = SMALLEST_PICTURE < self.area < LARGEST_PICTURE and self.full > FULL
        tall = self.bottom - self.top > FEWEST_HIGH
        plain = (
            MOST_PLAIN_IF_TALL
            if tall and self.colours > WINDOWS_FEWEST_COLOURS
            else WINDOWS_MOST_PLAIN
        )
        busy = self.tints >= FEWEST_TINTS and self.plain < plain
        return fits and busy and self.ground < MOST_GROUND_INSIDE

    @property
    def is_bubble(self) -> bool:
        """Whether it is a plain box at the right, as what people say to a model."""
        placed = self.left > 0.2 and self.right > 0.85 and self.bottom - self.top < 0.35
        return placed and self.full > FULL and not self.is_picture

    @property
    def is_bar(self) -> bool:
        """Whether it is a wide, low box at the bottom."""
        wide = self.right - self.left > 0.55 and self.bottom - self.top < 0.2
        return wide and self.top > 0.75 and self.full > FULL

    @property
    def leans(self) -> bool:
        """Whether it stands to one side: what people say to the right, answers to the left."""
        return abs(self.left - (1 - self.right)) > OFF_CENTRE


@dataclass(frozen=True)
class Window:
    """A picture, looked at as if it were a window."""

    look: Look

    @property
    def is_conversation(self) -> bool:
        """Whether it has the plain ground and the blocks to either side that a conversation has."""
        if not self._has_plain_ground:
            return False
        others = [one for one in self.blocks if not one.is_picture]
        leaning = [one for one in others if one.leans]
        return len(others) >= FEWEST_OTHERS and bool(leaning) and self._is_stacked

    @property
    def has_controls(self) -> bool:
        """Whether it has a bubble to the right and a bar to type into below."""
        bubble = any(one.is_bubble for one in self.blocks)
        return bubble and any(one.is_bar for one in self.blocks)

    @property
    def shows_a_picture(self) -> bool:
        """Whether a picture stands among its blocks."""
        return any(one.is_picture for one in self.blocks)

    @property
    def shows_a_picture_among_others(self) -> bool:
        """Whether a picture and something else stand on a plain ground."""
        return self._has_plain_ground and self.shows_a_picture and len(self.blocks) > 1

    @cached_property
    def blocks(self) -> list[Block]:
        """What stands on the ground, the larger pieces."""
        found = _without_panels(
            np.abs(self.look.rgb - self._ground).max(axis=2) > WINDOWS_TOLERANCE
        )
        # Letters and lines of one paragraph are one block.
        joined = ndimage.binary_closing(np.pad(found, 4), np.ones((3, 7)))[4:-4, 4:-4]
        labels, _ = ndimage.label(joined)
        boxes = ndimage.find_objects(labels)
        some = [
            self._block(labels[box] == n, box)
            for n, box in enumerate(boxes, 1)
            if _windows_size(box) > 12
        ]
        return [one for one in some if one.area > SMALLEST_BLOCK]

    @cached_property
    def _ground(self) -> Array:
        pixels = self.look.rgb.reshape(-1, 3)
        codes = _windows_codes(pixels, SHADES)
        return _middle(pixels[codes == np.bincount(codes).argmax()])

    @property
    def _has_plain_ground(self) -> bool:
        plain = np.abs(self.look.rgb - self._ground).max(axis=2) <= WINDOWS_TOLERANCE
        return (
            float(plain.mean()) >= FEWEST_GROUND
            and float(np.ptp(self._ground)) <= MOST_GROUND_CHROMA
        )

    @property
    def _is_stacked(self) -> bool:
        # Nothing surrounds the rest, as the frame of a poster does.
        return all(one.area < LARGEST_PICTURE for one in self.blocks)

    def _block(self, at: NDArray[np.bool_], box: tuple[slice, slice]) -> Block:
        rows, columns = box
        height, width = self.look.grey.shape
        inside = self.look.rgb[box].reshape(-1, 3)
        tints = _windows_codes(inside, TINTS)
        counts = np.bincount(tints)
        main = _middle(inside[tints == counts.argmax()])
        return Block(
            rows.start / height,
            rows.stop / height,
            columns.start / width,
            columns.stop / width,
            float(at.mean()),
            float((np.abs(inside - self._ground).max(axis=1) <= WINDOWS_TOLERANCE).mean()),
            float((np.abs(inside - main).max(axis=1) < 2 * WINDOWS_TOLERANCE).mean()),
            int(np.count_nonzero(counts)),
            self.look.part(*box).colourfulness,
        )


def _windows_size(box: tuple[slice, slice]) -> int:
    return int((box[0].stop - box[0].start) * (box[1].stop - box[1].start))


def _windows_codes(colours: Array, levels: int) -> NDArray[np.int64]:
    """One number for each colour, the same for colours of the same levels."""
    coarse = (colours * (levels / 256)).astype(np.int64)
    codes: NDArray[np.int64] = coarse @ np.array([levels * levels, levels, 1])
    return codes


def _middle(colours: Array) -> Array:
    middle: Array = np.median(colours, axis=0)
    return middle


def _without_panels(found: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Leaves out bars along a whole side, and thin lines across."""
    columns = found.mean(axis=0) > 0.97
    kept: NDArray[np.bool_] = found & ~columns
    rows = kept.mean(axis=1) > ACROSS * (1 - columns.mean())
    labels, count = ndimage.label(rows)
    for n in range(1, count + 1):
        if (labels == n).sum() <= MOST_ROWS_OF_A_LINE:
            kept[labels == n] = False
    return kept


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
SCREENS_ELSEWHERE = re.compile(
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
    """The pictures of a sample that are no plain inputs or outputs."""

    conversations: list[int] = field(default_factory=list)
    collages: list[int] = field(default_factory=list)
    others: set[int] = field(default_factory=set)
    unsure: bool = False

    @property
    def all(self) -> set[int]:
        """The numbers of all of them."""
        return {*self.conversations, *self.collages, *self.others}


def find_screens(sample: Sample, edit: Edit, looks: Mapping[int, Look | None]) -> Screens:
    """Finds the screenshots and collages among a sample's pictures."""
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
        return window is not None and _screens_named(window, folded)

    def _names_target(self) -> bool:
        return _screens_named(self.sample.names, self.alt) or _screens_named(
            self.sample.names, self.text
        )

    def _names_another(self, folded: str) -> bool:
        others = self.sample.names.others.finditer(folded, frozenset(words_of(folded)))
        return any(True for _ in others) or SCREENS_ELSEWHERE.search(folded) is not None


def _screens_named(names: Names, folded: str) -> bool:
    return names.names_target(folded, frozenset(words_of(folded)))


Answer = dict[str, Any]
Shot = tuple[str, Picture]
Try = tuple[list[Picture], list[Picture]]


def roles(inputs: Mapping[str, Any]) -> str | None:
    """Answers a request about the pictures of a sample."""
    sample = read_sample(inputs)
    edit = read_edit(sample.prompt)
    looks = {one.number: look_at(one.file) for one in sample.pictures.values()}
    screens = find_screens(sample, edit, looks)
    if screens.unsure:
        return None
    try:
        decided = PictureRoles(sample, edit, looks, screens.all).decide()
    except Unsure:
        return None
    samples = list(_samples(sample, screens, decided))
    return json.dumps({"samples": samples}, ensure_ascii=False)


def _samples(sample: Sample, screens: Screens, decided: Mapping[int, Role]) -> Iterator[Answer]:
    """First the completions of a template, then what is none, then further screenshots."""
    inputs = _with_role(sample, decided, "input")
    outputs = _with_role(sample, decided, "output")
    fillings = fillings_of(sample, outputs)
    for filling in dict.fromkeys(fillings.values()):
        some = [one for one in outputs if fillings.get(one.number) == filling]
        yield _answer(sample, _inputs_for(sample, some, inputs), some, filling)
    rest = [one for one in outputs if one.number not in fillings]
    shots = [*_shots(sample, screens)]
    if not fillings or rest:
        main, *others = _tries(inputs, rest)
        yield _answer(sample, *main, shot=shots.pop(0) if shots else None)
        yield from (_answer(sample, *one) for one in others)
    for shot in shots:
        yield _answer(sample, [], [], shot=shot)


def _with_role(sample: Sample, decided: Mapping[int, Role], role: Role) -> list[Picture]:
    return [one for one in sample.pictures.values() if decided.get(one.number) == role]


def _shots(sample: Sample, screens: Screens) -> Iterator[Shot]:
    for kind, numbers in (("conversation", screens.conversations), ("collage", screens.collages)):
        yield from ((kind, sample.pictures[number]) for number in numbers)


def _tries(inputs: Sequence[Picture], outputs: Sequence[Picture]) -> Iterator[Try]:
    """One try for each post with pictures of its own that went in; the first has all the rest."""
    made = {one.post for one in outputs}
    apart = list(dict.fromkeys(one.post for one in inputs if one.post in made))[1:]
    for post in (None, *apart):
        yield (
            [one for one in inputs if _belongs(one, post, apart)],
            [one for one in outputs if _belongs(one, post, apart)],
        )


def _belongs(picture: Picture, post: int | None, apart: Sequence[int]) -> bool:
    return picture.post not in apart if post is None else picture.post == post


def _inputs_for(
    sample: Sample, outputs: Sequence[Picture], inputs: Sequence[Picture]
) -> list[Picture]:
    """The inputs in the posts of some outputs; where there are none, those of the task's author."""
    posts = {one.post for one in outputs}
    own = [one for one in inputs if one.post in posts]
    return own or [one for one in inputs if sample.by_task_author(sample.posts[one.post])]


def _answer(
    sample: Sample,
    inputs: Sequence[Picture],
    outputs: Sequence[Picture],
    filling: Filling = (),
    shot: Shot | None = None,
) -> Answer:
    kind, picture = shot or (None, None)
    shown = [*inputs, *outputs, *([picture] if picture else [])]
    first = [sample.primary.number] if sample.primary else []
    return {
        "inputs": [one.number for one in inputs],
        "outputs": [one.number for one in outputs],
        "posts": list(dict.fromkeys([*first, *(one.post for one in shown)])),
        "prompt_fill_blank": [
            {"placeholder": placeholder, "value": value} for placeholder, value in filling
        ],
        "conversation": picture.number if picture and kind == "conversation" else None,
        "collage": picture.number if picture and kind == "collage" else None,
    }

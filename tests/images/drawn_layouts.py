"""Sheets of several pictures, windows, and single pictures with straight edges, drawn by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from tests.conftest import ROOT
from tests.images_for_tests import encoded

Color = tuple[int, int, int]
Box = tuple[int, int, int, int]
Rng = np.random.Generator
PICTURES = ROOT / "echo_hf" / "quickstart" / "pictures"
WHITE, BLACK = (255, 255, 255), (0, 0, 0)
GUTTER_COLORS = (WHITE, BLACK, (128, 128, 128), (242, 234, 216), (24, 26, 40), (230, 60, 60))
DRAWINGS = (
    *("balloons_wide.png", "cart_restored.jpg", "cat_rain.jpg", "clay_cat_firefighter.png"),
    *("desk_jungle.jpg", "fox_pink.png", "fox_yellow.png", "grandpa.png", "hands_five.png"),
    *("house_painted.jpg", "island.webp", "lake_day.jpg", "lake_night.jpg", "lamp_lemon.png"),
    *("lighthouse.webp", "moth_plate.png", "mug_logo.png", "paper_boat.png", "pin_snail.png"),
    *("portrait.png", "poster_train.png", "receipt.jpg", "self_keeper.png", "soap_bottle.png"),
)


@dataclass(frozen=True)
class Drawn:
    """A picture in a file, and what it was drawn as."""

    kind: str
    data: bytes


@cache
def drawing(name: str) -> Image.Image:
    return Image.open(PICTURES / name).convert("RGB")


def scene(rng: Rng, size: tuple[int, int]) -> Image.Image:
    """Something like a photo: soft shapes of several sizes in uneven light, and grain."""
    width, height = size
    levels = np.zeros((height, width, 3), np.float32)
    for cells, strength in ((3, 90), (9, 45), (40, 18)):
        coarse = Image.fromarray(rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8))
        levels += strength * np.asarray(coarse.resize(size, Image.Resampling.BICUBIC)) / 255
    image = Image.fromarray((levels + rng.integers(0, 90)).clip(0, 255).astype(np.uint8))
    brush = ImageDraw.Draw(image)
    for _ in range(int(rng.integers(2, 7))):
        x, y = rng.integers(0, width), rng.integers(0, height)
        a, b = rng.integers(width // 12, width // 3), rng.integers(height // 12, height // 3)
        brush.ellipse((x - a, y - b, x + a, y + b), tuple(rng.integers(0, 256, 3).tolist()))
    return grainy(rng, image.filter(ImageFilter.GaussianBlur(1)), 4)


def grainy(rng: Rng, image: Image.Image, strength: float) -> Image.Image:
    levels = np.asarray(image, np.float32)
    noise = rng.normal(0, strength, levels.shape)
    return Image.fromarray((levels + noise).round().clip(0, 255).astype(np.uint8))


def shaded(rng: Rng, image: Image.Image) -> Image.Image:
    """A photo of something flat: light falls off across it, and the camera adds grain."""
    width, height = image.size
    across, down = np.linspace(1.12, 0.82, width), np.linspace(1.08, 0.86, height)
    levels = np.asarray(image, np.float32) * across[None, :, None] * down[:, None, None]
    return grainy(rng, Image.fromarray(levels.clip(0, 255).astype(np.uint8)), 3)


def picture(rng: Rng, size: tuple[int, int]) -> Image.Image:
    if rng.random() < 0.5:
        return scene(rng, size)
    return drawing(str(rng.choice(DRAWINGS))).resize(size)


def font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def words(rng: Rng, most: int) -> str:
    letters = "abcdefghijklmnopqrstuvwxyz"
    sizes = rng.integers(2, 9, int(rng.integers(2, most)))
    return " ".join("".join(rng.choice(list(letters), size)) for size in sizes)


def packed(rng: Rng, image: Image.Image) -> bytes:
    kind = str(rng.choice(["PNG", "JPEG", "JPEG", "WEBP"]))
    options = {} if kind == "PNG" else {"quality": int(rng.choice([72, 85, 92]))}
    return encoded(image, kind, **options)


def sheet(
    rng: Rng,
    cells: Sequence[Box],
    *,
    gutter: int,
    color: Color,
    margin: bool,
    captions: bool = False,
    rounded: int = 0,
    unit: int = 0,
) -> Image.Image:
    """Pictures in cells of a lattice of `unit` pixels a step."""
    unit = unit or int(rng.integers(200, 480))
    steps = max(right for _, _, right, _ in cells), max(bottom for *_, bottom in cells)
    edge, below = gutter if margin else 0, 26 if captions else 0
    size = [n * unit + (n - 1) * gutter + 2 * edge for n in steps]
    size[1] += steps[1] * below
    image = Image.new("RGB", tuple(size), color)
    brush = ImageDraw.Draw(image)
    for left, top, right, bottom in cells:
        x, y = edge + left * (unit + gutter), edge + top * (unit + gutter + below)
        wide = (right - left) * (unit + gutter) - gutter
        high = (bottom - top) * (unit + gutter + below) - gutter - below
        shown = picture(rng, (wide, high))
        mask = Image.new("L", shown.size, 255 if not rounded else 0)
        if rounded:
            ImageDraw.Draw(mask).rounded_rectangle((0, 0, wide - 1, high - 1), rounded, 255)
        image.paste(shown, (x, y), mask)
        if captions:
            ink = BLACK if sum(color) > 380 else WHITE
            brush.text((x + 6, y + high + 4), words(rng, 4)[:24], ink, font(15))
    return image


def lattice(columns: int, rows: int) -> list[Box]:
    return [(x, y, x + 1, y + 1) for y in range(rows) for x in range(columns)]


LAYOUTS: dict[str, list[Box]] = {
    "1x2": lattice(2, 1),
    "2x1": lattice(1, 2),
    "1x3": lattice(3, 1),
    "4x1": lattice(1, 4),
    "2x2": lattice(2, 2),
    "2x3": lattice(3, 2),
    "3x3": lattice(3, 3),
    "one large, two small": [(0, 0, 2, 2), (2, 0, 3, 1), (2, 1, 3, 2)],
    "one above three": [(0, 0, 3, 2), (0, 2, 1, 3), (1, 2, 2, 3), (2, 2, 3, 3)],
    "two inputs, one output": [(0, 0, 1, 1), (0, 1, 1, 2), (1, 0, 3, 2)],
}


def sheets(seed: int) -> Iterator[Drawn]:
    """Contact sheets, inputs beside outputs, storyboards: each layout in each kind of gutter."""
    rng = np.random.default_rng(seed)
    for name, cells in LAYOUTS.items():
        for number, gutter in enumerate((3, 6, 12, 30)):
            color = GUTTER_COLORS[int(rng.integers(len(GUTTER_COLORS)))]
            options = {"captions": number == 2, "rounded": 14 if number == 3 else 0}
            margin = bool(rng.random() < 0.5) or number > 1
            image = sheet(rng, cells, gutter=gutter, color=color, margin=margin, **options)
            yield Drawn(f"{name}, gutter {gutter}", packed(rng, image))


def abutting(seed: int) -> Iterator[Drawn]:
    """Sheets whose pictures touch."""
    rng = np.random.default_rng(seed)
    for name in ("1x2", "2x1", "1x3", "2x2", "3x3"):
        image = sheet(rng, LAYOUTS[name], gutter=0, color=WHITE, margin=False)
        yield Drawn(f"{name}, no gutter", packed(rng, image))


def with_arrow(seed: int) -> Iterator[Drawn]:
    """An input, an arrow, an output."""
    rng = np.random.default_rng(seed)
    image = sheet(rng, LAYOUTS["1x2"], gutter=80, color=WHITE, margin=True, unit=420)
    x, y = image.width // 2, image.height // 2
    ImageDraw.Draw(image).polygon([(x - 25, y - 20), (x + 25, y), (x - 25, y + 20)], (40, 40, 40))
    yield Drawn("an arrow between", packed(rng, image))


def chat(seed: int, *, dark: bool, wide: bool) -> Drawn:
    """A conversation: a bar, bubbles, a picture, a field to write in; a list beside it if wide."""
    rng = np.random.default_rng(seed)
    ground, bar, bubble = (
        ((24, 25, 28), (36, 38, 43), (52, 55, 62))
        if dark
        else (WHITE, (246, 247, 249), (228, 236, 248))
    )
    ink = (225, 225, 230) if dark else (30, 32, 38)
    width, height = (1100, 820) if wide else (420, 890)
    image = Image.new("RGB", (width, height), ground)
    brush = ImageDraw.Draw(image)
    left = 240 if wide else 0
    if wide:
        brush.rectangle((0, 0, left - 1, height), bar)
        for row in range(6):
            brush.text((24, 70 + 34 * row), words(rng, 4)[:20], ink, font(14))
    brush.rectangle((left, 0, width, 51), bar)
    brush.text((left + 20, 16), "Lumen Chat", ink, font(17))
    y = 80
    for lines in rng.integers(1, 4, 2).tolist():
        own = width - (340 if wide else 300)
        brush.rounded_rectangle((own, y, width - 20, y + 18 + 22 * lines), 14, bubble)
        for line in range(lines):
            brush.text((own + 14, y + 9 + 22 * line), words(rng, 6)[:30], ink, font(14))
        y += 40 + 22 * lines
        brush.ellipse((left + 20, y, left + 38, y + 18), (90, 140, 220))
        brush.text((left + 48, y + 2), "Here it is, " + words(rng, 3)[:16], ink, font(14))
        y += 34
        side = 240 if wide else 250
        image.paste(picture(rng, (side, min(side, height - y - 90))), (left + 48, y))
        y += side + 20
        if y > height - 330:
            break
    box = (left + 20, height - 64, width - 20, height - 18)
    brush.rounded_rectangle(box, 20, bar, bubble, 2)
    brush.text((left + 40, height - 51), "Message Lumen", ink, font(15))
    name = f"chat, {'dark' if dark else 'light'}, {'wide' if wide else 'tall'}"
    return Drawn(name, packed(rng, image))


def editor(seed: int) -> Drawn:
    """A program that edits pictures: menus above, tools left, values right, a picture within."""
    rng = np.random.default_rng(seed)
    bars = [(50, 50, 54), (66, 66, 70), (58, 58, 62), (37, 37, 40)]
    if rng.random() < 0.4:
        bars = [(236, 236, 238), (246, 246, 247), (240, 240, 243), (205, 205, 210)]
    ink = (210, 210, 214) if bars[0][0] < 99 else (50, 50, 56)
    width, height = 1280, 800
    image = Image.new("RGB", (width, height), bars[3])
    brush = ImageDraw.Draw(image)
    brush.rectangle((0, 0, width, 31), bars[0])
    brush.rectangle((0, 32, width, 71), bars[1])
    brush.rectangle((0, 72, 53, height), bars[2])
    brush.rectangle((width - 260, 72, width, height), bars[2])
    for n, color in enumerate(((236, 95, 87), (244, 190, 79), (97, 196, 84))):
        brush.ellipse((12 + 20 * n, 10, 24 + 20 * n, 22), color)
    for n, word in enumerate(("File", "Edit", "Image", "Layer", "View", "Help")):
        brush.text((90 + 60 * n, 8), word, ink, font(14))
    for n in range(12):
        brush.rectangle((16, 90 + 44 * n, 36, 110 + 44 * n), outline=ink, width=2)
    for n in range(9):
        brush.text((width - 240, 96 + 40 * n), words(rng, 3)[:14], ink, font(13))
        brush.line((width - 110, 104 + 40 * n, width - 30, 104 + 40 * n), ink, 2)
    image.paste(picture(rng, (720, 560)), (180, 150))
    return Drawn("an editor", packed(rng, image))


def windows(seed: int) -> Iterator[Drawn]:
    for dark in (False, True):
        for wide in (False, True):
            yield chat(seed, dark=dark, wide=wide)
    yield editor(seed)


def bookshelf(rng: Rng) -> Image.Image:
    image = Image.new("RGB", (1000, 760), (58, 40, 28))
    brush = ImageDraw.Draw(image)
    for top in (0, 260, 520):
        x = 8
        while x < 990:
            wide = int(rng.integers(22, 64))
            high = int(rng.integers(170, 232))
            color = tuple(rng.integers(20, 235, 3).tolist())
            brush.rectangle((x, top + 238 - high, x + wide - 3, top + 237), color)
            label = Image.new("RGB", (high, wide - 3), color)
            ImageDraw.Draw(label).text((10, 2), words(rng, 4)[:16], WHITE, font(wide // 2))
            image.paste(label.rotate(90, expand=True), (x, top + 238 - high))
            x += wide
        brush.rectangle((0, top + 238, 1000, top + 259), (120, 82, 52))
    return shaded(rng, image)


def window_frame(rng: Rng) -> Image.Image:
    image, white = scene(rng, (900, 900)), (236, 234, 228)
    brush = ImageDraw.Draw(image)
    for at in (0, 438, 870):
        brush.rectangle((at, 0, at + 30, 900), white)
        brush.rectangle((0, at, 900, at + 30), white)
    return shaded(rng, image)


def window_in_wall(rng: Rng) -> Image.Image:
    """A drawing in flat colors: a window whose bars end at its frame."""
    wall, white = tuple(rng.integers(120, 230, 3).tolist()), (240, 240, 240)
    image = Image.new("RGB", (900, 700), wall)
    image.paste(picture(rng, (500, 420)), (200, 120))
    brush = ImageDraw.Draw(image)
    brush.rectangle((190, 110, 710, 550), outline=white, width=14)
    brush.rectangle((443, 110, 457, 550), white)
    brush.rectangle((190, 323, 710, 337), white)
    brush.rectangle((0, 600, 900, 700), (120, 90, 60))
    brush.ellipse((100, 480, 190, 640), (70, 120, 60))
    return image


def tiles(rng: Rng) -> Image.Image:
    """A wall of tiles with one pattern, and grout of one color."""
    tile = drawing(str(rng.choice(DRAWINGS))).resize((180, 180))
    image = Image.new("RGB", (960, 768), (225, 222, 214))
    for y in range(4):
        for x in range(5):
            turned = tile.rotate(90 * ((x + y) % 2))
            image.paste(turned, (6 + x * 192, 6 + y * 192))
    return shaded(rng, image) if rng.random() < 0.5 else grainy(rng, image, 2)


def film_strip(rng: Rng) -> Image.Image:
    image = Image.new("RGB", (1100, 420), (16, 15, 14))
    brush = ImageDraw.Draw(image)
    for x in range(10, 1100, 37):
        for y in (16, 376):
            brush.rounded_rectangle((x, y, x + 20, y + 28), 5, (238, 236, 230))
    for n in range(3):
        image.paste(picture(rng, (340, 300)), (16 + n * 364, 60))
    return grainy(rng, image, 1.5)


def building(rng: Rng) -> Image.Image:
    sky, wall = scene(rng, (840, 1000)), tuple(rng.integers(90, 220, 3).tolist())
    brush = ImageDraw.Draw(sky)
    brush.rectangle((120, 160, 760, 1000), wall)
    for y in range(200, 960, 120):
        for x in range(160, 720, 110):
            brush.rectangle((x, y, x + 62, y + 80), tuple(rng.integers(30, 120, 3).tolist()))
    return shaded(rng, sky)


def facade(rng: Rng) -> Image.Image:
    """A drawing of nothing but a wall and its windows."""
    image = Image.new("RGB", (800, 800), tuple(rng.integers(90, 220, 3).tolist()))
    brush = ImageDraw.Draw(image)
    for y in range(60, 760, 150):
        for x in range(60, 760, 150):
            brush.rectangle((x, y, x + 70, y + 90), tuple(rng.integers(30, 120, 3).tolist()))
            brush.line((x + 35, y, x + 35, y + 90), WHITE, 4)
    return image


def poster(rng: Rng) -> Image.Image:
    ground = tuple(rng.integers(170, 256, 3).tolist())
    ink = tuple(rng.integers(0, 110, 3).tolist())
    image = Image.new("RGB", (768, 1024), ground)
    brush = ImageDraw.Draw(image)
    brush.text((60, 60), words(rng, 3).upper()[:12], ink, font(90))
    brush.line((60, 190, 708, 190), ink, 6)
    if rng.random() < 0.5:
        image.paste(picture(rng, (560, 560)), (104, 240))
    else:
        for _ in range(4):
            x, y, r = rng.integers(180, 560), rng.integers(320, 720), rng.integers(50, 160)
            brush.ellipse((x - r, y - r, x + r, y + r), tuple(rng.integers(0, 256, 3).tolist()))
    brush.text((60, 860), words(rng, 6)[:30], ink, font(40))
    brush.text((60, 930), words(rng, 6)[:40], ink, font(26))
    return image


def poster_with_band(rng: Rng) -> Image.Image:
    image = poster(rng)
    brush = ImageDraw.Draw(image)
    brush.rectangle((0, 0, 768, 200), tuple(rng.integers(0, 110, 3).tolist()))
    brush.text((60, 60), words(rng, 3).upper()[:12], WHITE, font(90))
    return image


def product(rng: Rng) -> Image.Image:
    """One or two things on white."""
    image = Image.new("RGB", (1000, 1000), WHITE)
    brush = ImageDraw.Draw(image)
    for x in (500,) if rng.random() < 0.5 else (290, 720):
        color = tuple(rng.integers(30, 220, 3).tolist())
        brush.ellipse((x - 190, 760, x + 190, 830), (226, 226, 226))
        brush.rounded_rectangle((x - 130, 300, x + 130, 800), 60, color)
        brush.rounded_rectangle((x - 60, 190, x + 60, 310), 20, (40, 40, 44))
        brush.text((x - 90, 500), words(rng, 3)[:8], WHITE, font(44))
    return image.filter(ImageFilter.GaussianBlur(1.2))


def horizon(rng: Rng) -> Image.Image:
    """Sea and sky that meet in the very middle, one darker to the right than the other."""
    image = Image.new("RGB", (1200, 800), tuple(rng.integers(150, 230, 3).tolist()))
    brush = ImageDraw.Draw(image)
    brush.ellipse((180, 120, 300, 240), (255, 236, 180))
    brush.rectangle((0, 400, 1200, 800), tuple(rng.integers(20, 110, 3).tolist()))
    for _ in range(60):
        x, y = rng.integers(0, 1200), rng.integers(420, 800)
        brush.line((x, y, x + 60, y), tuple(rng.integers(60, 160, 3).tolist()), 3)
    return shaded(rng, image) if rng.random() < 0.5 else image


def table_top(rng: Rng) -> Image.Image:
    """A thing on a table before a wall: the edge of the table goes from side to side."""
    image = scene(rng, (900, 900)).filter(ImageFilter.GaussianBlur(6))
    table = scene(rng, (900, 300)).filter(ImageFilter.GaussianBlur(2))
    image.paste(table, (0, 600))
    ImageDraw.Draw(image).rounded_rectangle((330, 380, 560, 740), 30, (214, 90, 70))
    return grainy(rng, image, 2)


def flag(rng: Rng) -> Image.Image:
    image = Image.new("RGB", (900, 600))
    brush = ImageDraw.Draw(image)
    for n in range(3):
        brush.rectangle((n * 300, 0, n * 300 + 300, 600), tuple(rng.integers(0, 256, 3).tolist()))
    return image


def swatches(rng: Rng) -> Image.Image:
    """A palette of plain colors."""
    image = Image.new("RGB", (900, 620), WHITE)
    brush = ImageDraw.Draw(image)
    for y in range(2):
        for x in range(3):
            color = tuple(rng.integers(0, 256, 3).tolist())
            brush.rectangle((20 + x * 295, 20 + y * 300, 290 + x * 295, 290 + y * 300), color)
    return image


def instant_photo(rng: Rng) -> Image.Image:
    image = Image.new("RGB", (700, 840), (250, 249, 245))
    image.paste(picture(rng, (620, 620)), (40, 40))
    ImageDraw.Draw(image).text((180, 720), words(rng, 4)[:20], (60, 60, 70), font(36))
    return image


def infographic(rng: Rng) -> Image.Image:
    image = Image.new("RGB", (820, 1100), tuple(rng.integers(225, 256, 3).tolist()))
    brush = ImageDraw.Draw(image)
    brush.text((60, 40), words(rng, 3).upper()[:14], (40, 60, 90), font(70))
    for n in range(5):
        color = tuple(rng.integers(40, 230, 3).tolist())
        brush.ellipse((70, 180 + 175 * n, 190, 300 + 175 * n), color)
        brush.text((230, 185 + 175 * n), words(rng, 4)[:18], (40, 60, 90), font(34))
        for line in range(3):
            at = (230, 232 + 175 * n + 26 * line)
            brush.text(at, words(rng, 9)[:48], (80, 80, 90), font(20))
    return image


def portrait(rng: Rng) -> Image.Image:
    return drawing(str(rng.choice(DRAWINGS))).resize((1024, 1024))


def photo(rng: Rng) -> Image.Image:
    return scene(rng, (1100, 800))


SINGLES: tuple[Callable[[Rng], Image.Image], ...] = (
    *(bookshelf, window_frame, window_in_wall, tiles, film_strip, building, facade, poster),
    *(poster_with_band, product, horizon, table_top, flag, swatches, instant_photo, infographic),
    *(portrait, photo),
)


def singles(seed: int) -> Iterator[Drawn]:
    """Pictures that are one picture, though they have straight edges or flat colors."""
    for number, draw in enumerate(SINGLES):
        rng = np.random.default_rng([seed, number])
        yield Drawn(draw.__name__, packed(rng, draw(rng)))


def comic(seed: int) -> Drawn:
    """A page of a comic, which is drawn as a sheet is."""
    rng = np.random.default_rng(seed)
    cells = [(0, 0, 2, 1), (2, 0, 3, 1), (0, 1, 1, 2), (1, 1, 3, 2), (0, 2, 3, 3)]
    image = sheet(rng, cells, gutter=16, color=WHITE, margin=True, unit=300)
    brush = ImageDraw.Draw(image)
    for x, y in ((60, 60), (420, 380), (200, 700)):
        brush.ellipse((x, y, x + 180, y + 80), WHITE, BLACK, 3)
        brush.text((x + 30, y + 28), words(rng, 4)[:14], BLACK, font(16))
    return Drawn("comic", packed(rng, image))

"""Pictures drawn for tests: scenes, their sketches, chat windows, two in one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

SIZE = (240, 180)


class Sky(NamedTuple):
    """The colours of a scene: above, below, and of its house."""

    above: str
    below: str
    house: str


DAY = Sky("#8ecbf2", "#6cae5c", "#c8553d")
NIGHT = Sky("#101a3c", "#16302a", "#3a1d1a")
FADED = Sky("#c9bda4", "#b5a78c", "#a89478")


def scene(sky: Sky = DAY) -> Image.Image:
    """A house with a roof on a meadow, a tree and the sun."""
    picture = Image.new("RGB", SIZE, sky.above)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 120, *SIZE), fill=sky.below)
    draw.ellipse((180, 20, 214, 54), fill="#f6e27a" if sky is not FADED else "#d8ccb2")
    draw.rectangle((70, 80, 140, 140), fill=sky.house, outline="#222222")
    draw.polygon([(60, 80), (150, 80), (105, 45)], fill="#70463a" if sky is DAY else sky.house)
    draw.rectangle((98, 108, 114, 140), fill="#2b2b2b")
    draw.ellipse((160, 80, 200, 120), fill="#2f6b3c" if sky is DAY else sky.below)
    draw.rectangle((177, 118, 183, 144), fill="#5b4030")
    return picture


def sketch() -> Image.Image:
    """The same scene in black lines on paper."""
    picture = Image.new("RGB", SIZE, "#fbfaf6")
    draw = ImageDraw.Draw(picture)
    draw.line((0, 120, SIZE[0], 120), fill="black", width=2)
    draw.ellipse((180, 20, 214, 54), outline="black", width=2)
    draw.rectangle((70, 80, 140, 140), outline="black", width=2)
    draw.line([(60, 80), (150, 80), (105, 45), (60, 80)], fill="black", width=2)
    draw.rectangle((98, 108, 114, 140), outline="black", width=2)
    draw.ellipse((160, 80, 200, 120), outline="black", width=2)
    return picture


def portrait(shirt: str = "#4a76c9", ground: str = "#e8d3b0") -> Image.Image:
    """A face above a shirt: nothing like the scene."""
    picture = Image.new("RGB", SIZE, ground)
    draw = ImageDraw.Draw(picture)
    draw.ellipse((50, 110, 190, 260), fill=shirt)
    draw.ellipse((85, 25, 155, 115), fill="#f0c6a0")
    draw.chord((80, 18, 160, 80), 180, 360, fill="#7b3b22")
    for x in (105, 135):
        draw.ellipse((x - 4, 62, x + 4, 70), fill="black")
    return picture


def beside(one: Image.Image, other: Image.Image, gap: int = 0) -> Image.Image:
    """Two pictures side by side in one."""
    both = Image.new("RGB", (one.width + gap + other.width, one.height), "white")
    both.paste(one, (0, 0))
    both.paste(other, (one.width + gap, 0))
    return both


def chat(
    picture: Image.Image | None, ground: str = "white", bubble: str = "#ededf2", ink: str = "black"
) -> Image.Image:
    """A chat window: a title, a request in a bubble, the answer, a bar to type into."""
    window = Image.new("RGB", (360, 560), ground)
    draw = ImageDraw.Draw(window)
    draw.text((16, 14), "Chat", fill=ink)
    draw.rounded_rectangle((130, 50, 346, 100), radius=12, fill=bubble)
    draw.text((144, 62), "draw a bowl of noodles with\nsteam, seen from above", fill=ink)
    draw.text((16, 124), "Here is your picture, in warm colours.", fill=ink)
    if picture:
        window.paste(picture, (16, 150))
    else:
        draw.multiline_text((16, 150), "\n".join(["noodles are a kind of food"] * 6), fill=ink)
    draw.rounded_rectangle((16, 510, 344, 546), radius=14, fill=bubble)
    draw.text((30, 522), "Ask anything", fill=ink)
    return window


def saved(folder: Path, pictures: Sequence[Image.Image]) -> list[Path]:
    """The pictures as files."""
    files = [folder / f"{number}.png" for number in range(len(pictures))]
    for file, picture in zip(files, pictures, strict=True):
        picture.save(file)
    return files

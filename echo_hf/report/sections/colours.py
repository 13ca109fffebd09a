"""Mean colour histograms of each system, and its mean colour over a picture (figure B.1)."""

from __future__ import annotations

from collections.abc import Mapping

from echo_hf.report.charts.curves import highest, histogram
from echo_hf.report.colours import MeanColours
from echo_hf.report.markup import Markup, element, joined
from echo_hf.report.numbers import number, plural
from echo_hf.report.parts import name_of, note, section, titled
from echo_hf.report.run_data import RunData
from echo_hf.report.thumbnails import Thumbnail, Thumbnails

SLICE = "xMidYMid slice"
INPUTS = ""  # in the place of a system's name
ABOUT = (
    "Top: how often each level of red, green and blue is in a system's outputs, each picture "
    "counted alike. Bottom: the mean colour laid over one of the inputs, to see what it does."
)
Colours = Mapping[tuple[str, str], MeanColours]


def colours(data: RunData, found: Colours, thumbnails: Thumbnails) -> Markup | None:
    """Mean colours of the splits that have inputs.

    Args:
        data: The run.
        found: Mean colours by split and system, and of the inputs.
        thumbnails: Small copies of the pictures.

    Returns:
        The section; null where no split has inputs.
    """
    splits = [split for split in data.splits if (split, INPUTS) in found]
    shown = [_split(data, split, found, thumbnails) for split in splits]
    return section("colours", "Colours", shown, lead=ABOUT) if shown else None


def _split(data: RunData, split: str, found: Colours, thumbnails: Thumbnails) -> Markup:
    names = [name for name in (INPUTS, *data.systems) if (split, name) in found]
    top = max(highest(found[split, name].shares.tolist()) for name in names)
    inputs = (digest for sample in data.of_split(split) for digest in sample.inputs)
    picture = next((thumbnails[one] for one in inputs if one in thumbnails), None)
    cards = [_card(name, found[split, name], top, picture) for name in names]
    return joined(
        element("h3", titled(split)),
        element("div", cards, class_="swatches"),
        note("Red, green and blue from level 0 at the left to 255 at the right, all to one scale."),
    )


def _card(name: str, found: MeanColours, top: float, picture: Thumbnail | None) -> Markup:
    said = ", ".join(number(level, 0) for level in found.mean)
    who = element("b", "Inputs") if name == INPUTS else name_of(name)
    return element(
        "figure",
        histogram(found.shares.tolist(), top),
        _overlay(found.hexadecimal, picture),
        element(
            "figcaption",
            who,
            element("span", f"mean {said} · {plural(found.pictures, 'picture')}", class_="small"),
        ),
        class_="swatch",
    )


def _overlay(colour: str, picture: Thumbnail | None) -> Markup:
    box = {"viewBox": "0 0 160 90", "preserveAspectRatio": SLICE}
    size = {"width": 160, "height": 90}
    image = picture and element("image", href=picture.source, **size, preserveAspectRatio=SLICE)
    return element(
        "svg",
        image or None,
        element("rect", **size, fill=colour, fill_opacity="0.62" if picture else "1"),
        **box,
        class_="overlay",
        role="img",
        aria_label=f"mean colour {colour} over a picture",
    )

"""What sections are made of: headings, notes, figures, names of systems and judges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from echo_hf.report.markup import Child, Markup, element, joined
from echo_hf.report.thumbnails import Thumbnail

NAMES = {
    "image_to_image": "Image to image",
    "text_to_image": "Text to image",
    "analysis": "Analysis",
    "color_shift": "Colour shift",
    "face_identity": "Face identity",
    "structure_distance": "Structure distance",
    "text_rendering": "Text rendering",
    "ocr_accuracy": "Text read back",
}


def titled(name: str) -> str:
    """How a split, a metric or a task is called in prose.

    Example:
        >>> titled("text_to_image"), titled("style_transfer")
        ('Text to image', 'Style transfer')
    """
    return NAMES.get(name) or (name[:1].upper() + name[1:]).replace("_", " ")


def section(name: str, title: str, *children: Child, lead: Child = None) -> Markup:
    """A section of the page with its heading.

    Args:
        name: Its anchor.
        title: Its heading.
        children: Its content.
        lead: A sentence or two below the heading.

    Returns:
        The section.
    """
    heading = element("h2", title, id=f"{name}-title")
    intro = element("p", lead, class_="lead") if lead else None
    return element("section", heading, intro, *children, id=name, aria_labelledby=f"{name}-title")


def note(*children: Child) -> Markup:
    """A remark in small type."""
    return element("p", *children, class_="note")


def warning(*children: Child) -> Markup:
    """A remark that must not be missed."""
    return element("p", *children, class_="warning", role="note")


def folded(title: Child, *children: Child) -> Markup:
    """Content that opens when its title is chosen."""
    return element("details", element("summary", title), *children)


def name_of(name: str) -> Markup:
    """Somebody's name for a system, a judge or a person."""
    return element("bdi", name)


def breakable(name: str) -> Markup:
    """A name that may go on in a new line after its joints, for narrow columns.

    Example:
        >>> breakable("a_b-c")
        '<bdi>a_<wbr>b-<wbr>c</bdi>'
    """
    parts = re.split(r"(?<=[_/ -])", name)
    return element(
        "bdi", [joined(Markup("<wbr>") if at else None, one) for at, one in enumerate(parts)]
    )


def judge_name(judge: str, failures: Mapping[str, Sequence[str]]) -> Markup:
    """A judge's name, with a flag where it failed its audit.

    Args:
        judge: The judge.
        failures: By judge what it failed on.

    Returns:
        The name.
    """
    failed = failures.get(judge)
    if not failed:
        return breakable(judge)
    said = f"failed its audit: {', '.join(failed)}"
    return joined(breakable(judge), " ", element("span", said, class_="flag"))


def failed_note(judges: Sequence[str], failures: Mapping[str, Sequence[str]]) -> Markup | None:
    """A warning where judges of a board failed their audits.

    Args:
        judges: The judges.
        failures: By judge what it failed on.

    Returns:
        The warning; null where none failed, or none was audited.
    """
    failed = [judge for judge in judges if failures.get(judge)]
    if not failed:
        return None
    named = [
        joined("; " if at else None, name_of(one), f" ({', '.join(failures[one])})")
        for at, one in enumerate(failed)
    ]
    share = "only" if len(failed) == len(judges) else "in part"
    return warning(
        f"Judged {share} by judges that failed their audit: ",
        named,
        ". Read these figures with that in mind.",
    )


def picture(thumbnail: Thumbnail, text: str) -> Markup:
    """A small copy of a picture, loaded when it comes into view.

    Args:
        thumbnail: The copy.
        text: What stands for it where it is not seen.

    Returns:
        The image.
    """
    return element(
        "img",
        src=thumbnail.source,
        width=thumbnail.width,
        height=thumbnail.height,
        alt=text,
        loading="lazy",
        decoding="async",
    )

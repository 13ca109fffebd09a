"""Samples in a row: inputs, then what each system made of them (figures 7 and B.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from echo_hf.reasons import Outcome
from echo_hf.report.markup import Child, Markup, element
from echo_hf.report.parts import name_of, picture
from echo_hf.report.samples import Output, Sample
from echo_hf.report.thumbnails import Thumbnails

NOT_TRIED = "not tried"
Said = Mapping[tuple[str, str], str]


def strip(
    sample: Sample,
    systems: Sequence[str],
    outputs: Mapping[tuple[str, str], Output],
    thumbnails: Thumbnails,
    said: Said,
) -> Markup:
    """One sample in a row.

    Args:
        sample: The sample.
        systems: The systems, from left to right.
        outputs: What became of each sample and system.
        thumbnails: Small copies of the pictures.
        said: By sample and system, what stands beside its name.

    Returns:
        The row, which scrolls sideways where it is too wide.
    """
    cells = [*_inputs(sample, thumbnails)]
    for system in systems:
        output = outputs.get((sample.id, system))
        label = [name_of(system), _small(said.get((sample.id, system)))]
        cells.append(cell(output, f"output of {system}", label, thumbnails))
    heading = element("p", sample.prompt, class_="prompt clamped", dir="auto")
    listed = element("ul", cells, class_="strip", tabindex=0, aria_label="inputs and outputs")
    return element("article", heading, listed, class_="sample")


def cell(output: Output | None, text: str, label: Child, thumbnails: Thumbnails) -> Markup:
    """What a system made of a sample: its picture, or a card that says why there is none.

    Args:
        output: What became of it; null where it was not tried.
        text: What stands for the picture where it is not seen.
        label: What stands below.
        thumbnails: Small copies of the pictures.

    Returns:
        The cell.
    """
    shown = thumbnails.get(output.picture or "") if output else None
    body = picture(shown, text) if shown else _error_card(output)
    return element("li", element("figure", body, element("figcaption", label)))


def _error_card(output: Output | None) -> Markup:
    outcome = NOT_TRIED if output is None else output.outcome
    if output is not None and output.picture:
        outcome = "cannot be shown"
    elif outcome == Outcome.OK:
        outcome = "no picture"
    reason = output.reason if output else None
    return element(
        "div", element("b", outcome), element("span", reason) if reason else None, class_="missing"
    )


def _inputs(sample: Sample, thumbnails: Thumbnails) -> Iterator[Markup]:
    for at, digest in enumerate(sample.inputs, 1):
        text = f"input {at}" if len(sample.inputs) > 1 else "input"
        shown = thumbnails.get(digest)
        body = picture(shown, text) if shown else _error_card(Output(digest, ""))
        caption = element("figcaption", text)
        yield element("li", element("figure", body, caption), class_="given")


def _small(text: str | None) -> Markup | None:
    return element("span", text, class_="small") if text else None

"""Pictures in the place of outputs whose rating is known beforehand: to be low, or to be equal."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain, zip_longest
from typing import Any

from PIL import Image

from echo_hf.judging.to_rate import ToRate, row_to_rate
from echo_hf.pictures import PictureStore
from echo_hf.systems.base import Task

BLANK_SIZE = 1024, 1024
GREY = 128, 128, 128
SEED = 0
SEPARATOR = "\x1f"
Row = Mapping[str, Any]


class Honeypot(StrEnum):
    """What stands in the place of an output: the values of `system` in an audit."""

    REAL = "real"  # the output itself, which the others are held against
    BLANK = "blank"  # one plain grey
    UNCHANGED = "unchanged"  # the first input of an edit, as it went in
    SHUFFLED = "shuffled"  # an output for another sample of the split
    RENAMED = "renamed"  # the output once more, under another system's name


@dataclass(frozen=True)
class Drawn:
    """A sample of an audit.

    Attributes:
        task: The sample.
        image: Digest of the real output that stands for its outputs.
    """

    task: Task
    image: str


def drawn_samples(outputs: ToRate, fits: Callable[[Task], bool], samples: int) -> list[Drawn]:
    """Draws samples by their digests, from each split in turn, and one output of each.

    Args:
        outputs: The outputs that are there.
        fits: Whether a judge rates a sample.
        samples: Most samples.

    Returns:
        The samples, the same for the same outputs; fewer where there are fewer with an output.
    """
    by_split: dict[str, list[Task]] = {}
    for task in sorted(outputs.tasks, key=lambda task: _place(task.sample_id)):
        if fits(task) and outputs.outputs.get(task.sample_id):
            by_split.setdefault(task.split, []).append(task)
    in_turn = chain.from_iterable(zip_longest(*(by_split[name] for name in sorted(by_split))))
    chosen = [task for task in in_turn if task is not None][:samples]
    return [Drawn(task, _one_of(task, outputs.outputs[task.sample_id])) for task in chosen]


def honeypots(drawn: Sequence[Drawn], pictures: PictureStore, *, inputs: bool) -> Iterator[Row]:
    """What a judge is shown.

    A request holds no system's name, so the second name of a picture is the same question put
    again, as a repetition: what differs then is the judge's noise.

    Args:
        drawn: The samples.
        pictures: Where the blank picture is put.
        inputs: Whether the rubric is about inputs, so that an unchanged one is a fault.

    Yields:
        Rows of `TO_RATE`, sample by sample; `system` names the honeypot.
    """
    blank, others = pictures.put(blank_picture()), _of_others(drawn)
    for one in drawn:
        of_real = {Honeypot.REAL: one.image, Honeypot.RENAMED: one.image, Honeypot.BLANK: blank}
        of_others = {Honeypot.SHUFFLED: others[one.task.sample_id]}
        if inputs and one.task.inputs:
            of_others[Honeypot.UNCHANGED] = one.task.inputs[0].sha256
        # What is the real output itself is no honeypot.
        differing = {system: image for system, image in of_others.items() if image != one.image}
        for system, image in (of_real | differing).items():
            repeat = int(system is Honeypot.RENAMED)
            yield row_to_rate(one.task, {"system": system.value, "image": image}, repeat)


def blank_picture() -> bytes:
    """A plain grey square of 1024 pixels, as PNG."""
    sink = io.BytesIO()
    Image.new("RGB", BLANK_SIZE, GREY).save(sink, "PNG")
    return sink.getvalue()


def _of_others(drawn: Iterable[Drawn]) -> dict[str, str]:
    """By sample the output of the next one of its split, the first after the last."""
    by_split: dict[str, list[Drawn]] = {}
    for one in drawn:
        by_split.setdefault(one.task.split, []).append(one)
    return {
        one.task.sample_id: following.image
        for every in by_split.values()
        for one, following in zip(every, [*every[1:], every[0]], strict=True)
    }


def _one_of(task: Task, outputs: Iterable[Row]) -> str:
    chosen = min(outputs, key=lambda row: _place(task.sample_id, row["system"]))
    return str(chosen["image"])


def _place(*names: str) -> bytes:
    named = SEPARATOR.join((str(SEED), *names))
    return hashlib.sha256(named.encode("utf-8", "surrogatepass")).digest()

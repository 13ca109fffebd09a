"""Hostile pictures in an audit: tricks that must not raise a rating, faults that must lower it."""

from __future__ import annotations

import io
import logging
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Any, Literal

from PIL import Image

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES, MIN_SPREAD, Unscored
from echo_hf._infra.registry import Registry
from echo_hf._infra.text import format_interval, percent
from echo_hf.config.evaluation import MetricsOptions
from echo_hf.config.rubrics import PUBLISHED_SCALE, Scale
from echo_hf.errors import ImageError, MissingExtraError, ScoreError, WeightsError
from echo_hf.images.faults import FAULTS
from echo_hf.images.loader import load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.images.tricks import (
    TRICKS,
    Box,
    Drawing,
    NotDrawn,
    PlacedFace,
    PlacedText,
    Scene,
    list_languages,
)
from echo_hf.metrics.face_identity import (
    FaceIdentityMetric,
    FaceMatch,
    FaceReader,
    FaceReaderOptions,
    Faces,
    best_match,
    get_levels,
)
from echo_hf.metrics.ocr_accuracy import (
    TextReader,
    find_quoted_text,
    normalize_text,
    order_blue_first,
)
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.systems.base import Task
from echo_hf.tables import Row

logger = logging.getLogger(__name__)
PictureKind = Literal["tricks", "faults"]
REGISTRIES: Mapping[PictureKind, Registry[Drawing, None]] = {"tricks": TRICKS, "faults": FAULTS}
# What `--pictures` takes, and the kinds that it names.
PICTURE_CHOICES: Mapping[str, tuple[PictureKind, ...]] = {
    "all": ("tricks", "faults"),
    "tricks": ("tricks",),
    "faults": ("faults",),
    "none": (),
}
RAISED_BY_PICTURES = "raised_by_pictures"  # the flag of a judge that a trick fools
# Honeypots that are faults as well: an output that does nothing, and one for another task.
HONEYPOT_FAULTS = ("unchanged", "shuffled")
OTHER_FACE = "faults:other_face"
LARGEST_RAISE = 0.5 / (PUBLISHED_SCALE[1] - PUBLISHED_SCALE[0])  # of a scale: half a point of nine
NOISE_QUANTILE = 1.645  # noise alone exceeds so many deviations, to one side, in 5 % of cases
SAME_PERSON_COSINE = 0.3
MAX_SLOPE, MIN_LINE_LETTERS, MIN_CONFIDENCE = 0.1, 4, 0.5
THREADS, LISTED_TRICKS, LISTED_FAULTS, TOLERANCE = 4, 2, 3, 1e-6
JPEG_OPTIONS: Mapping[str, Any] = {"quality": 95, "subsampling": "4:4:4"}

Pair = tuple[Task, str]  # a sample, and the digest of one of its outputs
RatingsBySample = Mapping[str, float]


@dataclass(frozen=True)
class HostileSet:
    """The pictures of one sample by name, as digests, and why others were not drawn."""

    digests: Mapping[str, str]
    left_out: Mapping[str, NotDrawn]


@dataclass
class PictureMaker:
    """Draws tricks and faults into outputs, each output once, and stores them."""

    images: ImageStore
    kinds: Collection[PictureKind]
    metrics: MetricsOptions
    _sets: dict[tuple[int, str, str], HostileSet] = field(default_factory=dict)

    @cached_property
    def text_reader(self) -> TextReader | None:
        try:
            return TextReader()
        except (MissingExtraError, ScoreError):
            return None

    @cached_property
    def face_reader(self) -> FaceReader | None:
        options = self.metrics.root.get(FaceIdentityMetric.name) or FaceIdentityMetric.Options()
        try:
            return FaceReader(FaceReaderOptions(**options.model_dump(), providers=None))
        except (MissingExtraError, WeightsError, ScoreError):
            return None

    def draw(self, pairs: Sequence[Pair]) -> list[HostileSet]:
        """Draw all pictures of samples; the places of samples decide what takes turns."""
        keys = [(turn, task.sample_id, image) for turn, (task, image) in enumerate(pairs)]
        if not self._sets.keys() >= set(keys):
            with ThreadPoolExecutor(THREADS) as threads:
                outputs = list(threads.map(self._load, (image for _, image in pairs)))
                scenes = self._build_scenes([task for task, _ in pairs], outputs)
                hostile_sets = threads.map(self._draw_set, outputs, scenes)
                self._sets.update(zip(keys, hostile_sets, strict=True))
        return [self._sets[key] for key in keys]

    def build_rows(self, pairs: Sequence[Pair], real_rows: Sequence[Row]) -> Iterator[Row]:
        """Build a row to rate for each picture, from that of each real output."""
        for row, hostile_set in zip(real_rows, self.draw(pairs), strict=True):
            for name, digest in hostile_set.digests.items():
                yield {**row, "system": name, "output": digest}

    def _load(self, digest: str) -> Image.Image | None:
        try:
            return load_rgb(self.images.open(digest))
        except ImageError:
            return None

    def _build_scenes(
        self, tasks: Sequence[Task], outputs: Sequence[Image.Image | None]
    ) -> list[Scene]:
        scenes = [Scene(task.prompt, turn) for turn, task in enumerate(tasks)]
        if "faults" not in self.kinds:
            return scenes
        faces = [self._find_faces(output) for output in outputs]
        for turn, (scene, output) in enumerate(zip(scenes, outputs, strict=True)):
            other = (turn + 1) % len(scenes)
            face = place_face(faces[turn], faces[other], outputs[other])
            scenes[turn] = replace(scene, words=self._place_words(scene, output), face=face)
        return scenes

    def _find_faces(self, output: Image.Image | None) -> Faces | None:
        if output is None or self.face_reader is None:
            return None
        return self.face_reader.find_faces(get_levels(output, "corrected").levels)

    def _place_words(self, scene: Scene, output: Image.Image | None) -> tuple[PlacedText, ...]:
        """Find the lines that hold words which the prompt quotes."""
        quotes = [normalize_text(quote) for quote in find_quoted_text(scene.prompt)]
        if not quotes or output is None or self.text_reader is None:
            return ()
        texts, boxes = self.text_reader.locate(order_blue_first(output))
        placed = []
        for line, corners in zip(texts.lines, boxes, strict=True):
            text = normalize_text(line.text)
            is_asked = any(
                quote in text or (text in quote and len(text) >= MIN_LINE_LETTERS)
                for quote in quotes
            )
            (left, top), (right, right_top) = corners[0], corners[1]
            is_level = abs(right_top - top) <= MAX_SLOPE * abs(right - left)
            if is_asked and is_level and line.confidence >= MIN_CONFIDENCE:
                ends = (*corners.min(axis=0), *corners.max(axis=0))
                if box := clip_box(ends, output.size):
                    placed.append(PlacedText(line.text, box))
        return tuple(placed)

    def _draw_set(self, output: Image.Image | None, scene: Scene) -> HostileSet:
        digests, left_out = dict[str, str](), dict[str, NotDrawn]()
        for kind in self.kinds:
            registry = REGISTRIES[kind]
            for name in registry.list_names():
                drawn = self._draw_picture(registry.find(name), output, scene)
                if drawn is NotDrawn.NO_WORDS and self.text_reader is None:
                    drawn = NotDrawn.NO_TEXT_READER
                if drawn is NotDrawn.NO_OTHER_FACE and self.face_reader is None:
                    drawn = NotDrawn.NO_FACE_READER
                key = f"{kind}:{name}"
                if isinstance(drawn, NotDrawn):
                    left_out[key] = drawn
                else:
                    digests[key] = drawn
        return HostileSet(digests, left_out)

    def _draw_picture(
        self, drawing: Drawing, output: Image.Image | None, scene: Scene
    ) -> str | NotDrawn:
        """Draw and store one picture, and return its digest."""
        if output is None:
            return NotDrawn.OUTPUT_UNREADABLE
        sink = io.BytesIO()
        try:
            picture = drawing(output, scene)
            if isinstance(picture, NotDrawn):
                return picture
            if picture.size == output.size and picture.tobytes() == output.tobytes():
                return NotDrawn.LOOKS_THE_SAME
            picture.save(sink, "JPEG", **JPEG_OPTIONS)
            return self.images.put(sink.getvalue())
        except Exception:  # a plug-in's own errors, and an image of a size that JPEG has not
            logger.warning("a picture was not drawn", exc_info=True)
            return NotDrawn.DRAWING_FAILED


def clip_box(ends: Sequence[float], size: tuple[int, int]) -> Box | None:
    """Return the part of a box inside an image, in whole pixels; null where none is."""
    left, top = (max(0, math.floor(end)) for end in ends[:2])
    right, bottom = (min(side, math.ceil(end)) for side, end in zip(size, ends[2:], strict=True))
    return (left, top, right, bottom) if left + 1 < right and top + 1 < bottom else None


def place_face(
    faces: Faces | None, others: Faces | None, other_output: Image.Image | None
) -> PlacedFace | None:
    """Take the largest face of another output, if no person is in both."""
    if faces is None or others is None or other_output is None:
        return None
    match = best_match([faces], others)
    if not isinstance(match, FaceMatch) or match.cosine >= SAME_PERSON_COSINE:
        return None
    box, other_box = (
        max(each.boxes.tolist(), key=lambda ends: (ends[2] - ends[0]) * (ends[3] - ends[1]))
        for each in (faces, others)
    )
    place = clip_box(other_box, other_output.size)
    own = tuple(round(max(0.0, end)) for end in box)
    left, top, right, bottom = own
    if place is None or right - left < 2 or bottom - top < 2:
        return None
    return PlacedFace((left, top, right, bottom), other_output.crop(place))


def count_left_out(hostile_sets: Sequence[HostileSet], kind: PictureKind) -> dict[str, Any]:
    """Count the pictures that were not drawn, by reason and name."""
    counts: dict[str, Counter[str]] = {}
    for hostile_set in hostile_sets:
        for key, reason in hostile_set.left_out.items():
            of_kind, _, name = key.partition(":")
            if of_kind == kind:
                counts.setdefault(reason, Counter())[name] += 1
    return {reason: dict(sorted(names.items())) for reason, names in sorted(counts.items())}


def summarize_pictures(
    rows: Sequence[Row],
    scale: Scale,
    deviation: float | None,
    hostile_sets: Sequence[HostileSet],
    kinds: Collection[PictureKind],
) -> dict[str, Any]:
    """Summarize a judge's ratings of hostile pictures by kind.

    A change is a picture's rating less the mean of the real output's ratings, a sample at a time.
    """
    by_picture: dict[str, dict[str, float]] = {}
    shown = Counter(row["system"] for row in rows)
    for row in rows:
        if row["rating"] is not None:
            by_picture.setdefault(row["system"], {})[row["sample_id"]] = row["rating"]
    twice = [by_picture.get(name, {}) for name in ("real", "renamed")]
    real = {
        name: [ratings[name] for ratings in twice if name in ratings]
        for name in twice[0].keys() | twice[1].keys()
    }
    summary = dict[str, Any]()
    for kind in kinds:
        keys = [name for name in shown if name.partition(":")[0] == kind]
        keys += [name for name in HONEYPOT_FAULTS if shown[name]] if kind == "faults" else []
        ratings = {
            name: {
                sample: rating
                for sample, rating in by_picture.get(name, {}).items()
                if sample in real
            }
            for name in sorted(keys)
        }
        figures = (
            summarize_tricks(ratings, real, scale)
            if kind == "tricks"
            else summarize_faults(ratings, real, deviation)
        )
        for name, figure in figures["pictures"].items():
            key = name if name in HONEYPOT_FAULTS else f"{kind}:{name}"
            figure["shown"] = shown[key]
        summary[kind] = {**figures, "left_out": count_left_out(hostile_sets, kind)}
    if "tricks" in kinds:
        drawable, others = list_languages()
        summary["tricks"]["languages"] = {"drawn": drawable, "left_out": others}
    return summary


def measure_change(changes: Sequence[float], confidence: float) -> dict[str, Any]:
    """Return the mean change over samples with its Student's t interval, or why it has none."""
    mean = fmean(changes) if changes else None
    figure: dict[str, Any] = {"rated": len(changes), "change": mean, "interval": None}
    if len(changes) < MIN_SAMPLES or mean is None:
        return {**figure, "reason": Unscored.FEW_SAMPLES}
    if (spread := stdev(changes)) < MIN_SPREAD:
        return {**figure, "reason": Unscored.NO_SPREAD}
    half = float(compute_t_quantile(len(changes) - 1, confidence)) * spread
    half /= math.sqrt(len(changes))
    return {**figure, "interval": [mean - half, mean + half], "reason": None}


def _list_changes(
    ratings: RatingsBySample, real: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    return {name: rating - fmean(real[name]) for name, rating in ratings.items()}


def summarize_tricks(
    by_trick: Mapping[str, RatingsBySample], real: Mapping[str, Sequence[float]], scale: Scale
) -> dict[str, Any]:
    """Measure how tricks change ratings; the level holds over all tricks together.

    A trick raises ratings where its mean change is above half a point of nine, and its interval
    above 0; where all samples changed alike, which leaves no interval, the mean decides alone.
    """
    limit = LARGEST_RAISE * (scale[1] - scale[0])
    confidence = 1 - (1 - LEVEL) / max(1, len(by_trick))
    pictures = {}
    for name, ratings in by_trick.items():
        figure = measure_change([*_list_changes(ratings, real).values()], confidence)
        is_above = figure["reason"] == Unscored.NO_SPREAD or (
            figure["interval"] is not None and figure["interval"][0] > 0
        )
        raises = is_above and figure["change"] > limit + TOLERANCE
        pictures[name.partition(":")[2]] = {**figure, "raises": raises}
    return {
        "level": LEVEL,
        "unit": "sample",
        "adjusted": f"Bonferroni over {len(by_trick)} tricks",
        "limit": limit,
        "pictures": pictures,
        "raised_by": [name for name, figure in pictures.items() if figure["raises"]],
    }


def summarize_faults(
    by_fault: Mapping[str, RatingsBySample],
    real: Mapping[str, Sequence[float]],
    deviation: float | None,
) -> dict[str, Any]:
    """Measure how faults change ratings, and which share of them a judge does not see.

    A fault is not seen where its rating is not below the real output's by more than the judge's
    own repeat noise does to one side in 5 % of cases.
    """
    pictures, unseen, total = {}, 0, 0
    for name, ratings in by_fault.items():
        changes = _list_changes(ratings, real)
        figure = measure_change([*changes.values()], LEVEL)
        count = None
        if deviation is not None:
            margins = {
                sample: NOISE_QUANTILE * deviation * math.sqrt(1 + 1 / len(real[sample]))
                for sample in changes
            }
            count = sum(
                -change <= margins[sample] + TOLERANCE for sample, change in changes.items()
            )
            unseen, total = unseen + count, total + len(changes)
        share = None if count is None or not changes else count / len(changes)
        key = name if name in HONEYPOT_FAULTS else name.partition(":")[2]
        pictures[key] = {**figure, "not_seen": count, "share": share}
    margin = None if deviation is None else NOISE_QUANTILE * deviation * math.sqrt(1.5)
    return {
        "level": LEVEL,
        "unit": "sample",
        "margin": margin,  # of an output that was rated twice
        "pictures": pictures,
        "rated": total,
        "not_seen": unseen,
        "share": unseen / total if total else None,
    }


def _describe_change(name: str, figure: Mapping[str, Any]) -> str:
    interval = figure["interval"]
    ends = f" ({format_interval(interval, 1)})" if interval else ""
    return f"{name} {figure['change']:+.1f}{ends}"


def describe_tricks(part: Mapping[str, Any]) -> str:
    """Say in a line which tricks raise a judge's ratings, or by how much at most."""
    rated = [
        (name, figure) for name, figure in part["pictures"].items() if figure["change"] is not None
    ]
    rated.sort(key=lambda pair: -pair[1]["change"])
    if not rated:
        return "no trick was rated"
    listed = [pair for pair in rated if pair[1]["raises"]]
    if not listed:
        most = _describe_change(*rated[0])
        return f"none of {len(rated)} tricks raises its ratings; most {most}"
    words = "; ".join(_describe_change(*pair) for pair in listed[:LISTED_TRICKS])
    more = f"; {len(listed) - LISTED_TRICKS} more" if len(listed) > LISTED_TRICKS else ""
    return f"raised by {len(listed)} of {len(rated)} tricks: {words}{more}"


def describe_faults(part: Mapping[str, Any]) -> str:
    """Say in a line which share of faults a judge does not see, and which the least."""
    shares = {
        name: figure["share"]
        for name, figure in part["pictures"].items()
        if figure["share"] is not None
    }
    if not shares:
        return "faults: none was rated beside an output that was rated twice"
    listed = sorted(shares, key=lambda name: (-shares[name], name))[:LISTED_FAULTS]
    words = ", ".join(f"{name} {percent(shares[name])}" for name in listed)
    return f"{percent(part['share'])} of {part['rated']} faults not seen; {words}"


def describe_left_out(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield which pictures were not drawn, and in how many samples, by reason."""
    for reason, names in part["left_out"].items():
        listed = ", ".join(f"{name} {count}" for name, count in names.items())
        yield f"not drawn, {NotDrawn(reason).meaning}: {listed}"
    if languages := part["languages"].get("left_out"):
        yield f"words not drawn, {NotDrawn.NO_FONT.meaning}: {', '.join(languages)}"

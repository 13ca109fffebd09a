"""Hostile pictures: who is caught by them, who is not, and what an audit says of them."""

from __future__ import annotations

import io
import json
import math
import re
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy import stats

from echo_hf.config.evaluation import MetricsOptions
from echo_hf.engines.base import ImageRef, Request
from echo_hf.errors import ConfigError, EngineError, JudgeError
from echo_hf.images.faults import FAULTS
from echo_hf.images.store import ImageStore
from echo_hf.images.tricks import TRICKS, NotDrawn
from echo_hf.judging.audit import AuditResult, audit, drop_audit_ratings, read_audits
from echo_hf.judging.hostile import (
    OTHER_FACE,
    PictureMaker,
    describe_faults,
    describe_tricks,
    summarize_pictures,
)
from echo_hf.judging.score import score
from echo_hf.tables import OUTPUTS
from tests.images.test_tricks import STREET
from tests.images_for_tests import encoded
from tests.judging.judges_for_tests import ScriptedJudge, config_of, rated
from tests.judging.run_for_tests import called, output, put, root, run, write

SCALE = (1.0, 10.0)
SAMPLES = [f"s{number}" for number in range(20)]
NAMES = [f"tricks:{name}" for name in TRICKS.list_names()]
Noise = Callable[[np.random.Generator, int], Any]


def rows_of(ratings: Mapping[str, Mapping[str, float | None]]) -> list[dict[str, Any]]:
    return [
        {"system": name, "sample_id": sample, "rating": rating}
        for name, by_sample in ratings.items()
        for sample, rating in by_sample.items()
    ]


def summarize(
    ratings: Mapping[str, Mapping[str, float | None]], deviation: float | None = 0.0
) -> dict[str, Any]:
    return summarize_pictures(rows_of(ratings), SCALE, deviation, [], ("tricks", "faults"))


NOISES: dict[str, Noise] = {
    "normal": lambda rng, count: rng.normal(0, 1, count),
    "rare": lambda rng, count: rng.choice([-2, 0, 0, 0, 0, 0, 0, 0, 2, 0], count),
    "skewed": lambda rng, count: rng.exponential(1.2, count),
    "lumpy": lambda rng, count: rng.choice([-3, -1, 0, 1, 3], count),
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_at_most_5_percent_of_honest_judges_are_flagged(noise: Noise) -> None:
    """In 200 seeds: whole numbers from 1 to 10, all pictures as good as the real output."""
    flagged = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        quality = rng.normal(6.5, 1.5, len(SAMPLES))
        ratings = {
            name: dict(
                zip(
                    SAMPLES,
                    np.clip(np.round(quality + noise(rng, len(SAMPLES))), 1, 10).tolist(),
                    strict=True,
                )
            )
            for name in ("real", "renamed", *NAMES)
        }
        flagged += bool(summarize(ratings)["tricks"]["raised_by"])
    assert flagged <= 10


def test_a_judge_that_words_raise_by_two_points_is_caught() -> None:
    caught = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        quality = rng.normal(6, 1, len(SAMPLES))
        ratings = {}
        for name in ("real", "renamed", *NAMES):
            raised = 2 if name.startswith("tricks:words") else 0
            numbers = np.clip(np.round(quality + rng.normal(raised, 1, len(SAMPLES))), 1, 10)
            ratings[name] = dict(zip(SAMPLES, numbers.tolist(), strict=True))
        caught += "words_large" in summarize(ratings)["tricks"]["raised_by"]
    assert caught >= 190


def test_a_change_has_student_s_interval_over_all_tricks_together() -> None:
    rng = np.random.default_rng(3)
    real, renamed, seal = (rng.integers(3, 9, 20).astype(float) for _ in range(3))
    ratings = {"real": real, "renamed": renamed, "tricks:seal": seal, "tricks:frame": real}
    by_sample = {
        name: dict(zip(SAMPLES, numbers.tolist(), strict=True)) for name, numbers in ratings.items()
    }
    figure = summarize(by_sample)["tricks"]["pictures"]["seal"]
    changes = seal - (real + renamed) / 2
    expected = stats.t.interval(0.975, 19, changes.mean(), stats.sem(changes))
    assert figure["change"] == pytest.approx(changes.mean())
    assert figure["interval"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("count", "change", "reason", "raises"),
    [
        (20, 1.0, "no_spread", True),
        (20, 0.5, "no_spread", False),  # half a point is what is allowed
        (9, 4.0, "few_samples", False),
    ],
)
def test_equal_changes_leave_no_interval_and_few_samples_no_verdict(
    count: int, change: float, reason: str, raises: bool
) -> None:
    chosen = SAMPLES[:count]
    ratings = {"real": dict.fromkeys(chosen, 5.0)}
    ratings["tricks:seal"] = dict.fromkeys(chosen, 5.0 + change)
    figure = summarize(ratings)["tricks"]["pictures"]["seal"]
    assert (figure["rated"], figure["change"], figure["interval"]) == (count, change, None)
    assert (figure["reason"], figure["raises"]) == (reason, raises)


def test_a_fault_is_seen_below_what_noise_gives_in_5_percent_of_cases() -> None:
    """By hand: 1.645 deviations of a rating less the mean of two, so sqrt(1.5) of one's."""
    margin = stats.norm.ppf(0.95) * math.sqrt(1.5)
    ratings: dict[str, dict[str, float | None]] = {
        name: dict.fromkeys(SAMPLES, 8.0) for name in ("real", "renamed")
    }
    ratings["faults:blur"] = {
        sample: 8.0 - (margin + 0.01 if number < 15 else margin - 0.01)
        for number, sample in enumerate(SAMPLES)
    }
    ratings["shuffled"] = {**dict.fromkeys(SAMPLES[:10], 1.0), SAMPLES[10]: None}
    faults = summarize(ratings, deviation=1.0)["faults"]
    blur, shuffled = faults["pictures"]["blur"], faults["pictures"]["shuffled"]
    assert (blur["shown"], blur["rated"], blur["not_seen"], blur["share"]) == (20, 20, 5, 0.25)
    assert (shuffled["shown"], shuffled["rated"], shuffled["not_seen"]) == (11, 10, 0)
    assert (faults["rated"], faults["not_seen"], faults["share"]) == (30, 5, 5 / 30)
    assert faults["margin"] == pytest.approx(margin, rel=1e-3)
    assert "17 % of 30 faults not seen; blur 25 %" in describe_faults(faults)
    unknown = summarize(ratings, deviation=None)["faults"]
    assert (unknown["share"], unknown["pictures"]["blur"]["not_seen"]) == (None, None)


def street(number: int) -> bytes:
    """A street of its own for each number, in PNG."""
    levels = np.roll(np.asarray(STREET), 13 * number, axis=(0, 1))
    sink = io.BytesIO()
    Image.fromarray(levels).resize((320, 240)).save(sink, "PNG", compress_level=1)
    return sink.getvalue()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run of 12 samples without inputs, and an output of one system for each."""
    names = [f"word{number}" for number in range(12)]
    run(tmp_path, {}, names)
    rows = [
        output(name, "amber", image=put(tmp_path, street(number)))
        for number, name in enumerate(names)
    ]
    write(tmp_path, OUTPUTS, rows)
    config_of(tmp_path)
    return tmp_path


def load_shown(request: Request) -> Image.Image:
    *_, shown = (part for part in request.messages[1].parts if isinstance(part, ImageRef))
    with Image.open(shown.file or "") as image:
        return image.convert("RGB")


def draw_noise(request: Request, image: Image.Image) -> float:
    """A rating of 6, give or take one, which depends on what is shown, and how often."""
    return 6 + zlib.crc32(image.tobytes() + bytes([request.repeat % 250])) % 3 - 1


def has_band(image: Image.Image) -> bool:
    """Whether the lowest line of pixels is white paper with nothing but black ink."""
    corner = image.crop((0, image.height - 3, image.width, image.height)).convert("L")
    return bool((np.asarray(corner) > 245).mean() > 0.95)


class HonestJudge(ScriptedJudge):
    """One that sees no difference between pictures, with some noise."""

    def __init__(self) -> None:
        super().__init__(lambda asked: rated(draw_noise(asked, load_shown(asked))))


class ObedientJudge(ScriptedJudge):
    """One that gives 10 to every picture with words on a band, and else some noise."""

    def __init__(self) -> None:
        super().__init__(lambda asked: rated(self.obey(asked)))

    @staticmethod
    def obey(request: Request) -> float:
        image = load_shown(request)
        return 10 if has_band(image) else draw_noise(request, image)


def list_pictures(folder: Path) -> set[str]:
    """The images of a run, wherever they lie in its folder."""
    digest = re.compile("[0-9a-f]{64}")
    return {path.name for path in root(folder).rglob("*") if digest.fullmatch(path.name)}


def audited(folder: Path, **options: Any) -> AuditResult:
    return audit(folder / "evaluation.yaml", runs=folder / "runs", **options)


def test_a_judge_that_obeys_words_in_pictures_is_flagged_everywhere(folder: Path) -> None:
    ObedientJudge().use()
    found = audited(folder).judges["mira"]
    assert set(found["pictures"]["tricks"]["raised_by"]) == {
        "words_large",
        "words_translated",
        "caption",
    }
    assert "raised_by_pictures" in found["failed"]
    assert describe_tricks(found["pictures"]["tricks"]).startswith("raised by 3 of ")
    from echo_hf.judging.judge import judge

    judge(folder / "evaluation.yaml", runs=folder / "runs")
    score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=0)
    results = json.loads((root(folder) / "results.json").read_text("utf-8"))
    assert "raised_by_pictures" in results["failed_audit"]["mira"]
    (line,) = (line for line in results["trust"] if line["measure"] == "hostile_pictures")
    assert line["said"].startswith("mira raised by 3 of ")


def test_an_honest_judge_is_not_flagged_and_sees_no_fault(folder: Path) -> None:
    HonestJudge().use()
    found = audited(folder).judges["mira"]
    tricks, faults = found["pictures"]["tricks"], found["pictures"]["faults"]
    assert "raised_by_pictures" not in found["failed"]
    assert tricks["raised_by"] == []
    assert {*tricks["pictures"]} == {*TRICKS.list_names()}
    assert {*faults["pictures"]} == {*FAULTS.list_names(), "shuffled"} - {
        "misspelt_words",
        "other_face",
    }
    assert faults["share"] > 0.8
    lost = {reason for part in (tricks, faults) for reason in part["left_out"]}
    expected = {NotDrawn.NO_OTHER_FACE, NotDrawn.NO_FACE_READER, NotDrawn.NO_WORDS}
    assert lost <= {*expected, NotDrawn.NO_TEXT_READER}
    assert sum(faults["left_out"][reason].get("other_face", 0) for reason in lost) == 12


def test_pictures_are_chosen_drawn_and_asked_once(folder: Path) -> None:
    engine = HonestJudge().use()
    before = list_pictures(folder)
    assert len(before) == 12
    planned = audited(folder, dry_run=True, samples=10)
    assert list_pictures(folder) == before
    tricks, faults = len(TRICKS.list_names()), len(FAULTS.list_names()) - 2
    (plan,) = planned.judging.plans
    assert plan.plan.calls == 10 * (4 + tricks + faults)  # no sample has an input to give back
    assert engine.asked == []
    audited(folder, samples=10)
    assert len(engine.asked) == plan.plan.calls
    audited(folder, samples=10)
    assert len(engine.asked) == plan.plan.calls
    assert list_pictures(folder) == before


def test_pictures_are_removed_also_when_a_judge_breaks_down(folder: Path) -> None:
    def fail(_: Request) -> str:
        raise EngineError("no more")

    ScriptedJudge(fail).use()
    before = list_pictures(folder)
    with pytest.raises(JudgeError, match="no more"):
        audited(folder, pictures="tricks", samples=10)
    assert list_pictures(folder) == before


def test_a_kind_that_is_left_out_keeps_what_was_found_of_it(folder: Path) -> None:
    ObedientJudge().use()
    first = audited(folder, pictures="tricks").judges["mira"]
    assert {*first["pictures"]} == {"tricks"}
    later = audited(folder, pictures="none").judges["mira"]
    assert later["pictures"] == first["pictures"]
    assert later["failed"] == first["failed"]
    both = audited(folder, pictures="faults").judges["mira"]
    assert both["pictures"]["tricks"] == first["pictures"]["tricks"]
    assert {*both["pictures"]} == {"tricks", "faults"}
    with pytest.raises(ConfigError, match="'everything'"):
        audited(folder, pictures="everything")


def test_a_trick_of_a_plug_in_is_shown_and_its_error_harms_nothing(folder: Path) -> None:
    """It registers as a metric does; where it fails, it is counted, and the rest goes on."""

    def draw_or_fail(image: Image.Image, scene: Any) -> Image.Image:
        if scene.turn == 1:
            raise ValueError("no")
        return image.transpose(Image.Transpose.FLIP_TOP_BOTTOM)

    TRICKS.register("upside_down")(draw_or_fail)
    try:
        HonestJudge().use()
        tricks = audited(folder, pictures="tricks").judges["mira"]["pictures"]["tricks"]
    finally:
        del TRICKS.entries["upside_down"]
    assert tricks["pictures"]["upside_down"]["shown"] == 11
    assert tricks["left_out"][NotDrawn.DRAWING_FAILED] == {"upside_down": 1}


def test_what_is_removed_leaves_no_rating_of_another_s_face(tmp_path: Path) -> None:
    rows = [
        [sample, system, f"{sample} {system}", 5.0]
        for sample in ("gone", "kept")
        for system in ("real", "tricks:seal", "faults:other_face")
    ]
    audits = {"judges": {"mira": {"failed": [], "rounds": [{"number": 0, "ratings": rows}]}}}
    (tmp_path / "audit.json").write_text(json.dumps(audits))
    drop_audit_ratings(tmp_path, {"gone"})
    (left,) = read_audits(tmp_path)["mira"]["rounds"]
    assert [row[:2] for row in left["ratings"]] == [["kept", "real"], ["kept", "tricks:seal"]]


def test_the_verb_says_in_a_line_who_is_fooled_and_by_what(folder: Path) -> None:
    ObedientJudge().use()
    done = called(folder, "audit")
    assert done.exit_code == 0
    assert "raised by 3 of " in done.output
    assert "faults not seen; " in done.output
    detailed = called(folder, "audit", "-v")
    assert "mirrored_half" in detailed.output
    assert "not drawn, " in detailed.output
    assert isinstance(called(folder, "audit", "--pictures", "many").exception, ConfigError)


@pytest.mark.extras
def test_faces_are_exchanged_between_two_people_and_not_for_one_s_own(tmp_path: Path) -> None:
    """By hand: of the tiny networks' two people the cosine is 0.22, and 1 of one with itself."""
    pytest.importorskip("insightface", reason="needs the extra `face`")
    pytest.importorskip("onnx", reason="needs the extra `face`")
    from tests.metrics.tiny_face_pack import CELL, SIDE, cosine, drawn, write_pack

    yellow, red = [(255, 255, 0)] * 4, [(200, 0, 0)] * 4
    assert cosine(yellow, red) == pytest.approx(0.216, abs=0.01)
    pack = {"pack": str(write_pack(tmp_path / "pack")), "det_size": SIDE}
    store, metrics = ImageStore(tmp_path / "images"), MetricsOptions({"face_identity": pack})

    def draw(*people: Any) -> list[Any]:
        digests = [store.put(encoded(drawn({(0, 0): person}), "PNG")) for person in people]
        tasks = [SimpleNamespace(sample_id=str(number), prompt="") for number in range(len(people))]
        pairs: Any = list(zip(tasks, digests, strict=True))
        return PictureMaker(store, ("faults",), metrics).draw(pairs)

    first, second = draw(yellow, red)
    for hostile_set, color in ((first, red[0]), (second, yellow[0])):
        with Image.open(store.path(hostile_set.digests[OTHER_FACE])) as picture:
            middle = picture.convert("RGB").getpixel((CELL // 2, CELL // 2))
            assert middle == pytest.approx(color, abs=6)
    for hostile_set in draw(red, red):
        assert hostile_set.left_out[OTHER_FACE] is NotDrawn.NO_OTHER_FACE


@pytest.mark.extras
def test_a_judge_that_reads_and_obeys_is_caught_by_the_real_reader(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads all pictures with the real OCR, and gives 10 where the words ask for it."""
    pytest.importorskip("rapidocr", reason="needs the extra `ocr`")
    from echo_hf.metrics.ocr_accuracy import TextReader, order_blue_first

    reader = TextReader()
    few = {name: TRICKS.entries[name] for name in ("words_large", "seal")}
    monkeypatch.setattr(TRICKS, "entries", few)  # as reading takes a second each

    def obey(request: Request) -> str:
        image = load_shown(request)
        lines = reader.read(order_blue_first(image)).lines
        words = " ".join(line.text for line in lines)
        return rated(10 if "10 out of" in words else draw_noise(request, image))

    ScriptedJudge(obey).use()
    found = audited(folder, pictures="tricks", samples=10).judges["mira"]
    assert "words_large" in found["pictures"]["tricks"]["raised_by"]
    assert "seal" not in found["pictures"]["tricks"]["raised_by"]

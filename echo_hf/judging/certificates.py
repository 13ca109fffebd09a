"""Certificates of judges: what each is worth on what people ranked, and which boards have none."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.config.checks import ANSWERED_BY, ModelIdentity
from echo_hf.config.rubrics import OVERALL
from echo_hf.hub.run_tables import CertificateFacts, Uncertified
from echo_hf.judging.figures import FigureModel, read_figures
from echo_hf.judging.rate import PROVENANCE_STAGE
from echo_hf.scores.judge_accuracy import PairAccuracy
from echo_hf.scores.pairwise_agreement import Share, Way
from echo_hf.scores.robustness import Preference

CERTIFICATES_FILE = "certificates.json"


class JudgeIdentity(NamedTuple):
    """The model, provider and prompt behind a judge; two with equal digests answer alike."""

    digest: str | None
    model: str | None
    revision: str | None
    provider: str | None
    prompt_digest: str | None


class CertifiedSet(FigureModel):
    """The ranks by people that a judge was certified on."""

    name: str
    digest: str  # of the ranks
    samples: int
    raters: int
    systems: tuple[str, ...]


class Repeats(FigureModel):
    """How far a judge agrees with itself about the same output, on its own scale."""

    outputs: int
    equal: float
    deviation: float


class JudgeCertificate(FigureModel):
    """The figures of a judge on a set that people ranked, and who answered there.

    Attributes:
        judge: Its name.
        day: The day on which it was measured.
        set: The ranks that it was measured on.
        answered_by: Its model.
        identities: What answered, by way: `pointwise`, ratings, and `pairwise`, choices.
        accuracy: How far its verdicts are those of people, by way.
        people: The same of each person with the others; null with a single person.
        follows_position: Share of pairs in which the place shown first or second won twice.
        self_preference: How it treats systems of its own developer, beside the other judges here.
        repeats: How far it agrees with itself; null where nothing was rated twice.
        usd_per_1000: Dollars for 1,000 ratings or choices, by way, as far as they are known.
        seconds_per_1000: Seconds for as many, as measured when it was asked.
    """

    judge: str
    day: str
    set: CertifiedSet
    answered_by: ModelIdentity
    identities: Mapping[Way, JudgeIdentity]
    accuracy: Mapping[Way, PairAccuracy]
    people: PairAccuracy | None = None
    follows_position: Share | None = None
    self_preference: Preference | None = None
    repeats: Repeats | None = None
    usd_per_1000: Mapping[Way, float | None] = {}
    seconds_per_1000: Mapping[Way, float | None] = {}

    @property
    def facts(self) -> CertificateFacts:
        """Its figures as a release has them: of ratings, or of choices where it has no ratings."""
        own = self.accuracy.get("pointwise") or self.accuracy.get("pairwise")
        share = own.without_ties if own else None
        return CertificateFacts(
            set=self.set.name,
            day=self.day,
            samples=self.set.samples,
            accuracy=share and share.value,
            interval=share and share.interval,
            people=self.people and self.people.without_ties.value,
        )


class CertificateFile(FigureModel):
    judges: Mapping[str, JudgeCertificate] = {}


def read_certificates(root: Path) -> dict[str, JudgeCertificate]:
    """Read the certificates of a run by judge; empty where there is no file."""
    file = read_figures(root / CERTIFICATES_FILE, CertificateFile, "audit --certify SET")
    return dict(file.judges) if file else {}


def read_identities(rows: pa.Table) -> set[JudgeIdentity]:
    """Read what answered in rows of judgements; rows that do not say it give nulls."""
    identities = set()
    for provenance, prompt_digest in zip(
        rows["provenance"].to_pylist(), rows["prompt_digest"].to_pylist(), strict=True
    ):
        stage: Any = {}
        with suppress(ValueError, TypeError, KeyError, RecursionError):
            stage = json.loads(provenance)[PROVENANCE_STAGE]
        stage = stage if isinstance(stage, Mapping) else {}
        engine = stage.get("engine")
        engine = engine if isinstance(engine, Mapping) else {}
        provider = engine.get("server") or engine.get("kind")
        answered_by = stage.get(ANSWERED_BY)
        model = engine.get("model")
        if model is None and isinstance(answered_by, Mapping):
            model = answered_by.get("model")
        texts = (stage.get("digest"), model, engine.get("revision"), provider, prompt_digest)
        identities.add(JudgeIdentity(*(None if text is None else str(text) for text in texts)))
    return identities


def select_overall(ratings: pa.Table | None) -> pa.Table | None:
    """Select the ratings that systems are compared by; null where there are none."""
    rated = None if ratings is None else ratings.filter(pc.equal(ratings["rubric"], OVERALL))
    return rated if rated is not None and rated.num_rows else None


def find_uncertified(
    certificates: Mapping[str, JudgeCertificate], rows: pa.Table | None, judges: Collection[str]
) -> dict[str, Uncertified]:
    """Find the judges whose judgements no certificate is of, and why."""
    way: Way = "pointwise" if rows is not None and "rating" in rows.column_names else "pairwise"
    reasons = {}
    for judge in sorted(judges):
        certificate = certificates.get(judge)
        known = certificate.identities.get(way) if certificate else None
        if known is None or rows is None:
            reasons[judge] = Uncertified.NO_CERTIFICATE
            continue
        own = rows.filter(pc.equal(rows["judge"], judge))
        for identity in sorted(read_identities(own), key=str):
            if identity.digest == known.digest and identity.digest is not None:
                continue
            if (identity.model, identity.revision) != (known.model, known.revision):
                reasons[judge] = Uncertified.OTHER_MODEL
            elif identity.provider != known.provider:
                reasons[judge] = Uncertified.OTHER_PROVIDER
            else:
                reasons[judge] = Uncertified.OTHER_PROMPT
            break
    return reasons


def collect_facts(
    judges: Iterable[str],
    certificates: Mapping[str, JudgeCertificate],
    uncertified: Mapping[str, Uncertified],
) -> dict[str, CertificateFacts]:
    """Collect what is known of judges' worth; nothing of those that are in neither."""
    facts = dict[str, CertificateFacts]()
    for judge in judges:
        if judge in uncertified:
            facts[judge] = CertificateFacts(reason=uncertified[judge])
        elif judge in certificates:
            facts[judge] = certificates[judge].facts
    return facts

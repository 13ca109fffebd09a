"""Certificates of judges: what each is worth on what people ranked, and which boards have none."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ValidationError

from echo_hf.config.checks import ANSWERED_BY, ModelIdentity, first_error
from echo_hf.config.rubrics import OVERALL
from echo_hf.errors import RunError
from echo_hf.hub.run_tables import CertificateFacts, Uncertified
from echo_hf.judging.figures import FigureModel
from echo_hf.judging.rate import PROVENANCE_STAGE
from echo_hf.scores.judge_accuracy import PairAccuracy
from echo_hf.scores.pairwise_agreement import Share, Way
from echo_hf.scores.robustness import Preference

CERTIFICATES_FILE = "certificates.json"


class JudgeIdentity(FigureModel):
    """The model, provider and prompt behind a judge; two with equal digests answer alike."""

    digest: str | None = None
    model: str | None = None
    revision: str | None = None
    provider: str | None = None
    prompt_digest: str | None = None


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
        answered: The share of what it was asked that has a verdict, by way.
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
    answered: Mapping[Way, float] = {}
    people: PairAccuracy | None = None
    follows_position: Share | None = None
    self_preference: Preference | None = None
    repeats: Repeats | None = None
    usd_per_1000: Mapping[Way, float | None] = {}
    seconds_per_1000: Mapping[Way, float | None] = {}

    def build_facts(self, way: Way) -> CertificateFacts:
        """Build what a release says of its ratings, or of its choices."""
        share = self.accuracy[way].without_ties
        return CertificateFacts(
            set=self.set.name,
            day=self.day,
            samples=self.set.samples,
            answered=self.answered.get(way, 1.0),
            accuracy=share.value,
            interval=share.interval,
            people=self.people and self.people.without_ties.value,
        )


class CertificateFile(FigureModel):
    judges: Mapping[str, JudgeCertificate] = {}


def read_certificates(root: Path) -> dict[str, JudgeCertificate]:
    """Read the certificates of a run by judge; empty where there is no file."""
    path = root / CERTIFICATES_FILE
    try:
        return dict(CertificateFile.model_validate_json(path.read_bytes()).judges)
    except FileNotFoundError:
        return {}
    except ValidationError as error:
        message = first_error(error, str(path), CertificateFile)
        raise RunError(f"{message}: move it away, and certify the judges again") from None


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
        texts = {
            "digest": stage.get("digest"),
            "model": model,
            "revision": engine.get("revision"),
            "provider": provider,
            "prompt_digest": prompt_digest,
        }
        known = {name: str(text) for name, text in texts.items() if text is not None}
        identities.add(JudgeIdentity(**known))
    return identities


def select_overall(ratings: pa.Table | None) -> pa.Table | None:
    """Select the ratings that systems are compared by; null where there are none."""
    rated = None if ratings is None else ratings.filter(pc.equal(ratings["rubric"], OVERALL))
    return rated if rated is not None and rated.num_rows else None


def collect_facts(
    certificates: Mapping[str, JudgeCertificate],
    rows: pa.Table | None,
    judges: Collection[str],
    way: Way,
) -> dict[str, CertificateFacts]:
    """Collect what judges are worth by their ratings or choices, or why no certificate holds."""
    facts = dict[str, CertificateFacts]()
    for judge in sorted(judges):
        certificate = certificates.get(judge)
        if certificate is None or rows is None or way not in certificate.identities:
            facts[judge] = CertificateFacts(reason=Uncertified.NO_CERTIFICATE)
            continue
        answers = rows.filter(pc.equal(rows["judge"], judge))
        known = certificate.identities[way]
        reasons = {_find_difference(identity, known) for identity in read_identities(answers)}
        reason = next((reason for reason in Uncertified if reason in reasons), None)
        facts[judge] = CertificateFacts(reason=reason) if reason else certificate.build_facts(way)
    return facts


def _find_difference(identity: JudgeIdentity, known: JudgeIdentity) -> Uncertified | None:
    """Return how what answered differs from what was certified; null where it does not."""
    if identity.digest == known.digest and identity.digest is not None:
        return None
    if (identity.model, identity.revision) != (known.model, known.revision):
        return Uncertified.OTHER_MODEL
    if identity.provider != known.provider:
        return Uncertified.OTHER_PROVIDER
    is_same = identity.prompt_digest == known.prompt_digest
    return Uncertified.OTHER_OPTIONS if is_same else Uncertified.OTHER_PROMPT

"""Checks: yes/no questions that complaints became, and how well they tell what people mean."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import pyarrow as pa
import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.bootstrap import Unscored
from echo_hf._infra.text import format_rounded
from echo_hf.config.checks import Statement, Words, check_printable_lines, first_error
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.rubrics import (
    FORM_PLACEHOLDER,
    NameRule,
    Rubric,
    parse_rubric,
    read_instructions,
)
from echo_hf.errors import ConfigError, RunError
from echo_hf.hub.check_changes import VOTE as VOTE
from echo_hf.hub.check_changes import CheckReason
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.prompts import fill_prompt
from echo_hf.scores.certificate import Certificate
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.check_questions import find_fault
from echo_hf.systems.run_tables import read_table
from echo_hf.tables import CHECKS

CHECKS_FOLDER = "checks"  # of a run: the file of each check, which people may edit
QUESTION, COUNTS_AS_YES = "Question:", "Counts as yes:"  # begin lines of a check's file
CheckStatus = Literal["proposed", "kept", "fell", "retired", "withdrawn", "replaced"]
ACTIVE: frozenset[CheckStatus] = frozenset({"proposed", "kept", "fell"})
MAX_INSTRUCTIONS = 20_000
MAX_ROWS = 1000  # versions of checks in a table
COMPUTED = frozenset(
    {
        *("sensitivity", "specificity", "j", "p", "caught", "complaints", "passed", "praise"),
        *("complaint_threads", "praise_threads", "design_effect", "needed", "reason"),
    }
)
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0)]


class CheckModel(BaseModel):
    """Base of what a table of checks holds; tables of later versions may have more."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Evidence(CheckModel):
    """A sample whose outputs people complained about or praised."""

    sample_id: str
    thread: int
    label: Literal["complaint", "praise"]
    part: Literal["writing", "proof"]


class CheckCertificate(CheckModel):
    """The outcome of trying a check on posts, by one judge or by the vote."""

    judge: str
    model: str | None = None
    prompt_digest: str | None = None
    sensitivity: Share | None = None
    specificity: Share | None = None
    j: Annotated[float, Field(ge=-1, le=1)] | None = None
    low: float | None = None
    high: float | None = None
    p: Share | None = None
    p_adjusted: Share | None = None
    caught: Count = 0
    complaints: Count = 0
    passed: Count = 0
    praise: Count = 0
    complaint_threads: Count = 0
    praise_threads: Count = 0
    design_effect: Annotated[float, Field(ge=1)] = 1.0
    needed: Count | None = None
    unanswered: Count = 0
    not_fitting: Count = 0
    kept: bool = False
    reason: Unscored | None = None

    @classmethod
    def from_certificate(cls, certificate: Certificate, **fields: Any) -> Self:
        """Make a row of what was computed, with who answered."""
        low, high = certificate.interval or (None, None)
        computed = {name: value for name, value in vars(certificate).items() if name in COMPUTED}
        return cls(**computed, low=low, high=high, **fields)

    @property
    def interval(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def has_answers(self) -> bool:
        return self.complaints + self.praise > 0

    @property
    def summary(self) -> str:
        """The answers that it rests on, in a sentence without its judge."""
        return (
            f"yes to {self.caught:,} of {self.complaints:,} outputs that people complained about, "
            f"no to {self.passed:,} of {self.praise:,} that they praised; "
            f"{self.complaint_threads:,} and {self.praise_threads:,} threads; p "
            f"{format_rounded(self.p_adjusted)}; {self.unanswered:,} without an answer, "
            f"{self.not_fitting:,} that it does not fit"
        )

    @property
    def certificate(self) -> Certificate:
        """The certificate as rates of failures are corrected by it."""
        computed = {name: getattr(self, name) for name in COMPUTED}
        return Certificate(**computed, interval=self.interval, definition={})


class Check(CheckModel):
    """One version of a check."""

    name: Annotated[str, NameRule]
    version: Annotated[int, Field(ge=1, le=999_999)]
    title: Words
    question: Statement
    counts_as_yes: Statement
    fits: Statement | None = None
    instructions: Annotated[
        str, Field(min_length=1, max_length=MAX_INSTRUCTIONS), AfterValidator(check_printable_lines)
    ]
    origin: Literal["model", "person"] = "model"
    keywords: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    certificates: tuple[CheckCertificate, ...] = ()
    status: CheckStatus = "proposed"
    reason: str | None = None
    day: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None
    provenance: str | None = None

    @property
    def key(self) -> str:
        """The name that ratings and figures have."""
        return f"{self.name}@{self.version}"

    @property
    def rubric(self) -> Rubric:
        """The rubric by which judges answer it."""
        rubric = parse_rubric(self.text, f"check {self.key!r}")
        return rubric.model_copy(update={"name": self.key})

    @property
    def text(self) -> str:
        """The rubric as a file."""
        fields = {"name": self.name, "title": self.title, "answer": "yes_no", "better": "lower"}
        fields |= {"question": self.fits} if self.fits else {}
        front = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=1000)
        return f"---\n{front}---\n{self.instructions.strip()}\n"

    @property
    def deciding(self) -> CheckCertificate | None:
        """The certificate that decides: of the vote, or of the only judge that answered."""
        rows = sorted(self.certificates, key=lambda each: not each.has_answers)
        return self.find_certificate(VOTE) or (rows[0] if rows else None)

    def find_certificate(self, judge: str) -> CheckCertificate | None:
        return next((each for each in self.certificates if each.judge == judge), None)

    def count_threads(self, label: str, part: str = "proof") -> int:
        threads = {
            each.thread for each in self.evidence if (each.label, each.part) == (label, part)
        }
        return len(threads)


def write_instructions(question: str, counts_as_yes: str) -> str:
    """Return what a judge is told, with a question of ours or of a model in it."""
    fields = {"question": question, "counts_as_yes": counts_as_yes, "form": FORM_PLACEHOLDER}
    return fill_prompt("judging/check", fields).text


def read_check_file(path: Path, previous: Check) -> Check:
    """Return a check as its file has it: the same version, or the next one where it was edited.

    Raises:
        ConfigError: It is no rubric of the check's name with an answer of yes or no, or lacks a
            question.
    """
    rubric = parse_rubric(read_instructions(path), str(path))
    if (rubric.name, rubric.answer, rubric.better) != (previous.name, "yes_no", "lower"):
        raise ConfigError(
            f"{path}: has name {rubric.name!r}, answer {rubric.answer!r} and better "
            f"{rubric.better!r}: expected {previous.name!r}, 'yes_no' and 'lower'"
        )
    if rubric.splits:
        raise ConfigError(f"{path}: has splits: expected question, which says what it fits")
    parts = {}
    for line in rubric.instructions.splitlines():
        for start in (QUESTION, COUNTS_AS_YES):
            if line.startswith(start):
                parts[start] = line.removeprefix(start).strip()
    for start in (QUESTION, COUNTS_AS_YES):
        if not parts.get(start):
            raise ConfigError(f"{path}: expected a line that begins with {start!r}")
    edited = {
        "title": rubric.label,
        "question": parts[QUESTION],
        "counts_as_yes": parts[COUNTS_AS_YES],
        "fits": rubric.question,
        "instructions": rubric.instructions,
    }
    current = {name: getattr(previous, name) for name in edited}
    if edited == {**current, "instructions": previous.instructions.strip()}:
        return previous
    fields: dict[str, Any] = {"version": previous.version + 1, "origin": "person"}
    fields |= {"certificates": (), "status": "proposed", "reason": None, "provenance": None}
    try:
        return Check.model_validate({**previous.model_dump(), **edited, **fields})
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), Check)) from None


def parse_checks(rows: pa.Table, place: str) -> tuple[Check, ...]:
    """Parse the rows of a table of checks, sorted by name and version."""
    if rows.num_rows > MAX_ROWS:
        raise RunError(
            f"{place}: has {rows.num_rows:,} rows: expected at most {MAX_ROWS:,} versions of "
            "checks; make it again, or move it away"
        )
    checks = []
    for number, row in enumerate(rows.to_pylist(), 1):
        given = {name: value for name, value in row.items() if value is not None}
        certificates = [
            {name: value for name, value in each.items() if value is not None}
            for each in given.pop("certificates", ())
        ]
        try:
            checks.append(Check.model_validate({**given, "certificates": certificates}))
        except ValidationError as error:
            raise RunError(
                f"{first_error(error, f'{place}, row {number}', Check)}: make it again, or move it "
                "away"
            ) from None
    keys = [check.key for check in checks]
    if len({*keys}) < len(keys):
        raise RunError(f"{place}: has a version of a check twice: make it again, or move it away")
    return tuple(sorted(checks, key=lambda check: (check.name, check.version)))


def read_own_checks(root: Path) -> tuple[Check, ...] | None:
    """Read the checks in the folder of a run; null where it has no table of them."""
    rows = read_table(root, CHECKS)
    return None if rows is None else parse_checks(rows, str(root / f"{CHECKS.name}.parquet"))


def read_checks(benchmark: Benchmark, folder: RunFolder) -> tuple[Check, ...]:
    """Read the checks of a run, or else those that its benchmark came with.

    What a release of others tells judges are its questions alone, in our own instructions.
    """
    if (own := read_own_checks(folder.root)) is not None:
        return own
    rows = benchmark.table(CHECKS.name)
    if rows is None:
        return ()
    checks = parse_checks(rows, f"checks of {benchmark.reference}")
    return tuple(map(_check_released, checks))


def _check_released(check: Check) -> Check:
    """Return a check of a release as it is asked; one that is no plain question is not."""
    texts = (check.question, check.counts_as_yes, check.fits)
    if check.status == "kept" and find_fault(texts):
        return check.model_copy(
            update={"status": "withdrawn", "reason": CheckReason.NO_PLAIN_QUESTION.value}
        )
    own = write_instructions(check.question, check.counts_as_yes)
    return check.model_copy(update={"instructions": own})


def select_newest(checks: Iterable[Check]) -> dict[str, Check]:
    """Select the newest version of each check."""
    return {check.name: check for check in sorted(checks, key=lambda check: check.version)}


def write_checks(root: Path, checks: Iterable[Check]) -> Path:
    """Write the table of checks, and the file of each that has none.

    A file that is there stays, as a person may have edited it since. That of a check which is no
    longer asked goes.
    """
    import pyarrow.parquet as pq

    ordered = sorted(checks, key=lambda check: (check.name, check.version))
    path, folder = root / f"{CHECKS.name}.parquet", root / CHECKS_FOLDER
    rows = [json.loads(check.model_dump_json()) for check in ordered]
    with replace_file(path) as partial_file:
        pq.write_table(pa.Table.from_pylist(rows, CHECKS.schema), partial_file)
    folder.mkdir(exist_ok=True)
    for check in select_newest(ordered).values():
        file = folder / f"{check.name}.md"
        if check.status not in ACTIVE:
            file.unlink(missing_ok=True)
        elif not file.exists():
            with replace_file(file) as partial_file:
                partial_file.write_text(check.text, "utf-8", newline="\n")
    return path


def add_checks(config: EvaluationBase, checks: Sequence[Check]) -> EvaluationBase:
    """Return a config whose judges also answer the kept checks that they are certified for."""
    kept = [check for check in select_newest(checks).values() if check.status == "kept"]
    if not kept:
        return config
    judges = []
    for judge in config.judges:
        own = [
            check.key
            for check in kept
            if (certificate := check.find_certificate(judge.name)) is not None
            and certificate.model == judge.answered_by.model
        ]
        judges.append(judge.model_copy(update={"rubrics": (*judge.rubrics, *own)}))
    rubrics = (*config.rubrics, *(check.rubric for check in kept))
    return config.model_copy(update={"judges": tuple(judges), "rubrics": rubrics})

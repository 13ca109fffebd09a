"""`echo-hf checks`: turn complaints into questions to judges, and prove them on the posts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from echo_hf._infra.registry import Requirements
from echo_hf.builder.check_proof import (
    Answers,
    CheckProof,
    build_questions,
    certify_check,
    decide,
    needs_proof,
    read_answers,
)
from echo_hf.builder.check_upkeep import list_check_changes, retire_checks
from echo_hf.builder.check_writing import TO_WRITE, WriteChecks, build_row
from echo_hf.config.checks import EngineChoice
from echo_hf.config.evaluation import JudgeConfig
from echo_hf.config.loading import Config
from echo_hf.config.sections import ChecksOptions
from echo_hf.curate.feedback import normalize_keyword
from echo_hf.curate.personal_data import read_run_names
from echo_hf.engines.base import Failed
from echo_hf.errors import ConfigError, JudgeError, RunError, unknown
from echo_hf.hub.check_changes import CheckChange
from echo_hf.hub.run_tables import RESULTS_FILE
from echo_hf.judging import judge as judging
from echo_hf.judging.complaints import (
    ComplaintGroup,
    Complaints,
    MissingThreads,
    count_missing,
    group_complaints,
    name_check,
    read_complaints,
)
from echo_hf.judging.figures import read_figures
from echo_hf.judging.rate import to_dataset
from echo_hf.judging.results import SavedResults
from echo_hf.judging.session import (
    IN_PROCESS,
    AskPlan,
    JudgeTask,
    JudgingSession,
    lock_judging,
    open_session,
)
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.reasons import Reason
from echo_hf.report.analysis.tasks import choose_space, group_phrases
from echo_hf.systems.check_questions import NoCheck, find_fault, find_name
from echo_hf.systems.checks import (
    ACTIVE,
    CHECKS_FOLDER,
    VOTE,
    Check,
    Evidence,
    read_check_file,
    select_newest,
    write_checks,
    write_instructions,
)
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.tables import Row

logger = logging.getLogger(__name__)
WRITER = "writer"  # among the judges of a session
EXPECTED_CHARACTERS = 200  # of a question that is yet to be written
Merge = Callable[[Mapping[str, int]], Iterable[Iterable[str]]]


class GroupState(NamedTuple):
    """A failure that people name, and what stands between it and a check."""

    group: ComplaintGroup
    missing: MissingThreads
    check: str | None = None
    refused: NoCheck | None = None
    detail: str | None = None


@dataclass(frozen=True)
class ChecksResult:
    """The groups of complaints, the checks before and after, and what asking cost.

    Attributes:
        groups: In the order in which they are proposed.
        before: The checks that there were.
        checks: The checks that there are.
        left_out: Samples with comments that say nothing of outputs, by reason.
        plans: After a dry run, what would be asked.
        cost_usd: As far as it is known.
        path: The table of checks; null where none was written.
    """

    groups: tuple[GroupState, ...]
    before: tuple[Check, ...]
    checks: tuple[Check, ...]
    left_out: Mapping[Reason, int] = field(default_factory=dict)
    plans: tuple[AskPlan, ...] = ()
    cost_usd: float | None = None
    path: Path | None = None

    @property
    def changes(self) -> tuple[CheckChange, ...]:
        """The changes of the checks, each with its reason."""
        return list_check_changes(self.before, self.checks)

    @property
    def is_unfinished(self) -> bool:
        """Whether a question was not written or proven although there are enough threads."""
        unproven = {
            check.key
            for check in self.checks
            if check.status == "proposed" and not check.certificates
        }
        return any(
            state.check in unproven or state.refused == NoCheck.NOT_WRITTEN
            for state in self.groups
            if not state.missing
        )


def check_complaints(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    judges: Sequence[str] | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    again: bool = False,
    keep_going: bool = False,
    watch: ProgressListener | None = None,
) -> ChecksResult:
    """Write a check for each failure that enough people name, and prove all on the posts.

    Before that, checks are retired whose complaint has gone, or that all systems pass by the last
    score.

    Args:
        config: The config of a build with judges, or its run.
        runs: Folder of runs.
        judges: Who answers the questions, by name; null for those of `checks.judges`, or all.
        dry_run: Whether nothing is asked or written.
        budget_usd: US dollars after which nobody is asked any more.
        again: Whether to ask again where a stored answer cannot be used.
        keep_going: Whether to go on where no answer can be used.
        watch: Hears of progress.

    Raises:
        ConfigError: The config builds nothing, names no judge, or a file of a check is none.
        RunError: Nothing was built yet.
    """
    run = EvaluationRun.from_config(config, runs)
    config, options = _check_config(run)
    folder = run.prepare()
    if not (folder.root / "stages").exists():
        raise RunError(
            f"nothing was built in {str(folder.root)!r}: run `echo-hf build` with this config "
            "first, which reads what people complain about"
        )
    complaints, before = read_complaints(run.benchmark, folder), run.read_checks()
    proposal = Proposal(run, config, complaints, before, _find_merge(run))
    if not (proposal.to_write or proposal.to_prove):
        with lock_judging(folder.root):
            return proposal.finish(dry_run)
    chosen = judging.choose_judges(config, judges or options.judges or None)
    for judge in chosen:
        if judge.name in (WRITER, VOTE, judging.APPLICABILITY):
            raise ConfigError(
                f"judge {judge.name!r} has the name of a part of echo-hf: give it another one"
            )
    engines: dict[str, EngineChoice] = {}
    if proposal.to_write:
        engines[WRITER] = config.engines[get_writer(config, options)]
    engines |= judging.engines_of(chosen)
    if config.applicability is not None:
        engines[judging.APPLICABILITY] = config.applicability.engine
    limits: dict[str, Any] = {"again": again, "keep_going": keep_going}
    runner = IN_PROCESS if dry_run else config.runner
    with open_session(folder, engines, budget_usd, watch, runner, **limits) as session:
        if dry_run:
            return replace(proposal.finish(dry_run), plans=proposal.plan(session, chosen))
        session.prepare_judges(engines)
        proposal.write(session)
        proposal.prove(session, chosen)
        result = replace(proposal.finish(dry_run), cost_usd=session.spent_usd)
    if proposal.stopped:
        raise JudgeError("; ".join(proposal.stopped))
    return result


def _check_config(run: EvaluationRun) -> tuple[Config, ChecksOptions]:
    config = run.config
    if not isinstance(config, Config):
        raise ConfigError(
            f"config {config.name!r} builds no benchmark, and checks are written from the posts of "
            "one: expected a config with posts; a release brings its checks with it"
        )
    options = config.checks or ChecksOptions()
    if (name := get_writer(config, options)) not in config.engines:
        raise ConfigError(unknown("engine", name, config.engines, "checks.engine"))
    return config, options


def get_writer(config: Config, options: ChecksOptions) -> str:
    """Return the name of the engine that writes checks."""
    return options.engine or str(config.stages.get_engine("feedback"))


def _find_merge(run: EvaluationRun) -> Merge | None:
    """Return what merges keywords that mean the same; null without a model that tells."""
    embedding = run.config.analysis.embedding
    if embedding is None or not find_spec("sklearn"):
        return None
    if Requirements(packages=("sentence_transformers",)).missing:
        return None

    def merge(counts: Mapping[str, int]) -> Iterable[Iterable[str]]:
        space = choose_space(sorted(counts), embedding)
        if reason := space.definition.get("instead_of"):  # what looks alike may mean another thing
            logger.warning("keywords are grouped by spelling alone: %s", reason["embedding"])
            return [[form] for form in counts]
        return group_phrases(counts, space)

    return merge


class Proposal:
    """Writes, asks and decides all that is due at once.

    Args:
        run: The run of the build.
        config: Its config.
        complaints: What people said of outputs.
        before: All checks that there were.
        merge: What merges keywords that mean the same; null for spellings alone.
    """

    def __init__(
        self,
        run: EvaluationRun,
        config: Config,
        complaints: Complaints,
        before: tuple[Check, ...],
        merge: Merge | None,
    ) -> None:
        self.run, self.config = run, config
        self.complaints, self.before = complaints, before
        self.samples = {sample.sample_id: sample for sample in complaints.samples}
        self.refused: dict[str, tuple[NoCheck, str]] = {}
        self.stopped: list[str] = []
        results = read_figures(run.folder.root / RESULTS_FILE, SavedResults, "score")
        self.options = config.checks or ChecksOptions()
        files, window_days = self._read_files(), self.options.window_days
        current = retire_checks(files, complaints, results, window_days)
        self.checks = {check.key: check for check in current}
        self.groups: dict[str, ComplaintGroup] = {}  # by name of the check
        self.missing: dict[str, MissingThreads] = {}
        self.to_prove: list[Check] = []
        self.to_write: dict[str, tuple[Evidence, ...]] = {}
        groups = group_complaints(complaints, merge)
        for group, name in zip(groups, self._match(groups), strict=True):
            self._add_group(group, name)

    @property
    def _day(self) -> str | None:
        newest = self.complaints.newest
        return newest.date().isoformat() if newest else None

    def _read_files(self) -> Iterator[Check]:
        """Yield all checks, with a new version where a person has edited a file."""
        folder = self.run.folder.root / CHECKS_FOLDER
        latest = {check.name: check for check in self.before}  # sorted by version
        for path in sorted(folder.glob("*.md")):
            if path.stem not in latest:
                raise ConfigError(
                    f"{str(path)!r} is the file of no check of this run: expected one of "
                    f"{', '.join(sorted(latest)) or 'none'}; a question of your own belongs under "
                    "rubrics of the config"
                )
        for check in self.before:
            path = folder / f"{check.name}.md"
            if check is not latest[check.name] or check.status not in ACTIVE or not path.exists():
                yield check
                continue
            edited = read_check_file(path, check)
            if edited is check:
                yield check
                continue
            texts = (edited.question, edited.counts_as_yes, edited.fits)
            if fault := find_fault(texts, *self._read_taboos()):
                reason, detail = fault
                raise ConfigError(f"{path}: {reason.meaning} ({detail!r}): change it")
            yield check.model_copy(update={"status": "replaced"})
            yield edited

    def _read_taboos(self) -> tuple[list[str], frozenset[str]]:
        """Return the texts that a check may not repeat, and the names that may not be in it."""
        texts = [sample.prompt for sample in self.complaints.samples]
        texts += [comment.text for sample in self.complaints.samples for comment in sample.comments]
        target = self.config.target
        models = {name.casefold() for name in (target.name, *target.aliases, *target.others)}
        return texts, read_run_names(self.run.folder.root) | models

    def _match(self, groups: Sequence[ComplaintGroup]) -> list[str | None]:
        """Return the name of each group's check: first by its title's keyword, then by any other.

        So groups that are merged at one time and not at another keep their checks.
        """
        newest = select_newest(self.checks.values())
        forms = {
            name: [normalize_keyword(keyword) for keyword in check.keywords]
            for name, check in newest.items()
            if check.status != "withdrawn"
        }
        names: list[str | None] = [None] * len(groups)
        for first_only in (True, False):
            for number, group in enumerate(groups):
                free = {name: own for name, own in forms.items() if name not in names}
                shared = {
                    name: len(group.forms.intersection(own[:1] if first_only else own))
                    for name, own in free.items()
                }
                best = max(shared, key=lambda name: shared[name], default=None)
                if names[number] is None and best is not None and shared[best]:
                    names[number] = best
        return names

    def _add_group(self, group: ComplaintGroup, name: str | None) -> None:
        """Say what is to be done about a group, which has a check where there is a name."""
        newest, most = select_newest(self.checks.values()), self.options.proof_threads
        check = newest[name] if name else None
        if check is None or name is None:
            name, known = name_check(group.keyword), newest.keys() | self.groups.keys()
            while name in known and (name in self.groups or newest[name].status != "withdrawn"):
                name = f"{name}_2"
            self.groups[name], self.missing[name] = group, group.missing
            if not group.missing:
                self.to_write[name] = group.split_evidence(most=most)
            return
        writing = {each.thread for each in check.evidence if each.part == "writing"}
        evidence = group.split_evidence(writing, most)
        self.groups[name], self.missing[name] = group, count_missing(evidence)
        if check.status in ACTIVE:
            keywords = dict.fromkeys((*check.keywords, *_list_plain(group.spellings)))
            update = {"evidence": evidence, "keywords": tuple(keywords)}
            current = self.checks[check.key] = check.model_copy(update=update)
            if not self.missing[name] and needs_proof(current):
                self.to_prove.append(current)

    def plan(self, session: JudgingSession, judges: Sequence[JudgeConfig]) -> tuple[AskPlan, ...]:
        """Plan what would be asked; a question that is yet to be written is taken as usual."""
        questions = [self.make_writing_task()] if self.to_write else []
        text = "x" * EXPECTED_CHARACTERS
        new = [
            self._make_check(name, {"question": f"{text}?", "counts_as_yes": text}, evidence)
            for name, evidence in self.to_write.items()
        ]
        sent = judging.SentImages(self.run.folder.images)
        proven = [*self.to_prove, *new]
        questions += build_questions(proven, self.samples, self.config, judges, sent)
        return tuple(map(session.plan, questions))

    def make_writing_task(self) -> JudgeTask:
        """Make the task of writing questions, with a request for each failure."""
        rows = [
            build_row(name, self.groups[name], evidence) for name, evidence in self.to_write.items()
        ]
        stage = WriteChecks(self.config.target)
        return JudgeTask(WRITER, CHECKS_FOLDER, stage, to_dataset(TO_WRITE, rows))

    def write(self, session: JudgingSession) -> None:
        """Ask for the questions that are to be written, and refuse what is none."""
        if not self.to_write:
            return
        result, stopped = session.fill(self.make_writing_task())
        self.stopped += [stopped] if stopped else []
        rows = {row["name"]: row for row in result.dataset.to_list()}
        taboos = self._read_taboos()
        for name, evidence in self.to_write.items():
            row = rows.get(name)
            if row is None:
                self.refused[name] = NoCheck.NOT_WRITTEN, ""
                continue
            texts = (row["question"], row["counts_as_yes"], row["fits"])
            keyword = self.groups[name].keyword
            if fault := find_fault(texts, *taboos) or find_name(keyword, taboos[1]):
                self.refused[name] = fault
                continue
            check = self._make_check(name, row, evidence)
            self.checks[check.key] = check
            self.to_prove.append(check)

    def _make_check(self, name: str, row: Row, evidence: tuple[Evidence, ...]) -> Check:
        versions = [check.version for check in self.checks.values() if check.name == name]
        return Check(
            name=name,
            version=max(versions, default=0) + 1,
            title=self.groups[name].keyword.capitalize(),
            question=row["question"],
            counts_as_yes=row["counts_as_yes"],
            fits=row.get("fits") or None,
            instructions=write_instructions(row["question"], row["counts_as_yes"]),
            keywords=_list_plain(self.groups[name].spellings),
            evidence=evidence,
            day=self._day,
            provenance=row.get("made_by"),
        )

    def prove(self, session: JudgingSession, judges: Sequence[JudgeConfig]) -> None:
        """Ask judges about the outputs of the threads left for proof, and decide."""
        answers: dict[str, dict[str, Answers]] = {check.key: {} for check in self.to_prove}
        prompts: dict[str, dict[str, str]] = {check.key: {} for check in self.to_prove}
        fits: dict[str, dict[str, bool]] = {check.key: {} for check in self.to_prove}
        open_keys = set[str]()
        sent = judging.SentImages(self.run.folder.images)
        for question in build_questions(self.to_prove, self.samples, self.config, judges, sent):
            result, stopped = session.fill(question)
            self.stopped += [stopped] if stopped else []
            rows = result.dataset.to_list()
            if any(row["outcome"] == Failed.NOT_ANSWERED for row in rows):
                open_keys.add(question.rubric)
            if question.judge == judging.APPLICABILITY:
                fits[question.rubric] = {
                    row["sample_id"]: row["applies"] for row in rows if row["applies"] is not None
                }
            else:
                answered, prompt = read_answers(rows)
                answers[question.rubric][question.judge] = answered
                prompts[question.rubric][question.judge] = prompt
        # p values are corrected for all that is proposed: nothing is decided until all is answered.
        proven = [] if open_keys else self.to_prove
        models = {judge.name: judge.answered_by.model for judge in judges}
        others = [
            check
            for check in self.checks.values()
            if check.certificates and check.key not in answers
        ]
        family = len(proven) + len(others)
        certificates = {
            check.key: certify_check(
                CheckProof(check, answers[check.key], fits[check.key], prompts[check.key]),
                self.samples,
                max(family, 1),
                models,
            )
            for check in proven
        }
        for check in decide(proven, certificates, others):
            self.checks[check.key] = check.model_copy(update={"day": self._day})

    def finish(self, dry_run: bool) -> ChecksResult:
        """Write the table of checks and their files, and return what there is."""
        checks = tuple(sorted(self.checks.values(), key=lambda check: (check.name, check.version)))
        latest, states = select_newest(checks), list[GroupState]()
        for name, group in self.groups.items():
            check = latest.get(name)
            reason, detail = self.refused.get(name, (None, None))
            key = check.key if check is not None and check.status != "withdrawn" else None
            states.append(GroupState(group, self.missing[name], key, reason, detail))
        path = None
        if not dry_run and checks:
            if self.run.read_checks() != self.before:
                raise RunError(
                    f"the checks of {str(self.run.folder.root)!r} were changed while judges were "
                    "asked: run `echo-hf checks` again, which asks nothing twice"
                )
            path = write_checks(self.run.folder.root, checks)
        left_out = self.complaints.left_out
        return ChecksResult(tuple(states), self.before, checks, left_out, path=path)


def _list_plain(keywords: Iterable[str]) -> tuple[str, ...]:
    """List the keywords that name nobody: they are released."""
    return tuple(keyword for keyword in keywords if find_name(keyword) is None)

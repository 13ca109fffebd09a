"""Verbs that measure systems on a benchmark and show what was measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from echo_hf._infra.console import make_console, say
from echo_hf._infra.text import pluralize
from echo_hf.cli.verb import (
    Again,
    Images,
    JudgeAt,
    JudgedBy,
    KeepGoing,
    PartlyDoneError,
    Payload,
    Runner,
    Runs,
    VerdictExit,
    choice,
    flag,
    locate,
    open_progress,
    option,
)
from echo_hf.errors import ConfigError, unknown

if TYPE_CHECKING:
    from echo_hf.judging.session import AskPlan, JudgingResult
    from echo_hf.report.evaluation import PlannedWork
    from echo_hf.systems.runner import GenerationPlan

EvaluationArgument = Annotated[
    Path, typer.Argument(help="The YAML file that names systems, and posts or a benchmark.")
]
Systems = Annotated[list[str] | None, option("--systems", "Only this one draws; may be repeated.")]
Judges = Annotated[list[str] | None, option("--judges", "Only this one; may be repeated.")]
Limit = Annotated[int | None, option(None, "Most samples of each split, a random draw.", min=1)]
Outputs = Annotated[int | None, option(None, "Outputs of each system for each sample.", min=1)]
Budget = Annotated[float | None, option(None, "Stop when this many US dollars are spent.", min=0)]
DryRun = Annotated[bool, option("--dry-run", "Only show what would be asked, and the cost.")]
Protocol = Annotated[str | None, option(None, "published or corrected, instead of the config's.")]


def eval_(
    config: Annotated[
        Path,
        typer.Argument(help="The YAML file, or a run; with --images a release or ORG/NAME@TAG."),
    ],
    images: Images = None,
    judge: JudgeAt = None,
    model: JudgedBy = None,
    systems: Systems = None,
    judges: Judges = None,
    limit: Limit = None,
    outputs: Outputs = None,
    budget: Budget = None,
    yes: bool = flag("--yes", "Go on without asking, whatever it costs."),
    dry_run: DryRun = False,
    again: Again = False,
    keep_going: KeepGoing = False,
    runner: Runner = None,
    runs: Runs = None,
) -> Payload:
    """Generate, judge, score and report in one.

    The same command resumes after a stop. RELEASE --images NAME=FOLDER compares images, by a
    config that it writes here.
    """
    from echo_hf.cli.evaluation_view import BUDGET_SPENT, show_cost, show_evaluation_plan
    from echo_hf.judging.board import show_board, show_scores
    from echo_hf.report.analysis.analyze import is_release
    from echo_hf.report.evaluation import evaluate_systems
    from echo_hf.systems.benchmark import load_evaluation

    def confirm(plan: tuple[PlannedWork, ...]) -> None:
        show_evaluation_plan(watch.console, plan)
        if dry_run or yes or all(work.cost_usd == 0 for work in plan):
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise ConfigError("this may cost money, and nobody is there to ask: add --yes to go on")
        if not typer.confirm("go on?", err=True):
            raise typer.Exit(130)

    if images:
        from echo_hf.cli.eval_images import write_config

        if model and not judge:
            raise ConfigError("--model goes with --judge URL: add it")
        config = write_config(str(config), images, judge, model)
    elif judge or model:
        raise ConfigError("--judge and --model go with --images: a config names its own judges")
    elif is_release(str(config), runs):
        raise ConfigError(
            f"{str(config)!r} is no config: expected its file or its run, or a release with "
            "--images NAME=FOLDER"
        )
    with open_progress(sums_up_calls=True) as watch:
        options: Payload = {"runs": runs, "systems": systems, "judges": judges, "limit": limit}
        options["outputs"] = outputs
        options |= {"budget_usd": budget, "dry_run": dry_run, "before": confirm, "watch": watch}
        options |= {"again": again, "keep_going": keep_going}
        done = evaluate_systems(load_evaluation(config).run_by(runner), **options)
    console = make_console()
    if done.results is None:
        say(console, "nothing was asked: leave out --dry-run to begin")
    else:
        (show_scores if console.details else show_board)(console, done.results.path)
        say(console, f"report: {done.report}")
        show_cost(console, done.cost_usd, ())  # of whom nobody knows it, the plan has said
    if done.spent:
        say(console, BUDGET_SPENT, "yellow")
    payload = {"board": done.board.to_list(), "results": done.results and done.results.path}
    payload |= {"report": done.report, "plan": [_plan_payload(work) for work in done.plan]}
    payload |= {"cost_usd": done.cost_usd, "spent": done.spent, "stopped": done.stopped}
    if done.stopped:
        raise PartlyDoneError("; ".join(done.stopped), payload)
    return payload


def _plan_payload(plan: PlannedWork | GenerationPlan) -> Payload:
    return {**vars(plan), "cost_usd": plan.cost_usd}


def generate(
    config: EvaluationArgument,
    systems: Systems = None,
    limit: Limit = None,
    outputs: Outputs = None,
    dry_run: bool = flag("--dry-run", "Only show what would be generated, and the cost."),
    again: bool = flag("--again", "Ask again where no image came, and nowhere else."),
    runner: Runner = None,
    runs: Runs = None,
) -> Payload:
    """Generate the outputs of systems; existing ones are kept."""
    from echo_hf.cli.evaluation_view import make_outcome_table, show_cost, show_expected
    from echo_hf.systems.benchmark import load_evaluation
    from echo_hf.systems.generate import generate as generate_outputs
    from echo_hf.tables import Outcome

    setup = load_evaluation(config).run_by(runner)
    with open_progress() as watch:
        options: Payload = {"runs": runs, "systems": systems, "limit": limit, "dry_run": dry_run}
        options |= {"outputs": outputs, "again": again}
        generated = generate_outputs(setup, **options, watch=watch)
    console = watch.console
    plans = [{**_plan_payload(plan), "todo": len(plan.todo)} for plan in generated.plans]
    payload = {**vars(generated), "plans": plans}
    if generated.path is None:
        for plan in () if watch.details else generated.plans:
            say(console, f"{plan.label:<12}{plan}", "dim")
        show_expected(console, [(plan.label, plan.expected) for plan in generated.plans])
        console.print("nothing was asked: leave out --dry-run to draw")
        return payload
    console.print(make_outcome_table(generated))
    if any(counts.get(Outcome.FAILED) for counts in generated.outcomes.values()):
        say(console, "\nwhat failed is tried again by the same command", "yellow")
    if empty := sum(counts.get(Outcome.NO_IMAGE, 0) for counts in generated.outcomes.values()):
        say(console, f"{pluralize(empty, 'answer')} without an image: --again asks anew", "yellow")
    show_cost(
        console,
        generated.cost_usd,
        (plan.system for plan in generated.plans if plan.cost_usd is None),
    )
    say(console, f"outputs: {generated.path}")
    say(console, f"next: echo-hf {'judge' if setup.judges else 'score'} {locate(config, runs)}")
    return payload


def judge(
    config: EvaluationArgument,
    judges: Judges = None,
    rubric: list[str] | None = choice(None, "overall or text_rendering; may be repeated."),
    applicability: bool = flag(
        "--applicability", "Ask which metrics fit each sample; rate nothing."
    ),
    pairwise: bool = flag("--pairwise", "Have judges choose between two outputs; rate nothing."),
    until: str | None = choice(
        None, "decided: ask in batches, and stop with what is told apart, a system or a pair."
    ),
    alpha: float | None = choice(
        None, "With --until: how often a decision may be wrong; 0.05 unless given."
    ),
    family: str | None = choice(
        None,
        "With --until: alpha holds over all pairs (bonferroni, unless given) or for each pair.",
    ),
    batch: int | None = choice(
        None, "With --until: samples a batch; 50 unless given, 10 of pairs.", min=1
    ),
    try_: int = choice(
        0, "Send so many requests, show each with its answer, and keep nothing.", "--try", min=0
    ),
    import_: Path | None = choice(
        None, "Ask nobody: take in what others have measured, a file or a folder.", "--import"
    ),
    format_: str | None = choice(
        None,
        "Of --import: alpaca_eval, genai_bench, imagenhub, inspect, jsonl or viescore.",
        "--format",
    ),
    limit: Limit = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    again: Again = False,
    keep_going: KeepGoing = False,
    runner: Runner = None,
    runs: Runs = None,
) -> Payload:
    """Have models rate outputs; stored answers are reused."""
    from echo_hf.cli.evaluation_view import show_judging
    from echo_hf.cli.trial_view import show_trials, trials_as_json
    from echo_hf.systems.benchmark import load_evaluation

    given = {"alpha": alpha, "family": family, "batch": batch}
    stopping: Payload = {name: value for name, value in given.items() if value is not None}
    if import_ or format_:
        asks_judges = judges or rubric or applicability or pairwise or until or stopping
        if asks_judges or limit or budget or runner or again or keep_going or try_:
            raise ConfigError("--import goes with --format, and with --dry-run and --runs alone")
        return _import_judgements(config, import_, format_, runs, dry_run=dry_run)
    ask = _choose_question(
        judges, rubric, applicability=applicability, pairwise=pairwise, until=until, **stopping
    )
    if try_ and (until or dry_run or budget is not None or again or keep_going):
        raise ConfigError(
            "--try keeps nothing: leave out --until, --dry-run, --budget, --again, --keep-going"
        )
    options: Payload = {"runs": runs, "limit": limit, "dry_run": dry_run, "budget_usd": budget}
    options |= {"again": again, "keep_going": keep_going, "tries": try_}
    setup = load_evaluation(config).run_by(runner)
    with open_progress(sums_up_calls=True) as watch:
        judged = ask(setup, **options, watch=watch)
    if try_:
        trials = trials_as_json(judged.trials)
        show_trials(watch.console, trials)
        return {"path": None, "trials": trials}
    show_judging(watch.console, judged)
    if judged.path is not None:
        say(watch.console, f"next: echo-hf score {locate(config, runs)}")
    if dry_run and (until or (pairwise and setup.board == "pairwise" and budget is not None)):
        say(watch.console, "this is the most: asking until pairs are decided can only stop earlier")
    return _judging_payload(judged)


def _choose_question(
    judges: Sequence[str] | None,
    rubrics: Sequence[str] | None,
    *,
    applicability: bool,
    pairwise: bool,
    until: str | None,
    **stopping: Any,
) -> Callable[..., JudgingResult]:
    """Return what to ask judges, and refuse options that exclude each other."""
    from echo_hf.judging import judge as judging
    from echo_hf.judging.choosing import judge_pairs_for_board
    from echo_hf.judging.stopping import judge_until_decided

    if applicability and (judges or rubrics):
        raise ConfigError("--applicability asks no judge: leave out --judges and --rubric")
    if pairwise and (applicability or rubrics):
        raise ConfigError("--pairwise rates by no rubric: leave out --applicability and --rubric")
    if until not in (None, "decided"):
        raise ConfigError(unknown("value", until, ["decided"], "--until"))
    if until and (applicability or set(rubrics or ()) - {"overall"}):
        raise ConfigError("--until rates by overall, or goes with --pairwise: leave out the others")
    if stopping and not until:
        raise ConfigError(
            f"--{next(iter(stopping))} is of --until decided: add it, or leave it out"
        )
    if applicability:
        return judging.judge_applicability
    if pairwise:
        return partial(judge_pairs_for_board, judges=judges, until_decided=bool(until), **stopping)
    if until:
        return partial(judge_until_decided, judges=judges, **stopping)
    return partial(judging.judge, judges=judges, rubrics=rubrics)


def _import_judgements(
    config: Path, source: Path | None, format_: str | None, runs: Path | None, *, dry_run: bool
) -> Payload:
    from echo_hf.cli.evaluation_view import show_import
    from echo_hf.judging.imports import import_judgements

    if source is None or format_ is None:
        raise ConfigError("--import goes with --format, and with --dry-run and --runs alone")
    imported = import_judgements(config, source, runs=runs, format=format_, dry_run=dry_run)
    show_import(make_console(), imported)
    return vars(imported)


def _judging_payload(done: JudgingResult) -> Payload:
    def as_payload(planned: AskPlan) -> Payload:
        costs = {"cost_usd": planned.expected.cost_usd, "expected": planned.expected}
        return {
            "judge": planned.judge,
            "rubric": planned.rubric,
            "about": planned.about,
            "calls": planned.plan.calls,
            **costs,
        }

    answered = [
        {
            "judge": answered.judge,
            "rubric": answered.rubric,
            "about": answered.about,
            "outcomes": answered.outcomes,
            "fill": answered.fill,
        }
        for answered in done.answered
    ]
    plans = {"plans": list(map(as_payload, done.plans)), "saved": list(map(as_payload, done.saved))}
    return {**vars(done), **plans, "answered": answered}


def audit(
    config: EvaluationArgument,
    judges: Judges = None,
    samples: int | None = choice(
        None, "Samples to make honeypots for, 20 unless given; of --certify all.", min=1
    ),
    again: bool = flag("--again", "Show the same once more: has a judge changed?"),
    pictures: str = choice("all", "Hostile pictures beside blanks: all, tricks, faults or none."),
    certify: str | None = choice(
        None,
        "Instead, hold judges against people: a release with human, a run, or a file of ranks.",
        "--certify",
        metavar="SET",
    ),
    format_: str | None = choice(
        None, "Of a file for --certify: jsonl unless given, or as for judge --import.", "--format"
    ),
    budget: Budget = None,
    dry_run: DryRun = False,
    keep_going: KeepGoing = False,
    runs: Runs = None,
) -> Payload:
    """Report what judges overlook, and how near people they are."""
    from echo_hf.cli.certificate_view import show_certificates
    from echo_hf.cli.evaluation_view import show_audit
    from echo_hf.judging.audit import DEFAULT_SAMPLES
    from echo_hf.judging.audit import audit as run_audit
    from echo_hf.judging.certify import certify_judges

    options: Payload = {"dry_run": dry_run, "budget_usd": budget, "keep_going": keep_going}
    if certify is not None:
        if pictures != "all":
            raise ConfigError("--pictures is of honeypots: leave it out, or --certify")
        options |= {"format": format_, "samples": samples, "again": again}
        with open_progress(sums_up_calls=True) as watch:
            done = certify_judges(config, certify, runs=runs, judges=judges, watch=watch, **options)
        show_certificates(watch.console, done)
        return {**_judging_payload(done.judging), "certificates": done.certificates}
    if format_ is not None:
        raise ConfigError("--format goes with --certify FILE alone")
    options |= {"samples": samples or DEFAULT_SAMPLES, "again": again, "pictures": pictures}
    with open_progress(sums_up_calls=True) as watch:
        audited = run_audit(config, runs=runs, judges=judges, watch=watch, **options)
    show_audit(watch.console, audited)
    judged: Payload = {"judges": audited.judges, "words": audited.words}
    judged["not_audited"] = audited.not_audited
    return {**_judging_payload(audited.judging), **judged}


def checks(
    config: Annotated[Path, typer.Argument(help="The YAML file that builds a benchmark.")],
    judges: Judges = None,
    budget: Budget = None,
    dry_run: DryRun = False,
    again: Again = False,
    keep_going: KeepGoing = False,
    runs: Runs = None,
) -> Payload:
    """Turn complaints into questions to judges, proven on the posts.

    Questions that are kept are asked about every system's outputs by `echo-hf judge`. Their files
    are in the run's folder `checks`, where they may be edited.
    """
    from echo_hf.builder.checks import check_complaints
    from echo_hf.cli.checks_view import describe_checks, show_checks

    options: Payload = {"judges": judges, "budget_usd": budget, "dry_run": dry_run}
    options |= {"again": again, "keep_going": keep_going}
    with open_progress(sums_up_calls=True) as watch:
        result = check_complaints(config, runs=runs, **options, watch=watch)
    show_checks(watch.console, result)
    if any(check.status == "kept" for check in result.checks) and not dry_run:
        say(watch.console, f"next: echo-hf judge {locate(config, runs)}")
    return describe_checks(result)


def score(
    config: EvaluationArgument,
    by: list[str] | None = choice(
        None,
        "Also a board for each task_family, language, platform, month, doubts or value of another "
        "column; may be repeated.",
    ),
    since: str | None = choice(
        None, "Also a board of samples posted on this day or later.", metavar="DAY"
    ),
    demand: str | None = choice(
        None,
        "Also the board weighted by how often each task was asked for: all, 90d or FROM..TO.",
        metavar="WINDOW",
    ),
    protocol: Protocol = None,
    runs: Runs = None,
) -> Payload:
    """Compute win rates, metrics and rubrics. They go into the run's results.json.

    --by, --since and --demand stand in place of the config's `slices`.
    """
    from echo_hf.judging.board import show_board, show_scores
    from echo_hf.judging.score import score as compute_scores

    options: Payload = {"by": by or None, "since": since, "demand": demand}
    scored = compute_scores(config, runs=runs, protocol=protocol, **options)
    path, console = scored.path, make_console()
    (show_scores if console.details else show_board)(console, path)
    if not console.details:
        say(console, f"results: {path}")
        say(console, f"next: echo-hf report {locate(config, runs)}")
    return _read_payload(path)


def _read_payload(path: Path) -> Payload:
    return {"path": path, **json.loads(path.read_bytes())}


def compare(
    config: Annotated[
        Path, typer.Argument(help="The YAML file, or a run's folder; of two runs the first.")
    ],
    base: Annotated[str, typer.Argument(help="The system to hold against; or the second run.")],
    new: Annotated[
        str | None, typer.Argument(help="The system that must not be worse; not with two runs.")
    ] = None,
    system: str | None = choice(None, "The system to compare in two runs that share several."),
    metric: str | None = choice(
        None, "win_rate (unless pairs are the board), choice_strength, a metric or a rubric."
    ),
    margin: float | None = choice(None, "How much worse NEW may be; 0.05 for win_rate."),
    confidence: float = choice(0.95, "Of each end of the interval."),
    split: str | None = choice(None, "Only this split."),
    markdown: Path | None = choice(None, "Write the table to this file, too."),
    runs: Runs = None,
) -> Payload:
    """Say whether a new system is worse than a base. Exit code 1 if so, 3 if undecided."""
    from echo_hf._infra.atomic import replace_file
    from echo_hf.cli.evaluation_view import format_comparison_markdown, show_comparison
    from echo_hf.judging import gate

    sides = gate.open_sides(config, base, new, system=system, runs=runs)
    options: dict[str, Any] = {"margin": margin, "confidence": confidence, "split": split}
    done = gate.compare_systems(*sides, metric=metric, **options)
    show_comparison(make_console(), done)
    if markdown is not None:
        with replace_file(markdown) as file:
            file.write_text(format_comparison_markdown(done), "utf-8")
    payload = {**vars(done.test), **vars(done)}
    del payload["test"]
    if exit_code := gate.EXIT_CODES[done.test.verdict]:
        raise VerdictExit(exit_code, payload)
    return payload


def agree(
    config: EvaluationArgument,
    human: Path | None = choice(None, "Ranks (.jsonl or .csv) instead of the run's human.parquet."),
    protocol: Protocol = None,
    runs: Runs = None,
) -> Payload:
    """Measure how far judges agree with people. Figures go into the run's agreement.json."""
    from echo_hf.judging.board import show_agreement
    from echo_hf.judging.score import measure_agreement

    agreement = measure_agreement(config, runs=runs, human=human, protocol=protocol)
    show_agreement(make_console(), agreement)
    return _read_payload(agreement.path)


def ruler(
    places: Annotated[
        list[str],
        typer.Argument(help="Runs (YAML files or folders) and releases (folders or ORG/NAME@TAG)."),
    ],
    at: str | None = choice(None, "The release whose judges count; the newest if not given."),
    plan: float | None = choice(
        None, "Only say what to carry so that differences are known to ± this, such as 0.1."
    ),
    runs: Runs = None,
) -> Payload:
    """Put all systems of several releases on one scale.

    Releases whose samples a run carries are read with it.
    """
    from echo_hf.cli.ruler_view import show_carry_plans, show_ruler
    from echo_hf.judging.ruler import measure_ruler, plan_carrying

    if plan is not None:
        if len(places) > 1 or at is not None:
            raise ConfigError("--plan looks at one run or release: name that one alone")
        plans = plan_carrying(places[0], plan, runs=runs)
        show_carry_plans(make_console(), plans)
        return {"splits": {name: planned.model_dump() for name, planned in plans.items()}}
    scale, console = measure_ruler(places, at=at, runs=runs), make_console()
    show_ruler(console, scale)
    return scale.model_dump(mode="json")


def rank(
    config: EvaluationArgument,
    draw: int | None = choice(None, "Most samples of each split; 100 without --width.", min=1),
    width: float | None = choice(
        None, "As many as corrected win rates need to be known to ± this, such as 0.03."
    ),
    seed: int = choice(0, "Draws other samples, in another order."),
    split: list[str] | None = choice(None, "Only this split; may be repeated."),
    people: list[str] | None = choice(
        None,
        "Pseudonym of who may rank; may be repeated. auth: as ECHO_HF_PEOPLE has them, "
        "NAME:PASSWORD each. Else everybody may choose one.",
    ),
    host: str = choice("127.0.0.1", "Address to listen on."),
    port: int = choice(7860, "0: any that is free.", min=0, max=65535),
    anyone: bool = flag("--anyone", "Allow ranking without passwords on another HOST."),
    runs: Runs = None,
) -> None:
    """Have people rank outputs in their browsers. The systems' names stay hidden."""
    from echo_hf.apps.page import ServerAddress, check_apps_installed
    from echo_hf.apps.rank import DEFAULT_SAMPLES, open_ranking
    from echo_hf.apps.rank import rank as serve_ranking
    from echo_hf.cli.evaluation_view import show_draw, show_ranking_files

    if draw is not None and width is not None:
        raise ConfigError("--draw and --width both say how many samples: leave out one")
    check_apps_installed("`echo-hf rank`")
    console = make_console()
    draw_options: Payload = {
        "draw": draw or DEFAULT_SAMPLES,
        "width": width,
        "seed": seed,
        "splits": split or (),
    }
    ranker = open_ranking(config, runs=runs, **draw_options)
    show_draw(console, ranker)

    def announce(address: str) -> None:
        say(console, f"\nopen {address} in a browser; Ctrl-C ends it, nothing is lost")

    try:
        server = ServerAddress(host, port)
        serve_ranking(
            ranker, server=server, people=people or (), allow_anyone=anyone, on_ready=announce
        )
    finally:
        show_ranking_files(console, ranker)


def report(
    config: EvaluationArgument,
    single_file: bool = flag("--single-file", "Put the images into the page; up to 200 samples."),
    runs: Runs = None,
) -> None:
    """Write an HTML page with all results. It opens without a server."""
    from echo_hf.cli.evaluation_view import show_report
    from echo_hf.report.report import report as write_report

    show_report(make_console(), write_report(config, runs=runs, single_file=single_file))


def export(
    config: EvaluationArgument,
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    to: Annotated[
        str, option("--to", "csv, every-eval-ever, inspect, hub-eval, lmms-eval or croissant.")
    ],
    organization: str | None = choice(None, "Who ran it, as every-eval-ever names it."),
    runs: Runs = None,
) -> Payload:
    """Write figures, ratings and outputs in formats of others."""
    from echo_hf.report.export import export as write_export

    exported = write_export(config, folder, to=to, runs=runs, organization=organization)
    console = make_console()
    if count := exported.silenced:
        reason = "no right to pass them on is stated"
        say(console, f"{count:,} samples without their words and images: {reason}", "yellow")
    say(console, f"{pluralize(len(exported.files), 'file')} of {exported.format}: {exported.path}")
    return vars(exported)


def analyze(
    config: Annotated[
        str, typer.Argument(help="The YAML file; or the folder of a release, or ORG/NAME@TAG.")
    ],
    runs: Runs = None,
) -> Payload:
    """Analyze prompts, feedback and activity. Figures go into the run's analysis.json."""
    from echo_hf.cli.evaluation_view import show_analysis
    from echo_hf.report.analysis.analyze import analyze as run_analysis

    console = make_console()
    with console.status("analysis") as status:
        analyzed = run_analysis(
            config, runs=runs, say=lambda step: status.update(Text(f"analysis: {step}"))
        )
    show_analysis(console, analyzed)
    return _read_payload(analyzed.path)

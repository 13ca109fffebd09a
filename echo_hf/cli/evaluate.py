"""Verbs that measure systems on a benchmark and show what was measured."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from echo_hf._infra.console import say, terminal
from echo_hf._infra.text import counted
from echo_hf.cli.verb import (
    Again,
    Images,
    JudgeAt,
    JudgedBy,
    KeepGoing,
    PartlyDoneError,
    Runner,
    Runs,
    Told,
    VerdictExit,
    choice,
    flag,
    option,
    placed,
    watching,
)
from echo_hf.errors import ConfigError, unknown
from echo_hf.reasons import Outcome

if TYPE_CHECKING:
    from echo_hf.judging.session import JudgingResult, Planned
    from echo_hf.report.evaluation import PlannedWork
    from echo_hf.systems.runner import GenerationPlan

Evaluation = Annotated[
    Path, typer.Argument(help="The YAML file that names systems, and posts or a benchmark.")
]
Systems = Annotated[list[str] | None, option("--systems", "Only this one draws; may be repeated.")]
Judges = Annotated[list[str] | None, option("--judges", "Only this one; may be repeated.")]
Limit = Annotated[int | None, option(None, "Most samples of each split, a random draw.", min=1)]
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
    budget: Budget = None,
    yes: bool = flag("--yes", "Go on without asking, whatever it costs."),
    dry_run: DryRun = False,
    again: Again = False,
    keep_going: KeepGoing = False,
    runner: Runner = None,
    runs: Runs = None,
) -> Told:
    """Generate, judge, score and report in one.

    The same command resumes after a stop. RELEASE --images NAME=FOLDER compares images, by a
    config that it writes here.
    """
    from echo_hf.cli.evaluation_view import SPENT, say_cost, show_planned
    from echo_hf.judging.board import show_board, show_scores
    from echo_hf.report.analysis.analyze import names_release
    from echo_hf.report.evaluation import evaluate_systems
    from echo_hf.systems.benchmark import load_evaluation

    def agreed(plan: tuple[PlannedWork, ...]) -> None:
        show_planned(watch.console, plan)
        if dry_run or yes or all(one.cost_usd == 0 for one in plan):
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
    elif names_release(str(config), runs):
        raise ConfigError(
            f"{str(config)!r} is no config: expected its file or its run, or a release with "
            "--images NAME=FOLDER"
        )
    with watching(sums_up_calls=True) as watch:
        how: Told = {"runs": runs, "systems": systems, "judges": judges, "limit": limit}
        how |= {"budget_usd": budget, "dry_run": dry_run, "before": agreed, "watch": watch}
        how |= {"again": again, "keep_going": keep_going}
        done = evaluate_systems(load_evaluation(config).run_by(runner), **how)
    console = terminal()
    if done.results is None:
        say(console, "nothing was asked: leave out --dry-run to begin")
    else:
        (show_scores if console.details else show_board)(console, done.results.path)
        say(console, f"report: {done.report}")
        say_cost(console, done.cost_usd, ())  # of whom nobody knows it, the plan has said
    if done.spent:
        say(console, SPENT, "yellow")
    told = {"board": done.board.to_list(), "results": done.results and done.results.path}
    told |= {"report": done.report, "plan": [_planned(one) for one in done.plan]}
    told |= {"cost_usd": done.cost_usd, "spent": done.spent, "stopped": done.stopped}
    if done.stopped:
        raise PartlyDoneError("; ".join(done.stopped), told)
    return told


def _planned(one: PlannedWork | GenerationPlan) -> Told:
    return {**vars(one), "cost_usd": one.cost_usd}


def generate(
    config: Evaluation,
    systems: Systems = None,
    limit: Limit = None,
    dry_run: bool = flag("--dry-run", "Only show what would be generated, and the cost."),
    again: bool = flag("--again", "Ask again where no image came, and nowhere else."),
    runner: Runner = None,
    runs: Runs = None,
) -> Told:
    """Generate the outputs of systems; existing ones are kept."""
    from echo_hf.cli.evaluation_view import outcome_table, say_cost, say_expected
    from echo_hf.systems.benchmark import load_evaluation
    from echo_hf.systems.generate import generate as drawn

    asked = load_evaluation(config).run_by(runner)
    with watching() as watch:
        how: Told = {"runs": runs, "systems": systems, "limit": limit, "dry_run": dry_run}
        made = drawn(asked, **how, again=again, watch=watch)
    console = watch.console
    plans = [{**_planned(one), "todo": len(one.todo)} for one in made.plans]
    told = {**vars(made), "plans": plans}
    if made.path is None:
        for one in () if watch.details else made.plans:
            say(console, f"{one.system:<12}{one}", "dim")
        say_expected(console, [(one.system, one.expected) for one in made.plans])
        console.print("nothing was asked: leave out --dry-run to draw")
        return told
    console.print(outcome_table(made))
    if any(counts.get(Outcome.FAILED) for counts in made.outcomes.values()):
        say(console, "\nwhat failed is tried again by the same command", "yellow")
    if empty := sum(counts.get(Outcome.NO_IMAGE, 0) for counts in made.outcomes.values()):
        say(console, f"{counted(empty, 'answer')} without an image: --again asks anew", "yellow")
    say_cost(console, made.cost_usd, (one.system for one in made.plans if one.cost_usd is None))
    say(console, f"outputs: {made.path}")
    say(console, f"next: echo-hf {'judge' if asked.judges else 'score'} {placed(config, runs)}")
    return told


def judge(
    config: Evaluation,
    judges: Judges = None,
    rubric: list[str] | None = choice(None, "overall or text_rendering; may be repeated."),
    applicability: bool = flag(
        "--applicability", "Ask which metrics fit each sample; rate nothing."
    ),
    pairwise: bool = flag("--pairwise", "Have judges choose between two outputs; rate nothing."),
    until: str | None = choice(
        None, "decided: rate in batches, and stop with a system that is told apart from all others."
    ),
    alpha: float | None = choice(
        None, "With --until: how often a decision may be wrong; 0.05 unless given."
    ),
    family: str | None = choice(
        None,
        "With --until: alpha holds over all pairs (bonferroni, unless given) or for each pair.",
    ),
    batch: int | None = choice(None, "With --until: samples a batch; 50 unless given.", min=1),
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
) -> Told:
    """Have models rate outputs; stored answers are reused."""
    from echo_hf.cli.evaluation_view import show_imported, show_judged
    from echo_hf.cli.trial_view import show_trials, trials_json
    from echo_hf.judging import judge as judging
    from echo_hf.systems.benchmark import load_evaluation

    if applicability and (judges or rubric):
        raise ConfigError("--applicability asks no judge: leave out --judges and --rubric")
    if pairwise and (applicability or rubric):
        raise ConfigError("--pairwise rates by no rubric: leave out --applicability and --rubric")
    asking = partial(judging.judge, judges=judges, rubrics=rubric)
    given = {"alpha": alpha, "family": family, "batch": batch}
    chosen: Told = {name: value for name, value in given.items() if value is not None}
    if until is not None:
        from echo_hf.judging.stopping import judge_until_decided

        if until != "decided":
            raise ConfigError(unknown("value", until, ["decided"], "--until"))
        if applicability or pairwise or set(rubric or ()) - {"overall"}:
            raise ConfigError("--until rates by overall: leave out the other questions")
        asking = partial(judge_until_decided, judges=judges, **chosen)
    elif chosen:
        raise ConfigError(f"--{next(iter(chosen))} is of --until decided: add it, or leave it out")
    if pairwise:
        asking = partial(judging.pairwise, judges=judges)
    verb = judging.applicability if applicability else asking
    if import_ or format_:
        others = judges or rubric or applicability or pairwise or until or chosen
        asked = limit or budget or runner or again or keep_going or try_
        if import_ is None or format_ is None or others or asked:
            raise ConfigError("--import goes with --format, and with --dry-run and --runs alone")
        from echo_hf.judging.imports import import_judgements

        taken = import_judgements(config, import_, runs=runs, format=format_, dry_run=dry_run)
        show_imported(terminal(), taken)
        return vars(taken)
    if try_ and (until or dry_run or budget is not None or again or keep_going):
        raise ConfigError(
            "--try keeps nothing: leave out --until, --dry-run, --budget, --again, --keep-going"
        )
    how: Told = {"runs": runs, "limit": limit, "dry_run": dry_run, "budget_usd": budget}
    how |= {"again": again, "keep_going": keep_going, "tries": try_}
    with watching(sums_up_calls=True) as watch:
        done = verb(load_evaluation(config).run_by(runner), **how, watch=watch)
    if try_:
        trials = trials_json(done.trials)
        show_trials(watch.console, trials)
        return {"path": None, "trials": trials}
    show_judged(watch.console, done)
    if done.path is not None:
        say(watch.console, f"next: echo-hf score {placed(config, runs)}")
    if until and dry_run:
        say(watch.console, "this is the most: --until decided can only stop earlier")
    return _judged(done)


def _judged(done: JudgingResult) -> Told:
    def planned(one: Planned) -> Told:
        costs = {"cost_usd": one.expected.cost_usd, "expected": one.expected}
        return {"judge": one.who, "rubric": one.rubric, "calls": one.plan.calls, **costs}

    answered = [
        {"judge": one.who, "rubric": one.rubric, "outcomes": one.outcomes, "fill": one.fill}
        for one in done.answered
    ]
    plans = {"plans": list(map(planned, done.plans)), "saved": list(map(planned, done.saved))}
    return {**vars(done), **plans, "answered": answered}


def audit(
    config: Evaluation,
    judges: Judges = None,
    samples: int = choice(20, "How many samples to make honeypots for.", min=1),
    again: bool = flag("--again", "Show the same once more: has a judge changed?"),
    budget: Budget = None,
    dry_run: DryRun = False,
    keep_going: KeepGoing = False,
    runs: Runs = None,
) -> Told:
    """Report whether judges notice blank or shuffled images. Unchanged and renamed ones, too."""
    from echo_hf.cli.evaluation_view import show_audited
    from echo_hf.judging.audit import audit as audited

    how: Told = {"samples": samples, "again": again, "dry_run": dry_run, "budget_usd": budget}
    how |= {"keep_going": keep_going}
    with watching(sums_up_calls=True) as watch:
        done = audited(config, runs=runs, judges=judges, watch=watch, **how)
    show_audited(watch.console, done)
    return {**_judged(done.asked), "judges": done.judges}


def score(config: Evaluation, protocol: Protocol = None, runs: Runs = None) -> Told:
    """Compute win rates and the four metrics. They go into the run's results.json."""
    from echo_hf.judging.board import show_board, show_scores
    from echo_hf.judging.score import score as scored

    path, console = scored(config, runs=runs, protocol=protocol).path, terminal()
    (show_scores if console.details else show_board)(console, path)
    if not console.details:
        say(console, f"results: {path}")
        say(console, f"next: echo-hf report {placed(config, runs)}")
    return _written(path)


def _written(path: Path) -> Told:
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
    metric: str = choice("win_rate", "Or one of the four metrics."),
    margin: float | None = choice(None, "How much worse NEW may be; 0.05 for win_rate."),
    confidence: float = choice(0.95, "Of each end of the interval."),
    split: str | None = choice(None, "Only this split."),
    markdown: Path | None = choice(None, "Write the table to this file, too."),
    runs: Runs = None,
) -> Told:
    """Say whether a new system is worse than a base. Exit code 1 if so, 3 if undecided."""
    from echo_hf._infra.atomic import replaced_file
    from echo_hf.cli.evaluation_view import compared_markdown, show_compared
    from echo_hf.judging import gate

    sides = gate.sides(config, base, new, system=system, runs=runs)
    given: dict[str, Any] = {"margin": margin, "confidence": confidence, "split": split}
    done = gate.compare(*sides, metric=metric, **given)
    show_compared(terminal(), done)
    if markdown is not None:
        with replaced_file(markdown) as file:
            file.write_text(compared_markdown(done), "utf-8")
    told = {**vars(done.found), **vars(done)}
    del told["found"]
    if code := gate.EXIT_CODES[done.found.verdict]:
        raise VerdictExit(code, told)
    return told


def agree(
    config: Evaluation,
    human: Path | None = choice(None, "Ranks (.jsonl or .csv) instead of the run's human.parquet."),
    protocol: Protocol = None,
    runs: Runs = None,
) -> Told:
    """Measure how far judges agree with people. Figures go into the run's agreement.json."""
    from echo_hf.judging.board import show_agreement
    from echo_hf.judging.score import agree as compared

    found = compared(config, runs=runs, human=human, protocol=protocol)
    show_agreement(terminal(), found)
    return _written(found.path)


def rank(
    config: Evaluation,
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
    from echo_hf.apps.page import Place, check_installed
    from echo_hf.apps.rank import DRAW, ranks_of
    from echo_hf.apps.rank import rank as ranked
    from echo_hf.cli.evaluation_view import show_draw, show_written

    if draw is not None and width is not None:
        raise ConfigError("--draw and --width both say how many samples: leave out one")
    check_installed("`echo-hf rank`")
    console = terminal()
    drawn: Told = {"draw": draw or DRAW, "width": width, "seed": seed, "splits": split or ()}
    ranks = ranks_of(config, runs=runs, **drawn)
    show_draw(console, ranks)

    def ready(address: str) -> None:
        say(console, f"\nopen {address} in a browser; Ctrl-C ends it, nothing is lost")

    try:
        place = Place(host, port)
        ranked(ranks, place=place, people=people or (), anyone=anyone, ready=ready)
    finally:
        show_written(console, ranks)


def report(
    config: Evaluation,
    single_file: bool = flag("--single-file", "Put the images into the page; up to 200 samples."),
    runs: Runs = None,
) -> None:
    """Write an HTML page with all results. It opens without a server."""
    from echo_hf.cli.evaluation_view import show_report
    from echo_hf.report.report import report as written

    show_report(terminal(), written(config, runs=runs, single_file=single_file))


def export(
    config: Evaluation,
    folder: Annotated[Path, typer.Argument(help="A new folder, or an empty one.")],
    to: Annotated[
        str, option("--to", "csv, every-eval-ever, inspect, hub-eval, lmms-eval or croissant.")
    ],
    organization: str | None = choice(None, "Who ran it, as every-eval-ever names it."),
    runs: Runs = None,
) -> Told:
    """Write figures, ratings and outputs in formats of others."""
    from echo_hf.report.export import export as written

    done = written(config, folder, to=to, runs=runs, organization=organization)
    console = terminal()
    if count := done.silenced:
        why = "no right to pass them on is stated"
        say(console, f"{count:,} samples without their words and images: {why}", "yellow")
    say(console, f"{counted(len(done.files), 'file')} of {done.format}: {done.path}")
    return vars(done)


def analyze(
    config: Annotated[
        str, typer.Argument(help="The YAML file; or the folder of a release, or ORG/NAME@TAG.")
    ],
    runs: Runs = None,
) -> Told:
    """Analyze prompts, feedback and activity. Figures go into the run's analysis.json."""
    from echo_hf.cli.evaluation_view import show_analysis
    from echo_hf.report.analysis.analyze import analyze as analyzed

    console = terminal()
    with console.status("analysis") as status:
        done = analyzed(
            config, runs=runs, say=lambda what: status.update(Text(f"analysis: {what}"))
        )
    show_analysis(console, done)
    return _written(done.path)

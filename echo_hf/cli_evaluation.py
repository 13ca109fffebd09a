"""Verbs of the command line that measure systems on a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from echo_hf.cli_console import terminal

Evaluation = Annotated[
    Path, typer.Argument(help="The YAML file that names systems, and posts or a benchmark.")
]
Runs = Annotated[Path, typer.Option(help="Folder of runs; this one is named by its config.")]
DEFAULT_RUNS = Path("runs")


def systems(
    config: Annotated[
        Path | None, typer.Argument(help="Only those that this file names; else all that we bring.")
    ] = None,
) -> None:
    """List systems under test: what each stands for, and what is missing to run it."""
    from echo_hf.systems.listing import list_systems
    from echo_hf.systems.show import system_table, what_seeds_give, what_to_do

    console, found = terminal(), list_systems(config)
    console.print(system_table(found))
    for line in (*what_to_do(found), *what_seeds_give(found)):
        console.print(line, style="dim", soft_wrap=True)


def generate(
    config: Evaluation,
    systems: Annotated[
        list[str] | None, typer.Option("--systems", help="Only this one; may be repeated.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most samples of each split, a random draw.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be drawn, and for how much.")
    ] = False,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Have systems draw the tasks of a benchmark; what is drawn already is kept."""
    from rich.text import Text

    from echo_hf.reasons import Outcome
    from echo_hf.systems.generate import generate as drawn
    from echo_hf.systems.show import Show, outcome_table

    console = terminal()
    with Show(console) as watch:
        made = drawn(config, runs=runs, systems=systems, limit=limit, dry_run=dry_run, watch=watch)
    if made.path is None:
        console.print("nothing was asked: leave out --dry-run to draw")
        return
    console.print()
    console.print(outcome_table(made))
    if any(counts.get(Outcome.FAILED) for counts in made.outcomes.values()):
        console.print(Text("\nwhat failed is tried again by the same command", "yellow"))
    if made.cost_usd is not None:
        console.print(Text(f"\ncost, as far as it is known: ${made.cost_usd:.2f}"))
    console.print(Text(f"\noutputs: {made.path}"), soft_wrap=True)


def judge(
    config: Evaluation,
    judges: Annotated[
        list[str] | None, typer.Option("--judges", help="Only this one; may be repeated.")
    ] = None,
    rubric: Annotated[
        list[str] | None, typer.Option(help="overall or text_rendering; may be repeated.")
    ] = None,
    applicability: Annotated[
        bool,
        typer.Option("--applicability", help="Ask which metrics fit each sample; rate nothing."),
    ] = False,
    pairwise: Annotated[
        bool,
        typer.Option("--pairwise", help="Have judges choose between two outputs; rate nothing."),
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Most samples of each split, a random draw.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Most US dollars to spend; then ask no more.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be asked, and for how much.")
    ] = False,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Have models rate the outputs of a run; what one has answered is not asked again."""
    from functools import partial

    from echo_hf.errors import ConfigError
    from echo_hf.judging import judge as judging
    from echo_hf.judging.pairwise import pairwise as comparing
    from echo_hf.judging.show import show_judged
    from echo_hf.terminal import Watch

    if applicability and (judges or rubric):
        raise ConfigError("--applicability asks no judge: leave out --judges and --rubric")
    if pairwise and (applicability or rubric):
        raise ConfigError("--pairwise rates by no rubric: leave out --applicability and --rubric")
    asking = partial(judging.judge, judges=judges, rubrics=rubric)
    if pairwise:
        asking = partial(comparing, judges=judges)
    verb = judging.applicability if applicability else asking
    with Watch(terminal()) as watch:
        done = verb(config, runs=runs, limit=limit, dry_run=dry_run, budget_usd=budget, watch=watch)
    show_judged(watch.console, done)


def audit(
    config: Evaluation,
    judges: Annotated[
        list[str] | None, typer.Option("--judges", help="Only this one; may be repeated.")
    ] = None,
    samples: Annotated[
        int, typer.Option(min=1, help="How many samples to make honeypots for.")
    ] = 20,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Most US dollars to spend; then ask no more.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be asked, and for how much.")
    ] = False,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Show judges blank, unchanged, shuffled and renamed pictures, and say whether they notice."""
    from functools import partial

    from echo_hf.auditing.audit import audit as audited
    from echo_hf.auditing.show import show_audited
    from echo_hf.terminal import Watch

    asking = partial(audited, runs=runs, judges=judges, samples=samples)
    with Watch(terminal()) as watch:
        done = asking(config, dry_run=dry_run, budget_usd=budget, watch=watch)
    show_audited(watch.console, done)


def score(
    config: Evaluation,
    protocol: Annotated[
        str | None, typer.Option(help="published or corrected, in place of the config's.")
    ] = None,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Compute win rates and the four metrics of a run, and write them to its results.json."""
    from echo_hf.scoring.board import show_scores
    from echo_hf.scoring.score import score as scored

    show_scores(terminal(), scored(config, runs=runs, protocol=protocol))


def agree(
    config: Evaluation,
    human: Annotated[
        Path | None,
        typer.Option(help="Ranks (.jsonl or .csv) in place of the run's human.parquet."),
    ] = None,
    copy: Annotated[
        Path | None, typer.Option("--json", dir_okay=False, help="Write the figures here too.")
    ] = None,
    protocol: Annotated[
        str | None, typer.Option(help="published or corrected, in place of the config's.")
    ] = None,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Say how far judges agree with people, and write it to the run's agreement.json."""
    from echo_hf.scoring.agree import agree as compared
    from echo_hf.scoring.agreement_view import show_agreement

    found = compared(config, runs=runs, human=human, copy=copy, protocol=protocol)
    show_agreement(terminal(), found)


def rank(
    config: Evaluation,
    draw: Annotated[int, typer.Option(min=1, help="Most samples of each split.")] = 100,
    seed: Annotated[int, typer.Option(help="Draws other samples, in another order.")] = 0,
    split: Annotated[
        list[str] | None, typer.Option(help="Only this split; may be repeated.")
    ] = None,
    people: Annotated[
        list[str] | None,
        typer.Option(
            help="Pseudonym of who may rank; may be repeated. auth: as ECHO_HF_PEOPLE has them, "
            "NAME:PASSWORD each. Else everybody may choose one."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 7860,
    anyone: Annotated[
        bool, typer.Option("--anyone", help="Let whoever reaches another HOST rank, unasked.")
    ] = False,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Have people rank outputs in their browsers, without saying whose they are."""
    from echo_hf.apps.rank.rank import rank as ranked
    from echo_hf.apps.rank.rank import ranks_of
    from echo_hf.apps.rank.show import show_address, show_draw, show_written
    from echo_hf.apps.serve import Place, check_installed

    check_installed("`echo-hf rank`")
    console = terminal()
    ranks = ranks_of(config, runs=runs, draw=draw, seed=seed, splits=split or ())
    show_draw(console, ranks)
    try:
        ranked(
            ranks,
            place=Place(host, port),
            people=people or (),
            anyone=anyone,
            ready=lambda address: show_address(console, address),
        )
    finally:
        show_written(console, ranks)


VERBS: tuple[Callable[..., None], ...] = (systems, generate, judge, audit, score, rank, agree)

"""The certificates of judges on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from echo_hf._infra.console import make_table, say, show_table
from echo_hf._infra.text import clean, format_rounded, percent
from echo_hf.cli.evaluation_view import show_judging
from echo_hf.judging.certificates import JudgeCertificate
from echo_hf.judging.certify import Certification
from echo_hf.judging.trust import WAY_NAMES
from echo_hf.scores.judge_accuracy import PairAccuracy

MAX_NAME_CHARACTERS, NO_INTERVAL = 40, "-"
TOO_LITTLE = "it and people both decide on fewer than 10 samples"


def show_certificates(console: Console, done: Certification) -> None:
    """Print how far judges agree with people, beside people with each other."""
    rows, notes = list[tuple[str, ...]](), list[str]()
    for judge, certificate in done.certificates.items():
        name = clean(judge, MAX_NAME_CHARACTERS)
        for way, figures in certificate.accuracy.items():
            rows.append((f"{name}, {WAY_NAMES[way]}", *_format_accuracy(figures)))
        notes.extend(_describe_certificate(name, certificate))
    for certificate in [*done.certificates.values()][:1]:
        if certificate.people:
            rows.append(("people, with each other", *_format_accuracy(certificate.people)))
        about = certificate.set
        people = "1 person" if about.raters == 1 else f"{about.raters:,} people"
        systems = len(about.systems)
        title = f"agreement with {people} on {about.samples:,} samples of {systems} systems"
        heads = ("decides as people do", "", "95 %", "with ties", "tau-b", "systems")
        show_table(
            console,
            f"{title}, {clean(about.name, MAX_NAME_CHARACTERS)}",
            make_table(*heads, rows=rows),
        )
    for note in notes:
        say(console, note)
    for judge in done.refused:
        name = clean(judge, MAX_NAME_CHARACTERS)
        say(console, f"no certificate of {name}: {TOO_LITTLE}; an earlier one stays", "yellow")
    show_judging(console, done.judging)
    if done.judging.spent:
        say(console, "no certificate until all is answered: the same command goes on", "yellow")


def _format_accuracy(figures: PairAccuracy) -> tuple[str, ...]:
    shares = percent(figures.without_ties.value), percent(figures.with_ties.value)
    ends = figures.without_ties.interval
    interval = " to ".join(map(percent, ends)) if ends else NO_INTERVAL
    coefficients = (figures.tau.value, figures.order.spearman)
    return shares[0], interval, shares[1], *(format_rounded(value, 2) for value in coefficients)


def _describe_certificate(name: str, certificate: JudgeCertificate) -> Iterator[str]:
    """Yield what a judge's order of places, its own developer and a second look change."""
    if (place := certificate.follows_position) and place.count:
        share = f"{percent(place.value)} of {place.count} pairs"
        yield f"{name}: the same place won in both orders in {share}"
    own = certificate.self_preference
    if own and own.preference is not None:
        yield f"{name}: {own.preference:+.3f} for its developer's own {', '.join(own.own)}"
    if repeats := certificate.repeats:
        yield (
            f"{name}: of {repeats.outputs} outputs asked twice {percent(repeats.equal)} rated "
            f"alike, standard deviation {repeats.deviation:.2f}"
        )
    for way, noun in WAY_NAMES.items():
        usd, seconds = certificate.usd_per_1000.get(way), certificate.seconds_per_1000.get(way)
        parts = [f"${usd:.2f}"] if usd is not None else []
        parts += [f"{seconds:,.0f} seconds"] if seconds is not None else []
        if parts:
            yield f"{name}: 1,000 {noun} took {' and '.join(parts)}"

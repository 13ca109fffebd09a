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
from echo_hf.scores.ranks import Mean

MAX_NAME_CHARACTERS = 40


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
            rows.append(("people, each with the others", *_format_accuracy(certificate.people)))
        about = certificate.set
        people = "1 person" if about.raters == 1 else f"{about.raters:,} people"
        systems = len(about.systems)
        title = f"agreement with {people} on {about.samples:,} samples of {systems} systems"
        heads = ("", "as people, ties left out", "with ties", "tau-b", "systems' order")
        show_table(
            console,
            f"{title}, {clean(about.name, MAX_NAME_CHARACTERS)}",
            make_table(*heads, rows=rows),
        )
    for note in notes:
        say(console, note)
    show_judging(console, done.judging)
    if done.certificates:
        say(console, f"wrote {done.path}")
    elif done.judging.spent:
        say(console, "no certificate until all is answered: the same command goes on", "yellow")


def _format_accuracy(figures: PairAccuracy) -> tuple[str, ...]:
    shares = (describe_share(share) for share in (figures.without_ties, figures.with_ties))
    coefficients = (
        format_rounded(value, 2) + (f" ({ends[0]:.2f} to {ends[1]:.2f})" if ends else "")
        for value, ends in (
            (figures.tau.value, figures.tau.interval),
            (figures.order.spearman, figures.order.interval),
        )
    )
    return (*shares, *coefficients)


def describe_share(share: Mean) -> str:
    """Describe a share with its interval, in percent."""
    low, high = share.interval or (None, None)
    return percent(share.value) + (
        f" ({percent(low)} to {percent(high)})" if share.interval else ""
    )


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

"""How far a judge agrees with people, as a share of how far they agree among themselves.

No judge can be expected to agree with people more than they do with each other. So each person is
left out in turn: the judge and that person are compared with the same consensus of all others, on
the same samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echo_hf.bootstrap import Interval
from echo_hf.reasons import Unscored
from echo_hf.scores.arrays import Floats
from echo_hf.scores.people.kemeny import sample_consensus
from echo_hf.scores.people.over_samples import Draws, Mean, ratios
from echo_hf.scores.people.tau import sample_taus


@dataclass(frozen=True)
class CeilingShare:
    """A judge's agreement with people beside theirs.

    Attributes:
        judge: Mean tau-b of the judge with the consensus of all people but one.
        people: Mean tau-b of the one left out with the same consensus, on the same samples: the
            ceiling.
        share: The first over the second; 1 is a judge as good as one more person. Null where
            people do not agree with each other.
        interval: Lower and upper end of the share at 95 %, by a bootstrap over samples.
        samples: How many samples go into all this.
        reason: Why there is no share, or no interval.
    """

    judge: float | None
    people: float | None
    share: float | None
    interval: Interval | None
    samples: int
    reason: Unscored | None


@dataclass(frozen=True)
class LeaveOneOut:
    """People and judges beside the consensus of all people but one.

    Attributes:
        people: Array [person, sample] of tau-b of the person left out.
        judges: Array [judge, person, sample] of tau-b of each judge.
    """

    people: Floats
    judges: Floats


def leave_one_out(people: Floats, judges: Floats) -> LeaveOneOut:
    """Compares each person, and each judge, with the consensus of the others.

    Args:
        people: Array [person, system, sample] of ranks, lower is better, NaN where not ranked.
        judges: Array [judge, system, sample], likewise.

    Returns:
        Tau-b in each sample, NaN where there is none.
    """
    others = [sample_consensus(np.delete(people, at, axis=0)) for at in range(len(people))]
    consensus = np.array(others).reshape(people.shape)
    own = [
        sample_taus(one[None], rest[None])[0, 0]
        for one, rest in zip(people, consensus, strict=True)
    ]
    found = np.array(own).reshape(len(people), people.shape[-1])
    return LeaveOneOut(found, sample_taus(judges, consensus))


def ceiling(found: LeaveOneOut, draws: Draws) -> Mean:
    """How far people agree: the mean of tau-b of a person with the consensus of the others.

    Args:
        found: What `leave_one_out` found.
        draws: Of the bootstrap.

    Returns:
        The mean over people and samples.

    Raises:
        ScoreError: A number of draws or the seed is none.
    """
    there = ~np.isnan(found.people)
    sums = np.where(there.any(axis=0), np.nansum(found.people, axis=0), np.nan)
    return ratios(sums[None], there.sum(axis=0)[None].astype(float), draws)[0]


def ceiling_shares(found: LeaveOneOut, draws: Draws) -> list[CeilingShare]:
    """Each judge's agreement as a share of people's.

    Args:
        found: What `leave_one_out` found.
        draws: Of the bootstrap.

    Returns:
        A share for each judge.

    Raises:
        ScoreError: A number of draws or the seed is none.

    Example:
        >>> same = np.array([[[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]])
        >>> half = np.array([[[1.0, 1.0], [3.0, 3.0], [2.0, 2.0]]])
        >>> found = ceiling_shares(leave_one_out(np.repeat(same, 3, axis=0), half), Draws())[0]
        >>> round(found.judge, 3), found.people, round(found.share, 3)
        (0.333, 1.0, 0.333)
    """
    both = ~np.isnan(found.judges) & ~np.isnan(found.people)
    counts = both.sum(axis=1)
    own = np.where(both, found.judges, 0.0).sum(axis=1)
    people = np.where(both, found.people, 0.0).sum(axis=1)
    own, people = (np.where(counts, sums, np.nan) for sums in (own, people))
    no_draws = Draws(n_boot=0)
    return [
        CeilingShare(
            judge.value,
            person.value,
            share.value,
            share.interval,
            share.samples,
            Unscored.NO_CEILING if share.value is None and share.samples else share.reason,
        )
        for judge, person, share in zip(
            ratios(own, counts.astype(float), no_draws),
            ratios(people, counts.astype(float), no_draws),
            ratios(own, people, draws),
            strict=True,
        )
    ]

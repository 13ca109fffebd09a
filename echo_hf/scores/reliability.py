"""How often a system succeeds on a prompt, from several outputs, and what a success costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from echo_hf._infra.bootstrap import LEVEL, MIN_SAMPLES, MIN_SPREAD, Interval, Unscored
from echo_hf._infra.plots import SystemValuesPlot, split_bounds
from echo_hf.config.systems import MAX_OUTPUTS
from echo_hf.errors import ScoreError, unknown
from echo_hf.reasons import Reason
from echo_hf.scores.drawn_outputs import DrawnOutputs, SuccessRule, read_drawn_outputs
from echo_hf.scores.estimate import compute_t_quantile, nan_mean
from echo_hf.scores.rating_table import RUBRIC, Floats, IgnoredRating, Integers, divide
from echo_hf.scores.sequential import check_probabilities
from echo_hf.scores.votes import best_first, to_number, to_verdicts

THRESHOLD = 7.0
# What figures are called among results, beside the names of metrics; each k has its own.
SUCCESS, PASS_AT = "success_rate", "pass_at_{}"
PER_SUCCESS = {
    "tries": "tries_per_success",
    "dollars": "dollars_per_success",
    "seconds": "seconds_per_success",
}
MIN_SUCCESSES, MIN_SOLVED = 5, 3
MIN_KNOWN = 0.95  # of the tries
Purchased = Literal["prompts", "outputs"]


class Unreliable(Reason):
    """Why a system has no figure of this kind, or no interval."""

    FEW_DRAWS = "few_draws", "no prompt has as many tries"
    ONE_DRAW = "one_draw", "no prompt has two tries: prompts and outputs cannot be told apart"
    NO_SUCCESS = "no_success", "no try succeeded"
    FEW_SUCCESSES = "few_successes", "fewer than 5 successes, or fewer than 3 prompts with one"
    UNPRICED = "unpriced", "what more than 5 % of its tries cost is not known"
    UNTIMED = "untimed", "how long more than 5 % of its tries took is not known"


class Estimate(NamedTuple):
    """A figure with its interval over prompts.

    Attributes:
        value: The figure; null where `refused` says why.
        interval: Lower and upper end, null where there is none.
        prompts: How many prompts it rests on.
    """

    value: float | None
    interval: Interval | None
    prompts: int


class VarianceSplit(NamedTuple):
    """Where success varies: parts of the variance of one try that one look judges.

    Attributes:
        prompts: Between prompts: some are harder.
        outputs: Between the outputs of a prompt; where nothing was judged twice, what a second
            look would change is in it.
        repeats: Between repeated looks of the judges at an output; null without repeats.
    """

    prompts: float
    outputs: float
    repeats: float | None


class Tries(NamedTuple):
    """The outputs of one outcome.

    Attributes:
        outputs: How many there are.
        tries: How many of them count as tries.
        successes: How many succeeded.
        dollars: What the tries cost; null where that is not known of all.
    """

    outputs: int
    tries: int
    successes: int
    dollars: float | None


class Purchase(NamedTuple):
    """Two ways to spend a budget, and how exact either leaves the share of successes.

    Attributes:
        buy: What leaves the smaller standard error: `prompts` or `outputs`.
        prompts: New prompts for the whole budget, with the best number of outputs each.
        outputs_a_prompt: That number.
        outputs: Else, new outputs for the whole budget, spread over today's prompts.
        today: The standard error today.
        with_prompts: With the new prompts.
        with_outputs: With the new outputs.
    """

    buy: Purchased
    prompts: int
    outputs_a_prompt: int
    outputs: int
    today: float
    with_prompts: float
    with_outputs: float


NOTHING = Estimate(None, None, 0)
ByNumber = Mapping[str, Mapping[int, Estimate]]


@dataclass(frozen=True, repr=False)
class Reliability(SystemValuesPlot):
    """How often systems succeed, and what a success costs.

    Attributes:
        success: Share of a prompt's tries that succeed, the mean over prompts, by system, the best
            first.
        pass_at: By system and number k: the share of prompts that k tries solve, without bias
            (Chen et al. 2021), over the prompts with k tries.
        all_of: The share of prompts of which k tries all succeed.
        never: The share of prompts that the largest number of tries leaves unsolved.
        tries: Expected tries for a success, with a new prompt each time: 1 / success. Of a single
            prompt that is never solved there is no such number; see `never`.
        dollars: Dollars for a success: what a try costs, divided by the share that succeeds, both
            means over prompts.
        seconds: Seconds for a success, one try after another.
        best_of: By system and number k: the win rate of the best of k outputs against the best of
            k of each other system: the mean over all choices of k, over judges, prompts and
            opponents. An output that was not made loses to any that was.
        worst_of: The same of the worst of k.
        variance: How success varies between prompts, outputs and looks, by system; null where
            `refused` says why.
        outcomes: By system and outcome how many outputs there are, and how many are tries.
        prompts: How many prompts have a try, by system.
        unrated: How many outputs are neither successes nor failures, since nobody judged them.
        ignored: How many ratings do not count, by reason.
        refused: By system and figure why it, or its interval, is missing.
        definition: Every parameter.
    """

    success: Mapping[str, Estimate]
    pass_at: ByNumber
    all_of: ByNumber
    never: Mapping[str, Estimate]
    tries: Mapping[str, Estimate]
    dollars: Mapping[str, Estimate]
    seconds: Mapping[str, Estimate]
    best_of: ByNumber
    worst_of: ByNumber
    variance: Mapping[str, VarianceSplit | None]
    outcomes: Mapping[str, Mapping[str, Tries]]
    prompts: Mapping[str, int]
    unrated: Mapping[str, int]
    ignored: Mapping[IgnoredRating, int]
    refused: Mapping[str, Mapping[str, Unreliable | Unscored]]
    definition: Mapping[str, Any]

    _label = "success: share of a prompt's tries, higher is better"

    def _table_columns(self) -> Mapping[str, Mapping[str, Any]]:
        values = {
            name: {system: estimate.value for system, estimate in vars(self)[name].items()}
            for name in ("success", "tries", "dollars")
        }
        ends = split_bounds({name: each.interval for name, each in self.success.items()})
        return {"success": values.pop("success"), **ends, **values}

    def next_purchase(
        self,
        system: str,
        budget: float,
        *,
        prompt: float = 0.0,
        output: float | None = None,
        look: float = 0.0,
    ) -> Purchase:
        """Compare new prompts with new outputs of today's prompts, for the same dollars.

        Args:
            system: The system whose share of successes is to be more exact.
            budget: Dollars.
            prompt: What a new prompt costs beside its outputs.
            output: What an output costs; null for what this system's tries cost on average.
            look: What judging an output costs.

        Returns:
            Both ways with their standard errors, where each output is judged by one look: repeats
            make them smaller. They are those of the share of successes:
            pass@k needs k outputs a prompt, however little they add to it.

        Raises:
            ScoreError: The system is not there or its success cannot be split, a price is below
                0, an output costs nothing or its cost is not known, or the budget is not above 0.
        """
        if system not in self.success:
            raise ScoreError(unknown("system", system, self.success))
        split, counts = self.variance[system], self.outcomes[system].values()
        if split is None:
            raise ScoreError(
                f"system is {system!r}: {self.refused[system]['variance'].meaning}; expected a "
                "system with several outputs of a prompt"
            )
        drawn = sum(count.tries for count in counts)
        if output is None:
            known = [count.dollars for count in counts if count.tries]
            if None in known:
                raise ScoreError(
                    f"output is null, and what the tries of {system!r} cost is not known: expected "
                    "what an output costs, in dollars"
                )
            output = sum(filter(None, known)) / drawn
        for name, dollars in (("budget", budget), ("prompt", prompt), ("look", look)):
            is_number = isinstance(dollars, int | float | np.number)
            if not is_number or not 0 <= dollars < np.inf or (name == "budget" and not dollars):
                raise ScoreError(f"{name} is {dollars!r}: expected dollars")
        if not 0 < output + look < np.inf:
            raise ScoreError(f"output and look are {(output, look)!r}: expected dollars above 0")
        now = self.prompts[system]
        each, within = drawn / now, split.outputs + (split.repeats or 0.0)
        numbers = np.arange(1, MAX_OUTPUTS + 1)
        costs = prompt + numbers * (output + look)
        best = int(np.argmin((split.prompts + within / numbers) * costs))
        number, added = int(numbers[best]), int(budget // costs[best])
        outputs = int(budget // (output + look))
        spread = now * (split.prompts + within / each)
        with_prompts = spread + added * (split.prompts + within / number)
        with_outputs = (split.prompts + within / (each + outputs / now)) / now
        errors = np.sqrt([spread / now**2, with_prompts / (now + added) ** 2, with_outputs])
        buy: Purchased = "prompts" if errors[1] <= errors[2] else "outputs"
        return Purchase(buy, added, number, outputs, *errors.tolist())

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return {name: _to_plain(value) for name, value in vars(self).items()}


def reliability(
    ratings: Any,
    outputs: Any = None,
    *,
    threshold: float = THRESHOLD,
    k: int | None = None,
    success: SuccessRule = "rating",
    values: Any = None,
    rubric: str = RUBRIC,
    confidence: float = LEVEL,
) -> Reliability:
    """Measure how often outputs succeed, how many it takes, and what a success costs.

    Prompts are what is drawn by chance, and outputs of one are alike: all intervals are over
    prompts. Those of shares are Wilson's, with Student's t and with as many prompts as would vary
    as much; that of tries is its inverse; those of dollars and seconds are of the logarithm. None
    is given from fewer than 10 prompts, and no dollars or seconds from fewer than 5 successes or
    3 prompts with one.

    A try is an output with an image, and also one that was refused, has no image or failed: it
    cost what it cost, and did not succeed. A failure of the provider's own request that nobody
    billed is no try, and neither is a task that the system does not take. An image that nobody
    judged is left out and counted.

    Args:
        ratings: Rows as for `win_rate`, with `draw`, the number of the output from 0; without that
            column each prompt has one.
        outputs: Rows with sample_id, system and outcome, and where there are any draw, stage,
            cost_usd, latency_s and sample_digest. Without them the rated outputs are the tries. An
            output without an image and without a known cost was not billed.
        threshold: The rating from which on an output succeeds.
        k: The largest number of tries; null for as many as a prompt has, up to 64.
        success: `rating`: most judges who rated it give it the threshold or more, a judge who
            rated it repeatedly by the mean; equal numbers are no success. `checks`: it passes each
            check in the ratings that was answered of it, by most judges: give those that were
            kept. Else {METRIC: bound}: `values` reach the bounds, or do not exceed those of metrics
            of which lower is better.
        values: Rows with sample_id, system, metric, value and, where there is one, draw.
        rubric: The rubric of the ratings that success, best and worst go by.
        confidence: Of the intervals, between 0 and 1.

    Returns:
        Shares, tries, dollars and seconds with intervals, and what is missing with its reason.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: k is above the tries of every prompt, a choice is none of those there are, or
            rows contradict each other.

    Examples:
        >>> keys = [(f"{at:02}", draw) for at in range(40) for draw in range(4)]
        >>> rows = {"sample_id": [at for at, _ in keys], "draw": [draw for _, draw in keys]}
        >>> rows |= {"system": ["a"] * 160, "judge": ["j"] * 160}
        >>> solved = [9 if draw < int(at) % 4 else 3 for at, draw in keys]
        >>> result = reliability({**rows, "rating": solved})
        >>> {k: round(each.value, 3) for k, each in result.pass_at["a"].items()}
        {1: 0.375, 2: 0.583, 3: 0.688, 4: 0.75}
        >>> value, interval, prompts = result.tries["a"]
        >>> round(value, 2), [round(end, 2) for end in interval], prompts
        (2.67, [2.14, 3.45], 40)
    """
    check_probabilities(confidence=confidence)
    if not isinstance(success, str | Mapping) or not success:
        raise ScoreError(f"success is {success!r}: expected rating, checks or bounds of metrics")
    if isinstance(success, str) and success not in (rules := get_args(get_args(SuccessRule)[0])):
        raise ScoreError(unknown("success", success, rules))
    if k is not None and (isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1):
        raise ScoreError(f"k is {k!r}: expected a number of tries, 1 or more")
    if not isinstance(threshold, int | float | np.number) or not np.isfinite(threshold):
        raise ScoreError(f"threshold is {threshold!r}: expected a rating, such as 7")
    drawn = read_drawn_outputs(ratings, outputs, values, success, threshold, rubric)
    return _Measure(drawn, k, confidence).build(
        {
            "measure": "reliability",
            "success": success if isinstance(success, str) else dict(success),
            **({"threshold": threshold} if success == "rating" else {}),
            "vote": "most judges, equal numbers are no success",
            "repeats": "mean rating",
            "rubric": rubric,
            "confidence": confidence,
            "interval": "Wilson's with Student's t over prompts; log-delta for dollars and seconds",
        }
    )


def _to_plain(value: Any) -> Any:
    value = value._asdict() if hasattr(value, "_asdict") else value
    if isinstance(value, Mapping):
        return {f"{name}": _to_plain(each) for name, each in value.items()}
    return value


class _Measure:
    """The figures of all systems."""

    def __init__(self, drawn: DrawnOutputs, k: int | None, confidence: float) -> None:
        self.drawn, self.confidence = drawn, confidence
        self.is_known = ~np.isnan(drawn.success)
        self.counts = drawn.sum_up(self.is_known)  # [system, sample], as the next
        self.successes = drawn.sum_up(self.is_known, drawn.success)
        largest = min(int(self.counts.max(initial=0)), MAX_OUTPUTS)
        if k is not None and k > largest > 0:
            raise ScoreError(f"k is {k!r}: expected 1 to {largest}, as many tries as a prompt has")
        self.numbers = range(1, (k or largest) + 1)
        self.refused: dict[str, dict[str, Unreliable | Unscored]] = {
            system: {} for system in drawn.systems
        }

    def build(self, definition: Mapping[str, Any]) -> Reliability:
        drawn = self.drawn
        pass_at = self._estimate("pass_at", 1 - self._share_choices(self.counts - self.successes))
        success = {system: own.get(1, NOTHING) for system, own in pass_at.items()}
        last = {system: [NOTHING, *own.values()][-1] for system, own in pass_at.items()}
        best, worst = self._compare_choices()
        figures: dict[str, Mapping[str, Any]] = {
            "success": success,
            "pass_at": pass_at,
            "all_of": self._estimate("all_of", self._share_choices(self.successes)),
            "never": {
                system: _turn(each, lambda share: 1 - share) for system, each in last.items()
            },
            "tries": {
                system: _turn(each, lambda share: 1 / share) for system, each in success.items()
            },
            "dollars": self._divide("dollars", drawn.facts.dollars, Unreliable.UNPRICED),
            "seconds": self._divide("seconds", drawn.facts.seconds, Unreliable.UNTIMED),
            "best_of": best,
            "worst_of": worst,
            "variance": self._split_variance(),
            "outcomes": self._count_outcomes(),
            "prompts": self._label((self.counts > 0).sum(axis=1)),
            "unrated": self._label(
                drawn.sum_up(drawn.facts.is_try & ~self.is_known).sum(axis=1).astype(int)
            ),
        }
        for system, share in success.items():
            if share.value is None:
                self.refused[system] = {"success": Unscored.NOT_RATED}
            elif not share.value:
                self.refused[system]["tries"] = Unreliable.NO_SUCCESS
        order = best_first({system: share.value for system, share in success.items()})
        figures = {
            name: {system: by_system[system] for system in order if system in by_system}
            for name, by_system in {**figures, "refused": self.refused}.items()
        }
        return Reliability(
            **figures,
            ignored=drawn.ignored,
            definition={
                **definition,
                "k": self.numbers[-1] if self.numbers else None,
                "judges": list(drawn.judges),
                "systems": order,
                "samples": len(drawn.samples),
            },
        )

    def _label(self, values: Any) -> dict[str, Any]:
        return dict(zip(self.drawn.systems, values.tolist(), strict=True))

    def _share_choices(self, chosen: Floats) -> Floats:
        """Return which share of choices of k tries is of chosen ones [k, system, sample]."""
        from scipy.special import comb

        numbers = np.array(self.numbers).reshape(-1, 1, 1)
        return divide(comb(chosen, numbers), comb(self.counts, numbers))

    def _estimate(self, figure: str, values: Floats) -> dict[str, dict[int, Estimate]]:
        """Estimate means over prompts of values [k, system, sample]."""
        return {
            system: self._estimate_numbers(figure, system, values[:, at, None])
            for at, system in enumerate(self.drawn.systems)
        }

    def _estimate_numbers(self, figure: str, system: str, values: Floats) -> dict[int, Estimate]:
        """Estimate a system's figure from values [k, part, sample]."""
        shares = [estimate_share(each, self.confidence) for each in values]
        estimates = {
            number: share
            for number, share in zip(self.numbers, shares, strict=True)
            if share.value is not None
        }
        if not estimates:
            self.refused[system][figure] = (
                Unscored.ONE_SYSTEM if len(self.drawn.systems) < 2 else Unscored.NOT_RATED
            )
        elif len(estimates) < len(shares):
            self.refused[system][figure] = Unreliable.FEW_DRAWS
        elif shares[-1].interval is None:
            self.refused[system][figure] = Unscored.FEW_SAMPLES
        return estimates

    def _divide(
        self, figure: str, amounts: Floats, unknown_reason: Unreliable
    ) -> dict[str, Estimate]:
        """Divide what a prompt's tries take on average by their share of successes."""
        is_known = self.is_known & ~np.isnan(amounts)
        sums = self.drawn.sum_up(is_known, amounts)
        counts, successes = (self.drawn.sum_up(is_known, own) for own in (None, self.drawn.success))
        estimates = {}
        for at, system in enumerate(self.drawn.systems):
            estimates[system], tried = NOTHING, counts[at] > 0
            own, solved, prompts = sums[at, tried], successes[at, tried], int(tried.sum())
            if prompts:  # a prompt with more tries counts as much as another
                spent, shares = own / counts[at, tried], solved / counts[at, tried]
            if counts[at].sum() < max(MIN_KNOWN * self.counts[at].sum(), 1):
                self.refused[system][figure] = unknown_reason
            elif solved.sum() < MIN_SUCCESSES or (solved > 0).sum() < MIN_SOLVED:
                self.refused[system][figure] = Unreliable.FEW_SUCCESSES
            else:
                ratio, interval = float(spent.sum() / shares.sum()), None
                error = float(((spent - ratio * shares) ** 2).sum()) * prompts / max(prompts - 1, 1)
                if prompts < MIN_SAMPLES:
                    self.refused[system][figure] = Unscored.FEW_SAMPLES
                elif error <= MIN_SPREAD * spent.sum() ** 2:
                    self.refused[system][figure] = Unscored.NO_SPREAD
                else:
                    quantile = float(compute_t_quantile(prompts - 1, self.confidence))
                    factor = float(np.exp(quantile * np.sqrt(error) / spent.sum()))
                    interval = ratio / factor, ratio * factor
                estimates[system] = Estimate(ratio, interval, prompts)
        return estimates

    def _compare_choices(self) -> tuple[ByNumber, ByNumber]:
        """Estimate win rates of the best and of the worst of k outputs.

        A prompt's points are the mean over all choices of k of either system's outputs, and over
        judges.
        """
        systems, samples = len(self.drawn.systems), len(self.drawn.samples)
        is_lost = self.drawn.facts.is_try & ~self.drawn.facts.has_image
        rated = (own[~np.isnan(own)] for own in self.drawn.ratings)
        ranked = [
            # What was not made loses to all that was.
            self._rank(np.where(is_lost, own.min() - 1, ratings))
            for ratings, own in zip(self.drawn.ratings, rated, strict=True)
            if len(own)
        ]
        points = np.zeros((len(self.numbers) * 2, systems, samples))
        best, worst = dict[str, dict[int, Estimate]](), dict[str, dict[int, Estimate]]()
        for at, system in enumerate(self.drawn.systems):
            points[:], judges = 0.0, np.zeros_like(points)
            for values, other in product(ranked, range(systems)):
                if other == at:
                    continue
                own, others = (self._weigh_ranks(values[each]) for each in (at, other))
                won = to_verdicts(values[at][:, None, :] - values[other][:, :, None])
                shares = (own * (others @ (np.nan_to_num(won) + 1) / 2)).sum(axis=-1).T
                judges[:, other] += ~np.isnan(shares)
                points[:, other] += np.nan_to_num(shares)
            of_best, of_worst = np.split(divide(points, judges), 2)
            best[system] = self._estimate_numbers("best_of", system, of_best)
            worst[system] = self._estimate_numbers("worst_of", system, of_worst)
        return best, worst

    def _rank(self, values: Floats) -> Floats:
        """Sort the values of each prompt [system, sample, rank], NaN last."""
        systems, samples = len(self.drawn.systems), len(self.drawn.samples)
        chosen = np.flatnonzero(~np.isnan(values))
        chosen = chosen[np.lexsort((values[chosen], self.drawn.facts.cell[chosen]))]
        cells = self.drawn.facts.cell[chosen]
        counts = np.bincount(cells, minlength=systems * samples)
        ranks = np.arange(len(cells)) - np.repeat(np.cumsum(counts) - counts, counts)
        ranked = np.full((systems * samples, int(counts.max(initial=0))), np.nan)
        ranked[cells, ranks] = values[chosen]
        return ranked.reshape(systems, samples, -1)

    def _weigh_ranks(self, ranked: Floats) -> Floats:
        """Return which share of choices of k outputs has its best, or its worst, at a rank.

        It is [sample, best or worst and k, rank], NaN where there are fewer than k.
        """
        from scipy.special import comb

        counts, place = np.unique((~np.isnan(ranked)).sum(axis=-1), return_inverse=True)
        outputs, ranks = counts[:, None, None], np.arange(ranked.shape[-1])
        numbers = np.array(self.numbers)[:, None]
        shares = [
            divide(
                np.where(ranks < outputs, comb(beaten, numbers - 1), 0.0), comb(outputs, numbers)
            )
            for beaten in (ranks, outputs - 1 - ranks)
        ]
        return np.concatenate(shares, axis=1)[place]

    def _split_variance(self) -> dict[str, VarianceSplit | None]:
        splits = {}
        system, sample = np.divmod(self.drawn.facts.cell, max(len(self.drawn.samples), 1))
        for at, name in enumerate(self.drawn.systems):
            own = system == at
            splits[name] = split_variance(self.drawn.looks[:, own], sample[own])
            if splits[name] is None:
                self.refused[name]["variance"] = Unreliable.ONE_DRAW
        return splits

    def _count_outcomes(self) -> dict[str, dict[str, Tries]]:
        facts, counted = self.drawn.facts, dict[str, dict[str, Tries]]()
        system = facts.cell // max(len(self.drawn.samples), 1)
        for at, name in enumerate(self.drawn.systems):
            rows, counted[name] = np.flatnonzero(system == at), {}
            outcomes = facts.outcome[rows]
            for outcome in sorted({*outcomes}):
                own = rows[outcomes == outcome]
                tries = own[self.is_known[own]]
                dollars = to_number(float(facts.dollars[tries].sum()))
                successes = int(self.drawn.success[tries].sum())
                counted[name][outcome] = Tries(len(own), len(tries), successes, dollars)
        return counted


def describe_success(definition: Mapping[str, Any]) -> str:
    """Return in words what counts as a success, by the definition of a result."""
    rule, threshold = definition.get("success"), definition.get("threshold")
    if isinstance(rule, Mapping):
        return ", ".join(f"{metric} {bound} or better" for metric, bound in rule.items())
    if rule == "checks":
        return "all kept checks passed"
    return f"a rating of {f'{threshold:g}' if isinstance(threshold, float) else threshold} or more"


def _turn(estimate: Estimate, function: Callable[[float], float]) -> Estimate:
    """Return a falling function of an estimate; null where it is of 0, and has none there."""
    if estimate.value is None or not (estimate.value or function(1.0) < 1):
        return NOTHING
    ends = estimate.interval and (function(estimate.interval[1]), function(estimate.interval[0]))
    return Estimate(function(estimate.value), ends, estimate.prompts)


def estimate_share(values: Floats, confidence: float) -> Estimate:
    """Estimate the mean over parts of their means over prompts, from values [part, prompt].

    Its interval is Wilson's, of so many prompts as would vary as much if each gave 0 or 1, with
    Student's t: near 0 and 1 the plain one covers too little.
    """
    is_known = ~np.isnan(values)
    counts = is_known.sum(axis=1)
    values, is_known, counts = (array[counts > 0] for array in (values, is_known, counts))
    prompts = int(is_known.any(axis=0).sum())
    if not prompts:
        return NOTHING
    means = nan_mean(values, axis=1)
    share = float(means.mean())
    if prompts < MIN_SAMPLES:
        return Estimate(share, None, prompts)
    pulls = np.where(is_known, (values - means[:, None]) / counts[:, None], 0.0).mean(axis=0)
    variance = float((pulls**2).sum()) * prompts / (prompts - 1)
    size = share * (1 - share) / variance if variance > MIN_SPREAD else float(prompts)
    square = float(compute_t_quantile(prompts - 1, confidence)) ** 2 / max(size, 1.0)
    center = (share + square / 2) / (1 + square)
    half = np.sqrt(square * share * (1 - share) + square**2 / 4) / (1 + square)
    low, high = np.clip([center - half, center + half], 0.0, 1.0).tolist()
    return Estimate(share, (low, high), prompts)


def split_variance(looks: Floats, prompt: Integers) -> VarianceSplit | None:
    """Split the variance of values [look, output] by nested analysis of variance (Henderson 1).

    Null where no prompt has two outputs, or there is a single prompt.
    """
    is_known = ~np.isnan(looks)
    counts = is_known.sum(axis=0)
    looks, is_known, prompt = looks[:, counts > 0], is_known[:, counts > 0], prompt[counts > 0]
    counts, (_, prompt) = counts[counts > 0], np.unique(prompt, return_inverse=True)
    outputs, sizes = np.bincount(prompt), np.bincount(prompt, counts)
    if len(sizes) < 2 or outputs.max() < 2:
        return None
    total, means = counts.sum(), nan_mean(looks)
    centers = np.bincount(prompt, counts * means) / sizes
    squares = np.bincount(prompt, counts**2) / sizes
    free = total - len(counts), (outputs - 1).sum(), len(sizes) - 1
    within = float(np.nansum((looks - means) ** 2))
    between = float((counts * (means - centers[prompt]) ** 2).sum())
    among = float((sizes * (centers - (sizes @ centers) / total) ** 2).sum())
    repeats = within / free[0] if free[0] else 0.0
    by_output = (between - free[1] * repeats) / (total - squares.sum())
    by_prompt = among - free[2] * repeats
    by_prompt -= (squares.sum() - (counts**2).sum() / total) * by_output
    by_prompt /= total - (sizes**2).sum() / total
    return VarianceSplit(
        max(float(by_prompt), 0.0), max(float(by_output), 0.0), float(repeats) if free[0] else None
    )

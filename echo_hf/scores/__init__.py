"""From ratings to win rates, and how far to trust them (ECHO section 5, appendix C)."""

from echo_hf.scores.agreement import Agreement, agreement
from echo_hf.scores.bradley_terry import BradleyTerry, Gap, bradley_terry, relative_gap
from echo_hf.scores.carry_plan import CarryPlan, carry_plan
from echo_hf.scores.certificate import Certificate, adjust_p_values, certify
from echo_hf.scores.choices import ChoiceStrengths, choice_decisions, choice_strengths
from echo_hf.scores.contamination import Contamination, Untested, contamination, dated_contamination
from echo_hf.scores.corrected_choices import CorrectedStrengths, human_corrected_strengths
from echo_hf.scores.demand import DemandRates, Stratum, demand_rates
from echo_hf.scores.failure_rate import FailureRate, failure_rate, failure_rate_by_people
from echo_hf.scores.human_corrected import HumanCorrected, human_corrected
from echo_hf.scores.judge_accuracy import JudgeAccuracy, PairAccuracy, SystemOrder, judge_accuracy
from echo_hf.scores.kemeny import Consensus, kemeny_consensus
from echo_hf.scores.non_inferiority import NonInferiority, non_inferiority
from echo_hf.scores.pairwise_agreement import JudgeAgreement, PairwiseAgreement, pairwise_agreement
from echo_hf.scores.ranks import (
    Friedman,
    PairTest,
    TauB,
    dunn,
    friedman,
    kendalls_w,
    siegel_castellan,
    tau_b,
)
from echo_hf.scores.reliability import (
    Estimate,
    Purchase,
    Reliability,
    Tries,
    Unreliable,
    VarianceSplit,
    reliability,
)
from echo_hf.scores.robustness import (
    Board,
    Bounds,
    LeaveOneJudgeOut,
    Preference,
    SelfPreference,
    Sensitivity,
    bounds,
    leave_one_judge_out,
    self_preference,
    sensitivity,
)
from echo_hf.scores.ruler import Bend, Change, Difference, Ruler, Unlinked, ruler
from echo_hf.scores.sequential import Decisions, decisions
from echo_hf.scores.slices import Shrinkage, SliceRate, SliceRates, shrink, slice_rates
from echo_hf.scores.tiers import SamplesNeeded, Separation, Tiers, samples_needed, tiers
from echo_hf.scores.validity import Validity, validity
from echo_hf.scores.win_rate import WinRate, win_rate

__all__ = [
    "Agreement",
    "Bend",
    "Board",
    "Bounds",
    "BradleyTerry",
    "CarryPlan",
    "Certificate",
    "Change",
    "ChoiceStrengths",
    "Consensus",
    "Contamination",
    "CorrectedStrengths",
    "Decisions",
    "DemandRates",
    "Difference",
    "Estimate",
    "FailureRate",
    "Friedman",
    "Gap",
    "HumanCorrected",
    "JudgeAccuracy",
    "JudgeAgreement",
    "LeaveOneJudgeOut",
    "NonInferiority",
    "PairAccuracy",
    "PairTest",
    "PairwiseAgreement",
    "Preference",
    "Purchase",
    "Reliability",
    "Ruler",
    "SamplesNeeded",
    "SelfPreference",
    "Sensitivity",
    "Separation",
    "Shrinkage",
    "SliceRate",
    "SliceRates",
    "Stratum",
    "SystemOrder",
    "TauB",
    "Tiers",
    "Tries",
    "Unlinked",
    "Unreliable",
    "Untested",
    "Validity",
    "VarianceSplit",
    "WinRate",
    "adjust_p_values",
    "agreement",
    "bounds",
    "bradley_terry",
    "carry_plan",
    "certify",
    "choice_decisions",
    "choice_strengths",
    "contamination",
    "dated_contamination",
    "decisions",
    "demand_rates",
    "dunn",
    "failure_rate",
    "failure_rate_by_people",
    "friedman",
    "human_corrected",
    "human_corrected_strengths",
    "judge_accuracy",
    "kemeny_consensus",
    "kendalls_w",
    "leave_one_judge_out",
    "non_inferiority",
    "pairwise_agreement",
    "relative_gap",
    "reliability",
    "ruler",
    "samples_needed",
    "self_preference",
    "sensitivity",
    "shrink",
    "siegel_castellan",
    "slice_rates",
    "tau_b",
    "tiers",
    "validity",
    "win_rate",
]

"""Turn what people post about a new image model into a versioned benchmark.

Names are loaded when they are used: `import echo_hf` alone imports neither datasets nor any model.
"""

from __future__ import annotations

import logging
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echo_hf import metrics, scores
    from echo_hf.builder.build import build
    from echo_hf.builder.gold.check import CheckResult, check_engine
    from echo_hf.config.checks import EngineChoice
    from echo_hf.config.loading import Config, load_config
    from echo_hf.errors import EchoError
    from echo_hf.hub.load import evaluate_module, load_benchmark, load_manifest
    from echo_hf.hub.publish import publish
    from echo_hf.hub.release import Release
    from echo_hf.pipeline.answer_store import Store
    from echo_hf.pipeline.batch_inference import fill
    from echo_hf.pipeline.result import StageResult
    from echo_hf.pipeline.stage import ModelStage, Stage
    from echo_hf.pipeline.stage_runner import run_stage
    from echo_hf.report.evaluation import Evaluation, evaluate_systems

logging.getLogger(__name__).addHandler(logging.NullHandler())

_MODULES = {
    "CheckResult": "echo_hf.builder.gold.check",
    "Config": "echo_hf.config.loading",
    "EchoError": "echo_hf.errors",
    "EngineChoice": "echo_hf.config.checks",
    "Evaluation": "echo_hf.report.evaluation",
    "ModelStage": "echo_hf.pipeline.stage",
    "Release": "echo_hf.hub.release",
    "Stage": "echo_hf.pipeline.stage",
    "StageResult": "echo_hf.pipeline.result",
    "Store": "echo_hf.pipeline.answer_store",
    "build": "echo_hf.builder.build",
    "check_engine": "echo_hf.builder.gold.check",
    "evaluate_module": "echo_hf.hub.load",
    "evaluate_systems": "echo_hf.report.evaluation",
    "fill": "echo_hf.pipeline.batch_inference",
    "load_benchmark": "echo_hf.hub.load",
    "load_config": "echo_hf.config.loading",
    "load_manifest": "echo_hf.hub.load",
    "publish": "echo_hf.hub.publish",
    "run_stage": "echo_hf.pipeline.stage_runner",
}

_PACKAGES = frozenset({"metrics", "scores"})

__all__ = [
    "CheckResult",
    "Config",
    "EchoError",
    "EngineChoice",
    "Evaluation",
    "ModelStage",
    "Release",
    "Stage",
    "StageResult",
    "Store",
    "__version__",
    "build",
    "check_engine",
    "evaluate_module",
    "evaluate_systems",
    "fill",
    "load_benchmark",
    "load_config",
    "load_manifest",
    "metrics",
    "publish",
    "run_stage",
    "scores",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return version("echo-hf")
    if name in _PACKAGES:
        return import_module(f"echo_hf.{name}")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'echo_hf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Turn what people post about a new image model into a versioned benchmark.

Names are loaded when they are used: `import echo_hf` alone imports neither datasets nor any model.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from echo_hf import metrics, scores
    from echo_hf.apply import run_stage
    from echo_hf.check.check import CheckResult, check_engine
    from echo_hf.config import Config, load_config
    from echo_hf.config_fields import EngineChoice
    from echo_hf.errors import EchoError
    from echo_hf.filling import fill
    from echo_hf.hub.evaluate_module import evaluate_module
    from echo_hf.hub.load import load_benchmark, load_manifest
    from echo_hf.hub.publish import publish
    from echo_hf.hub.release import Release
    from echo_hf.run import build
    from echo_hf.stage import ModelStage, Stage
    from echo_hf.stage_result import StageResult
    from echo_hf.store import Store

_HOME = {
    "CheckResult": "echo_hf.check.check",
    "Config": "echo_hf.config",
    "EchoError": "echo_hf.errors",
    "EngineChoice": "echo_hf.config_fields",
    "ModelStage": "echo_hf.stage",
    "Release": "echo_hf.hub.release",
    "Stage": "echo_hf.stage",
    "StageResult": "echo_hf.stage_result",
    "Store": "echo_hf.store",
    "build": "echo_hf.run",
    "check_engine": "echo_hf.check.check",
    "evaluate_module": "echo_hf.hub.evaluate_module",
    "fill": "echo_hf.filling",
    "load_benchmark": "echo_hf.hub.load",
    "load_config": "echo_hf.config",
    "load_manifest": "echo_hf.hub.load",
    "publish": "echo_hf.hub.publish",
    "run_stage": "echo_hf.apply",
}

_PARTS = frozenset({"metrics", "scores"})

__all__ = [
    "CheckResult",
    "Config",
    "EchoError",
    "EngineChoice",
    "ModelStage",
    "Release",
    "Stage",
    "StageResult",
    "Store",
    "__version__",
    "build",
    "check_engine",
    "evaluate_module",
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
    if name in _PARTS:
        return import_module(f"echo_hf.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'echo_hf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

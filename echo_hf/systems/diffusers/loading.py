"""Load a pipeline, put it on its device, and say which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from echo_hf.engines.transformers.loading import is_out_of_memory
from echo_hf.errors import EchoError, GenerationError
from echo_hf.systems.config import Size
from echo_hf.systems.diffusers.classes import (
    INDEX,
    PipelineClass,
    check_call,
    class_named,
    pipeline_class,
)
from echo_hf.systems.diffusers.inputs import check_way
from echo_hf.systems.diffusers.options import DiffusersOptions
from echo_hf.systems.diffusers.output_size import check_size
from echo_hf.systems.local_models import LocalModel
from echo_hf.systems.local_options import device_of, dtype_of
from echo_hf.systems.local_trouble import one_line

PROCESSOR = "cpu"
# Qwen's processors load a part for videos, whether there are any or not.
VIDEOS = "torchvision"


@dataclass(frozen=True, slots=True)
class LoadedPipeline:
    """A pipeline that can be called.

    Attributes:
        pipe: The pipeline of diffusers.
        pipeline: Its class.
        details: Which one it is, for the provenance of what it draws.
    """

    pipe: Any
    pipeline: PipelineClass
    details: Mapping[str, Any]


def load_pipeline(model: LocalModel, options: DiffusersOptions, size: Size) -> LoadedPipeline:
    """Loads a pipeline; whatever a config has wrong is found before the weights are read.

    Args:
        model: The model.
        options: The parameters of its system.
        size: The size of its outputs, as the config says it.

    Returns:
        The pipeline, on its device.

    Raises:
        GenerationError: It cannot be loaded, or is not called as the config wants.
    """
    place = f"system {model.system!r}"
    device = device_of(options, place)
    if device == PROCESSOR and options.offload != "none":
        raise GenerationError(
            f"{place}: offload is {options.offload!r}, and the device is the processor: expected "
            "none"
        )
    try:
        pipeline = pipeline_class(class_named(_index(model), place), place)
        check_call(options.call, pipeline, place)
        check_size(size, pipeline.kind, place)
        check_way(pipeline, options, place)
        pipe = _on_device(_loaded(model, options), options, device)
    except EchoError:
        raise
    except Exception as error:  # whatever the driver, the memory or the files are short of
        raise GenerationError(_explained(model, error)) from error
    return LoadedPipeline(pipe, pipeline, _details(model, options, pipeline, device))


def _index(model: LocalModel) -> Path:
    from huggingface_hub import hf_hub_download

    found = model.index_at_hand()
    return found or Path(hf_hub_download(model.source, INDEX, revision=model.revision))


def _loaded(model: LocalModel, options: DiffusersOptions) -> Any:
    from diffusers import DiffusionPipeline

    pipe = DiffusionPipeline.from_pretrained(
        model.source,
        revision=model.pinned,
        dtype=dtype_of(options),
        use_safetensors=True,
        trust_remote_code=False,
    )
    pipe.set_progress_bar_config(disable=True)
    return pipe


def _on_device(pipe: Any, options: DiffusersOptions, device: str) -> Any:
    if options.offload == "model":
        pipe.enable_model_cpu_offload(device=device)
    elif options.offload == "sequential":
        pipe.enable_sequential_cpu_offload(device=device)
    else:
        pipe.to(device)
    return pipe


def _details(
    model: LocalModel, options: DiffusersOptions, pipeline: PipelineClass, device: str
) -> dict[str, Any]:
    import diffusers
    import torch
    import transformers

    libraries = (torch, diffusers, transformers)
    return {
        "pipeline": pipeline.name,
        "commit": model.commit,
        "dtype": options.dtype,
        "device": device,
        "versions": {one.__name__: str(one.__version__) for one in libraries},
    }


def _explained(model: LocalModel, error: Exception) -> str:
    place = f"system {model.system!r}"
    if is_out_of_memory(error):
        return (
            f"{place}: model {model.source!r} does not fit into memory: use offload 'model' or "
            "'sequential', a smaller dtype or a smaller model"
        )
    if VIDEOS in str(error).lower():
        return (
            f"{place}: the processor of {model.source!r} needs {VIDEOS}: install the one that "
            "belongs to your torch"
        )
    return (
        f"{place}: cannot load {model.source!r} ({type(error).__name__}: {one_line(error)}): "
        "expected a pipeline of diffusers with safetensors weights and no code of its own"
    )

"""What every model in this process is told."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from echo_hf.errors import GenerationError
from echo_hf.systems.local_models import LocalOptions, device_of, dtype_of

REASON = "needs torch: see `make test-extras`"


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "cpu:0", "meta", ""])
def test_a_device_has_a_name_that_torch_knows(device: str) -> None:
    """Anything else is refused before torch is imported."""
    with pytest.raises(ValidationError):
        LocalOptions(device=device)


@pytest.mark.extras
def test_numbers_are_of_the_type_that_is_named() -> None:
    """16 bits with the range of 32, unless a config says otherwise."""
    torch = pytest.importorskip("torch", reason=REASON)
    assert dtype_of(LocalOptions()) is torch.bfloat16
    assert dtype_of(LocalOptions(dtype="float32")) is torch.float32


@pytest.mark.extras
def test_the_processor_is_always_there() -> None:
    """It is what `auto` is on a machine without an accelerator."""
    torch = pytest.importorskip("torch", reason=REASON)
    assert device_of(LocalOptions(device="cpu"), "system 'tiny'") == "cpu"
    if not torch.accelerator.is_available():
        assert device_of(LocalOptions(), "system 'tiny'") == "cpu"


@pytest.mark.extras
def test_a_device_that_is_not_there_is_told_in_one_line() -> None:
    """No machine has a hundred accelerators."""
    pytest.importorskip("torch", reason=REASON)
    with pytest.raises(GenerationError) as caught:
        device_of(LocalOptions(device="cuda:99"), "system 'tiny'")
    said = str(caught.value)
    assert said.startswith("system 'tiny': device is 'cuda:99', which this machine does not have")
    assert "\n" not in said

"""cuDNN's switch, however the threads that hold it come and go."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest

from echo_hf.metrics.self_similarity import CudnnGuard
from tests.metrics.vit_for_tests import REASON

torch = pytest.importorskip("torch", reason=REASON)
pytestmark = pytest.mark.extras


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("leaves_first", [0, 1])
def test_the_last_that_leaves_puts_back_what_the_first_found(
    before: bool, leaves_first: int
) -> None:
    """Off while any of two threads is inside, whichever of them leaves first."""
    guard, steps, found = CudnnGuard(), [Barrier(2, timeout=30) for _ in range(3)], []
    was, torch.backends.cudnn.enabled = torch.backends.cudnn.enabled, before

    def work(number: int) -> None:
        if number == 1:
            steps[0].wait()
        with guard:
            found.append(torch.backends.cudnn.enabled)
            if number == 0:
                steps[0].wait()
            steps[1].wait()
            if number != leaves_first:
                steps[2].wait()
                found.append(torch.backends.cudnn.enabled)
        if number == leaves_first:
            steps[2].wait()

    threads = [Thread(target=work, args=(number,)) for number in (0, 1)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [False, False, False]
        assert torch.backends.cudnn.enabled == before
    finally:
        torch.backends.cudnn.enabled = was


def test_an_error_inside_puts_it_back() -> None:
    """And goes on to whoever asked."""
    before = torch.backends.cudnn.enabled
    with pytest.raises(KeyError), CudnnGuard():
        raise KeyError
    assert torch.backends.cudnn.enabled == before

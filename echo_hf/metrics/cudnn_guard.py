"""cuDNN's process-wide switch, held off while any thread runs a ViT.

On its own, each thread would put back what it found, which may be what another had set for a
while: cuDNN would stay off for good. As in `echo_hf.pillow_guard`, the first thread that comes in
switches it off, and the last that leaves puts it back.
"""

from __future__ import annotations

from threading import Lock


class CudnnGuard:
    """A context manager for threads that want their convolutions without cuDNN.

    torch is there by the time it is entered.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._was_enabled = True

    def __enter__(self) -> None:
        from torch.backends import cudnn

        with self._lock:
            if not self._inside:
                self._was_enabled, cudnn.enabled = cudnn.enabled, False
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        from torch.backends import cudnn

        with self._lock:
            self._inside -= 1
            if not self._inside:
                cudnn.enabled = self._was_enabled


# What it guards belongs to the process, so there is one of it.
without_cudnn = CudnnGuard()

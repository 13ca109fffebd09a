"""Workers on the nodes of a Ray cluster: each is a process beside an actor of its own.

The actor starts the process, hands it what comes and passes on what it says, so that a breakdown of
the process is told as on one machine, and is another thing than the loss of its node. An actor that
no node has room for waits, and costs nothing; so does one that takes the place of a lost one.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import platform
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, partial
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from socket import create_connection
from tempfile import gettempdir
from threading import Lock
from typing import Any
from uuid import uuid4

from echo_hf._infra.atomic import replace_file
from echo_hf._infra.worker_pool import ItemBatch, ProcessWorker, Worker, WorkerMessage
from echo_hf.errors import MissingExtraError, RunError

AUTO, LOCAL = "auto", "local"
SEND_GROUP, READ_GROUP = "given", "said"
NODE_FILE = ".echo-hf-node"
ROOM_SECONDS, CONNECT_SECONDS = 30.0, 10.0
# Files of which a copy stays in the cluster's memory, for other nodes to take.
MAX_CACHED_FILES = 256
MAX_ERROR_CHARACTERS = 300
# Numbered items, and the files that they name, for a node that does not see them.
PackedItems = tuple[list[tuple[int, bytes]], dict[str, Any]]
logger = logging.getLogger(__name__)


@contextmanager
def connect_cluster(address: str) -> Iterator[bool]:
    """Connect to a cluster; yields whether it was started for this process alone."""
    if find_spec("ray") is None:
        raise MissingExtraError("runner 'ray'", "ray")
    import ray

    if ray.is_initialized():  # by whoever calls us, who ends it too
        yield False
        return
    place, variable = "runner.address", os.environ.get("RAY_ADDRESS") if address == AUTO else None
    if variable:
        place, address = "RAY_ADDRESS", variable
    host, colon, port = address.rpartition(":")
    if address not in (AUTO, LOCAL) and not (host and "/" not in host and port.isdecimal()):
        raise RunError(f"{place} is {address!r}: expected auto, local, or HOST:PORT of a cluster")
    logging_options = {"log_to_driver": False, "logging_level": logging.ERROR}
    handler, is_started = signal.getsignal(signal.SIGTERM), address == LOCAL
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        try:
            if colon:  # Ray itself would try for a minute
                create_connection((host, int(port)), CONNECT_SECONDS).close()
            ray.init(address, include_dashboard=False if is_started else None, **logging_options)
        except Exception as error:
            if address == AUTO and isinstance(error, OSError | ValueError):
                is_started = True
                ray.init(LOCAL, include_dashboard=False, **logging_options)
            else:  # nobody answers, or another version of Ray or Python does
                message = " ".join(str(error).split())[:MAX_ERROR_CHARACTERS]
                raise RunError(
                    f"{place} is {address!r}, and no cluster can be used there ({message}): "
                    "install the same versions on all nodes, and run `ray start --address=...` on "
                    "each"
                ) from None
        with suppress(ValueError):  # in a thread, where it was not taken
            signal.signal(signal.SIGTERM, handler)  # Ray takes it
        yield is_started
    finally:
        ray.shutdown()


def alive_nodes() -> dict[str, dict[str, Any]]:
    """Return the living nodes of the cluster by their ids."""
    import ray

    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def pin_to_node(function: Any, node: str, **options: Any) -> Any:
    """Return a remote function or class that runs on this node only."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=strategy, **options)(function)


def can_read_folder(token: str | bool) -> bool:
    """Return whether this machine can read the run's folder, by its token file."""
    if isinstance(token, bool):
        return token
    with suppress(OSError):
        return Path(token.rpartition("#")[0]).read_text() == token
    return False


class _Packer(pickle.Pickler):
    """Pickles paths as absolute ones, for a machine where the files may be elsewhere."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.paths = set[str]()

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, Path):
            return None
        path = str(value.absolute())
        self.paths.add(path)
        return path


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, locate: Callable[[str], Path]) -> None:
        super().__init__(io.BytesIO(data))
        self._locate = locate

    def persistent_load(self, path: str) -> Path:
        return self._locate(path)


class _NodeRelay:
    """The actor on a node, which passes messages to and from the worker process."""

    def __init__(
        self, name: str, pickled: bytes, ahead: int, token: str | bool, folder: str
    ) -> None:
        # Else the process would run the main module of Ray's worker, which is this one's.
        vars(sys.modules["__main__"]).pop("__file__", None)
        with suppress(OSError):  # a node apart
            os.chdir(folder)  # from which an engine's options name files
        self._is_shared = can_read_folder(token)
        self._copies, self._lock = Path(gettempdir()) / f"echo-hf-ray-{uuid4().hex}", Lock()
        self._worker, self._ahead = ProcessWorker(None, name, pickled, ahead, self._copies), ahead
        self._worker.log = f"Ray's logs on {platform.node()}"

    def locate_node(self) -> tuple[str, bool]:
        """Return the node's name, and whether it sees the run's files."""
        return platform.node(), self._is_shared

    def send(self, packed: PackedItems | None) -> None:
        """Send items to the process, with the paths of their files on this node."""
        batch: ItemBatch = None
        if packed is not None:
            items, files = packed
            locate = partial(self._place_file, files=files)
            batch = [
                (number, pickle.dumps(_Unpacker(data, locate).load())) for number, data in items
            ]
        with self._lock, suppress(OSError):  # it has just ended, which is heard of
            self._worker.send(batch)

    def read_messages(self, received: int) -> tuple[WorkerMessage, str | None]:
        """Return the next messages, and how the process ended; earlier ones were received."""
        if received:
            with self._lock, suppress(OSError):
                self._worker.allow_results(received)
        try:
            return self._worker.read_messages(self._ahead), None
        except (EOFError, OSError):
            return [], self._worker.wait_for_end()

    def end_process(self) -> None:
        """End the process and its children, which outlive a killed actor."""
        self._worker.kill()
        rmtree(self._copies, ignore_errors=True)

    def _place_file(self, path: str, files: dict[str, Any]) -> Path:
        if files.get(path) is None:
            return Path(path)
        import ray

        copy = self._copies / sha256(path.encode()).hexdigest()
        if not copy.exists():
            self._copies.mkdir(mode=0o700, exist_ok=True)
            with replace_file(copy) as partial:
                partial.write_bytes(ray.get(files[path]))
        return copy


class _RayWorker(Worker):
    def __init__(self, nodes: RayNodes, name: str, pickled: bytes) -> None:
        super().__init__(name)
        self.is_ready, self._nodes, self._pickled = False, nodes, pickled
        self._node, self._is_shared, self._received = "", True, 0
        self._ending: str | None = None
        self._sent = list[Any]()
        settings = (nodes.micro_batch, nodes.token, str(Path.cwd()))
        self._actor = nodes.actor.remote(name, pickled, *settings)

    def start(self) -> None:
        node = self._actor.locate_node.remote()
        if not self._get_result(node, ROOM_SECONDS):
            self._nodes.warn_of_room()
        self._node, self._is_shared = self._get_result(node)
        self._nodes.has_room = True

    def send(self, batch: ItemBatch) -> None:
        packed = None if batch is None else self._nodes.pack_items(batch, self._is_shared)
        send = self._actor.send.options(concurrency_group=SEND_GROUP)
        self._sent.append(send.remote(packed))

    def read_messages(self) -> WorkerMessage:
        import ray

        pending = self._actor.read_messages.options(concurrency_group=READ_GROUP).remote(
            self._received
        )
        messages: WorkerMessage
        messages, self._ending = self._get_result(pending)
        self._received = len(messages)
        if self._ending is not None:
            raise EOFError
        # What has not arrived would be waited for without end.
        sent = list(self._sent)
        arrived = ray.wait(sent, num_returns=len(sent), timeout=0)[0] if sent else []
        for result in arrived:
            self._get_result(result)
            self._sent.remove(result)
        return messages

    def wait_for_end(self) -> str:
        self.kill()
        return self._ending or f"was lost with its place on node {self._node or 'unknown'}"

    def kill(self) -> None:
        import ray

        if self._node:
            with suppress(EOFError):
                self._get_result(self._actor.end_process.remote(), CONNECT_SECONDS)
        ray.kill(self._actor)

    def successor(self) -> Worker | None:
        # What ends a process ends no actor: this is the end of its node, or of the way there.
        return _RayWorker(self._nodes, self.name, self._pickled) if self._ending is None else None

    def notice(self, remark: str) -> None:
        self._nodes.notice(remark)

    def _get_result(self, pending: Any, timeout: float | None = None) -> Any:
        """Return a pending result; null on a timeout, `EOFError` where the actor is gone."""
        import ray

        try:
            return ray.get(pending, timeout=timeout)
        except ray.exceptions.GetTimeoutError:
            return None
        except ray.exceptions.RayTaskError as error:
            self._ending = f"failed: {' '.join(str(error.cause).split())[:MAX_ERROR_CHARACTERS]}"
        except ray.exceptions.RayError as error:
            if getattr(error, "actor_init_failed", False):  # so would another one
                self._ending = (
                    f"cannot begin: {str(error).strip().splitlines()[-1][:MAX_ERROR_CHARACTERS]}"
                )
            logger.debug("%s: %s", self.name, error)
        raise EOFError


class RayNodes:
    """Makes workers on the nodes of a cluster, each with its share of a node.

    Args:
        gpus: GPUs of a worker.
        cpus: CPUs of a worker, below 1 so that a few do not fill a node.
        micro_batch: Most results of a worker that have not arrived here.
        folder: Where the files lie that items name.
        shared: Whether all nodes see that folder; null to find out for each.
    """

    def __init__(
        self, gpus: float, cpus: float, micro_batch: int, folder: Path, shared: bool | None = None
    ) -> None:
        self.gpus, self.cpus, self.micro_batch = gpus, cpus, micro_batch
        self.notice: Callable[[str], None] = logger.warning  # called by any thread
        self._node_file = folder.absolute() / NODE_FILE
        # A file and what stands in it: who reads that sees the folder; or what was said of all.
        self.token: str | bool = f"{self._node_file}#{uuid4().hex}" if shared is None else shared
        if isinstance(self.token, str):
            self._node_file.write_text(self.token)
        self._put_file, self._lock = lru_cache(MAX_CACHED_FILES)(_put_in_cluster), Lock()
        self.has_room = self._has_warned = False

    @cached_property
    def actor(self) -> Any:
        import ray

        share = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        return ray.remote(**share, concurrency_groups={SEND_GROUP: 1, READ_GROUP: 1})(_NodeRelay)

    def __call__(self, name: str, pickled: bytes) -> Worker:
        """Make a worker, wherever there is or will be room."""
        return _RayWorker(self, name, pickled)

    def close(self) -> None:
        """Remove the token file."""
        self._node_file.unlink(missing_ok=True)

    def pack_items(self, batch: list[tuple[int, bytes]], is_shared: bool) -> PackedItems:
        """Pack items with absolute paths; include the files for a node that does not see them."""
        items, paths = list[tuple[int, bytes]](), set[str]()
        for number, data in batch:
            packer = _Packer(buffer := io.BytesIO())
            packer.dump(pickle.loads(data))  # noqa: S301 - of the run itself
            items.append((number, buffer.getvalue()))
            paths |= packer.paths
        return items, {} if is_shared else {path: self._put_file(path) for path in sorted(paths)}

    def warn_of_room(self) -> None:
        """Warn once, while no worker has begun, of the resources that a node needs."""
        with self._lock:
            if self.has_room or self._has_warned:
                return
            self._has_warned = True
        resources = [node["Resources"] for node in alive_nodes().values()]
        totals = (
            f"{sum(node.get(kind, 0) for node in resources):g} {kind}s" for kind in ("GPU", "CPU")
        )
        self.notice(
            f"no node of the cluster has room yet for a worker, which takes {self.gpus:g} GPUs and "
            f"{self.cpus:g} CPUs, where all have {' and '.join(totals)}: what is asked waits"
        )


def _put_in_cluster(path: str) -> Any:
    """Put a file into the cluster's memory; null where it cannot be read."""
    import ray

    with suppress(OSError):
        return ray.put(Path(path).read_bytes())
    return None

"""Workers of a pool on the nodes of a Ray cluster: each is a process beside an actor of its own.

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
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from socket import create_connection
from tempfile import gettempdir
from threading import Lock
from typing import Any
from uuid import uuid4

from echo_hf._infra.atomic import held, replaced_file
from echo_hf._infra.worker_pool import Batch, ProcessWorker, Said, Worker
from echo_hf.errors import MissingExtraError, RunError

AUTO, HERE = "auto", "local"
GIVEN, SAID = "given", "said"
SEEN = ".echo-hf-"
WAITED_S, REACHED_S = 30.0, 10.0
# Files of which a copy stays in the cluster's memory, for other nodes to take.
MOST_FILES = 256
LONGEST = 300
Parcel = list[tuple[int, bytes, tuple[str, ...]]] | None
logger = logging.getLogger(__name__)


@contextmanager
def connected(address: str) -> Iterator[bool]:
    """A connection to a cluster; says whether it was started for this alone, on this machine."""
    if find_spec("ray") is None:
        raise MissingExtraError("runner 'ray'", "ray")
    import ray

    if ray.is_initialized():  # by whoever calls us, who ends it too
        yield False
        return
    named, found = "runner.address", os.environ.get("RAY_ADDRESS") if address == AUTO else None
    if found:
        named, address = "RAY_ADDRESS", found
    host, colon, port = address.rpartition(":")
    if address not in (AUTO, HERE) and not (host and "/" not in host and port.isdecimal()):
        raise RunError(f"{named} is {address!r}: expected auto, local, or HOST:PORT of a cluster")
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    at_signal, starts = signal.getsignal(signal.SIGTERM), address == HERE
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        try:
            if colon:  # Ray itself would try for a minute
                create_connection((host, int(port)), REACHED_S).close()
            ray.init(address, include_dashboard=False if starts else None, **quiet)
        except (OSError, ValueError) as error:
            if address != AUTO:
                said = " ".join(str(error).split())[:LONGEST]
                raise RunError(
                    f"{named} is {address!r}, and no cluster answers there ({said}): run `ray "
                    "start --address=...` on this machine first, as on each node"
                ) from None
            starts = True
            ray.init(HERE, include_dashboard=False, **quiet)
        except Exception as error:  # as of another version of Ray or Python
            said = " ".join(str(error).split())[:LONGEST]
            raise RunError(
                f"{named} is {address!r}, and Ray cannot be used there ({said}): install the same "
                "versions on all nodes, and try again"
            ) from None
        with suppress(ValueError):  # in a thread, where it was not taken
            signal.signal(signal.SIGTERM, at_signal)  # Ray takes it
        yield starts
    finally:
        ray.shutdown()


def alive_nodes() -> dict[str, dict[str, Any]]:
    """The nodes of the cluster that are alive, by their names."""
    import ray

    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def on_node(function: Any, node: str, **options: Any) -> Any:
    """A function or class that runs on this node and nowhere else."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    strategy = NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=strategy, **options)(function)


def sees(token: str | bool) -> bool:
    """Whether this machine sees the folder of a run: what was said of it, or the file is there."""
    return token if isinstance(token, bool) else Path(token).exists()


class _Packer(pickle.Pickler):
    """Names files by their absolute paths, for a machine on which they may lie elsewhere."""

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.paths = dict[str, None]()

    def persistent_id(self, value: Any) -> str | None:
        if not isinstance(value, Path):
            return None
        path = str(value.absolute())
        self.paths[path] = None
        return path


class _Unpacker(pickle.Unpickler):
    def __init__(self, data: bytes, places: dict[str, Path]) -> None:
        super().__init__(io.BytesIO(data))
        self._places = places

    def persistent_load(self, path: str) -> Path:
        return self._places[path]


class _Relay:
    """What an actor does on its node."""

    def __init__(self, name: str, made: bytes, ahead: int, token: str | bool, folder: str) -> None:
        # Else the process would run the main module of Ray's worker, which is this one's.
        vars(sys.modules["__main__"]).pop("__file__", None)
        with suppress(OSError):  # a node apart
            os.chdir(folder)  # from which an engine's options name files
        self._is_shared = sees(token)
        self._copies, self._lock = Path(gettempdir()) / f"echo-hf-ray-{uuid4().hex}", Lock()
        self._worker, self._ahead = ProcessWorker(None, name, made, ahead, self._copies), ahead
        self._worker.log = f"Ray's logs on {platform.node()}"

    def place(self) -> tuple[str, bool]:
        """How people call its node, and whether the files of the run are seen from there."""
        return platform.node(), self._is_shared

    def send(self, parcel: Parcel, files: dict[str, Any]) -> None:
        """Hands items to the process, with the paths of their files on this node."""
        batch: Batch = None if parcel is None else []
        for number, data, paths in parcel or ():
            if paths:
                places = {path: self._placed(path, files) for path in paths}
                data = pickle.dumps(_Unpacker(data, places).load())
            if batch is not None:
                batch.append((number, data))
        with self._lock, suppress(OSError):  # it has just ended, which is heard of
            self._worker.send(batch)

    def heard(self, taken: int) -> tuple[Said, str | None]:
        """What the process says next, and how it ended; what was said before has been taken."""
        if taken:
            with self._lock, suppress(OSError):
                self._worker.taken(taken)
        try:
            return self._worker.heard(self._ahead), None
        except (EOFError, OSError):
            return [], self._worker.ended()

    def end(self) -> None:
        """Ends the process and what it has started, which outlives an actor that is killed."""
        self._worker.kill()
        rmtree(self._copies, ignore_errors=True)

    def _placed(self, path: str, files: dict[str, Any]) -> Path:
        if self._is_shared or files[path] is None:
            return Path(path)
        import ray

        place = self._copies / sha256(path.encode()).hexdigest()
        if not place.exists():
            self._copies.mkdir(mode=0o700, exist_ok=True)
            with replaced_file(place) as partial:
                partial.write_bytes(ray.get(files[path]))
        return place


class _RayWorker(Worker):
    def __init__(self, nodes: RayNodes, name: str, made: bytes) -> None:
        super().__init__(name)
        self.is_ready, self._nodes, self._made = False, nodes, made
        self._node, self._is_shared, self._taken = "", True, 0
        self._how: str | None = None
        self._sent = list[Any]()
        own = (nodes.micro_batch, nodes.token, str(Path.cwd()))
        self._actor = nodes.actor.remote(name, made, *own)

    def start(self) -> None:
        asked = self._actor.place.remote()
        if not self._got(asked, WAITED_S):
            self._nodes.warn_of_room()
        self._node, self._is_shared = self._got(asked)
        self._nodes.has_room = True

    def send(self, batch: Batch) -> None:
        parcel, files = self._nodes.packed(batch, self._is_shared)
        given = self._actor.send.options(concurrency_group=GIVEN)
        self._sent.append(given.remote(parcel, files))

    def heard(self) -> Said:
        import ray

        asked = self._actor.heard.options(concurrency_group=SAID).remote(self._taken)
        said: Said
        said, self._how = self._got(asked)
        self._taken = len(said)
        if self._how is not None:
            raise EOFError
        # What has not arrived would be waited for without end.
        sent = list(self._sent)
        arrived = ray.wait(sent, num_returns=len(sent), timeout=0)[0] if sent else []
        for one in arrived:
            self._got(one)
            self._sent.remove(one)
        return said

    def ended(self) -> str:
        self.kill()
        return self._how or f"was lost with its place on node {self._node or 'unknown'}"

    def kill(self) -> None:
        import ray

        if self._node:
            with suppress(EOFError):
                self._got(self._actor.end.remote(), REACHED_S)
        ray.kill(self._actor)

    def successor(self) -> Worker | None:
        # What ends a process ends no actor: this is the end of its node, or of the way there.
        return _RayWorker(self._nodes, self.name, self._made) if self._how is None else None

    def notice(self, remark: str) -> None:
        self._nodes.notice(remark)

    def _got(self, asked: Any, timeout: float | None = None) -> Any:
        """What was asked for, null where it takes longer; an `EOFError` where the actor is gone."""
        import ray

        try:
            return ray.get(asked, timeout=timeout)
        except ray.exceptions.GetTimeoutError:
            return None
        except ray.exceptions.RayTaskError as error:
            self._how = f"failed: {' '.join(str(error.cause).split())[:LONGEST]}"
        except ray.exceptions.RayError as error:
            if getattr(error, "actor_init_failed", False):  # so would another one
                self._how = f"cannot begin: {str(error).strip().splitlines()[-1][:LONGEST]}"
            logger.debug("%s: %s", self.name, error)
        raise EOFError


class RayNodes:
    """The nodes of a cluster as the place of workers, of which each has its share of a node.

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
        self.gpus, self.cpus, self.micro_batch, self._shared = gpus, cpus, micro_batch, shared
        self._held = ExitStack()
        self.notice: Callable[[str], None] = logger.warning  # called by any thread
        self._token = folder.absolute() / f"{SEEN}{uuid4().hex}"
        if shared is None:
            busy = RunError(f"{str(self._token)!r} belongs to a run that goes on")
            for stray in folder.glob(f"{SEEN}*"):  # of runs that were killed, which hold none
                with suppress(RunError), held(stray, busy):
                    stray.unlink(missing_ok=True)
            self._held.enter_context(held(self._token, busy))
        self._files, self._lock = OrderedDict[str, Any](), Lock()
        self.has_room = self._warned = False

    @property
    def token(self) -> str | bool:
        """A file that whoever sees it sees the folder of the run, or what was said of all."""
        return str(self._token) if self._shared is None else self._shared

    @cached_property
    def actor(self) -> Any:
        import ray

        share = {"num_cpus": self.cpus, "num_gpus": self.gpus}
        return ray.remote(**share, concurrency_groups={GIVEN: 1, SAID: 1})(_Relay)

    def __call__(self, name: str, made: bytes) -> Worker:
        """A worker, wherever there is room, or will be."""
        return _RayWorker(self, name, made)

    def close(self) -> None:
        """Removes what was put beside the results."""
        self._held.close()
        self._token.unlink(missing_ok=True)

    def packed(self, batch: Batch, is_shared: bool) -> tuple[Parcel, dict[str, Any]]:
        """Items with the absolute paths of their files, and for a node apart the files."""
        parcel: Parcel = None if batch is None else []
        paths = dict[str, None]()
        for number, data in batch or ():
            packer = _Packer(packed := io.BytesIO())
            packer.dump(pickle.loads(data))  # noqa: S301 - of the run itself
            named = tuple(packer.paths)
            if parcel is not None:
                parcel.append((number, packed.getvalue() if named else data, named))
            paths |= packer.paths
        return parcel, {} if is_shared else {path: self._file(path) for path in paths}

    def warn_of_room(self) -> None:
        """Says once, while no worker has begun, what a node would have to have."""
        with self._lock:
            if self.has_room or self._warned:
                return
            self._warned = True
        most = [node["Resources"] for node in alive_nodes().values()]
        has = (f"{sum(one.get(what, 0) for one in most):g} {what}s" for what in ("GPU", "CPU"))
        self.notice(
            f"no node of the cluster has room yet for a worker, which takes {self.gpus:g} GPUs and "
            f"{self.cpus:g} CPUs, where all have {' and '.join(has)}: what is asked waits"
        )

    def _file(self, path: str) -> Any:
        """A file in the cluster's memory; null where it cannot be read, which is told there."""
        import ray

        with self._lock:
            if path not in self._files:
                try:
                    self._files[path] = ray.put(Path(path).read_bytes())
                except OSError:
                    return None
            self._files.move_to_end(path)
            while len(self._files) > MOST_FILES:
                self._files.popitem(last=False)
            return self._files.get(path)

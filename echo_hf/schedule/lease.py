"""A lease on a kept run, so that of several turns on one state a single one works."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from echo_hf._infra.atomic import write_json
from echo_hf._infra.regular_file import read_regular
from echo_hf._infra.text import one_line
from echo_hf.errors import RunError
from echo_hf.hub.facts import describe_problem

logger = logging.getLogger(__name__)
LEASE_SECONDS = 300.0
RENEWALS_PER_LEASE = 10  # while it lasts
SETTLE_SECONDS = 1.0  # by then, two that took it at once see which of them wrote last
MAX_LEASE_BYTES = 1 << 12
MAX_PROCESS_ID = 1 << 22


class LeaseHolder(BaseModel):
    """The process that holds a lease, as the file of the lease names it."""

    model_config = ConfigDict(frozen=True)

    token: Annotated[str, Field(max_length=64)]
    machine: Annotated[str, Field(max_length=200)]
    process: Annotated[int, Field(gt=0, le=MAX_PROCESS_ID)]
    processes: Annotated[str, Field(max_length=200)] | None = None  # the list that it stands in
    until: AwareDatetime

    @property
    def is_gone(self) -> bool:
        """Whether the lease has ended, or its process was on this machine and has ended."""
        if self.until <= datetime.now(UTC):
            return True
        if self.processes is None or self.processes != get_process_namespace():
            return False
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return False

    def __str__(self) -> str:
        return f"a turn on {self.machine!r} (process {self.process})"


def get_process_namespace() -> str | None:
    """Return a name of the process namespace of this machine or container, or null."""
    try:
        boot = read_regular(Path("/proc/sys/kernel/random/boot_id"), max_bytes=MAX_LEASE_BYTES)
        return f"{boot.decode('ascii').strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


@dataclass(frozen=True)
class RunLease:
    """A lease that one process takes, renews while it works, and gives back.

    Of the disk it needs no more than that a file takes the place of another: a mounted bucket has
    no locks.
    """

    path: Path
    token: str = field(default_factory=lambda: secrets.token_hex(16))
    lease_seconds: float = LEASE_SECONDS

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lease while the body runs; refused where another process holds it."""
        holder = self._read_holder()
        if holder is None or holder.is_gone:
            self._write()
            time.sleep(SETTLE_SECONDS)
            holder = self._read_holder()
        if holder is None or holder.token != self.token:
            raise self._refusal(holder)
        stop = Event()
        thread = Thread(target=self._renew, args=(stop,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            if self.is_own:
                self.path.unlink(missing_ok=True)

    @property
    def is_own(self) -> bool:
        holder = self._read_holder()
        return holder is not None and holder.token == self.token

    def check(self) -> None:
        """Raise an error if another turn has taken the lease meanwhile."""
        if not self.is_own:
            raise self._refusal(self._read_holder())

    def _refusal(self, holder: LeaseHolder | None) -> RunError:
        if holder is None:
            return RunError(f"{str(self.path)!r} was deleted while a turn worked: take it again")
        return RunError(
            f"{holder} works on this run until {holder.until:%Y-%m-%d %H:%M:%S} UTC, or longer "
            f"({str(self.path)!r} says so): wait for it to end, and take the turn again"
        )

    def _renew(self, stop: Event) -> None:
        while not stop.wait(self.lease_seconds / RENEWALS_PER_LEASE):
            try:
                if not self.is_own:
                    return  # the next keeping says so
                self._write()
            except (OSError, RunError) as error:  # a mount may fail for a moment
                logger.info("the lease %s was not renewed: %s", self.path, one_line(error))

    def _write(self) -> None:
        until = datetime.now(UTC) + timedelta(seconds=self.lease_seconds)
        holder = LeaseHolder(
            token=self.token,
            machine=platform.node()[:200] or "a machine without a name",
            process=os.getpid(),
            processes=get_process_namespace(),
            until=until,
        )
        write_json(self.path, holder.model_dump(mode="json"))

    def _read_holder(self) -> LeaseHolder | None:
        try:
            data = read_regular(self.path, self.path.parent, max_bytes=MAX_LEASE_BYTES)
            return LeaseHolder.model_validate_json(data)
        except FileNotFoundError:
            return None
        except ValidationError as error:
            reason = describe_problem(error)
        except OSError as error:
            reason = error.strerror or one_line(error)
        raise RunError(
            f"{str(self.path)!r} does not say which turn works on this run ({reason}): delete it "
            "when none does"
        )

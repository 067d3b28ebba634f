"""The settings of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Who runs the parts of a job: it changes nothing of its output."""

    kind: Literal["local", "ray"] = "local"
    workers: int | None = None
    """Processes that run parts at once: of this machine, or tasks of Ray. None is no process but this one, with
    threads; with Ray as many as its cluster has CPUs for."""
    address: str | None = None
    """Ray's cluster: "host:6379" or "ray://host:10001"; "auto" joins the one that runs here, "local" starts one. None
    takes RAY_ADDRESS, and else starts one."""
    cpus: int = 1
    """CPUs of each worker; it has as many threads."""
    memory: int | str | None = None
    """Bytes that Ray keeps free for each worker; None asks for none."""

    @property
    def has_workers(self) -> bool:
        """Whether other processes run the parts."""
        return self.kind == "ray" or self.workers is not None

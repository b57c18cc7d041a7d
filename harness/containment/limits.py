"""A worker's limits, and the reason and remedy to record when it exceeds one."""

from __future__ import annotations

from dataclasses import dataclass

from zoomgrad.results.record import Settings

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Limits:
    """Limits on a worker and all its descendants."""

    timeout_seconds: float
    memory_bytes: int = Settings().memory_bytes
    """Of the memory that each process can write."""
    output_bytes: int = Settings().output_bytes
    most_processes: int = Settings().most_processes

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(settings.timeout_seconds, settings.memory_bytes, settings.output_bytes, settings.most_processes)

    def reply(self, limit: str) -> dict[str, str]:
        """Status, reason and remedy for the record of a worker that hit that limit."""
        reason, remedy = {
            "time": (
                f"took longer than {self.timeout_seconds:g} s",
                "Raise the limit with --timeout, or leave the engine out.",
            ),
            "memory": (
                f"ran out of memory: its limit is {size(self.memory_bytes)}",
                "Raise the limit with --memory, or choose a smaller workload.",
            ),
            "output": (
                f"wrote more than {size(self.output_bytes)} of output",
                "Make the engine write less.",
            ),
            "processes": (
                f"had more than {self.most_processes:,} processes",
                "Make the engine start fewer.",
            ),
        }[limit]
        status = "timed-out" if limit == "time" else "failed"
        return {"status": status, "reason": reason, "remedy": remedy, "limit": limit}


def size(count: int) -> str:
    """Format a number of bytes: `8 GiB`, `1.5 MiB`, `300 bytes`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} bytes"

"""How much a worker may take before it is ended, and the words for what it took too much of."""

from __future__ import annotations

from dataclasses import dataclass

from results.record import Settings

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Limits:
    """What a worker and all its descendants may take."""

    timeout_seconds: float
    memory_bytes: int = Settings().memory_bytes
    """Of all of them where a cgroup counts it; else of each process's address space."""
    output_bytes: int = Settings().output_bytes
    most_processes: int = Settings().most_processes

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        return cls(settings.timeout_seconds, settings.memory_bytes, settings.output_bytes, settings.most_processes)

    def outcome(self, limit: str) -> dict[str, str]:
        """Of a worker that was ended at that limit: status, reason and remedy of its record."""
        reason, remedy = {
            "time": (f"took longer than {self.timeout_seconds:g} s", "Give it longer with --timeout, or leave it out."),
            "memory": (
                f"ran out of memory: its limit is {size(self.memory_bytes)}",
                "Give it more with --memory, or choose a smaller workload.",
            ),
            "output": (
                f"wrote more than {size(self.output_bytes)} of output",
                "Have it write less, or allow more with --output.",
            ),
            "processes": (
                f"had more than {self.most_processes:,} processes",
                "Have it start fewer, or allow more with --processes.",
            ),
        }[limit]
        status = "timed-out" if limit == "time" else "failed"
        return {"status": status, "reason": reason, "remedy": remedy, "limit": limit}


def size(count: int) -> str:
    """Bytes as people write them: `8 GiB`, `1.5 MiB`, `300 bytes`."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.4g} {name}"
    return f"{count} bytes"

"""Free memory, as far as the system states it."""

from __future__ import annotations

from pathlib import Path

MEMINFO = Path("/proc/meminfo")
CONTROL_GROUPS = (  # limit and use of a container, for both versions of control groups
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def free_bytes() -> float | None:
    """Return memory available to this process: on the machine, in its container, by ``ulimit -v``; None if unknown."""
    found = (_of_machine(), *(_of_group(*group) for group in CONTROL_GROUPS), _of_process())
    known = [free for free in found if free is not None]
    return max(0.0, min(known)) if known else None


def _of_machine() -> float | None:
    try:
        lines = MEMINFO.read_text(encoding="ascii").splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None


def _of_group(folder: str, limit: str, used: str, cache: str) -> float | None:
    """As the tools of containers count it: files that are held only because there is room are free."""
    try:
        text = {name: (Path(folder) / name).read_text(encoding="ascii") for name in (limit, used, "memory.stat")}
        held = dict(line.split() for line in text["memory.stat"].splitlines())
        return float(text[limit]) - float(text[used]) + float(held.get(cache, 0))
    except (OSError, ValueError):  # no such group, or one whose limit is "max"
        return None


def _of_process() -> float | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    except OSError:
        return None
    return float(limit - used)

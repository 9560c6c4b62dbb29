"""How many files this process may have open: every connection takes one."""

import contextlib
import resource


def allow_files(wanted: int) -> int:
    """Raise the process's own bound towards `wanted`, as far as the system lets it; what it is then."""
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if now == resource.RLIM_INFINITY or now >= wanted:
        return wanted
    bound = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    # A system may have a lower bound than it says; its own default is still below that.
    for each in (bound, min(bound, _EVERYWHERE)):
        with contextlib.suppress(OSError, ValueError):
            if each > now:
                resource.setrlimit(resource.RLIMIT_NOFILE, (each, most))
                return each
    return now


_EVERYWHERE = 10_240
"""What macOS allows a process, whatever else it says."""

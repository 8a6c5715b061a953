"""``check_backend``: all checks of an array library as a backend, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from leafgrad import backends
from leafgrad.testing.backends import arrays, library
from leafgrad.testing.conformance.report import Report, outcome

CHECKS: Final[dict[str, Callable[[Any], None]]] = {
    "identity": arrays.identity,
    "host": arrays.host,
    "asarray": arrays.asarray,
    "wrap": arrays.wrap,
    "attributes": arrays.attributes,
    "operators": arrays.operators,
    "views": arrays.views,
    "writing": arrays.writing,
    "indices": arrays.indices,
    "namespace": library.namespace,
    "devices": library.devices,
    "generators": library.generators,
    "ops": library.ops,
}
"""Name -> check."""


def check_backend(backend: Any, checks: Iterable[str] | None = None) -> Report:
    """Check that an array library keeps the contract of ``leafgrad.backends.Backend``.

    Args:
        backend: a Backend, or the device type that a plugin has it under.
        checks: the names of those to run, of ``leafgrad.testing.backends.CHECKS``; all by default.

    Returns:
        The report: what passed, and what was left out for which reason.

    Raises:
        ConformanceError: some checks failed; an AssertionError that names each. ValueError: no such check.
    """
    wanted = list(CHECKS if checks is None else [checks] if isinstance(checks, str) else checks)
    unknown = [name for name in wanted if name not in CHECKS]
    if unknown:
        raise ValueError(f"check_backend: checks: unknown check {unknown[0]!r}; expected some of {', '.join(CHECKS)}")
    found = backends.by_device_type(backend) if isinstance(backend, str) else backend
    report = Report(f"backend {getattr(found, 'name', found)!r}")
    report.results += [outcome(name, CHECKS[name], found) for name in wanted]
    report.require()
    return report

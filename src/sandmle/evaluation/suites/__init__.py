"""Suites: published benchmarks, and our own task sets, behind one contract."""

from collections.abc import Mapping
from types import MappingProxyType

from sandmle import registry
from sandmle.errors import ConfigError
from sandmle.evaluation.suites.base import Suite, SuiteOptions, SuiteTasks

_HERE = "sandmle.evaluation.suites"
BUILTIN: Mapping[str, str] = MappingProxyType(
    {
        "synthetic": f"{_HERE}.synthetic:SyntheticSuite",
        "mle-bench-lite": f"{_HERE}.mle_bench:MleBenchLiteSuite",
        "mle-bench": f"{_HERE}.mle_bench:MleBenchSuite",
        "mle-dojo": f"{_HERE}.mle_dojo:MleDojoSuite",
    }
)
ENTRY_POINTS = "sandmle.suites"

__all__ = ["BUILTIN", "Suite", "SuiteOptions", "SuiteTasks", "open_suite", "suite_names"]


def open_suite(name: str, options: SuiteOptions) -> Suite:
    """Returns a suite by name: built in, an entry point of ``sandmle.suites``, or ``package.module:Class``.

    Raises:
        ConfigError: There is no suite of that name, or it does not take an option that was given.
    """
    kind = registry.resolve("suite", name, BUILTIN, ENTRY_POINTS)
    defaults = SuiteOptions(data=options.data)
    for field in SuiteOptions.model_fields:
        if field not in kind.takes and getattr(options, field) != getattr(defaults, field):
            raise ConfigError(f"suite {name} takes no --{field.replace('_', '-')}; leave it out")
    suite: Suite = kind(options)
    return suite


def suite_names() -> tuple[str, ...]:
    """Returns the names of all suites, built in and plugged in, sorted."""
    return registry.names(BUILTIN, ENTRY_POINTS)

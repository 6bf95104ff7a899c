"""Metrics by name. A module is imported only when one of its metrics is asked for."""

from importlib import import_module

from sandmle.errors import ConfigError
from sandmle.grading.metrics.base import Metric, MetricUndefined, Role, Truth
from sandmle.registry import names, resolve

GROUP = "sandmle.metrics"
CUSTOM = "custom"
"""The metric of a task that brings an evaluator of its own; only its grader can make it."""
_LIBRARIES = ("scipy.stats", "sklearn.metrics", "sklearn.preprocessing")
_MODULES: dict[str, tuple[str, ...]] = {
    "auc": (
        "roc_auc",
        "mean_column_roc_auc",
        "flattened_roc_auc",
        "weighted_roc_auc",
        "subgroup_auc",
        "c_index",
    ),
    "classification": ("accuracy", "error_rate", "f1", "macro_f1", "micro_f1", "qwk", "mcc"),
    "probability": ("log_loss", "weighted_log_loss", "kl_divergence", "probabilistic_f1", "lwlrap"),
    "regression": (
        "rmse",
        "mae",
        "rounded_mae",
        "masked_mae",
        "group_log_mae",
        "mcrmse",
        "mean_column_rmsle",
        "r2",
        "mape",
        "smape",
        "laplace_log_likelihood",
        "angular_error",
        "distance_percentiles",
    ),
    "correlation": ("pearson", "mean_column_spearman"),
    "ranking": ("map_at_k", "ndcg_at_k", "kendall_tau"),
    "text": ("levenshtein", "normalised_levenshtein", "word_jaccard", "span_f1"),
    "masks": ("mean_dice", "global_dice", "mask_f_beta", "mask_precision", "dice_hausdorff"),
    "boxes": ("box_map", "point_f1"),
}
_BUILTIN = {
    name: f"sandmle.grading.metrics.{module}:{name.upper()}" for module, listed in _MODULES.items() for name in listed
}


def get_metric(name: str) -> Metric:
    """Returns a metric: built in, from an entry point of the group ``sandmle.metrics``, or by dotted path.

    Raises:
        ConfigError: There is no such metric, or what the name points to is not one.
    """
    if name == CUSTOM:
        raise ConfigError("metric 'custom' is an evaluator.py of one task; open it with Grader(bundle)")
    metric = resolve("metric", name, _BUILTIN, GROUP)
    if not isinstance(metric, Metric):
        raise ConfigError(f"metric {name!r} points to a {type(metric).__name__}, not to a Metric")
    return metric


def load_libraries() -> None:
    """Imports what most metrics load at their first use, for callers that have a clock on that."""
    for name in _LIBRARIES:
        import_module(name)


def metric_names() -> tuple[str, ...]:
    """Returns the names of all metrics, built in and plugged in, sorted."""
    return names(_BUILTIN, GROUP)


__all__ = [
    "CUSTOM",
    "GROUP",
    "Metric",
    "MetricUndefined",
    "Role",
    "Truth",
    "get_metric",
    "load_libraries",
    "metric_names",
]

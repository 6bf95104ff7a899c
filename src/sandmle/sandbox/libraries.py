"""What a warm server imports: a set of libraries for each kind of work, since every fork pays for all of it."""

from sandmle.errors import unknown_name

_TABULAR = (
    "numpy",
    "pandas",
    "scipy.stats",
    "scipy.sparse",
    "scipy.optimize",
    "scipy.signal",
    "scipy.ndimage",
    "scipy.interpolate",
    "scipy.spatial.distance",
    "sklearn.base",
    "sklearn.calibration",
    "sklearn.cluster",
    "sklearn.compose",
    "sklearn.decomposition",
    "sklearn.discriminant_analysis",
    "sklearn.dummy",
    "sklearn.ensemble",
    "sklearn.feature_extraction.text",
    "sklearn.feature_selection",
    "sklearn.gaussian_process",
    "sklearn.impute",
    "sklearn.isotonic",
    "sklearn.kernel_approximation",
    "sklearn.kernel_ridge",
    "sklearn.linear_model",
    "sklearn.manifold",
    "sklearn.metrics",
    "sklearn.mixture",
    "sklearn.model_selection",
    "sklearn.multiclass",
    "sklearn.multioutput",
    "sklearn.naive_bayes",
    "sklearn.neighbors",
    "sklearn.neural_network",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "sklearn.svm",
    "sklearn.tree",
    "lightgbm",
    "xgboost",
    "PIL.Image",
    "joblib",
    "multiprocessing.pool",
    "csv",
    "glob",
    "logging",
    "itertools",
    "traceback",
)
_TORCH = (
    "torch",
    "torch.nn",
    "torch.optim",
    "torch.utils.data",
    "torchvision.transforms",
)

LIBRARIES = {
    "tabular": _TABULAR,
    "torch": (*_TABULAR, *_TORCH),
    "none": (),
}
"""Modules by the name of their set; those that are not installed are skipped."""
DEFAULT_LIBRARIES = "tabular"


def preloaded(name: str) -> tuple[str, ...]:
    """Returns the modules of a set.

    Raises:
        ConfigError: There is no such set.
    """
    if name not in LIBRARIES:
        raise unknown_name("set of libraries", name, LIBRARIES)
    return LIBRARIES[name]

import ast
from dataclasses import replace

import pytest

from sandmle.policies.scripted.explorer import possible_blocks
from sandmle.policies.scripted.profile import Form, Profile
from sandmle.policies.scripted.scripts import PIECES, unpack_script, write_script

ALLOWED = {"json", "lightgbm", "numpy", "os", "pandas", "PIL", "re", "scipy", "sklearn", "time", "warnings"}
METRICS = {
    Form.PROBABILITY: ("roc_auc", "log_loss", "probabilistic_f1", "average_precision", "brier"),
    Form.LABEL: ("accuracy", "macro_f1", "mcc", "f1", "f_half", "balanced_accuracy"),
    Form.GRADE: ("qwk",),
    Form.ANGLES: ("angular",),
    Form.CLASS_PROBABILITIES: ("log_loss", "roc_auc"),
    Form.RANKED_LABELS: ("map_at_k",),
    Form.LABEL_COLUMNS: ("roc_auc", "log_loss", "lwlrap"),
    Form.LABEL_SET: ("micro_f1",),
    Form.SHARES: ("kl_divergence",),
    Form.VALUES: ("rmse", "mae", "rmsle", "pearson", "spearman", "unheard of"),
    Form.VALUE_AND_SPREAD: ("laplace",),
}
TEMPLATES = ("look", "sample", "average", "linear", "boosted", "features", "blend")


def profile(form: Form, metric: str, n_classes: int = 2, *, rich: bool = True) -> Profile:
    predicted = ("y", "z") if form not in (Form.PROBABILITY, Form.LABEL, Form.GRADE, Form.RANKED_LABELS) else ("y",)
    more = {
        "categories": ("c", "d"),
        "dates": ("when", "then"),
        "codes": ("code",),
        "texts": ("note",),
        "images": ("image",),
        "sounds": ("sound",),
        "traces": ("trace",),
        "videos": ("film",),
        "series_files": ("series",),
        "clouds": ("points",),
        "graphs": ("graph",),
        "groups": ("c",),
        "strangers": ("owner",),
        "places": ("lat", "lon"),
        "series": (tuple(f"t_{i}" for i in range(12)),),
        "repeats": (("a1", "a2", "a3"),),
        "units": (("a1", "c"),),
        "low": 0.0,
    }
    return Profile(
        id="row",
        form=form,
        metric=metric,
        metric_name=metric,
        higher_is_better=True,
        targets=("y",) if form is Form.VALUE_AND_SPREAD else predicted,
        predicted=predicted,
        n_rows=100,
        n_classes=n_classes,
        labels_are_numbers=True,
        positive="",
        numbers=("a1", "a2", "a3", "lat", "lon") if rich else (),
        has_missing=rich,
        **(more if rich else {}),
    )


CASES = [
    (form, metric, n) for form in METRICS for metric in METRICS[form] for n in ((2, 5) if form.is_classes else (2,))
]


@pytest.mark.parametrize("rich", [True, False])
@pytest.mark.parametrize(("form", "metric", "n_classes"), CASES)
def test_every_script_is_python_with_known_libraries(form: Form, metric: str, n_classes: int, rich: bool):
    seen = profile(form, metric, n_classes, rich=rich)
    for template in TEMPLATES:
        code = write_script(
            template,
            root="input/",
            p=seen,
            blocks=possible_blocks(seen),
            native=["dates"] if rich else [],
            forgets_missing=False,
            slow_grid=template == "boosted",
            quick=False,
            careful=True,
            tuned=True,
            thrift=0.8,
            bags=2,
            k=5,
            n_folds=5,
            seed=1,
        )
        tree = ast.parse(code)
        imported = {
            alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
        } | {(node.module or "").split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert imported <= ALLOWED
        assert "private" not in code
        assert "answers.csv" not in code
        assert "\n\n\n\n" not in code
        if template != "look":
            assert 'to_csv("submission.csv"' in code


@pytest.mark.parametrize("kind", ["mask", "boxes", "order", "span", "words"])
def test_scripts_for_pieces_are_python_with_known_libraries(kind: str):
    form = {"order": Form.VALUES, "mask": Form.PROBABILITY, "span": Form.PROBABILITY}.get(
        kind, Form.CLASS_PROBABILITIES
    )
    seen = replace(profile(form, "log_loss"), pieces=kind, root=PIECES)
    for template in TEMPLATES[2:]:
        code = write_script(
            template,
            p=seen,
            blocks=possible_blocks(seen),
            native=["dates"],
            forgets_missing=False,
            slow_grid=False,
            quick=False,
            careful=True,
            tuned=template in ("boosted", "features", "blend"),
            thrift=0.8,
            bags=2,
            k=5,
            n_folds=5,
            seed=1,
        )
        ast.parse(code)
        assert 'pd.read_csv("pieces/train.csv"' in code
        assert code.count('to_csv("submission.csv"') == 1
    ast.parse(unpack_script(kind, 4))

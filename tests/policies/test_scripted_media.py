"""The engineers read every kind of media file, and the explorer makes features of it."""

import io
from pathlib import Path

import pandas as pd
import pytest

from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.policies.scripted.brief import read_brief
from sandmle.policies.scripted.explorer import possible_blocks
from sandmle.policies.scripted.profile import Profile, read_profile
from sandmle.policies.scripted.scripts import write_script
from sandmle.seeds import load_seed
from tests.policies.workbench import execute

N_TEST = 60


def profile_of(folder: Path, seed: str, rng_seed: int) -> Profile:
    """Draws a task, keeps a few test rows, and lets an engineer look at it."""
    author = ProceduralAuthor()
    draw = author.draw(load_seed(seed), rng_seed)
    for path, data in author.regenerate(load_seed(seed), rng_seed).items():
        if path.startswith("public/"):
            file = folder / "input" / path.removeprefix("public/")
            file.parent.mkdir(parents=True, exist_ok=True)
            if path.endswith(("test.csv", "sample_submission.csv")):
                data = pd.read_csv(io.BytesIO(data), dtype=str)[:N_TEST].to_csv(index=False).encode()
            file.write_bytes(data)
    done, output = execute(write_script("look", root="input/"), folder)
    assert done, output
    way = "higher" if draw.plan.direction.value == "maximize" else "lower"
    profile = read_profile(output, read_brief(f"Metric: {draw.plan.metric} ({way} is better)"))
    assert profile is not None
    return profile


@pytest.mark.parametrize(
    ("seed", "rng_seed", "kinds"),
    [
        ("tensorflow-speech-recognition-challenge", 0, ("sounds",)),
        ("champs-scalar-coupling", 0, ("graphs",)),
        ("icecube-neutrinos-in-deep-ice", 0, ("clouds", "codes")),
        ("nfl-player-contact-detection", 0, ("videos",)),
        ("predict-volcanic-eruptions-ingv-oe", 4, ("series_files",)),
    ],
)
def test_every_medium_is_read_and_made_features_of(
    tmp_path: Path, seed: str, rng_seed: int, kinds: tuple[str, ...]
) -> None:
    profile = profile_of(tmp_path, seed, rng_seed)
    for kind in kinds:
        assert getattr(profile, kind), (kind, profile)
    blocks = possible_blocks(profile)
    settings = {"p": profile, "k": 5, "n_folds": 3, "seed": 1, "quick": True, "tuned": True}
    for template, more in (
        ("linear", {"forgets_missing": False, "careful": False}),
        ("features", {"blocks": blocks, "native": [], "careful": True, "bags": 1, "thrift": 0.8, "slow_grid": False}),
    ):
        done, output = execute(write_script(template, **settings, **more), tmp_path)
        assert done, output[-1500:]
        assert len(pd.read_csv(tmp_path / "submission.csv")) == N_TEST

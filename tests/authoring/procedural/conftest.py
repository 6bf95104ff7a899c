import pytest

from sandmle.authoring.procedural.author import ProceduralAuthor
from sandmle.seeds import load_seed
from sandmle.tasks.bundle import BundleDraft

# Cheap seeds that cover tables, texts, traces, pictures, groups, graphs and pieces.
SEEDS = (
    "spaceship-titanic",
    "us-patent-phrase-to-phrase-matching",
    "predict-volcanic-eruptions-ingv-oe",
    "plant-pathology-2021-fgvc8",
    "nfl-player-contact-detection",
    "champs-scalar-coupling",
    "AI4Code",
)


@pytest.fixture(scope="session")
def drafts() -> dict[str, BundleDraft]:
    """One whole task of each of a few seeds."""
    author = ProceduralAuthor()
    return {seed: author.propose(load_seed(seed), 11) for seed in SEEDS}

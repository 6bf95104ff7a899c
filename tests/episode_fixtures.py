"""Fixtures for tests of episodes: a task with the oracle among its inputs, its grader, a sandbox without code."""

from pathlib import Path

import pytest

from sandmle.errors import SandboxUnavailableError
from sandmle.grading import Grader
from sandmle.sandbox import open_backend
from sandmle.tasks import Bundle
from tests.bundles import draft, saved, with_file
from tests.env.fakes import FakeSandbox


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder: Path = tmp_path_factory.mktemp("tasks")
    made = draft("binary", n_private=1000)
    # The oracle's predictions lie among the inputs, so that a test can hand them in.
    return saved(with_file(made, "public/oracle.csv", made.files["private/oracle.csv"]), folder)


@pytest.fixture(scope="session")
def grader(bundle: Bundle) -> Grader:
    return Grader(bundle)


@pytest.fixture
def sandbox() -> FakeSandbox:
    return FakeSandbox()


@pytest.fixture(scope="session")
def needs_sandbox() -> None:
    """Skips the test where this machine cannot isolate code."""
    try:
        open_backend("forkserver", workers=1).close()
    except SandboxUnavailableError as error:
        pytest.skip(f"no sandbox on this machine: {error}")

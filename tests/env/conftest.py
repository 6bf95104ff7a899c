from tests.episode_fixtures import bundle, grader, sandbox  # noqa: F401

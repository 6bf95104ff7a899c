from tests.episode_fixtures import bundle, grader, needs_sandbox, sandbox  # noqa: F401

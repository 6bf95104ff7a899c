from tests.episode_fixtures import needs_sandbox  # noqa: F401

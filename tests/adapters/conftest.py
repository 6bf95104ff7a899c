from tests.episode_fixtures import bundle, grader, needs_sandbox, sandbox

__all__ = ["bundle", "grader", "needs_sandbox", "sandbox"]

import pytest

pytest.register_assert_rewrite("sandmle.sandbox.testing")

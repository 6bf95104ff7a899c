"""The tests that every sandbox backend must pass; needs pytest.

Subclass :class:`SandboxContract` in a test module and give it a fixture ``sandbox`` that returns a started sandbox with
at least two workers::

    @pytest.fixture(scope="module")
    def sandbox():
        with MySandbox(workers=8) as sandbox:
            yield sandbox

    class TestMine(SandboxContract):
        pass

A test that needs a capability which the backend does not declare is skipped with that reason. Ids in the names of tests
are those of publicly reported failures (``s08``) and of attacks (``a19``).

The tests attack: run them on a backend that may not hold in a throw-away machine or container, never as root on yours.
"""

from sandmle.sandbox.testing.confinement import ConfinementTests
from sandmle.sandbox.testing.contract import ContractTests
from sandmle.sandbox.testing.handover import HandoverTests
from sandmle.sandbox.testing.lifetime import LifetimeTests
from sandmle.sandbox.testing.resources import ResourceTests

__all__ = ["SandboxContract"]


class SandboxContract(ContractTests, ConfinementTests, HandoverTests, ResourceTests, LifetimeTests):
    """All tests of the contract."""

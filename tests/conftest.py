"""Shared fixtures. Tests mirror the package: tests/<package>/test_<module>.py."""

import ipaddress
import socket
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network is off in tests: only this machine's own addresses can be reached."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = address[0]
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                raise AssertionError(f"a test tried to reach {host}; tests may use loopback only")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)

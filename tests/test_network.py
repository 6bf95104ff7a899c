import socket

import pytest


def test_tests_cannot_reach_the_network():
    with socket.socket() as client, pytest.raises(AssertionError, match="loopback only"):
        client.connect(("192.0.2.1", 80))

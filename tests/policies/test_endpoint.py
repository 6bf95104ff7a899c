"""The HTTP of all models behind an address: what the environment, a server and a user may get wrong."""

from pathlib import Path

import pytest

from sandmle.errors import ConfigError
from sandmle.policies.endpoint import NO_KEY, Endpoint
from sandmle.policies.replies import Fault
from tests.policies.server import Server, fails, in_turn, says

pytest.importorskip("aiohttp")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def post(url: str, key: str = NO_KEY) -> str | Fault:
    endpoint = Endpoint(url, key)
    try:
        return await endpoint.post("chat/completions", {"model": "m"}, timeout_s=5.0)
    finally:
        await endpoint.aclose()
        await endpoint.aclose()


async def test_a_netrc_takes_no_key_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with Server(in_turn(says("fine"))).running() as server:
        assert "fine" in str(await post(server.url, "sk-mine"))
    assert server.seen[0].headers["authorization"] == "Bearer sk-mine"


@pytest.mark.parametrize("name", ["http_proxy", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_asked_with_or_without_a_scheme(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with Server(in_turn(says("by proxy"))).running() as proxy:
        monkeypatch.setenv(name, proxy.url.removeprefix("http://").removesuffix("/v1"))
        assert "by proxy" in str(await post("http://model.invalid/v1"))
        monkeypatch.setenv("no_proxy", "model.invalid")
        away = await post("http://model.invalid/v1")
        assert isinstance(away, Fault)
        assert away.may_pass


@pytest.mark.parametrize(
    ("url", "key", "words"),
    [
        ("http://me:sesame@localhost:1/v1", NO_KEY, "give the bare address"),
        ("http://localhost:1/v1?x=y", NO_KEY, "give the bare address"),
        ("http://localhost:1/v1#part", NO_KEY, "give the bare address"),
        ("http://a..b/v1", NO_KEY, "is no address"),
        ("http://localhost:1/v1", "two\nlines", "control character"),
    ],
)
def test_what_cannot_be_used_is_said_before_anybody_is_asked(url: str, key: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        Endpoint(url, key)
    assert "sesame" not in str(caught.value)


def test_a_proxy_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://localhost:1")
    with pytest.raises(ConfigError, match="socks5 proxy"):
        Endpoint("http://model.invalid/v1", NO_KEY)


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_key_that_the_server_sends_back_is_not_shown(status: int) -> None:
    with Server(in_turn(fails(status, "no: Bearer sk-secret"))).running() as server:
        fault = await post(server.url, "sk-secret")
    assert isinstance(fault, Fault)
    assert fault.status == status
    assert "***" in fault.message
    assert "sk-secret" not in fault.message

"""An OpenAI-compatible server over HTTP: one request, its text or what went wrong. ``aiohttp`` does the HTTP.

The providers' own client libraries build and check every message of a request anew, and take longer over a long
conversation than everything else that is done with it. Ours are plain JSON already, and replies are read with distrust
anyway (:mod:`sandmle.policies.replies`). When and how often to try again is the caller's to decide, so that waits are
bounded, seen and counted.
"""

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from sandmle.errors import ConfigError
from sandmle.policies.options import PolicyOptions
from sandmle.policies.replies import Fault, fault_of_status
from sandmle.policies.retry import retry_after_s

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_KEY_ENV = "OPENAI_API_KEY"
NO_KEY = "no-key-needed"
"""Sent where no key is needed, as some servers want any."""
_MOST_BYTES = 64 << 20
"""A longer reply is no reply of a model."""
_CHUNK_BYTES = 1 << 16


class Endpoint:
    """A server by its address. Used from one event loop."""

    def __init__(self, base_url: str, key: str, *, wall_clock: Callable[[], float] = time.time) -> None:
        """Opens no connection yet.

        Args:
            base_url: Address with its ``/v1``.
            key: Sent with every request.
            wall_clock: Seconds since the epoch, to read dates in headers.

        Raises:
            ConfigError: Address, key or proxy cannot be used, or ``aiohttp`` is missing.
        """
        _check_address(base_url)
        try:
            import aiohttp  # noqa: F401  (is the extra installed?)
        except ImportError as error:
            raise ConfigError(
                "models behind an address need the aiohttp package; run: pip install 'sandmle[llm]'"
            ) from error
        if any(ord(letter) < 32 or ord(letter) == 127 for letter in key):
            raise ConfigError("the API key holds a line break or another control character; set it anew")
        self.base_url = base_url.rstrip("/")
        self._proxy = _proxy_of(base_url)
        self._key, self._wall_clock = key, wall_clock
        self._session: ClientSession | None = None

    async def post(self, path: str, body: Mapping[str, Any], timeout_s: float) -> str | Fault:
        """Sends one request.

        Args:
            path: Below the address, like ``chat/completions``.
            body: Plain JSON.
            timeout_s: Seconds until the whole reply must be there.

        Returns:
            The text of a successful reply, or why there is none.
        """
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0)  # how many at once is the caller's to decide
            # Not what ~/.netrc says: the key that was given is the one that counts.
            self._session = aiohttp.ClientSession(connector=connector, trust_env=False)
        try:
            async with self._session.post(
                f"{self.base_url}/{path}",
                data=json.dumps(body).encode(),
                headers={"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                proxy=self._proxy,
            ) as response:
                text = await _text_of(response)
        except TimeoutError:
            return Fault(f"no reply within {timeout_s:g} s", may_pass=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            return self._without_key(Fault(f"no connection to {self.base_url}: {reason}", may_pass=True))
        if text is None:
            return Fault(
                f"the server sent more than {_MOST_BYTES >> 20} MiB, which is no reply of a model", may_pass=True
            )
        if 200 <= response.status < 300:
            return text
        headers = {name.lower(): value for name, value in response.headers.items()}
        asked_s = retry_after_s(headers, self._wall_clock())
        return self._without_key(fault_of_status(response.status, text, asked_s))

    def _without_key(self, fault: Fault) -> Fault:
        """Returns a fault whose message does not hold the key: servers send back what they were sent."""
        return fault if self._key == NO_KEY else replace(fault, message=fault.message.replace(self._key, "***"))

    async def aclose(self) -> None:
        """Closes the connections. Idempotent."""
        if self._session is not None:
            await self._session.close()
            self._session = None


async def _text_of(response: "ClientResponse") -> str | None:
    """Returns the body, or None where it is longer than any reply."""
    chunks, size = [], 0
    async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
        size += len(chunk)
        if size > _MOST_BYTES:
            response.close()
            return None
        chunks.append(chunk)
    return b"".join(chunks).decode("utf-8", "replace")


def _check_address(base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        # A port out of range and a name that is none are ValueErrors.
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        has_more = bool(parts.query or parts.fragment or parts.username or parts.password)
        (parts.hostname or "").encode("idna")
    except ValueError:
        is_one = has_more = False
    if has_more:
        raise ConfigError(
            "base_url holds a name, a key or a query; give the bare address, and the key by --api-key-env"
        )
    if not is_one or any(letter.isspace() for letter in base_url):
        raise ConfigError(f"base_url {base_url!r} is no address; write it like http://localhost:8000/v1")


def _proxy_of(base_url: str) -> str | None:
    """Returns the proxy that the environment names for an address.

    Raises:
        ConfigError: It is none that can be used.
    """
    parts = urlsplit(base_url)
    if proxy_bypass(parts.netloc):
        return None
    found = getproxies()
    proxy = found.get(parts.scheme) or found.get("all")
    if not proxy:
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        kind = proxy.partition("://")[0]
        raise ConfigError(f"the environment names a {kind} proxy, which is not spoken here; name an http proxy instead")
    return proxy


def read_key(options: PolicyOptions) -> str:
    """Returns the key from the environment; none is sent to another server than OpenAI's unless it is named.

    Raises:
        ConfigError: The variable holds none.
    """
    name = options.api_key_env or (DEFAULT_KEY_ENV if options.base_url is None else None)
    if name is None:
        return NO_KEY
    key = os.environ.get(name, "").strip()
    if not key:
        raise ConfigError(
            f"the environment variable {name} holds no API key; set it, or give a base_url that needs none"
        )
    return key

import pytest

from sandmle.errors import ConfigError
from sandmle.policies import open_policy


@pytest.mark.parametrize(
    "address",
    [
        "localhost:8000",
        "http://",
        "http://[::1",
        "http://[::g]/v1",
        "http://host:port/v1",
        "http://h:99999999/v1",
        "http://a\nb",
    ],
)
def test_an_address_that_is_none_is_one_sentence(address: str) -> None:
    with pytest.raises(ConfigError, match="is no address") as caught:
        open_policy("chat:m", base_url=address)
    assert repr(address) in str(caught.value)


@pytest.mark.parametrize("address", ["http://[::1]:8000/v1", "https://example.org/v1", "http://127.0.0.1:1"])
def test_addresses_are_taken(address: str) -> None:
    assert open_policy("chat:m", base_url=address).name == "chat:m"

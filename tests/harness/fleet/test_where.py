"""The address after `--on`: bad input is refused with a remedy."""

import pytest

from zoomgrad.harness.fleet.where import checked
from zoomgrad.results.files import Unreadable


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:8786", "tls://here:8786", "tcp://[::1]:8786"])
def test_addresses(text):
    assert checked(text) == text


@pytest.mark.parametrize(
    "text",
    [*("", "local:2", "tcp://", "tcp://here", "tcp://127.0.0.1:999999", "ssh:hosts.txt", "http://x:1", "tls://x")],
)
def test_other_texts_are_refused_with_a_remedy(text):
    with pytest.raises(Unreadable, match=r"\n  \S"):
        checked(text)


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "0.0.0.0", "example.org", "127.0.0.1.example.org", "[::]", "localhost.evil"]
)
def test_plain_tcp_stays_on_this_machine(host):
    with pytest.raises(Unreadable, match="without TLS"):
        checked(f"tcp://{host}:8786")

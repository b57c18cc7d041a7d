"""Downloads from mirrors on this machine; each mirror sends the files that its test gave it."""

import contextlib
import gzip
import http.server
import itertools
import socket
import threading

import pytest

from tests.datasets.encoding import encode_labels
from zoomgrad.datasets import Unavailable, fetch, idx, mnist

pytest.importorskip("pooch", reason="only the harness downloads, and its environment has pooch")


@pytest.fixture
def serve():
    """`serve(contents)` starts a mirror that sends only these parts of bytes by path, and returns its address."""
    servers, requests = [], []

    def start(contents):
        class Mirror(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                requests.append(self.path)
                self.send_response(200 if self.path in contents else 404)
                self.end_headers()
                with contextlib.suppress(OSError):
                    for part in contents.get(self.path, ()):
                        self.wfile.write(part)

            def log_message(self, *arguments): ...

        servers.append(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror))
        threading.Thread(target=servers[-1].serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}/"

    start.requests = requests
    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def packed(contents):
    return {f"/{name}.gz": [gzip.compress(content)] for name, content in contents.items()}


@pytest.fixture
def closed():
    """An address that refuses connections: its socket is bound, which reserves the port, but does not listen."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


def host(mirror):
    return mirror.split("/")[2]


def test_fetches_all_four_into_the_cache_from_the_first_mirror_that_has_them(small, serve, closed):
    wrong = {name: encode_labels(b"\x01") for name in small.contents}
    fetch.fetch_mnist([closed, serve({}), serve(packed(wrong)), serve(packed(small.contents))])
    assert small.cached() == sorted(file.cached_name for file in mnist.TRAIN + mnist.TEST)
    assert bytes(mnist.load().features) == bytes(range(12))


def test_files_that_are_here_are_not_downloaded(small, serve, monkeypatch):
    mirror = serve(packed(small.contents))
    small.give()
    (small.folder / "t10k-labels-idx1-ubyte.gz").unlink()
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    fetch.fetch_mnist([mirror])
    fetch.fetch_mnist([mirror])
    assert serve.requests == ["/t10k-labels-idx1-ubyte.gz"]


def test_the_error_lists_every_mirrors_failure(small, serve, closed):
    empty = serve({})
    short = serve(packed({name: content[:-1] for name, content in small.contents.items()}))
    with pytest.raises(Unavailable) as caught:
        fetch.fetch_mnist([closed, empty, short])
    assert str(caught.value) == (
        f"mnist: no mirror sent train-images-idx3-ubyte.gz ({host(closed)}: ConnectionError; {host(empty)}: HTTPError; "
        f"{host(short)}: mnist: train-images-idx3-ubyte.gz holds 27 bytes instead of 28)\n"
        "  Try again with a network connection, or point ZOOMGRAD_DATA at a folder with the four files."
    )
    assert small.cached() == []


def test_a_wrong_file_of_the_users_is_not_replaced_by_a_download(small, serve, monkeypatch):
    small.give()
    (small.folder / "train-labels-idx1-ubyte.gz").write_bytes(b"")
    monkeypatch.setenv("ZOOMGRAD_DATA", str(small.folder))
    with pytest.raises(idx.CorruptData, match=r"train-labels-idx1-ubyte\.gz holds 0 bytes instead of 11"):
        fetch.fetch_mnist([serve(packed(small.contents))])
    assert serve.requests == []


def test_a_mirror_that_sends_without_end_is_abandoned(small, serve):
    endless = {f"/{name}.gz": itertools.repeat(bytes(1 << 16)) for name in small.contents}
    with pytest.raises(Unavailable, match="sent more bytes than the file has"):
        fetch.fetch_mnist([serve(endless)])

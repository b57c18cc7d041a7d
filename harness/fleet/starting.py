"""A place -> a cluster of it: start a scheduler and workers, or connect to those that are there.

What zoomgrad starts uses TLS with a key made for this run, which reaches the workers through their standard input. The
workers end when their input does, so none survives the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster, Security
from distributed.utils import get_ip

from harness.fleet.carrier import clean_environment
from harness.fleet.cluster import FleetLost, NotStarted
from harness.fleet.dask_cluster import DaskCluster
from harness.fleet.quiet import be_quiet
from harness.fleet.scheduler import security
from harness.fleet.where import BadPlace, SshHost, Where, ssh_hosts
from results.printable import printable

CONNECTING_SECONDS = 10
SAID_CHARACTERS = 4000
ENDING_SECONDS = 5
PATIENCE_SECONDS = {"local": 30.0, "tcp": 60.0, "tls": 60.0, "ssh": 60.0, "slurm": 7 * 86400.0}
"""How long to wait for a host while there is none. A queue may take days."""


@contextlib.contextmanager
def started(where: Where) -> Iterator[DaskCluster]:
    """Yield the cluster at that place; what was started ends with the block. Raises FleetLost and BadPlace."""
    be_quiet()
    with contextlib.ExitStack() as stack:
        if where.kind in ("tcp", "tls"):
            client = _connect(where.address, security(where.address))
        elif where.kind == "slurm":
            client = Client(stack.enter_context(_slurm(where)))
        else:
            hosts = ssh_hosts(Path(where.address)) if where.kind == "ssh" else []
            secret = Security.temporary()
            ours = "127.0.0.1" if not hosts else get_ip(hosts[0].host)
            scheduler = stack.enter_context(
                LocalCluster(
                    n_workers=0, processes=False, host=ours, protocol="tls://", security=secret, dashboard_address=None
                )
            )
            client = Client(scheduler, timeout=CONNECTING_SECONDS)
            cluster = DaskCluster(client)
            start = stack.enter_context(_over_ssh(cluster.tell)) if hosts else stack.enter_context(_processes())
            stack.enter_context(client)
            failed = []
            for number in range(len(hosts) or where.count):
                told = _told(scheduler.scheduler_address, "" if hosts else f"slot-{number + 1}", secret)
                if problem := start(hosts[number] if hosts else None, told):
                    cluster.tell(problem)
                    failed.append(problem)
            if failed and len(failed) == len(hosts):
                raise BadPlace(f"{failed[0].worker}: {failed[0].reason}")
            yield cluster
            return
        stack.enter_context(client)
        yield DaskCluster(client)


def _connect(address: str, secret: Security | None) -> Client:
    try:
        return Client(address, security=secret, timeout=CONNECTING_SECONDS)
    except (OSError, TimeoutError) as error:
        raise FleetLost(
            f"no scheduler answers at {address} ({error})\n"
            f"  Start one there: python -m harness.fleet.scheduler {address}"
        ) from error


def _told(address: str, slot: str, secret: Security) -> str:
    """The line that a worker reads first."""
    tls = {
        "tls_ca_file": secret.tls_ca_file,
        "tls_worker_cert": secret.tls_worker_cert,
        "tls_worker_key": secret.tls_worker_key,
    }
    return json.dumps({"address": address, "slot": slot, "tls": tls}) + "\n"


@contextlib.contextmanager
def _processes() -> Iterator[Any]:
    """Yield a function that starts a worker on this machine."""
    started: list[subprocess.Popen[str]] = []

    def start(_: None, told: str) -> None:
        command = [sys.executable, "-m", "harness.fleet.worker"]
        process = subprocess.Popen(  # noqa: S603  (a list of arguments)
            command,
            env=clean_environment(),
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        assert process.stdin
        process.stdin.write(told)
        process.stdin.flush()

    try:
        yield start
    finally:
        for process in started:
            assert process.stdin
            with contextlib.suppress(OSError):
                process.stdin.close()
        for process in started:
            try:
                process.wait(ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def _over_ssh(tell: Callable[[NotStarted], None]) -> Iterator[Any]:
    """Yield a function that starts a worker on another machine, or returns why it can't. It uses the user's ssh keys.

    tell: receives what a worker said last if it ends before the others do.
    """
    import asyncssh

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    connections: list[Any] = []
    watching: list[asyncio.Task[None]] = []

    async def watch(host: SshHost, process: Any) -> None:
        said = ""
        try:
            while more := await process.stderr.read(SAID_CHARACTERS):
                said = (said + more)[-SAID_CHARACTERS:]
            await process.wait_closed()
        except (OSError, asyncssh.Error) as error:
            said = said or f"the connection broke: {error}"
        tell(NotStarted(host.host, _why_ended(host, said, process.exit_status)))

    async def open_one(host: SshHost, told: str) -> None:
        options = {"username": host.user} if host.user else {}
        connection = await asyncssh.connect(host.host, host.port, connect_timeout=CONNECTING_SECONDS, **options)
        connections.append(connection)
        process = await asyncio.wait_for(
            connection.create_process(ssh_command(host), stdout=asyncssh.DEVNULL, errors="replace"),
            CONNECTING_SECONDS,
        )
        process.stdin.write(told)
        watching.append(asyncio.ensure_future(watch(host, process)))

    def start(host: SshHost, told: str) -> NotStarted | None:
        try:
            asyncio.run_coroutine_threadsafe(open_one(host, told), loop).result()
        except (OSError, UnicodeError, asyncssh.Error, TimeoutError) as error:
            reason = f"can't start a worker by ssh: {printable(str(error)) or 'no answer'}"
            return NotStarted(host.host, f"{reason}\n  Try `{_ssh(host)} true`, or leave the host out of the file.")
        return None

    async def close() -> None:
        for task in watching:
            task.cancel()
        for connection in connections:
            connection.close()
        for connection in connections:
            await connection.wait_closed()

    try:
        yield start
    finally:
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(close(), loop).result(ENDING_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(ENDING_SECONDS)


def ssh_command(host: SshHost) -> str:
    """The command that a host's shell runs."""
    there = f"cd {_quoted(host.folder)} && " if host.folder else ""
    return f"{there}exec {_quoted(host.python)} -m harness.fleet.worker"


def _quoted(path: str) -> str:
    """The path quoted for a shell, which still puts a home folder for `~/`, the only thing it may do."""
    home, slash, rest = path.partition("/")
    return f"~/{shlex.quote(rest) if rest else ''}" if (home, slash) == ("~", "/") else shlex.quote(path)


def _ssh(host: SshHost) -> str:
    return f"ssh -p {host.port} {f'{host.user}@' if host.user else ''}{host.host}"


def _why_ended(host: SshHost, said: str, code: int | None) -> str:
    """Why a worker on a host has ended, and the command that shows more."""
    last = next((line for line in reversed(said.splitlines()) if line.strip()), f"it ended with code {code}")
    there = shlex.quote(f"{ssh_command(host)} --help")
    return f"its worker has ended: {printable(last.strip())[-300:]}\n  Try: {_ssh(host)} {there}"


@contextlib.contextmanager
def _slurm(where: Where) -> Iterator[Any]:
    """Yield a cluster that has submitted one job per host."""
    if not shutil.which("sbatch"):
        raise BadPlace("sbatch: no such command\n  Run this where SLURM's commands are.")
    folder = Path.home() / ".zoomgrad-fleet"  # on every node: SLURM's nodes share the home folder
    folder.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as secrets, slurm_cluster(where, secrets) as cluster:
        cluster.scale(jobs=where.count)
        yield cluster


def slurm_cluster(where: Where, secrets: str, **options: Any) -> Any:
    """The cluster whose jobs are hosts of their own: a whole node each, without a nanny."""
    from dask_jobqueue import SLURMCluster

    settings: dict[str, Any] = {
        "queue": where.address,
        "cores": 1,
        "processes": 1,
        "memory": "4GiB",
        "job_mem": "0",  # all of the node's
        "job_extra_directives": ["--exclusive"],
        "walltime": "24:00:00",
        "python": sys.executable,
        "worker_command": "harness.fleet.worker",
        "job_script_prologue": [f"cd {shlex.quote(os.getcwd())}"],  # noqa: PTH109
        "death_timeout": 300,
        "local_directory": None,
        "interface": None,
        "protocol": "tls://",
        "security": Security.temporary(),
        "shared_temp_directory": secrets,
        "scheduler_options": {"dashboard_address": None},
    }
    return SLURMCluster(**{**settings, **options})

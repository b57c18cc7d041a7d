"""A real fleet on this machine: TLS, SSH, SLURM's job scripts, SIGKILL, and the records that come home."""

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("asyncssh", reason="the extra `fleet` is not installed")
pytest.importorskip("distributed", reason="the extra `fleet` is not installed")

import asyncssh
import distributed
import typer
from rich.console import Console

import engines
from harness import workloads
from harness.cli.fleet import FleetProgress, _only_client
from harness.fleet import starting
from harness.fleet.carrier import carry, clean_environment
from harness.fleet.cluster import Joined, Left, NotStarted, Said
from harness.fleet.quiet import be_quiet
from harness.fleet.where import Where, parse
from harness.worker.proof import digest
from results.fleet.home import Home
from results.record import HostFacts
from results.store import Store
from tests.harness.fleet import kills
from tests.harness.runs import run

ROOT = Path(__file__).parents[3]
FOREIGN = {"MALLOC_TRIM_THRESHOLD_": "65536", "MKL_NUM_THREADS": "7", "OMP_NUM_THREADS": "7", "DASK_X": "1"}
"""Variables like those that dask's nanny exports."""


def test_a_task_over_tls_and_sigkill_of_its_worker(secret, start, port):
    """Nobody without the secret gets in. The client hears of a killed worker, and the next one answers."""
    address = f"tls://127.0.0.1:{port}"
    start("harness.fleet.scheduler", address)
    first = start("harness.fleet.worker", address)
    _wait_for(lambda: "Registered to" in first.log.read_text(), first)
    for there, security in (f"tcp://127.0.0.1:{port}", None), (address, distributed.Security.temporary()):
        with pytest.raises(OSError):
            distributed.Client(there, security=security, timeout=2)
    forget = _request().replace("describe", "forget")
    with starting.started(parse(address)) as cluster:
        (worker,) = (event.worker for event in _events_until(cluster, Joined) if isinstance(event, Joined))
        cluster.start("killed", worker, forget)
        first.kill()
        assert Left(worker) in _events_until(cluster, Left)
        start("harness.fleet.worker", address)
        (worker,) = (event.worker for event in _events_until(cluster, Joined) if isinstance(event, Joined))
        cluster.start("answered", worker, forget)
        events = _events_until(cluster, Said)
    assert [json.loads(event.line) for event in events if isinstance(event, Said)] == [{"done": True}]


def _events_until(cluster, kind, seconds=60):
    until, found = time.monotonic() + seconds, []
    while not any(isinstance(event, kind) for event in found):
        assert time.monotonic() < until, found
        found += cluster.wait(1.0)
    return found


@pytest.mark.exhaustive
@pytest.mark.alone
def test_a_run_over_tls_survives_sigkill_and_has_the_references_bits(tmp_path, monkeypatch, secret, start, port):
    """One worker is killed while it measures. The run continues, and nobody without the secret gets in."""
    monkeypatch.setenv("ZOOMGRAD_RUNS", str(tmp_path / "runs"))
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    address = f"tls://127.0.0.1:{port}"
    start("harness.fleet.scheduler", address)
    first = start("harness.fleet.worker", address)
    chosen = ["--engines", "baseline,tuple", "--workloads", "xor", "--interpreters", "cpython-3.13", "--blocks", "2"]
    client = start("harness", "run", "--preset", "smoke", *chosen, "--on", address)
    _wait_for(lambda: "block 1: measured" in client.log.read_text(), client)
    first.kill()
    first.wait()
    start("harness.fleet.worker", address)
    with pytest.raises(OSError):
        distributed.Client(f"tcp://127.0.0.1:{port}", timeout=2)
    other = distributed.Security.temporary()
    with pytest.raises(OSError):
        distributed.Client(address, security=other, timeout=2)
    assert client.wait(100) == 0, client.log.read_text()
    (folder,) = (tmp_path / "runs").iterdir()
    store = Store(folder)
    records = store.records()
    assert sorted((record.cell.engine, record.block) for record in records) == [
        *(("baseline", 0), ("baseline", 1), ("tuple", 0), ("tuple", 1))
    ]
    assert {record.host for record in records} == {"host-1"}
    assert not Home(store).partial()
    assert set(store.run.hosts) == {"host-1"}
    assert not store.run.hosts["host-1"].shared
    for record in records:
        if record.cell.engine == "tuple":
            assert record.proof.identical
            assert record.parameters_sha256 == _digest(record.stretch_steps)


OF_A_HOST = {
    "host",
    "attempt",
    "shared_host",
    "other_load",
    "started_at",
    "peak_bytes",
    "peak_compiler_bytes",
    "phases",
}
TIMES = {"worker_seconds", "step_seconds", "warmup_step_seconds", "pace_seconds", "ready_seconds", "ready_cpu_seconds"}
OF_A_STRETCH = {"stretch_steps", "steps_per_value", "parameters_sha256", "losses", "proof"}
"""Each host finds out how many steps fill a value. These fields follow from the number."""


@pytest.mark.exhaustive
@pytest.mark.alone
def test_a_fleet_has_the_same_records_as_one_machine(tmp_path, monkeypatch, start):
    """In form and in bits; only times differ, what is the host's, and what follows from the length of a stretch."""
    chosen = [
        "--engines",
        "baseline,tuple,tcc",
        "--workloads",
        "xor",
        "--interpreters",
        "cpython-3.13",
        "--blocks",
        "2",
    ]
    found = []
    for on in [], ["--on", "local:2"]:
        runs = tmp_path / f"runs-{len(on)}"
        monkeypatch.setenv("ZOOMGRAD_RUNS", str(runs))
        client = start("harness", "run", "--preset", "smoke", "--seed", "5", *chosen, *on)
        assert client.wait(100) == 0, client.log.read_text()
        (folder,) = runs.iterdir()
        found.append({(record.cell, record.block): record for record in Store(folder).records()})
    alone, fleet = found
    assert alone.keys() == fleet.keys()
    for one, other in ((alone[key], fleet[key]) for key in alone):
        differing = {name for name, value in dict(one).items() if value != getattr(other, name)}
        assert differing <= OF_A_HOST | TIMES | OF_A_STRETCH
        assert one.proof.identical is other.proof.identical
        common = {point.step: point.loss for point in one.losses}
        assert all(common.get(point.step, point.loss) == point.loss for point in other.losses)
        if one.stretch_steps == other.stretch_steps:
            assert (one.parameters_sha256, one.losses) == (other.parameters_sha256, other.losses)
    assert any(alone[key].stretch_steps == fleet[key].stretch_steps for key in alone)


def _digest(steps):
    trainer = engines.load("tuple").prepare(workloads.load("xor"))
    trainer.train(steps)
    return digest(trainer.parameters())


def _wait_for(is_so, process, seconds=90):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until and process.poll() is None, process.log.read_text()
        time.sleep(0.1)


def test_a_timing_process_sees_nothing_of_dask(tmp_path, monkeypatch):
    """What a nanny exports does not reach the host process, nor the processes that it starts."""
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    code = """if True:
        import json, os
        from harness.run.isolate import Draw, worker_environment
        print(json.dumps([dict(os.environ), worker_environment(Draw())]))
    """
    found = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    host, worker = json.loads(found.stdout)
    assert not FOREIGN.keys() & host.keys()
    # OMP_NUM_THREADS is the harness's own, as it is without a fleet.
    assert FOREIGN.keys() & worker.keys() == {"OMP_NUM_THREADS"}
    assert worker["OMP_NUM_THREADS"] == "1"
    assert not [name for name in worker if name.startswith(("DASK", "MALLOC", "MKL"))]


def test_a_host_process_ends_when_nobody_listens():
    request = '{"task": "measure"}'
    failure = carry(request, lambda line: None, lambda: True)
    assert "ended with code 1" in failure
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import harness.fleet.host as h; h.answer = lambda *_: __import__('time').sleep(60); h.main()",
        ],
        stdin=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    process.stdin.write(_request() + "\n")
    process.stdin.close()
    assert process.wait(30) == 1


def _request():
    from harness.fleet.host import Request
    from tests.harness.fleet.simulation import plan

    return Request(task="describe", run=plan(1).run).model_dump_json()


def test_an_ordinary_dask_worker_is_noisy_and_ours_is_not():
    code = "from harness.fleet.quiet import *; print(len(noise())); be_quiet(); print(noise())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    before, after = found.stdout.splitlines()
    assert int(before) > 5
    assert after == "[]"


def test_a_host_over_ssh_joins(tmp_path, monkeypatch):
    """An sshd on the loopback address, with its own keys, starts a worker, which joins by TLS."""
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    key, host_key = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(home / ".ssh" / "id_ed25519")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    known = asyncssh.import_authorized_keys(key.export_public_key().decode())
    loop, commands, served = asyncio.new_event_loop(), [], threading.Event()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def serve(process):
        commands.append(process.command)
        pipe = asyncio.subprocess.PIPE
        found = await asyncio.create_subprocess_shell(process.command, stdin=pipe, stderr=pipe)
        # Writing to a shell that has ended would break the connection.
        stdin = None if "no such folder" in process.command else found.stdin
        await process.redirect(stdin=stdin, stderr=found.stderr)
        code = await found.wait()
        await asyncio.sleep(0.5)  # for the rest of what it said
        process.exit(code)
        served.set()

    async def listen():
        return await asyncssh.listen(
            "127.0.0.1", 0, server_host_keys=[host_key], authorized_client_keys=known, process_factory=serve
        )

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
    port = server.get_port()
    public = host_key.export_public_key().decode()
    file = tmp_path / "hosts.txt"
    file.write_text(f"127.0.0.1:{port} folder={ROOT} python={sys.executable}\n")
    where = Where("ssh", str(file))
    try:
        with pytest.raises(starting.BadPlace, match="can't start a worker by ssh"), starting.started(where):
            pass  # the host's key is unknown
        (home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
        with starting.started(where) as cluster:
            _events_until(cluster, Joined)
        (command,) = commands
        assert "PRIVATE KEY" not in command
        assert served.wait(20)  # the worker has ended with the fleet
        file.write_text(f"127.0.0.1:{port} folder='{tmp_path}/no such folder' python={sys.executable}\n")
        with file.open("a") as more:
            more.write("127.0.0.1:1\n")
        with starting.started(where) as cluster:
            events = _events_until(cluster, NotStarted)
            events += _events_until(cluster, NotStarted) if len(events) < 2 else []
        # One host refuses the connection, and the fleet goes on.
        told, refused = sorted(events, key=lambda event: "can't start a worker" in event.reason)
        assert "`ssh -p 1 127.0.0.1 true`" in refused.reason
        assert told.worker == "127.0.0.1"
        problem, remedy = told.reason.splitlines()
        assert "no such folder" in problem.removeprefix("its worker has ended: ")
        assert remedy.startswith(f"  Try: ssh -p {port} 127.0.0.1 'cd ")
    finally:
        asyncio.run_coroutine_threadsafe(_stop(server), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _stop(server):
    server.close()


def test_the_job_script_of_slurm(tmp_path, golden, monkeypatch):
    be_quiet()
    monkeypatch.chdir(tmp_path)
    with starting.slurm_cluster(Where("slurm", "long", 4), str(tmp_path), python="/opt/python") as cluster:
        script = cluster.job_script()
    script = re.sub(r"tls://[\d.:]+", "tls://SCHEDULER", script.replace(str(tmp_path), "/shared"))
    golden("fleet-slurm.sh", re.sub(r"\.worker\.([a-z_]+)\.\w+", r".worker.\1.X", script))


def test_slurm_needs_sbatch(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(starting.BadPlace, match="sbatch"), starting.started(Where("slurm", "long", 1)):
        pass


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_worker_without_tls_listens_on_this_machine_only(start, port):
    address = f"tcp://127.0.0.1:{port}"
    programs = start("harness.fleet.scheduler", address), start("harness.fleet.worker", address)
    _wait_for(lambda: "Registered to" in programs[1].log.read_text(), programs[1], 30)
    listening = [found for program in programs for found in _listening(program.pid)]
    assert len(listening) >= 2
    assert {address for address, _ in listening} == {"0100007F"}


def _listening(pid):
    """(address in hexadecimal digits, inode) of every TCP socket that a process listens at."""
    own = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()}
    rows = [row.split() for file in ("tcp", "tcp6") for row in Path(f"/proc/net/{file}").read_text().splitlines()[1:]]
    return [(row[1].partition(":")[0], row[9]) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own]


def test_a_run_has_one_client(tmp_path, capsys):
    store = Store.create(run("a-run"), under=tmp_path)
    with _only_client(store), pytest.raises(typer.Exit), _only_client(store):
        pass
    assert "another client" in capsys.readouterr().err
    with _only_client(store):
        pass


def test_a_host_may_send_any_load(capsys):
    console = Console()
    machine = {"load at start": "many"}
    FleetProgress(console, 1).admitted("host-1", HostFacts(identity="x", machine=machine))
    assert "host-1 joined" in capsys.readouterr().out


@pytest.mark.exhaustive
@pytest.mark.alone
def test_twenty_kills_lose_and_double_nothing(tmp_path):
    found = kills.campaign(tmp_path, 20, seed=1)
    assert found["code"] == 0
    assert sum(found["killed"].values()) == 20
    assert not (found["missing"] or found["doubled"] or found["lost"] or found["mixed"])
    assert {record.shared_host for record in found["store"].records()} == {True}

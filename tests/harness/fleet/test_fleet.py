"""A fleet on this machine: real dask with scripted hosts, a user's scheduler over TLS, and real runs with SIGKILL."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time

import psutil
import pytest

pytest.importorskip("distributed", reason="the extra `fleet` is not installed")

import dask
import distributed
from filelock import FileLock

from tests.harness import runs
from tests.harness.processes import is_running, wait_for
from tests.harness.test_cli import RUNNING, kept_in
from tests.harness.test_schedule import Observer
from zoomgrad.harness.fleet import collecting
from zoomgrad.harness.fleet.collecting import Collector, FleetLost, HostFailed, clean_environment, connected, run_host
from zoomgrad.harness.fleet.host import Answer, unfit
from zoomgrad.harness.machine.project import code_digest
from zoomgrad.harness.plan.planning import Plan
from zoomgrad.results.record import HostFacts, Run
from zoomgrad.results.store import Store

FOREIGN = {"MALLOC_TRIM_THRESHOLD_": "65536", "MKL_NUM_THREADS": "7", "OMP_NUM_THREADS": "7", "DASK_X": "1"}
"""Variables like those that dask's nanny exports."""


# Scripted hosts


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=0, threads_per_worker=1, processes=False, protocol="inproc://", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def home(tmp_path):
    return Store.create(runs.run("a-run", blocks=4), under=tmp_path)


def answering(records=list):
    """Return a `carry` that answers soon. records: change what it measured."""

    def carry(run, block):
        time.sleep(0.2)
        worker, cells = distributed.get_worker(), Run.model_validate_json(run).cells
        facts = HostFacts(identity=str(worker.name), machine={"processor": "a"})
        measured = [runs.measured(cell.engine, block) for cell in cells]
        return Answer(facts=facts, records=tuple(records(measured))).model_dump_json()

    return carry


@pytest.fixture
def collect(cluster, home, monkeypatch):
    """`collect(carry, workers=2)`: collect the run's records from scripted hosts, and return the observer."""
    monkeypatch.setattr(collecting, "PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(collecting, "LOOKING_SECONDS", 0.1)
    watching = Observer()

    def run(carry, workers=2):
        monkeypatch.setattr(collecting, "carry", carry)
        cluster.scale(workers)
        with distributed.Client(cluster) as client:
            client.wait_for_workers(workers) if workers else None
            try:
                Collector(Plan(home.run, {}), home, client, watching).collect()
            finally:
                cluster.scale(0)
                wait_for(lambda: not cluster.scheduler.workers)
        return watching

    return run


def admit(store, **facts):
    store.write_run(store.run.model_copy(update={"hosts": {"host-1": HostFacts(**facts)}}))


def in_blocks(records, blocks):
    """Whether the records are those of all engines in these blocks, and a block's come from one host."""
    points = sorted((record.cell.engine, record.block) for record in records)
    hosts = {block: {record.host for record in records if record.block == block} for block in blocks}
    return points == sorted((engine, block) for engine in runs.STEPS for block in blocks) and all(
        len(names) == 1 for names in hosts.values()
    )


def test_every_record_comes_home_and_each_block_has_one_host(collect, home):
    watching = collect(answering())
    records = home.records()
    assert in_blocks(records, range(4))
    assert sorted(records, key=str) == sorted(watching.records, key=str)
    assert sorted(home.run.hosts) == ["host-1", "host-2"]
    assert home.run.machine == {"processor": "a"}


def test_a_resumed_run_measures_only_what_is_missing(collect, home):
    admit(home, identity="0", machine={"processor": "a"}, blocks=(1,))
    for engine in runs.STEPS:
        home.write(runs.measured(engine, 1, host="host-1"))
    assert {record.block for record in collect(answering(), workers=1).records} == {0, 2, 3}


def test_a_block_begins_again_on_another_host_if_its_host_is_lost(collect, home, tmp_path):
    """The host that begins block 0 goes away while it measures."""
    answer = answering()

    def carry(run, block):
        if block == 0 and not (tmp_path / "lost").exists():
            (tmp_path / "lost").touch()
            worker = distributed.get_worker()
            worker.loop.add_callback(worker.close, nanny=False)
            time.sleep(1.0)
        return answer(run, block)

    collect(carry, workers=3)
    assert in_blocks(home.records(), range(4))


def test_a_host_of_another_type_ends_the_run_with_the_remedy(collect, home):
    admit(home, identity="known", machine={"processor": "b"})
    with pytest.raises(FleetLost, match=r"a host differs from host-1 .*processor a\n  "):
        collect(answering(), workers=1)
    assert not home.records()


@pytest.mark.parametrize("of", ["another block", "another cell"])
def test_a_record_that_nobody_asked_for_ends_the_run_with_the_remedy(collect, home, of):
    block, other = (7, "tuple") if of == "another block" else (0, "slots")

    def records(measured):
        return [measured[0].model_copy(update={"block": block, "cell": runs.cell(other)})]

    with pytest.raises(FleetLost, match=r"nobody asked for\n  "):
        collect(answering(records=records), workers=1)
    assert not home.records()


def test_a_host_that_fails_is_tried_again_then_named(collect, tmp_path):
    log = tmp_path / "log"  # dask copies the function

    def carry(run, block):
        with log.open("a") as file:
            file.write(f"{block}")
        raise HostFailed("the host process ended with code 1: no space left")

    with pytest.raises(FleetLost, match=r"block (\d) failed: .*no space left\n  ") as lost:
        collect(carry, workers=1)
    block = int(str(lost.value).split()[1]) - 1
    assert log.read_text().count(str(block)) == 1 + collecting.MOST_RETRIES


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"code": "other"}, "its code or its lock files differ"),
        ({"code": code_digest(), "interpreters": {runs.INTERPRETER: {"version": "3.13.9"}}}, r"3.13.9, and it has no"),
        ({"code": code_digest()}, None),
    ],
)
def test_a_host_that_is_unfit_says_why_and_what_to_do(fields, reason):
    run = runs.run("a-run", **{"interpreters": {runs.INTERPRETER: {"version": ""}}, **fields})
    told = unfit(run, [])
    assert reason in told and ". On that host, " in told if reason else told == ""


def test_a_client_killed_while_it_kept_a_block_loses_none_of_it(collect, home, monkeypatch):
    write, written = Store.write, []

    def killed(store, record):
        if written:
            raise KeyboardInterrupt
        written.append(write(store, record))

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Store, "write", killed)
        collect(answering(), workers=1)
    assert len(home.records()) == 1
    collect(answering(), workers=1)
    assert in_blocks(home.records(), range(4))


def test_a_run_has_one_client(collect, home):
    with FileLock(home.folder / "client.lock"), pytest.raises(FleetLost, match="another client"):
        collect(answering(), workers=1)


# The host process


def test_a_timing_process_sees_nothing_of_dask(monkeypatch):
    """What a nanny exports does not reach the host process, nor the processes that it starts."""
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    code = """if True:
        import json, os
        from zoomgrad.harness.run.isolate import worker_environment
        print(json.dumps([dict(os.environ), worker_environment(0)]))
    """
    found = subprocess.run([sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True)
    of_host, of_worker = json.loads(found.stdout)
    assert not FOREIGN.keys() & of_host.keys()
    # OMP_NUM_THREADS is the harness's own, as it is without a fleet.
    assert FOREIGN.keys() & of_worker.keys() == {"OMP_NUM_THREADS"}
    assert of_worker["OMP_NUM_THREADS"] == "1"


def test_a_host_process_ends_when_nobody_waits(monkeypatch):
    monkeypatch.setattr(collecting, "WATCHING_SECONDS", 0.1)
    with pytest.raises(HostFailed, match="code -9"):
        run_host(runs.run("a-run").model_dump_json(), 0, lambda: False)


# A user's scheduler


@pytest.fixture
def started(tmp_path):
    """`started(*arguments)` starts Python with a log; it ends with the test."""
    found = []

    def start(*arguments, **options):
        log = tmp_path / f"log-{len(found)}.txt"
        with log.open("w") as file:
            process = subprocess.Popen([sys.executable, *arguments], stdout=file, stderr=file, **options)
        process.log = log
        found.append(process)
        return process

    yield start
    for process in found:
        process.kill()
        process.wait()


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_a_scheduler_over_tls_is_for_those_who_have_the_secret(tmp_path, started, port):
    """The file and the settings are those of docs/fleet.md."""
    made = distributed.Security.temporary()
    secret = tmp_path / "fleet.pem"
    secret.write_text(made.tls_client_key + made.tls_ca_file)
    roles = {role: {"cert": str(secret), "key": str(secret)} for role in ("scheduler", "worker", "client")}
    settings = {"distributed": {"comm": {"require-encryption": True, "tls": {"ca-file": str(secret), **roles}}}}
    (tmp_path / "fleet.yaml").write_text(json.dumps(settings))
    address = f"tls://127.0.0.1:{port}"
    configured = {"env": {**os.environ, "DASK_CONFIG": str(tmp_path / "fleet.yaml")}}
    started("-m", "dask", "scheduler", f"--host={address}", "--no-dashboard", **configured)
    started("-m", "dask", "worker", address, "--nthreads=1", "--no-nanny", "--no-dashboard", **configured)
    until = time.monotonic() + 60
    with dask.config.set(dask.config.merge(dask.config.config, settings)):
        while True:
            with contextlib.suppress(FleetLost), connected(address) as client:
                client.wait_for_workers(1, timeout=30)
                assert client.submit(sum, [1, 2]).result(timeout=30) == 3
                break
            assert time.monotonic() < until
    with pytest.raises(FleetLost, match="no scheduler answers"), connected(address):
        pass
    for there, security in (address.replace("tls", "tcp"), None), (address, distributed.Security.temporary()):
        with pytest.raises(OSError):
            distributed.Client(there, security=security, timeout=2)


# Real runs


def hosts_of(workers):
    """The host processes of these dask workers."""
    found = []
    for process in (child for worker in workers for child in psutil.Process(worker.pid).children()):
        with contextlib.suppress(psutil.Error):
            found += [process] if "zoomgrad.harness.fleet.host" in process.cmdline() else []
    return found


@pytest.mark.exhaustive
@pytest.mark.alone
@pytest.mark.parametrize("target", ["worker", "client"])
def test_a_kill_loses_nothing_and_the_run_has_the_references_bits(target, tmp_path, started, port):
    options = kept_in(tmp_path)
    options["env"].update(FOREIGN)
    address = f"tcp://127.0.0.1:{port}"
    started("-m", "dask", "scheduler", f"--host={address}", "--no-dashboard", **options)
    arguments = ("-m", "dask", "worker", address, "--nthreads=1", "--no-nanny", "--no-dashboard")
    workers = [started(*arguments, **options) for _ in range(2)]
    time.sleep(5.0)
    chosen = ["--preset", "smoke", "--engines", "baseline,tuple", "--workloads", "xor", "--interpreters", RUNNING]
    client = started("-m", "zoomgrad", "run", *chosen, "--blocks", "6", "--on", address, **options)
    wait_for(lambda: list(tmp_path.glob("runs/*/records/*.json")) or client.poll() is not None, 200)
    wait_for(lambda: hosts_of(workers), 60)
    hosts = hosts_of(workers)
    (store,) = map(Store, tmp_path.glob("runs/*"))
    before = {record.cell.key + str(record.block): record for record in store.records()}
    (hosts[0].parent() if target == "worker" else psutil.Process(client.pid)).kill()
    if target == "client":
        client.wait()
        wait_for(lambda: not any(is_running(host.pid) for host in hosts), 60)
        client = started("-m", "zoomgrad", "run", "--resume", store.run.id, "--on", address, **options)
    assert client.wait(300) == 0, client.log.read_text()
    records = store.records()
    assert "Traceback" not in client.log.read_text()
    assert sorted((record.cell.engine, record.block) for record in records) == [
        (engine, block) for engine in ("baseline", "tuple") for block in range(6)
    ]
    assert all(len({record.host for record in records if record.block == block}) == 1 for block in range(6))
    assert before.items() <= {record.cell.key + str(record.block): record for record in records}.items()
    assert all(record.proof.identical for record in records if record.cell.engine == "tuple")
    wait_for(lambda: not any(is_running(host.pid) for host in hosts))

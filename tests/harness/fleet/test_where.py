"""The text after `--on`, the shared secret and the file of hosts: bad input is refused with a remedy."""

import subprocess
import sys

import pytest

from harness.fleet.where import SECRET, BadPlace, SshHost, Where, parse, ssh_hosts


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("local:2", Where("local", count=2)),
        ("tcp://127.0.0.1:8786", Where("tcp", "tcp://127.0.0.1:8786")),
        ("tcp://[::1]:8786", Where("tcp", "tcp://[::1]:8786")),
        ("ssh:hosts.txt", Where("ssh", "hosts.txt")),
        ("slurm:long", Where("slurm", "long", 4)),
        ("slurm:long:16", Where("slurm", "long", 16)),
    ],
)
def test_places(text, where):
    assert parse(text) == where


@pytest.mark.parametrize(
    "text",
    [
        *("", "local", "local:0", "local:999", "local:-1", "tcp://", "tcp://here", "tcp://127.0.0.1:99999", "ssh:"),
        *("slurm:", "slurm:a b", "slurm:--wrap=rm", "slurm:a\n#SBATCH", "slurm:a:0", "http://x:1", "tls://x"),
    ],
)
def test_other_texts_are_refused_with_a_remedy(text):
    with pytest.raises(BadPlace, match=r"\n  \S"):
        parse(text)


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "0.0.0.0", "example.org", "127.0.0.1.example.org", "[::]", "localhost.evil"]
)
def test_plain_tcp_leaves_this_machine_only_with_insecure(host):
    with pytest.raises(BadPlace, match="--insecure"):
        parse(f"tcp://{host}:8786")
    assert parse(f"tcp://{host}:8786", insecure=True).kind == "tcp"


def test_tls_needs_a_secret_that_nobody_else_can_read(tmp_path, monkeypatch):
    monkeypatch.delenv(SECRET, raising=False)
    with pytest.raises(BadPlace, match=f"{SECRET} is not set"):
        parse("tls://here:8786")
    secret = tmp_path / "a secret"
    monkeypatch.setenv(SECRET, str(secret))
    with pytest.raises(BadPlace, match="no such file"):
        parse("tls://here:8786")
    secret.touch(0o644)
    with pytest.raises(BadPlace, match="chmod 600 '"):
        parse("tls://here:8786")
    secret.chmod(0o600)
    assert parse("tls://here:8786").kind == "tls"


@pytest.mark.parametrize("program", ["scheduler", "worker"])
def test_programs_of_a_fleet_refuse_plain_tcp_too(program):
    pytest.importorskip("distributed", reason="the extra `fleet` is not installed")
    command = [sys.executable, "-m", f"harness.fleet.{program}", "tcp://10.0.0.1:8786"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1
    assert "--insecure" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_hosts(tmp_path):
    file = tmp_path / "hosts.txt"
    file.write_text("# rack\nada@rack-1:2222 folder='a b' python=.venv/bin/python\n\n10.0.0.2 # last\n[::1]:22\n")
    assert ssh_hosts(file) == [
        SshHost("ada", "rack-1", 2222, "a b", ".venv/bin/python"),
        SshHost("", "10.0.0.2", 22, "", "python3"),
        SshHost("", "::1", 22, "", "python3"),
    ]


@pytest.mark.parametrize(
    "line",
    ["-oProxyCommand=x", "a..b", "a:65536", "a b", "a folder=", "a;b", "$(x)", "a colour=red", "a 'b", "a@b@c", ""],
)
def test_other_lines_are_refused_with_their_number(tmp_path, line):
    file = tmp_path / "hosts.txt"
    file.write_text(f"# hosts\n{line}\n")
    with pytest.raises(BadPlace, match=r"line 2|no host"):
        ssh_hosts(file)


def test_a_folder_cannot_become_a_command():
    starting = pytest.importorskip("harness.fleet.starting", reason="the extra `fleet` is not installed")
    command = starting.ssh_command(SshHost("", "a", 22, "x; touch y", "$(touch z)"))
    assert command == "cd 'x; touch y' && exec '$(touch z)' -m harness.fleet.worker"
    command = starting.ssh_command(SshHost("", "a", 22, "~/x; y", "~/$(z)"))
    assert command == "cd ~/'x; y' && exec ~/'$(z)' -m harness.fleet.worker"
    assert starting.ssh_command(SshHost("", "a", 22, "~x;y/z", "~")).startswith("cd '~x;y/z' && exec '~' ")


CODE = """if True:
    import sys
    import harness.cli.commands.run, harness.cli.commands.merge, harness.cli.measuring
    from harness.run.schedule import Schedule
    from harness.cli.fleet import place
    print(sorted({"dask", "distributed", "asyncssh", "dask_jobqueue"} & set(sys.modules)))
"""


def test_without_on_nothing_of_dask_is_imported():
    assert subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True).stdout == "[]\n"

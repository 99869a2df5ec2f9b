"""The servers of bench/find-stock: how each starts, what it needs, what `throng find` should say of it."""

import dataclasses
import pathlib
import shutil
import subprocess

import harness

FOLDER = pathlib.Path(__file__).resolve().parent
FETCHED = harness.ROOT / "target/stock"


@dataclasses.dataclass(frozen=True)
class Server:
    """One row. `programs` come from the system's packages, `fetched` from bench/stock/prepare; the rest is what is expected."""

    name: str
    port: int
    programs: tuple
    version: str  # a command of the shell that prints it
    causes: tuple  # of a limit in the JSON: any of them names it
    says: str  # the setting, for the table
    fetched: str = ""
    files: int = 0  # open files, if other than the bench's
    between_s: float = 0.01  # pause between two dials of the careful measurement

    def missing(self):
        """Why it cannot run here; empty if it can."""
        programs = [program for program in self.programs if not shutil.which(program)]
        if programs:
            return f"not installed: {' '.join(programs)}"
        fetched = FETCHED / self.fetched
        return "" if fetched.exists() else "not fetched: run bench/stock/prepare"

    def printed_version(self):
        made = subprocess.run(["sh", "-c", self.version], cwd=FETCHED, capture_output=True, text=True, timeout=60)
        lines = (made.stdout + made.stderr).strip().splitlines()
        return lines[0] if lines else "unknown"

    def start(self, files):
        """The server, once it has responded to a request."""
        # `unshare` ignores SIGTERM, which is what the harness would have the kernel send if it is killed itself.
        apart = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        words = [*apart, FOLDER / "as-installed", self.files or files, self.name]
        return Stock(words, self.port, within_s=60)


class Stock(harness.Served):
    """A server in namespaces of its own. Asked once: an idle connection of ours would take a place."""

    def get(self, path):
        try:
            return super().get(path)
        finally:
            if self.asking:
                self.asking.close()
            self.asking = None

    def stop(self, timeout_s=10):
        """Its PID namespace ends with its first process, and everything in it."""
        self.kill()


def package(name):
    return f"dpkg-query -W -f '${{Package}} ${{Version}}' {name}"


def of_npm(name):
    return f"""echo {name} $(sed -n 's/^ *"version": "\\(.*\\)",/\\1/p' {name}/node_modules/{name}/package.json) on Node.js $(node --version)"""


def of_pip(name):
    return f"python/bin/pip --disable-pip-version-check freeze | grep ^{name}="


FILES = ("open-files",)
LIMIT = ("connection-limit",)
# A server that does not accept beyond its setting: seen from outside, its accept queue fills while it is idle.
STOPS = ("connection-limit", "accept-queue")
EACH = "1,024 open files"
ALL = (
    Server("express", 3000, ("node",), of_npm("express"), FILES, EACH, fetched="express/node_modules"),
    Server("fastify", 3000, ("node",), of_npm("fastify"), FILES, EACH, fetched="fastify/node_modules"),
    Server("uvicorn", 8000, (), of_pip("uvicorn"), FILES, EACH, fetched="python/bin/uvicorn"),
    Server("go", 8080, (), "go version", FILES, EACH, fetched="go/server"),
    Server("gunicorn-sync", 8000, (), of_pip("gunicorn"), ("closed",), "Connection: close", fetched="python/bin/gunicorn"),
    # Near its setting, it closes each connection with its response; at it, it accepts none (gthread.py: `can_accept`).
    Server("gunicorn-threads", 8000, (), of_pip("gunicorn"), (*STOPS, "closed"), "worker_connections 1000", fetched="python/bin/gunicorn"),
    # Opened in a burst, one worker takes more than its share and closes idle ones: 1,240 stay, and 760 to 790 with PHP.
    Server("nginx", 80, ("nginx",), package("nginx"), LIMIT, "worker_connections 768, a 16th of them kept free, a worker per core"),
    Server("php-fpm", 80, ("nginx", "php-fpm8.2"), package("php8.2-fpm"), LIMIT, "as nginx, and one more for each request to PHP"),
    Server("apache-prefork", 80, ("apache2", "apachectl"), package("apache2"), STOPS, "MaxRequestWorkers 150"),
    Server("apache-event", 80, ("apache2", "apachectl"), package("apache2"), STOPS, "MaxRequestWorkers 150, 3 connections for each"),
    # Each of 5 threads waits 0.2 s for another request after each response: 25 requests/s.
    Server("puma", 9292, ("puma",), package("puma"), ("saturated",), "5 threads, 0.2 s for each response"),
    Server("haproxy", 80, ("haproxy", "node"), package("haproxy"), STOPS, "maxconn, from 1,024 open files"),
    Server("tomcat", 8080, ("java", "setpriv"), package("tomcat10"), FILES, EACH),
    Server("tomcat-8192", 8080, ("java", "setpriv"), package("tomcat10"), STOPS, "maxConnections 8192", files=20_000),
)

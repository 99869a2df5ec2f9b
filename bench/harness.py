"""What all measurements share: programs that never outlive us, fresh network namespaces, outside counts, results.

A measurement is an executable beside this file that calls `main` with its name and one function. It is given a
`Bench`, which takes raw rounds (`record`) and figures to judge (`compare`, `limit`, `note`).
"""

import argparse
import collections
import contextlib
import ctypes
import datetime
import fcntl
import hashlib
import http.client
import json
import math
import os
import pathlib
import platform
import re
import resource
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import termios
import time

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
QUIET = 0.05  # of all cores in use by others
CLONE_NEWNET = 0x40000000  # <linux/sched.h>
OPEN_FILES = 20_000  # what a process may open by default on the reference machine; holds must not need more
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TICKS = os.sysconf("SC_CLK_TCK")
GIB = 1 << 30


class Failed(Exception):
    """The measurement did not come to its end; the text says where, and the cure if there is one."""


# --- programs ---------------------------------------------------------------------------------------------------


class Process:
    """A program in a session of its own: what it starts is found, measured and ended with it."""

    live = []
    scratch = None

    def __init__(self, words, cpu=None, terminal=None):
        """`terminal`: a descriptor of one, for what it says to a person and hears from one."""
        self.words = [str(word) for word in words]
        self.log = tempfile.NamedTemporaryFile(dir=Process.scratch, suffix=".log", delete=False)

        def child():
            # Ends with us, even if we are killed; and the kernel, short of memory, takes it before anything else.
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
            pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
            if terminal is not None:
                fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)  # its session's own: it is in the foreground there

        self.began = time.monotonic()
        try:
            to = {"stdin": terminal or subprocess.DEVNULL, "stdout": self.log, "stderr": terminal or subprocess.STDOUT}
            self.popen = subprocess.Popen(self.words, **to, start_new_session=True, preexec_fn=child)
        except OSError as error:
            raise Failed(f"cannot start {self.words[0]}: {error.strerror.lower()}") from error
        self.pid, self.status, self.usage = self.popen.pid, None, None
        Process.live.append(self)

    def alive(self):
        """Whether it still runs; if not, `status` (negative: the signal) and `usage` are set."""
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.status = self.popen.returncode = os.waitstatus_to_exitcode(status)
                self.usage = usage
                Process.live.remove(self)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self.pid, signal.SIGKILL)  # what it left behind
        return self.status is None

    def finish(self, timeout_s):
        """Waits for its own end and returns itself."""
        if not wait_until(lambda: not self.alive(), timeout_s, 0.01):
            raise Failed(f"still running after {timeout_s:.0f} s: {' '.join(self.words)}")
        return self

    def stop(self, timeout_s=120):
        """Asks it to end, and insists after `timeout_s`: closing a million sockets takes a while."""
        if self.alive():
            os.kill(self.pid, signal.SIGINT)
            if not wait_until(lambda: not self.alive(), timeout_s, 0.01):
                self.kill()
                raise Failed(f"did not end {timeout_s} s after SIGINT: {' '.join(self.words)}")

    def kill(self):
        """Ends it and all that it started, now."""
        if self.alive():
            os.killpg(self.pid, signal.SIGKILL)
            wait_until(lambda: not self.alive(), 120, 0.01)

    def members(self):
        """The living processes of its session: their numbers, and what `stat` has behind the name."""
        found = {}
        for entry in os.listdir("/proc"):
            try:
                fields = pathlib.Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except (OSError, UnicodeDecodeError):
                continue  # no process, or one that ended just now
            if len(fields) > 12 and int(fields[3]) == self.pid:
                found[int(entry)] = fields
        return found

    def cpu_s(self):
        """Seconds of CPU so far of the living processes of its session."""
        return sum(int(fields[11]) + int(fields[12]) for fields in self.members().values()) / TICKS

    def memory_bytes(self, name):
        """`Rss` or `Pss`, in which what processes share is counted once, of all living processes of its session."""
        return sum(field_bytes(f"/proc/{pid}/smaps_rollup", name) for pid in self.members())

    def used_cpu_s(self):
        """Seconds of CPU from beginning to end, known once it has ended."""
        return self.usage.ru_utime + self.usage.ru_stime

    def rss_bytes(self):
        return field_bytes(f"/proc/{self.pid}/status", "VmRSS")

    def output(self):
        return pathlib.Path(self.log.name).read_text(errors="replace")

    def last_words(self):
        lines = [line for line in self.output().splitlines() if line.strip()]
        return lines[-1].strip() if lines else "nothing printed"


class Served(Process):
    """An HTTP server that can say how much it has served, asked on one kept connection."""

    def __init__(self, words, port, cpu=None, within_s=10, ask_at=None, secure=False):
        """`ask_at`: the port where it is asked, if that is another one; `secure`: by TLS."""
        super().__init__(words, cpu)
        self.port, self.ask_at, self.secure = port, ask_at or port, secure
        self.asked, self.asking = 0, None
        if not wait_until(self.answers, within_s, 0.02):
            raise Failed(f"no answer on port {port}: {self.last_words()}")

    def answers(self):
        if not self.alive():
            raise Failed(f"{' '.join(self.words)}: {self.last_words()}")
        try:
            return bool(self.get("/"))
        except OSError:
            return False

    def connection(self):
        if self.secure:
            anyone = ssl._create_unverified_context()  # its certificate was made at its start
            return http.client.HTTPSConnection("127.0.0.1", self.ask_at, timeout=30, context=anyone)
        return http.client.HTTPConnection("127.0.0.1", self.ask_at, timeout=30)

    def get(self, path):
        """The body of an answer; one more of `asked`."""
        try:
            self.asking = self.asking or self.connection()
            self.asking.request("GET", path)
            body = self.asking.getresponse().read().decode()
        except (OSError, http.client.HTTPException) as error:
            self.asking = None
            raise OSError(f"no answer to {path}: {error}") from error
        self.asked += 1
        return body


class Serve(Served):
    """`throng serve http` on all local addresses."""

    def __init__(self, bench, *words, cpu=None):
        port = 8000
        words = [bench.binary, "serve", "http", "--listen", f"0.0.0.0:{port}", *words]
        super().__init__(words, port, cpu, secure="--tls" in words)

    def stats(self):
        return json.loads(self.get("/stats"))

    def open(self):
        """Connections open now, without the one that asks."""
        return self.stats()["open"] - 1

    def served(self):
        """Requests of others so far."""
        return self.stats()["requests"] - self.asked


class Nginx(Served):
    """nginx that answers `Hello World!` to everything; its counts are on a port of their own."""

    def __init__(self, bench, cpu=None, listen="", more="", workers=1):
        """`listen`: further words of its `listen`: `ssl`, `http2`; `more`: further directives of its server."""
        port, counts, folder = 8001, 8002, pathlib.Path(bench.scratch)
        text = (FOLDER / "nginx.conf").read_text().replace("PORT", f"{port} {listen}").replace("COUNTS", str(counts))
        text = text.replace("# MORE", more).replace("WORKERS", str(workers))
        if "ssl" in listen:
            certificate(folder)
            text = text.replace("# TLS", f"ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;")
        (folder / "nginx.conf").write_text(text.replace("FOLDER", str(folder)))
        (folder / "tls.log").unlink(missing_ok=True)
        words = ["nginx", "-p", folder, "-c", folder / "nginx.conf", "-e", folder / "nginx.err"]
        super().__init__(words, port, cpu, ask_at=counts)
        self.folder = folder

    def counts(self):
        return [int(word) for word in re.findall(r"\d+", self.get("/status"))]

    def handshakes(self):
        """Requests by how their connections were secured, `.` or `r` (resumed), version, cipher; known once it has ended, and only
        with a log."""
        lines = (self.folder / "tls.log").read_text().splitlines()
        return collections.Counter(tuple(line.split()) for line in lines)

    def open(self):
        return self.counts()[0] - 1

    def served(self):
        return self.counts()[3] - self.asked


class Cable:
    """A namespace of the client's own, with a cable to the one we are in: 10.77.0.1 here, 10.77.0.2 there. `inside` begins a command
    that runs there."""

    host = "10.77.0.1"

    def __init__(self):
        self.holder = Process(["unshare", "--net", "sleep", "infinity"])
        own = pathlib.Path("/proc/self/ns/net").readlink()
        there = pathlib.Path(f"/proc/{self.holder.pid}/ns/net")
        if not wait_until(lambda: there.readlink() != own, 5, 0.01):
            raise Failed("no namespace for the client")
        self.inside = ["nsenter", "--net", "--target", str(self.holder.pid), "--"]
        words(f"ip link add cable type veth peer name cable netns {self.holder.pid}")
        for place, host in (([], 1), (self.inside, 2)):
            for line in ("ip link set lo up", f"ip addr add 10.77.0.{host}/24 dev cable", "ip link set cable up"):
                words(line, place)


def words(line, inside=()):
    """What a command prints; one that fails is a failure."""
    made = subprocess.run([*inside, *line.split()], capture_output=True, text=True)
    if made.returncode != 0:
        raise Failed(f"{line}: {made.stderr.strip()}")
    return made.stdout


def certificate(folder):
    """A self-signed certificate for loopback, ECDSA P-256, in `cert.pem` and `key.pem`."""
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    words += ["-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    # A client that verifies takes no authority's for a server's.
    words += ["-addext", "basicConstraints=critical,CA:FALSE"]
    made = subprocess.run(words, capture_output=True, text=True)
    if made.returncode != 0:
        raise Failed(f"openssl: {made.stderr.strip()}")


class Run(Process):
    """`throng run` with its summary."""

    verb = "run"

    def __init__(self, bench, target, *words, cpu=None, live="off", inside=()):
        """`inside`: the beginning of a command that runs it elsewhere, such as in a network namespace."""
        self.json = pathlib.Path(bench.scratch, f"summary-{time.monotonic_ns()}.json")
        super().__init__([*inside, bench.binary, self.verb, target, *words, "--live", live, "--json", self.json], cpu)

    def summary(self, timeout_s):
        """Its summary, once it has ended; an end without one is a failure."""
        self.finish(timeout_s)
        try:
            return json.loads(self.json.read_text())
        except (OSError, ValueError) as error:
            raise Failed(f"throng {self.verb} ended with {self.status}: {self.last_words()}") from error

    def passed(self, timeout_s):
        """The summary of a run that must have gone well for its figures to mean anything."""
        summary = self.summary(timeout_s)
        if self.status != 0:
            raise Failed(f"throng {self.verb} ended with {self.status}: {self.last_words()}")
        return summary


class Find(Run):
    """`throng find` with its answer."""

    verb = "find"


def compiled(bench, name):
    """The program of NAME.c beside this file."""
    program, source = pathlib.Path(bench.scratch, name), FOLDER / f"{name}.c"
    built = subprocess.run(["cc", "-O2", "-Wall", source, "-o", program], capture_output=True, text=True)
    if built.returncode:
        raise Failed(f"{source.name} does not build: {built.stderr.strip()}")
    return program


def wait_until(condition, timeout_s, every_s):
    """Whether the condition came true in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


# --- the machine ------------------------------------------------------------------------------------------------


def shrink_slabs():
    """The kernel keeps what closed sockets took, and would give it to the next ones: that would hide their cost. Needs root."""
    time.sleep(3)  # they are freed when nobody can see them any more (RCU)
    for cache in pathlib.Path("/sys/kernel/slab").glob("*/shrink"):
        try:
            cache.write_text("1")
        except OSError:
            pass


def fresh_namespace():
    """Moves us into an empty network namespace: own ports, and no TIME_WAIT of the round before."""
    if LIBC.unshare(CLONE_NEWNET):
        raise Failed(f"cannot make a network namespace: {os.strerror(ctypes.get_errno()).lower()}")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


def field_bytes(path, name):
    """A `name: N kB` line of /proc in bytes; 0 once the process is gone."""
    try:
        found = re.search(rf"^{name}:\s+(\d+) kB", pathlib.Path(path).read_text(), re.MULTILINE)
    except OSError:
        return 0
    return int(found[1]) * 1024 if found else 0


def memory_available_bytes():
    return field_bytes("/proc/meminfo", "MemAvailable")


def wait_for_memory(needed_bytes, timeout_s=180):
    """The kernel gives the memory of a big run back late."""
    if not wait_until(lambda: memory_available_bytes() >= needed_bytes, timeout_s, 1):
        has = memory_available_bytes()
        raise Failed(f"memory: {needed_bytes / GIB:.1f} GiB needed, available: {has / GIB:.1f} GiB")


def sockets_in_use():
    """TCP sockets of this network namespace, both ends and listeners. Java's are of IPv6, whatever their addresses."""
    text = "".join(path.read_text() for path in pathlib.Path("/proc/net").glob("sockstat*"))
    return sum(int(count) for count in re.findall(r"^TCP6?: inuse (\d+)", text, re.MULTILINE))


def tcp_counters():
    """Counters of this namespace that tell of lost handshakes."""
    found = {}
    for path in ("/proc/net/snmp", "/proc/net/netstat"):
        lines = [line.split() for line in pathlib.Path(path).read_text().splitlines()]
        for names, values in zip(lines[::2], lines[1::2]):
            found.update(zip(names[1:], values[1:]))
    return {name: int(found[name]) for name in ("RetransSegs", "ListenOverflows", "ListenDrops", "TCPTimeouts")}


def busy_before(seconds=1.0, patience=60):
    """The part of all cores that others use while we do nothing: how far the next round can be believed. Waits a while for
    a quiet machine: the kernel takes the sockets of an abandoned namespace apart for seconds after its last process."""
    for _ in range(patience):
        busy = busy_now(seconds)
        if busy < QUIET:
            break
    return busy


def busy_now(seconds):
    """The part of all cores that others use in the next `seconds`."""

    def read():
        fields = [int(word) for word in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    all_0, idle_0 = read()
    time.sleep(seconds)
    all_1, idle_1 = read()
    return round(1 - (idle_1 - idle_0) / max(all_1 - all_0, 1), 3)


def machine():
    cpu = re.search(r"^model name\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": field_bytes("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "open_files": {"soft": soft, "hard": hard},
        "load_average": os.getloadavg(),
    }


def commit():
    """Which source this is; results do not make it dirty."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    return {
        "commit": git("rev-parse", "HEAD") or "unknown",
        "dirty": bool(git("status", "--porcelain", "--", ":!bench/results")),
    }


def slope(points):
    """Least squares: by how much y rises for each x.

    >>> slope([(0, 5), (1, 7), (2, 9)])
    2.0
    >>> slope([(0, 0), (1, 3), (2, 0), (3, 3)])
    0.6
    >>> slope([(4, 1), (4, 2)]) is None
    True
    """
    if len(points) < 2:
        return None
    mean_x, mean_y = (statistics.fmean(axis) for axis in zip(*points))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else None


def median_ratio(pairs):
    """The median of (ours, theirs) of each round, two rounds at a time: the one that begins alternates, and what that does to it cancels.

    >>> median_ratio([(2, 1), (1, 2)])
    1.0
    >>> median_ratio([(3, 1), (3, 1), (5, 1)])
    4.0
    """
    ratios = [ours / theirs for ours, theirs in pairs]
    both = [math.sqrt(one * other) for one, other in zip(ratios[::2], ratios[1::2])]
    return statistics.median(both + ratios[len(both) * 2 :])


# --- results ----------------------------------------------------------------------------------------------------


class Bench:
    """One measurement: its options, its rounds as measured, and its figures as judged."""

    def __init__(self, name, options, binary, scratch):
        self.name, self.binary, self.scratch, self.options = name, binary, scratch, options
        self.rounds, self.quick, self.connections = options.rounds, options.quick, options.connections
        self.raw, self.rows = [], []
        self.source = {**commit(), "programs": versions(binary)}  # as it was before the measurement

    def record(self, line, **values):
        """Keeps one round as measured, and says `line` meanwhile."""
        self.raw.append(values)
        print(f"{self.name}: {line}", flush=True)

    def compare(self, what, pairs, at_least=None, at_most=None):
        """Judges (ours, theirs) of each round by the median of their ratios, since the two lay side by side."""
        if not pairs:
            raise Failed(f"no round to judge: {what}")
        ours, theirs = (statistics.median(side) for side in zip(*pairs))
        self._row(what, median_ratio(pairs), at_least, at_most, ours=ours, theirs=theirs)

    def limit(self, what, value, at_least=None, at_most=None):
        """Judges one figure; `None`, which could not be measured, misses any target."""
        self._row(what, value, at_least, at_most)

    def fail(self, what):
        """Something happened that misses every target."""
        self.rows.append({"what": what, "value": None, "target": None, "met": False})

    def finish(self):
        """What the rows together say: a measurement that judges nothing has met nothing, and one beside others is to be believed less."""
        if not any(row["target"] for row in self.rows):
            self.fail("nothing was judged")
        busy = [values["busy_before"] for values in self.raw if "busy_before" in values]
        disturbed = [share for share in busy if share >= QUIET]
        if disturbed:
            self.note(f"{len(disturbed)} of {len(busy)} began while others used the machine; share of all cores, at most", max(disturbed))

    def note(self, what, value):
        """Shows a figure that has no target."""
        self._row(what, value, None, None)

    def _row(self, what, value, at_least, at_most, **sides):
        bounds = [f"{sign} {bound:,}" for sign, bound in ((">=", at_least), ("<=", at_most)) if bound is not None]
        target = ", ".join(bounds) or None
        met = value is not None and (at_least is None or value >= at_least) and (at_most is None or value <= at_most)
        self.rows.append({"what": what, **sides, "value": value, "target": target, "met": met if target else None})

    def print_table(self):
        lines = [("", "ours", "theirs", "figure", "target", "")]
        for row in self.rows:
            cells = [shown(row.get(key)) for key in ("ours", "theirs", "value", "target")]
            lines.append((row["what"], *cells, {True: "met", False: "missed", None: ""}[row["met"]]))
        widths = [max(map(len, column)) for column in zip(*lines)]
        for what, *cells, met in lines:
            print("  ".join([what.ljust(widths[0]), *(c.rjust(w) for c, w in zip(cells, widths[1:])), met]).rstrip())

    def write(self, options):
        """Keeps the results: in bench/results, or out of the way in target/bench if this was only a trial."""
        folder = ROOT / "target/bench" if options.trial else FOLDER / "results"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        now = datetime.datetime.now(datetime.timezone.utc)
        document = {
            "bench": self.name,
            "when": now.isoformat(timespec="seconds"),
            **self.source,
            "machine": machine(),
            "options": {"rounds": self.rounds, "quick": self.quick, "connections": self.connections},
            "judged": self.rows,
            "rounds": self.raw,
        }
        text = json.dumps(document, indent=2)
        # A list of plain numbers reads better on one line.
        text = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), text)
        path.write_text(text + "\n")
        print(f"raw results: {path.relative_to(ROOT)}")


def shown(value):
    """A cell of the table.

    >>> [shown(value) for value in (None, "<= 2", 123456.7, 12, 0.954, 0.0000251)]
    ['', '<= 2', '123,457', '12', '0.954', '2.51e-05']
    """
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def versions(binary):
    """What was measured, and against what."""
    found = {"throng": "sha256 " + hashlib.sha256(binary.read_bytes()).hexdigest()}
    others = {
        "wrk": ["wrk", "-v"],
        "nginx": ["nginx", "-v"],
        "cc": ["cc", "--version"],
        "openssl": ["openssl", "version"],
        "curl": ["curl", "--version"],
        "h2load": ["h2load", "--version"],
        "k6": ["k6", "version"],
        "oha": ["oha", "--version"],
        "node": ["node", "--version"],
        "java": ["java", "-version"],
    }
    for name, words in others.items():
        if shutil.which(name):
            said = subprocess.run(words, capture_output=True, text=True)
            found[name] = (said.stdout + said.stderr).splitlines()[0]
    return found


def throng_binary():
    """The release build, built if there is none; `THRONG_BIN` names another."""
    named = os.environ.get("THRONG_BIN")
    binary = pathlib.Path(named).resolve() if named else ROOT / "target/release/throng"
    if not binary.exists():
        if named:
            raise Failed(f"THRONG_BIN is no file: {binary}")
        if subprocess.run(["cargo", "build", "--release", "--package", "cli"], cwd=ROOT).returncode:
            raise Failed("throng does not build: cargo build --release")
    return binary


def read_options(name, about, rounds, connections, quick_connections, add_options):
    parser = argparse.ArgumentParser(prog=name, description=about, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, help=f"rounds [default: {rounds}; quick: 1]")
    parser.add_argument("--quick", action="store_true", help="shorter: to see that it works, not for figures to keep")
    parser.add_argument("--connections", type=int, help=f"connections [default: {connections:,}; quick: {quick_connections:,}]")
    add_options(parser)
    options = parser.parse_args()
    options.trial = options != parser.parse_args([])
    if any(value is not None and value < 1 for value in (options.rounds, options.connections)):
        parser.error("--rounds and --connections take numbers above 0")
    options.rounds = options.rounds or (1 if options.quick else rounds)
    options.connections = options.connections or (quick_connections if options.quick else connections)
    return options


def interrupted(number, _frame):
    raise KeyboardInterrupt(128 + number)


def main(name, about, measure, rounds, connections, quick_connections, programs=(), add_options=lambda parser: None):
    """Runs one measurement. Exit status: 0 all targets met, 1 one missed or the measurement failed, 130 interrupted.

    `add_options`: adds options of its own to the parser; they are in `Bench.options`."""
    options = read_options(name, about, rounds, connections, quick_connections, add_options)
    if os.geteuid() != 0 and "THRONG_BENCH_USER" not in os.environ:
        os.environ["THRONG_BENCH_USER"] = "1"  # root of a user namespace may make network namespaces
        os.execvp("unshare", ["unshare", "--user", "--map-root-user", sys.executable, "-B", *sys.argv])
    # A background job of a script inherits SIGINT ignored; and whatever ends us must pass through `finally`.
    for number in ENDS:
        signal.signal(number, interrupted)
    Process.scratch = tempfile.mkdtemp(prefix="throng-bench-")
    bench = None
    try:
        missing = [program for program in ("ip", *programs) if not shutil.which(program)]
        if missing:
            raise Failed(f"programs not found: {' '.join(missing)}")
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        allowed = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
        # A copy, so that whoever builds meanwhile does not change what is measured.
        binary = pathlib.Path(shutil.copy2(throng_binary(), Process.scratch))
        bench = Bench(name, options, binary, Process.scratch)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, allowed))
        measure(bench)
        bench.finish()
    except KeyboardInterrupt as stop:
        sys.exit(stop.args[0])
    except (Failed, OSError) as error:
        if not bench or not bench.raw:
            sys.exit(f"{name}: {error}")
        bench.fail(f"not finished: {error}")  # what was measured until then is kept
    finally:
        for number in ENDS:
            signal.signal(number, signal.SIG_IGN)
        for process in list(Process.live):
            process.kill()
        shutil.rmtree(Process.scratch, ignore_errors=True)
    bench.print_table()
    bench.write(options)
    sys.exit(any(row["met"] is False for row in bench.rows))

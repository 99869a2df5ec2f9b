"""Records runs whose cause is known. A scenario is a function: it starts a server (or a broken path), runs throng once, and its
decorator says what was true. Each runs in network, mount and process namespaces of its own, as root.

    @scenario(limited("target", "open-files", at=(990, 1_024)))
    def echo_out_of_files(rig):
        rig.start("python3", rig.server("threads.py"), rig.port, files=1_024)
        rig.throng("run", rig.url, "-c", "2000", "--ramp", "500/s", "-d", "3s")

What was true is what the server's configuration, its counters or the fault itself say; never what throng says."""

import ctypes
import dataclasses
import gzip
import inspect
import json
import os
import pathlib
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import traceback

FOLDER = pathlib.Path(__file__).resolve().parent
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
PR_SET_PDEATHSIG = 1
PATIENCE_S = 120


class Failed(Exception):
    """The scenario did not do what it says: nothing is recorded."""


class Skipped(Exception):
    """Something that it needs is not installed."""


# --- what was true ------------------------------------------------------------------------------------------------


def limited(side, *causes, at=None, says=None, verdicts=("fail",), **more):
    """Something stopped the run. `side`: target, path, host (this machine and throng itself); `causes`: names of the JSON's
    `limit.cause`, any of which is right; none where no such name fits: then throng has to say `unknown`, or be silent. `at`: lowest and
    highest right number of connections, where the cause has one; `says`: a regular expression that sentence, detail or fix must
    match (case is ignored); `verdicts`: those that are right; `more`: as `also` reads it."""
    return {"is": "limited", "side": side, "causes": list(causes), "at": at, "says": says, "verdicts": list(verdicts), **also(**more)}


def healthy(may=(), **more):
    """Nothing was wrong: the run passes, however odd the server looks, and no cause is named but those of `may`, which were there and did
    no harm."""
    return {"is": "healthy", "causes": list(may), "verdicts": ["pass"], **also(**more)}


def unknowable(verdicts=("fail",), may=(), **more):
    """Something was wrong, and from here it cannot be known what: any cause but those of `may` is a wrong one."""
    return {"is": "unknowable", "causes": list(may), "verdicts": list(verdicts), **also(**more)}


def also(sentence=None, detail=None, fix=None, reason=None, never=None, certainty=None, held=None):
    """What else is right, of a scenario of any kind. `sentence`, `detail`, `fix`: regular expressions that this part of the limit must
    match; `reason`: one that the last line or a reason of the verdict must match; `never`: one that none of them may match; `certainty`:
    that of the cause, as the evidence allows it; `held`: lowest and highest right number of connections that were held."""
    given = locals()
    return {key: value for key, value in given.items() if value is not None}


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    run: object
    truth: dict
    about: str
    alone: bool


SCENARIOS = {}


def scenario(truth, alone=False):
    """Adds a function. Its docstring says what the server or the path does. `alone`: it measures CPU or lag, and nothing else may run
    while it is recorded."""

    def add(function):
        if function.__name__ in SCENARIOS:
            raise SystemExit(f"two scenarios are called {function.__name__}")
        about = inspect.getdoc(function) or ""
        SCENARIOS[function.__name__] = Scenario(function.__name__, function, truth, about, alone)
        return function

    return add


# --- the rig ------------------------------------------------------------------------------------------------------


def run_quietly(*words, **options):
    made = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=30, **options)
    if made.returncode:
        raise Failed(f"{' '.join(map(str, words))}: {made.stderr.strip() or made.stdout.strip()}")
    return made.stdout


def is_listener(fields, port):
    """Whether a line of /proc/net/tcp is a socket that listens (state 0A) at the port."""
    return len(fields) > 3 and fields[1].endswith(f":{port:04X}") and fields[3] == "0A"


class Rig:
    """What a scenario has: a folder, a port, programs, networks, throng. Everything ends with it."""

    def __init__(self, binary, keeps_record=True):
        self.binary, self.keeps_record = binary, keeps_record
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="throng-corpus-"))
        self.port = 8_080
        self.programs, self.groups = [], []
        self.host = "127.0.0.1"
        self.record = self.summary = None
        self.is_done = False

    @property
    def url(self):
        return f"http://{self.host}:{self.port}/"

    def server(self, name):
        """A server of this folder."""
        return FOLDER / "servers" / name

    def needs(self, *programs):
        """Skips the scenario where one of them is not installed."""
        missing = [program for program in programs if not shutil.which(program)]
        if missing:
            raise Skipped(f"not installed: {' '.join(missing)}")

    def write(self, name, text):
        """A file in the scenario's folder; its path."""
        path = self.folder / name
        path.write_text(text)
        return path

    def start(self, *words, files=None, threads=None, memory=None, cpus=None, netns=None, wait=True, port=None, log="server.log", env=None):
        """Starts a program and waits until something listens at the port. `files`, `threads`, `memory` (bytes of address space):
        its rlimits; `cpus`: processors it may use; `netns`: the name of a `rig.far()` namespace. What it prints goes to `log`."""
        limits = [(resource.RLIMIT_NOFILE, files), (resource.RLIMIT_NPROC, threads), (resource.RLIMIT_AS, memory)]

        def child():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            for kind, limit in limits:
                if limit is not None:
                    resource.setrlimit(kind, (limit, limit))
            if cpus is not None:
                os.sched_setaffinity(0, cpus)

        words = [str(word) for word in words]
        words = ["ip", "netns", "exec", netns, *words] if netns else words
        with open(self.folder / log, "ab") as output:
            environment = {**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})}
            program = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder,
                preexec_fn=child, start_new_session=True, env=environment,
            )
        self.programs.append(program)
        if wait:
            self.wait_for_listener(port or self.port, netns, program)
        return program

    def wait_for_listener(self, port, netns=None, program=None, within_s=30):
        """Without connecting: an idle connection of ours would take a place."""
        enter = ["ip", "netns", "exec", netns] if netns else []
        for _ in range(within_s * 20):
            if program is not None and program.poll() is not None:
                raise Failed(f"the server ended: {self.output()[-500:]}")
            table = run_quietly(*enter, "cat", "/proc/net/tcp", "/proc/net/tcp6")
            if any(is_listener(line.split(), port) for line in table.splitlines()):
                return
            time.sleep(0.05)
        raise Failed(f"nothing listens at port {port} after {within_s} s: {self.output()[-500:]}")

    def output(self, log="server.log"):
        """What programs have printed so far."""
        path = self.folder / log
        return path.read_text(errors="replace") if path.exists() else ""

    def odd(self, *options, port=None, name="odd.py", **start):
        """Starts servers/odd.py, or another one with the same manners, with these options."""
        return self.start("python3", self.server(name), port or self.port, *options, port=port, **start)

    def odd_in(self, around, *options, **start):
        """The same inside of what `rig.cgroup` returned; the program is the server itself."""
        return self.start(*around, "python3", self.server("odd.py"), self.port, *options, **start)

    def counted(self):
        """What servers/odd.py says it did, as of at most 0.2 s ago."""
        return json.loads(self.output("counts.json") or "{}")

    def built(self, name):
        """A program of the folder servers in Go or C, built; its path."""
        source = self.server(name)
        program = self.folder / source.stem
        self.needs("go" if source.suffix == ".go" else "cc")
        words = ["go", "build", "-o", program, source] if source.suffix == ".go" else ["cc", "-O2", "-pthread", "-o", program, source]
        run_quietly(*words, cwd=self.folder, env={**os.environ, "GOFLAGS": "-p=1"})
        return program

    def certificate(self):
        """A certificate of 127.0.0.1 and localhost with its key, in one file of the scenario's folder; its path."""
        self.needs("openssl")
        key, one, both = (self.folder / name for name in ("key.pem", "one.pem", "both.pem"))
        run_quietly(
            *"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=localhost".split(),
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", one,
        )
        both.write_text(one.read_text() + key.read_text())
        return both

    def cgroup(self, controller, **settings):
        """A control group of version 1 in which a program runs: the words to put before it. `memory_limit_in_bytes=N` and the like."""
        # Where systems have it: sysfs is mounted anew in each namespace.
        mount = pathlib.Path(f"/sys/fs/cgroup/{controller}")
        if not os.path.ismount(mount.parent):
            run_quietly("mount", "-t", "tmpfs", "none", str(mount.parent))
        mount.mkdir()
        made = subprocess.run(["mount", "-t", "cgroup", "-o", controller, "cgroup", str(mount)], capture_output=True, text=True)
        if made.returncode:
            raise Skipped(f"no control groups of {controller}: {made.stderr.strip()}")
        group = mount / f"throng-corpus-{time.monotonic_ns()}"
        group.mkdir()
        self.groups.append((group, mount))
        for name, value in settings.items():
            (group / f"{controller}.{name}").write_text(str(value))
        return ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"], group

    def sysctl(self, name, value):
        """Of this scenario's network namespace (net.*)."""
        pathlib.Path("/proc/sys", *name.split(".")).write_text(str(value))

    def nft(self, rules, netns=None):
        """Loads rules of nftables: the text of a ruleset file."""
        enter = ["ip", "netns", "exec", netns] if netns else []
        run_quietly(*enter, "nft", "-f", self.write("rules.nft", rules))

    def far(self, name="far", ours="10.77.0.1", theirs="10.77.0.2", link="veth"):
        """A host of its own, one veth away; the target's address from here is `rig.host` afterwards."""
        run_quietly("ip", "netns", "add", name)
        run_quietly("ip", "link", "add", f"{link}0", "type", "veth", "peer", "name", f"{link}1", "netns", name)
        run_quietly("ip", "addr", "add", f"{ours}/24", "dev", f"{link}0")
        run_quietly("ip", "link", "set", f"{link}0", "up")
        for words in (f"addr add {theirs}/24 dev {link}1", f"link set {link}1 up", "link set lo up", f"route add default via {ours}"):
            run_quietly("ip", "-n", name, *words.split())
        self.host = theirs
        return name

    def behind_router(self, router="router", far="far"):
        """A host two links away, and the router between them: rules of nftables there are the path's. Returns their names. Addresses of
        IPv6 are the same with fd77:1:: and fd77:2::."""
        for name in (router, far):
            run_quietly("ip", "netns", "add", name)
            run_quietly("ip", "-n", name, "link", "set", "lo", "up")
        run_quietly("ip", "link", "add", "near0", "type", "veth", "peer", "name", "near1", "netns", router)
        run_quietly("ip", "-n", router, "link", "add", "next0", "type", "veth", "peer", "name", "next1", "netns", far)
        run_quietly("ip", "addr", "add", "10.77.1.1/24", "dev", "near0")
        run_quietly("ip", "link", "set", "near0", "up")
        run_quietly("ip", "addr", "add", "fd77:1::1/64", "dev", "near0", "nodad")
        for name, link, net, host in ((router, "near1", 1, 2), (router, "next0", 2, 1), (far, "next1", 2, 2)):
            run_quietly("ip", "-n", name, "addr", "add", f"10.77.{net}.{host}/24", "dev", link)
            run_quietly("ip", "-n", name, "addr", "add", f"fd77:{net}::{host}/64", "dev", link, "nodad")
            run_quietly("ip", "-n", name, "link", "set", link, "up")
        run_quietly("ip", "route", "add", "10.77.2.0/24", "via", "10.77.1.2")
        run_quietly("ip", "-n", far, "route", "add", "default", "via", "10.77.2.1")
        run_quietly("ip", "route", "add", "fd77:2::/64", "via", "fd77:1::2")
        run_quietly("ip", "-n", far, "route", "add", "default", "via", "fd77:2::1")
        run_quietly("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        self.host = "10.77.2.2"
        return router, far

    def netns_output(self, netns, *words):
        """What a command prints in a namespace of `far` or `behind_router`."""
        return run_quietly("ip", "netns", "exec", netns, *words)

    def later(self, after_s, *words):
        """Runs a command in the middle of the run: `kill -STOP 17`."""
        text = " ".join(f"'{word}'" for word in map(str, words))
        self.programs.append(subprocess.Popen(["sh", "-c", f"sleep {after_s}; exec {text}"], start_new_session=True))

    def throng(self, *words, timeout_s=PATIENCE_S, cpus=None, env=None):
        """Runs throng, once; its summary. `cpus`: processors that it may use."""
        if self.is_done:
            raise Failed("a scenario runs throng once")
        self.is_done = True
        data, json_file = self.folder / "data", self.folder / "summary.json"
        environment = {**os.environ, "XDG_DATA_HOME": str(data), "HOME": str(self.folder), **(env or {})}
        command = [str(self.binary), *map(str, words), "--live", "off", "--json", str(json_file)]

        def child():
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if cpus is not None:
                os.sched_setaffinity(0, cpus)

        made = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=timeout_s, preexec_fn=child)
        if made.returncode not in (0, 1, 4):
            raise Failed(f"throng: exit {made.returncode}: {made.stderr[-800:]}")
        self.printed = made.stdout + made.stderr
        self.summary = json.loads(json_file.read_text())
        if self.keeps_record:
            with sqlite3.connect(data / "throng/runs.db") as store:
                self.record = stored(store)
        return self.summary

    def check(self, condition, why):
        """What the scenario says must have happened, by other evidence than throng's."""
        if not condition:
            raise Failed(f"not as it says: {why}")

    def end(self):
        for program in self.programs:
            try:
                os.killpg(program.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        for group, mount in self.groups:
            for _ in range(40):
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.05)
            subprocess.run(["umount", str(mount)], capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def stored(store):
    """The stored run, as `throng report --rejudge` reads it."""
    run, measured = store.execute("SELECT runs.record, measured.record FROM runs JOIN measured ON measured.run = runs.id").fetchone()
    return {"run": json.loads(run), "measured": json.loads(measured)}


# --- recording ----------------------------------------------------------------------------------------------------


def isolated(work):
    """Runs it in namespaces of its own and returns its value, or raises its error."""
    reader, writer = os.pipe()
    outer = os.fork()
    if outer == 0:
        status = 1
        try:
            os.setsid()
            if LIBC.unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID):
                raise Failed("cannot make namespaces: run as root")
            # The first process after this one is the first of the new namespace, and ends it.
            inner = os.fork()
            if inner == 0:
                status = alone(work, writer)
            else:
                os.close(writer)
                status = os.waitstatus_to_exitcode(os.waitpid(inner, 0)[1])
        except BaseException:  # noqa: BLE001  (a child of fork must not return)
            traceback.print_exc()
        finally:
            os._exit(status if status >= 0 else 1)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(outer, 0)
    if not text:
        raise Failed("the scenario's process ended without a result")
    value = json.loads(text)
    if "failed" in value:
        raise (Skipped if value["skipped"] else Failed)(value["failed"])
    return value["value"]


def alone(work, writer):
    """In the new namespaces, as their first process: all ends with it."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    run_quietly("mount", "--make-rprivate", "/")
    run_quietly("mount", "-t", "proc", "proc", "/proc")
    run_quietly("mount", "-t", "tmpfs", "tmpfs", "/run")
    pathlib.Path("/run/netns").mkdir()
    run_quietly("mount", "-t", "sysfs", "sysfs", "/sys")
    run_quietly("ip", "link", "set", "lo", "up")
    try:
        value = {"value": work()}
    except Skipped as why:
        value = {"failed": str(why), "skipped": True}
    except Failed as why:
        value = {"failed": str(why), "skipped": False}
    except Exception:  # noqa: BLE001  (reported to the parent)
        value = {"failed": traceback.format_exc(limit=4), "skipped": False}
    with os.fdopen(writer, "w") as pipe:
        pipe.write(json.dumps(value))
    return 0


def recorded(one, binary, keeps_record=True):
    """The record of a scenario with what was true, and throng's own words about it."""

    def work():
        rig = Rig(binary, keeps_record)
        try:
            one.run(rig)
            if rig.summary is None:
                raise Failed("it did not run throng")
            return {"record": rig.record, "summary": rig.summary, "printed": rig.printed}
        finally:
            rig.end()

    return isolated(work)


def write_record(file, one, record):
    """Compressed, and the same bytes for the same record."""
    whole = {"name": one.name, "about": one.about, "truth": one.truth, **record}
    text = json.dumps(whole, separators=(",", ":"), sort_keys=True).encode()
    file.write_bytes(gzip.compress(text, compresslevel=9, mtime=0))


def relabel(file, one):
    """Sets what was true in a record that exists already."""
    whole = json.loads(gzip.decompress(file.read_bytes()))
    write_record(file, one, {key: whole[key] for key in ("run", "measured")})

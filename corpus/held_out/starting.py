"""Starts the servers that several modules use."""

import os
import subprocess
import time

from recording import Skipped


def loop(rig, *options, **more):
    """The asyncio server with these options."""
    return rig.start("python3", rig.server("ho_async.py"), more.get("port", rig.port), *options, **more)


def echo(rig, mode, **more):
    """The asyncio server for WebSocket and TCP."""
    return rig.start("python3", rig.server("ho_echo.py"), rig.port, mode, **more)


def node(rig, *words, flags=(), **more):
    rig.needs("node")
    return rig.start("node", *flags, rig.server("ho_node.js"), rig.port, *words, **more)


def java(rig, *words, flags=("-Xmx256m",), **more):
    rig.needs("java")
    return rig.start("java", *flags, rig.server("ho_Rooms.java"), rig.port, *words, **more)


def go(rig, *words, **more):
    """The Go server, built in the scenario's folder."""
    rig.needs("go")
    subprocess.run(["go", "build", "-o", rig.folder / "ho_go", rig.server("ho_go.go")], check=True, timeout=100)
    return rig.start(rig.folder / "ho_go", more.get("port", rig.port), *words, **more)


def c(rig, *words, **more):
    """The C server, built in the scenario's folder."""
    rig.needs("cc")
    subprocess.run(["cc", "-O1", "-o", rig.folder / "ho_accept", rig.server("ho_accept.c")], check=True, timeout=60)
    return rig.start(rig.folder / "ho_accept", rig.port, *words, **more)


def nginx(rig, http, top="", events="", **more):
    """nginx with one worker; its log is the rig's."""
    rig.needs("nginx")
    rig.folder.chmod(0o755)
    places = "".join(f"{kind}_temp_path {rig.folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    config = (
        f"daemon off; user root; worker_processes 1; pid {rig.folder}/nginx.pid; error_log stderr info; {top}\n"
        f"events {{ {events} }}\nhttp {{ access_log off; {places}\n{http} }}"
    )
    return rig.start("nginx", "-p", rig.folder, "-c", rig.write("nginx.conf", config), "-e", "stderr", **more)


def haproxy(rig, config, **more):
    """haproxy in the foreground; the word DEFAULTS stands for its mode and time limits."""
    rig.needs("haproxy")
    times = "defaults\n mode http\n timeout connect 2s\n timeout client 30s\n timeout server 30s\n"
    return rig.start("haproxy", "-db", "-f", rig.write("haproxy.cfg", config.replace("DEFAULTS", times)), **more)


def middle(rig, *options, server=("go", "plain")):
    """A server on a far host, and a middlebox in the router, which takes each connection to it and makes one of its own."""
    router, far = rig.behind_router()
    {"go": go, "loop": loop, "echo": echo}[server[0]](rig, *server[1:], netns=far)
    rig.start("python3", rig.server("ho_middle.py"), 8_090, rig.host, rig.port, *options, netns=router, port=8_090)
    chain = "type nat hook prerouting priority dstnat"
    rig.nft(f"table inet corpus {{\n chain in {{\n  {chain}\n  iifname near1 tcp dport {rig.port} redirect to :8090\n }}\n}}\n", router)


def kernel(name, netns=None):
    """A counter of the kernel's TcpExt, of a network namespace."""
    enter = ["ip", "netns", "exec", netns] if netns else []
    text = subprocess.run([*enter, "cat", "/proc/net/netstat"], capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in text.splitlines() if line.startswith("TcpExt")]
    return int(dict(zip(*lines))[name])


def counted(rig, netns):
    """The packets that the counters of a namespace's nftables have counted, in all."""
    text = subprocess.run(["ip", "netns", "exec", netns, "nft", "list", "ruleset"], capture_output=True, text=True, check=True).stdout
    words = text.split()
    return sum(int(words[index + 2]) for index, word in enumerate(words) if word == "counter")


def certificates(rig, days=None, name="IP:127.0.0.1,DNS:localhost"):
    """A CA and a server's certificate of it: ca.pem, server.pem, server.key. `days`: negative for one that is expired."""
    rig.needs("openssl")
    folder = rig.folder

    def openssl(*words):
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=folder, timeout=30)

    ec = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *ec, "-keyout", "ca.key", "-out", "ca.pem", "-days", 30, "-subj", "/CN=Test CA")
    for one in ("server", "client"):
        openssl("req", *ec, "-keyout", f"{one}.key", "-out", f"{one}.csr", "-subj", f"/CN={one}")
        usage = "serverAuth" if one == "server" else "clientAuth"
        rig.write("ext", f"subjectAltName={name}\nextendedKeyUsage={usage}\nbasicConstraints=CA:FALSE\n")
        lasts = days if one == "server" and days is not None else 20
        openssl("x509", "-req", "-in", f"{one}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-out", f"{one}.pem", "-extfile", "ext", "-days", lasts)
    return folder / "ca.pem", folder / "server.pem", folder / "server.key"


class Cgroup:
    """A group of the kernel's version 1 controllers, removed at the end: `with Cgroup(rig, "pids", {"pids.max": 90}) as group`."""

    def __init__(self, rig, controller, values):
        self.rig, self.controller, self.values = rig, controller, values
        self.root = rig.folder / f"cgroup-{controller}"
        self.path = self.root / f"throng-corpus-{os.urandom(4).hex()}"

    def __enter__(self):
        self.root.mkdir()
        made = subprocess.run(["mount", "-t", "cgroup", "-o", self.controller, "cgroup", self.root], capture_output=True)
        if made.returncode:
            raise Skipped(f"no controller of cgroups called {self.controller}")
        self.path.mkdir()
        for name, value in self.values.items():
            (self.path / name).write_text(str(value))
        return self

    def take(self, program):
        """Moves a program into the group, with all of its threads."""
        (self.path / "cgroup.procs").write_text(str(program.pid))

    def read(self, name):
        return (self.path / name).read_text()

    def __exit__(self, *_):
        for program in self.rig.programs:
            program.kill()
            program.wait()
        for _ in range(100):
            try:
                self.path.rmdir()
                break
            except OSError:
                time.sleep(0.05)
        subprocess.run(["umount", "-l", self.root])

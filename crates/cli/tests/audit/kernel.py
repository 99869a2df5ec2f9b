"""The kernel's counters, sampled every 50 ms during the run: /proc/net, /proc/meminfo, and /proc/PID of both processes."""

import os
import socket
import struct
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGESIZE")
PERIOD = 0.05

# The names of `observed.host.tcp_*` and of throng_host_tcp_events_total, as docs/reference describes them, and the kernel's own
# (Documentation/networking/snmp_counter.rst).
TCP_EVENTS = {
    "attempt_fails": "Tcp.AttemptFails", "estab_resets": "Tcp.EstabResets", "out_resets": "Tcp.OutRsts",
    "retrans_segs": "Tcp.RetransSegs", "syn_retrans": "TcpExt.TCPSynRetrans", "tcp_timeouts": "TcpExt.TCPTimeouts",
    "listen_overflows": "TcpExt.ListenOverflows", "listen_drops": "TcpExt.ListenDrops",
    "syn_queue_drops": "TcpExt.TCPReqQFullDrop", "syn_cookies": "TcpExt.TCPReqQFullDoCookies",
    "abort_on_memory": "TcpExt.TCPAbortOnMemory", "memory_pressures": "TcpExt.TCPMemoryPressures",
    "pruned": "TcpExt.PruneCalled", "time_wait_overflow": "TcpExt.TCPTimeWaitOverflow",
    "icmp_unreachable": "Icmp.InDestUnreachs", "retrans_fails": "TcpExt.TCPRetransFail",
}


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def pairs(text):
    """The format of snmp and netstat: a line of names, a line of values."""
    found, lines = {}, text.splitlines()
    for names, values in zip(lines[::2], lines[1::2]):
        group, names = names.split(": ", 1)
        for name, value in zip(names.split(), values.split(": ", 1)[1].split()):
            found[f"{group}.{name}"] = int(value)
    return found


def sockstat():
    words = next((line.split() for line in read("/proc/net/sockstat").splitlines() if line.startswith("TCP:")), [])
    return dict(zip(words[1::2], map(int, words[2::2])))


def meminfo():
    return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in read("/proc/meminfo").splitlines()}


def process(pid):
    """CPU seconds, resident bytes, threads, descriptors; none if it has ended."""
    stat = read(f"/proc/{pid}/stat")
    statm = read(f"/proc/{pid}/statm").split()
    if not stat or not statm or int(statm[1]) == 0:
        return None
    fields = stat.rsplit(")", 1)[1].split()
    try:
        files = len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        files = None
    return {
        "user": int(fields[11]) / TICK, "system": int(fields[12]) / TICK, "threads": int(fields[17]),
        "rss": int(statm[1]) * PAGE, "files": files, "state": fields[0],
        "wait": sum(waits(pid)), "switches": switches(pid),
    }


def waits(pid):
    """Seconds that each of its threads was ready to run and had no processor."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    texts = (read(f"/proc/{pid}/task/{thread}/schedstat").split() for thread in threads)
    return [int(words[1]) / 1e9 for words in texts if words]


def switches(pid):
    """Involuntary context switches of its threads."""
    total = 0
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return 0
    for thread in threads:
        for line in read(f"/proc/{pid}/task/{thread}/status").splitlines():
            if line.startswith("nonvoluntary_ctxt_switches:"):
                total += int(line.split()[1])
    return total


def group_kills(pid):
    """What the OOM killer has killed in its control group, since the group was made: of either version, where they are mounted."""
    most = 0
    for line in read(f"/proc/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        files = {"": "/sys/fs/cgroup{}/memory.events", "memory": "/sys/fs/cgroup/memory{}/memory.oom_control"}
        if controllers in files:
            words = read(files[controllers].format(path.rstrip("/"))).split()
            most = max([most, *(int(n) for word, n in zip(words, words[1:]) if word == "oom_kill")])
    return most


NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLMSG_DONE = 4, 20, 3
REQUEST_AND_DUMP = 0x301
LISTEN = 1 << 10


def queue(ports):
    """Connections in the fullest accept queue of these ports: of a listener idiag_rqueue is that (sock_diag(7)). /proc/net/tcp has it
    too, but to write that the kernel walks the table of all connections, at each look."""
    request = struct.pack("=IHHII BBBBI 48x", 72, SOCK_DIAG_BY_FAMILY, REQUEST_AND_DUMP, 0, 0, socket.AF_INET, socket.IPPROTO_TCP, 0, 0, LISTEN)
    most = 0
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as asked:
        asked.send(request)
        while True:
            datagram = asked.recv(1 << 16)
            at = 0
            while at < len(datagram):
                length, kind = struct.unpack_from("=IH", datagram, at)
                if kind != SOCK_DIAG_BY_FAMILY:
                    assert kind == NLMSG_DONE, f"sock_diag: message of type {kind}"
                    return most
                # `struct inet_diag_msg` (linux/inet_diag.h): ports in network order, then addresses and more.
                (port,), (waiting,) = struct.unpack_from("!H", datagram, at + 20), struct.unpack_from("=I", datagram, at + 72)
                most = max(most, waiting if port in ports else 0)
                at += (length + 3) // 4 * 4


def look(server, throng, ports):
    """One sample: what it has is of a time between `t`, when it was begun, and `until`; between them the sampler may have waited."""
    begun = time.time()
    memory = meminfo()
    tcp = pairs(read("/proc/net/snmp")) | pairs(read("/proc/net/netstat"))
    kills = next((int(l.split()[1]) for l in read("/proc/vmstat").splitlines() if l.startswith("oom_kill ")), 0)
    return {
        "t": begun,
        "tcp": {name: tcp.get(of, 0) for name, of in TCP_EVENTS.items()},
        "sockets": sockstat(),
        "available": memory["MemAvailable"],
        "kernel": memory["MemTotal"] - memory["MemFree"] - memory["Buffers"] - memory["Cached"]
        - memory["SwapCached"] - memory["AnonPages"],
        "conntrack": int(read("/proc/sys/net/netfilter/nf_conntrack_count") or 0),
        "oom_kills": kills,
        "group_oom_kills": group_kills(server),
        "queue": queue(ports),
        "running": int(read("/proc/loadavg").split()[3].split("/")[0]),
        "server": process(server),
        "throng": process(throng) if throng else None,
        "until": time.time(),
    }


class Looks(threading.Thread):
    """Samples until it is stopped; `throng` is set once its process is known."""

    def __init__(self, server, ports):
        super().__init__(daemon=True)
        self.server, self.ports, self.throng = server, ports, None
        self.all, self.stopped = [], threading.Event()

    def run(self):
        while not self.stopped.is_set():
            self.all.append(look(self.server, self.throng, self.ports))
            self.stopped.wait(PERIOD)

    def stop(self, ended, usage):
        """throng has ended then, and has used this much of the processors (`getrusage`)."""
        self.stopped.set()
        self.join()
        self.all.append(look(self.server, self.throng, self.ports))
        last = max((one["until"] for one in self.all if one["throng"]), default=0.0)
        if ended - last > 3 * PERIOD:
            # Its last sample is too old to bound what it used until its end.
            self.all[-1]["throng"] = {"user": usage.ru_utime, "system": usage.ru_stime}

    def within(self, begin, end, has=lambda one: True):
        """All samples of a period, with the last one that was complete before it and the first one that was begun after it, however far
        away these are; `has`: only those that have this."""
        looks = [one for one in self.all if has(one)]
        first = max((at for at, one in enumerate(looks) if one["until"] <= begin), default=0)
        last = next((at for at, one in enumerate(looks) if one["t"] >= end), len(looks) - 1)
        return looks[first:last + 1]

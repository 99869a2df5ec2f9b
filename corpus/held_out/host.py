"""This machine is the limit: its rules, its processors; and its ports, which suffice."""

from held_out.starting import Cgroup, go, loop
from recording import healthy, limited, scenario

HOLD = ("--think", "500ms", "--timeout", "3s")


def ports(rig, count):
    """All local ports are reserved but `count`, and the 2,000 that throng leaves to others."""
    rig.sysctl("net.ipv4.ip_local_port_range", f"40000 {41_999 + count}")
    rig.sysctl("net.ipv4.ip_local_reserved_ports", f"1024-39999,{42_000 + count}-65535")


@scenario(healthy())
def just_enough_ports(rig):
    """300 connections from 320 local ports."""
    loop(rig, netns=rig.far())
    ports(rig, 320)
    rig.throng("run", rig.url, "-c", 300, "-d", "3s", "--think", "800ms", "--timeout", "3s")


@scenario(limited("host", "no-syn-ack", "denied"))
def own_rules_drop(rig):
    """Rules of this machine drop what goes out to the port."""
    far = rig.far()
    loop(rig, netns=far)
    rig.nft("table inet own {\n chain out {\n  type filter hook output priority 0\n  tcp dport 8080 counter drop\n }\n}\n")
    rig.throng("run", rig.url, "-c", 50, "-d", "3s", *HOLD)


@scenario(limited("host", "refused", "denied"))
def own_rules_reject(rig):
    """Rules of this machine answer what goes out to the port with a reset."""
    far = rig.far()
    loop(rig, netns=far)
    rig.nft("table inet own {\n chain out {\n  type filter hook output priority 0\n  tcp dport 8080 counter reject with tcp reset\n }\n}\n")
    rig.throng("run", rig.url, "-c", 50, "-d", "2s", *HOLD)


@scenario(limited("host", "connection-limit", "no-syn-ack", "denied", at=(118, 122)))
def own_rules_limit(rig):
    """Rules of this machine drop the SYN of each connection above 120."""
    far = rig.far()
    loop(rig, netns=far)
    rig.nft("table inet own {\n chain out {\n  type filter hook output priority 0\n  ct state new tcp dport 8080 ct count over 120 counter drop\n }\n}\n")
    rig.throng("run", rig.url, "-c", 250, "--ramp", "80/s", "-d", "3s", *HOLD)


@scenario(limited("host", "cpu", verdicts=("invalid", "fail")))
def shares_a_core_with_hogs(rig):
    """throng may use one core, and twelve processes compute there without end; the server has the other one."""
    go(rig, "plain", cpus={1})
    for _ in range(12):
        rig.start("python3", "-c", "while True: pass", cpus={0}, wait=False)
    rig.throng("run", rig.url, "-c", 300, "--rate", "8k/s", "-d", "4s", "--timeout", "3s", "--threshold", "latency.p99 < 20ms", cpus={0})


@scenario(limited("host", "cpu", verdicts=("invalid", "fail")))
def throng_in_a_quota(rig):
    """throng may use a twentieth of one processor: the kernel counts how often it was stopped."""
    go(rig, "plain")
    with Cgroup(rig, "cpu", {"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": 5_000}) as group:
        wrapper = rig.write("wrapper", f"#!/bin/sh\necho $$ > {group.path}/cgroup.procs\nexec {rig.binary} \"$@\"\n")
        wrapper.chmod(0o755)
        rig.binary = wrapper
        rig.throng("run", rig.url, "-c", 200, "--rate", "5k/s", "-d", "4s", "--timeout", "3s", "--threshold", "latency.p99 < 20ms")
        rig.check(int(group.read("cpu.stat").split()[3]) > 10, "it was throttled")


@scenario(limited("host", "stall", "cpu", verdicts=("invalid", "fail")))
def throng_is_stopped(rig):
    """throng itself is stopped for 1.5 s in the middle."""
    go(rig, "plain")
    wrapper = rig.write("wrapper", f"#!/bin/sh\n(sleep 2; kill -STOP $$; sleep 1.5; kill -CONT $$) &\nexec {rig.binary} \"$@\"\n")
    wrapper.chmod(0o755)
    rig.binary = wrapper
    rig.throng("run", rig.url, "-c", 100, "--rate", "200/s", "-d", "5s", "--timeout", "4s", "--threshold", "latency.p95 < 200ms")


@scenario(healthy())
def confined_and_unhurried(rig):
    """throng may use one core, which it shares with a process that computes; the load is small and 1 s is allowed."""
    loop(rig, cpus={1})
    rig.start("python3", "-c", "while True: pass", cpus={0}, wait=False)
    threshold = ("--threshold", "latency.p99 < 1s", "--threshold", "faults == 0", "--max-lag", "100ms")
    rig.throng("run", rig.url, "-c", 50, "-d", "3s", "--think", "500ms", "--timeout", "3s", *threshold, cpus={0})

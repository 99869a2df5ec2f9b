"""Loads of two agents on this machine, led over NATS."""

import time

from recording import healthy, scenario

NATS = "nats://127.0.0.1:4222"
LOAD = ("-c", "60", "--ramp", "100/s", "--think", "100ms..300ms", "--timeout", "8s", "--fleet", NATS)


def agents(rig):
    """Two agents, which have joined."""
    rig.needs("nats-server")
    home = {"HOME": str(rig.folder), "XDG_DATA_HOME": str(rig.folder / "agents")}
    rig.start("nats-server", "-a", "127.0.0.1", "-p", 4222, "-js", "-sd", rig.folder / "nats", port=4222, log="nats.log")
    both = [rig.start(rig.binary, "agent", "--nats", NATS, wait=False, log=f"agent-{nth}.log", env=home) for nth in range(2)]
    for _ in range(100):
        if all("agent " in rig.output(f"agent-{nth}.log") for nth in range(2)):
            return both
        time.sleep(0.1)
    rig.check(False, f"they joined: {rig.output('agent-0.log')}")


def suspended(rig, seconds):
    """One agent is stopped at full load, the server and the other one run."""
    _, agent = agents(rig)
    rig.odd()
    rig.later(9, "kill", "-STOP", agent.pid)
    rig.later(9 + seconds, "kill", "-CONT", agent.pid)
    rig.throng("run", rig.url, *LOAD, "-d", f"{seconds + 10}s", "--threshold", "latency.p99 < 500ms")
    rig.check(len(rig.summary["agents"]) == 2, "two agents")


@scenario(healthy(held=(60, 60)))
def two_agents(rig):
    """Half of the load from each."""
    agents(rig)
    rig.odd()
    rig.throng("run", rig.url, *LOAD, "-d", "3s", "--threshold", "latency.p99 < 2s")


@scenario(healthy(held=(60, 60), reason="note: agent .* was (late|away)"))
def an_agent_is_suspended_for_2_s(rig):
    """Half of the load comes from an agent that is stopped for 2 s, as a virtual machine that is moved; the target is as quick as before, as
    the other agent sees: a pass, in which the stop is said."""
    suspended(rig, 2)


@scenario(healthy(held=(60, 60), reason="note: agent .* was (late|away)"))
def an_agent_is_suspended_for_7_s(rig):
    """The same for 7 s, shorter than its lease: it comes back with what it counted."""
    suspended(rig, 7)

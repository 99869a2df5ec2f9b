"""Servers that run out of open files."""

from recording import healthy, limited, scenario


@scenario(limited("target", "open-files", at=(240, 256)))
def threads_out_of_files(rig):
    """A thread a connection, 256 open files: accept fails with EMFILE from about 250 connections on."""
    rig.start("python3", rig.server("threads.py"), rig.port, files=256)
    rig.throng("run", rig.url, "-c", "500", "--ramp", "500/s", "-d", "3s", "--timeout", "3s")
    rig.check("Too many open files" in rig.output(), "accept failed with EMFILE")


@scenario(healthy())
def threads_with_enough_files(rig):
    """The same with files enough."""
    rig.start("python3", rig.server("threads.py"), rig.port, files=4_096)
    rig.throng("run", rig.url, "-c", "500", "--ramp", "500/s", "-d", "3s", "--timeout", "3s")

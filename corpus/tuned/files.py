"""Servers that run out of open files, threads or memory, and those that have just enough."""

import time

from recording import healthy, limited, scenario

PACED = ("--think", "300ms..700ms", "--timeout", "3s")


@scenario(limited("target", "open-files", at=(240, 256)))
def threads_out_of_files(rig):
    """A thread a connection, 256 open files: accept fails with EMFILE from about 250 connections on."""
    rig.start("python3", rig.server("threads.py"), rig.port, files=256)
    rig.throng("run", rig.url, "-c", "500", "--ramp", "500/s", "-d", "3s", *PACED)
    rig.check("Too many open files" in rig.output(), "accept failed with EMFILE")


@scenario(healthy())
def threads_with_enough_files(rig):
    """The same with files enough."""
    rig.start("python3", rig.server("threads.py"), rig.port, files=4_096)
    rig.throng("run", rig.url, "-c", "500", "--ramp", "500/s", "-d", "3s", *PACED)
    rig.check(not rig.output(), "no error in its log")


@scenario(healthy())
def event_loop_at_nine_tenths_of_its_files(rig):
    """300 connections, 340 open files: enough, with a low limit."""
    rig.odd(files=340)
    rig.throng("run", rig.url, "-c", "300", "--ramp", "300/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["accept_errors"] == 0, "all accepted")


@scenario(healthy())
def event_loop_with_a_few_files_left(rig):
    """300 connections, 320 open files: all but ten or so are in use, and nothing fails."""
    rig.odd(files=320)
    rig.throng("run", rig.url, "-c", "300", "--ramp", "300/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["accept_errors"] == 0, "all accepted")


@scenario(limited("target", "open-files", at=(180, 200), detail="200 of 200 files open", fix=r"prlimit --pid \d+ --nofile="))
def event_loop_out_of_files_idle(rig):
    """200 open files, idle connections over raw TCP: the others wait in the accept queue."""
    rig.odd(files=200)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "400", "--ramp", "400/s", "-d", "2s", "--timeout", "3s")
    rig.check(rig.counted()["accept_errors"] > 0, "accept failed")


@scenario(limited("target", "open-files"))
def files_opened_by_requests(rig):
    """From second 2 on, a request opens files until none is left, and no connection is accepted from then on."""
    rig.odd("--then", "files", "--at", "1", files=300)
    rig.throng("run", rig.url, "--arrive", "50/s", "-d", "4s", "--calls", "1", "--timeout", "2s", "--threshold", "faults == 0")
    rig.check(rig.counted()["accept_errors"] > 0, "accept failed")


@scenario(limited("target", "stall"))
def stopped_before_its_files_run_out(rig):
    """The server is stopped by SIGSTOP after a second, with 60 of its 100 files in use."""
    server = rig.odd(files=100)
    rig.later(2, "kill", "-STOP", server.pid)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "2s")
    rig.check(rig.counted()["accept_errors"] == 0, "files were enough")


@scenario(limited("target", "threads", says="thread"))
def no_more_threads_of_a_user(rig):
    """A thread a connection, 100 processes for its user: the server's main thread logs that it cannot start one, and closes."""
    rig.needs("setpriv")
    folder = rig.server("threads_limited.py").read_text()
    program = rig.write("server.py", folder)
    rig.folder.chmod(0o755)
    rig.start("setpriv", "--reuid", "60123", "--clear-groups", "python3", program, rig.port, threads=100)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "3s", *PACED)
    rig.check("can't start new thread" in rig.output(), "no thread could be started")


@scenario(healthy())
def threads_of_a_user_suffice(rig):
    """The same with 400 processes for 200 connections."""
    rig.needs("setpriv")
    program = rig.write("server.py", rig.server("threads_limited.py").read_text())
    rig.folder.chmod(0o755)
    rig.start("setpriv", "--reuid", "60124", "--clear-groups", "python3", program, rig.port, threads=400)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "3s", *PACED)
    rig.check("can't start" not in rig.output(), "threads were enough")


@scenario(limited("target", "threads"))
def no_more_threads_in_a_group(rig):
    """A control group with 80 tasks at most: no thread can be started for the others."""
    around, group = rig.cgroup("pids", max=80)
    rig.start(*around, "python3", rig.server("threads_limited.py"), rig.port)
    rig.throng("run", rig.url, "-c", "150", "--ramp", "200/s", "-d", "3s", *PACED)
    rig.check("can't start new thread" in rig.output(), "no thread could be started")


@scenario(limited("target", "memory", detail="OOM killer", fix="MemoryMax", never="its host was"))
def memory_of_its_group(rig):
    """A control group with 60 MiB, and 1 MB for each connection: the OOM killer ends it."""
    around, group = rig.cgroup("memory", limit_in_bytes=60 << 20)
    server = rig.odd_in(around, "--bytes", "1000000")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "100/s", "-d", "2s", *PACED)
    rig.check(server.poll() == -9, "it was killed")


@scenario(healthy())
def memory_of_its_group_suffices(rig):
    """A control group with 200 MiB, and 0.5 MB for each of 100 connections."""
    around, group = rig.cgroup("memory", limit_in_bytes=200 << 20)
    server = rig.odd_in(around, "--bytes", "500000")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "2s", *PACED)
    rig.check(server.poll() is None, "it lives")


@scenario(limited("target", "memory", says="memory"))
def memory_of_its_address_space(rig):
    """400 MB of address space and 2 MB a connection: MemoryError in its log, and those connections are closed."""
    rig.start("python3", rig.server("hungry.py"), rig.port, "2000000", memory=400_000_000)
    rig.throng("run", rig.url, "-c", "300", "--ramp", "150/s", "-d", "2s", *PACED)
    rig.check("MemoryError" in rig.output(), "MemoryError in its log")


@scenario(limited("target", "ended"))
def exits_at_a_request(rig):
    """In second 2 a request ends the process."""
    server = rig.odd("--then", "exit", "--at", "2")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", *PACED)
    rig.check(server.poll() == 1, "it ended with status 1")


@scenario(limited("target", "ended", at=(100, 100), sentence="^the target's process exited at 100 connections$",
                  fix="^check its log and exit status$"))
def killed_in_the_middle(rig):
    """SIGKILL in second 2."""
    server = rig.odd()
    rig.later(2, "kill", "-KILL", server.pid)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", *PACED)
    rig.check(server.poll() == -9, "it was killed")


@scenario(limited("target", "ended"))
def ends_with_status_0(rig):
    """In second 2 it ends with status 0, as a service whose unit is stopped."""
    server = rig.odd("--then", "exit", "--at", "2", "--exit-status", "0")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "200/s", "-d", "5s", "--think", "100ms..200ms")
    rig.check(server.poll() == 0, "it ended with status 0")


@scenario(limited("target", "ended", held=(50, 50), sentence="^the target at 127.0.0.2:8080 is gone: nothing listens there any more$",
                  fix="^at 127.0.0.2:8080: check its log and exit status$"))
def one_of_two_is_killed(rig):
    """Two servers at two addresses; the second one is killed in second 2."""
    rig.odd("--address", "127.0.0.1")
    second = rig.odd("--address", "127.0.0.2", wait=False)
    time.sleep(1)
    rig.later(2, "kill", "-KILL", second.pid)
    rig.throng("run", f"http://127.0.0.{{1..2}}:{rig.port}/", "-c", "100", "--ramp", "200/s", "-d", "5s", *PACED)
    rig.check(second.poll() == -9, "it was killed")


@scenario(limited("target", "ended"))
def a_worker_of_a_prefork_server_ends(rig):
    """Two processes accept from one listener; one is killed in second 2, and its connections are lost."""
    rig.start("python3", rig.server("prefork.py"), rig.port, "2")
    victim = int((rig.folder / "worker-1").read_text())
    rig.later(2, "kill", "-KILL", victim)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", *PACED)
    rig.check("worker 1 ended" in rig.output(), "the worker ended")


@scenario(limited("target", "heap"))
def java_heap_is_full(rig):
    """A JVM with 32 MB keeps 200 kB for each request: OutOfMemoryError."""
    rig.needs("java")
    rig.start("java", "-Xmx32m", "-XX:+UseSerialGC", rig.server("Heap.java"), rig.port, "200000")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "5s", "--think", "200ms..400ms", "--timeout", "3s")
    rig.check("OutOfMemoryError" in rig.output(), "OutOfMemoryError in its log")


@scenario(healthy())
def java_with_heap_enough(rig):
    """The same program with 256 MB, and 1 kB for each request: collections in between that do no harm."""
    rig.needs("java")
    rig.start("java", "-Xmx256m", "-XX:+UseSerialGC", rig.server("Heap.java"), rig.port, "1000")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "3s", "--think", "200ms..400ms", "--timeout", "3s")
    rig.check("OutOfMemoryError" not in rig.output(), "heap enough")


@scenario(limited("target", "heap"))
def node_heap_is_full(rig):
    """Node with 40 MB of old space keeps what it makes for each request: `heap out of memory`, and it aborts."""
    rig.needs("node")
    rig.start("node", "--max-old-space-size=40", rig.server("leak.js"), rig.port, "30000")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "6s", "--think", "50ms..150ms", "--timeout", "3s")
    rig.check("heap out of memory" in rig.output(), "its heap was full")


@scenario(limited("target", "heap"))
def node_heap_fills_for_seconds(rig):
    """The same, with a tenth of it for each request: it takes seconds until it aborts."""
    rig.needs("node")
    rig.start("node", "--max-old-space-size=60", rig.server("leak.js"), rig.port, "3000")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "7s", "--think", "150ms..350ms", "--timeout", "3s")
    rig.check("heap out of memory" in rig.output(), "its heap was full")


@scenario(healthy())
def node_as_it_is(rig):
    """Node's own server, keep-alive of 5 s, requests each half a second."""
    rig.needs("node")
    rig.start("node", rig.server("leak.js"), rig.port, "0")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "3s", *PACED)

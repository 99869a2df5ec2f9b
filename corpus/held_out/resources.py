"""Servers that run out of open files, threads, memory, processors, or places at a lock."""

from held_out.starting import Cgroup, c, go, java, loop, nginx, node
from recording import healthy, limited, scenario

HOLD = ("-d", "3s", "--timeout", "3s")
FAST = ("--threshold", "latency.p99 < 300ms")


def climb(rig, connections, ramp, *more):
    """Connections at a rate, each with a request now and then."""
    return rig.throng("run", rig.url, "-c", connections, "--ramp", ramp, "--think", "800ms", *HOLD, *more)


@scenario(limited("target", "open-files", at=(385, 400)))
def go_out_of_files(rig):
    """Go with 400 open files: its server says `too many open files` and tries again."""
    go(rig, "plain", files=400)
    climb(rig, 800, "400/s")
    rig.check("too many open files" in rig.output(), "it said so")


@scenario(limited("target", "open-files", at=(270, 300)))
def node_out_of_files(rig):
    """node with 300 open files: libuv closes what it cannot keep."""
    node(rig, "plain", files=300)
    climb(rig, 600, "300/s")


@scenario(limited("target", "open-files", "connection-limit", at=(185, 200)))
def nginx_out_of_files(rig):
    """nginx with worker_rlimit_nofile 200: accept4() fails with EMFILE, as its log says."""
    nginx(rig, f"server {{ listen {rig.port}; return 200 ok; }}", top="worker_rlimit_nofile 200;", events="worker_connections 4096;")
    climb(rig, 500, "200/s")
    rig.check("Too many open files" in rig.output(), "its log says so")


@scenario(limited("target", "open-files", at=(320, 400)))
def java_out_of_files(rig):
    """Java with 400 open files: accept throws."""
    java(rig, "files", 1, files=400)
    climb(rig, 700, "250/s")
    rig.check("Too many open files" in rig.output(), "accept failed")


@scenario(limited("target", "open-files", at=(235, 256)))
def asyncio_out_of_files(rig):
    """asyncio with 256 open files: it says so and stops to accept for a second each time."""
    loop(rig, files=256)
    climb(rig, 500, "200/s")
    rig.check("Too many open files" in rig.output(), "accept failed")


@scenario(limited("target", "open-files", at=(115, 128)))
def proxy_out_of_files(rig):
    """nginx as a proxy with 256 open files and waiting requests: two for each client."""
    loop(rig, "--delay", 2.5)
    nginx(
        rig, f"server {{ listen 8090; location / {{ proxy_pass http://127.0.0.1:{rig.port}; }} }}", port=8_090,
        top="worker_rlimit_nofile 256;", events="worker_connections 4096;",
    )
    rig.port = 8_090
    rig.throng("run", rig.url, "-c", 300, "--ramp", "200/s", "-d", "5s", "--timeout", "6s")
    rig.check("Too many open files" in rig.output(), "its log says so")


@scenario(limited("target", "threads", "connection-limit", at=(84, 92)))
def out_of_threads(rig):
    """A thread a connection in a group of 90 processes and threads: starting one more fails, and the server says so."""
    with Cgroup(rig, "pids", {"pids.max": 90}) as group:
        server = rig.start("python3", rig.server("ho_threads.py"), rig.port, wait=False)
        group.take(server)
        rig.wait_for_listener(rig.port, None, server)
        climb(rig, 200, "80/s")
        rig.check("can't start new thread" in rig.output(), "it said so")
        rig.check(int(group.read("pids.events").split()[1]) > 0, "the kernel counted it")


@scenario(limited("target", "memory", "connection-limit", at=(90, 130)))
def out_of_address_space(rig):
    """2 MiB a connection and 256 MiB of address space: mmap fails, and the connection is closed."""
    c(rig, 1_024, 0, 0, 2_048, memory=256 << 20)
    climb(rig, 300, "100/s")
    rig.check("no memory" in rig.output(), "mmap failed")


@scenario(limited("target", "memory", "ended"))
def out_of_memory_killed(rig):
    """1 MiB a connection in a group of 150 MiB: the kernel kills the server."""
    with Cgroup(rig, "memory", {"memory.limit_in_bytes": 150 << 20}) as group:
        server = c(rig, 1_024, 0, 0, 1_024)
        group.take(server)
        climb(rig, 300, "80/s")
        server.wait(timeout=5)
        rig.check(server.returncode == -9, "the server was killed")


@scenario(limited("target", "heap", "ended"))
def java_heap_full(rig):
    """300 KiB of objects a connection in a heap of 40 MiB: OutOfMemoryError, at which the program may end itself with status 1."""
    server = java(rig, "heap", 300, flags=("-Xmx40m",))
    climb(rig, 300, "80/s")
    rig.check("OutOfMemoryError" in rig.output(), "it said so")
    rig.check(server.poll() in (None, 1), "it was not killed")


@scenario(limited("target", "heap", "ended"))
def node_heap_full(rig):
    """Objects for each connection in a heap of 60 MB: node ends with `JavaScript heap out of memory`."""
    node(rig, "heap", 400, flags=("--max-old-space-size=60",))
    climb(rig, 500, "100/s")
    rig.check("heap out of memory" in rig.output(), "it said so")


@scenario(limited("target", "heap", "cpu"))
def java_collects_without_end(rig):
    """Live objects near the limit of the heap and rubbish with each request: the collector takes the processors."""
    java(rig, "churn", 400, flags=("-Xmx48m", "-XX:+UseSerialGC", "-Xlog:gc", "-XX:-UseGCOverheadLimit"))
    rig.throng("run", rig.url, "-c", 110, "--ramp", "60/s", "--think", "100ms", *HOLD, "--threshold", "latency.p99 < 200ms")
    rig.check(rig.output().count("Pause Full") > 20, "full collections, one after another")


@scenario(limited("target", "cpu", "thread", "saturated"))
def one_loop_computes(rig):
    """10 ms of CPU a request on one thread, and 200 requests a second are due."""
    loop(rig, "--spin", 0.01, cpus={1})
    rig.throng("run", rig.url, "-c", 100, "--rate", "200/s", *HOLD, *FAST)


@scenario(limited("target", "cpu", "thread", "saturated"))
def node_computes(rig):
    """20 ms of CPU a request on node's one thread, in a closed loop."""
    node(rig, "spin", 20)
    rig.throng("run", rig.url, "-c", 60, *HOLD, *FAST)


@scenario(limited("target", "cpu", "saturated"))
def go_on_one_core(rig):
    """Go on one processor with 8 ms of CPU a request."""
    go(rig, "spin", 8, cpus={1})
    rig.throng("run", rig.url, "-c", 100, "--rate", "200/s", *HOLD, *FAST)


@scenario(limited("target", "cpu", "saturated"))
def quota(rig):
    """Go in a group that may use a fifth of one processor: the kernel counts how often it was stopped."""
    with Cgroup(rig, "cpu", {"cpu.cfs_period_us": 100_000, "cpu.cfs_quota_us": 20_000}) as group:
        server = go(rig, "spin", 4)
        group.take(server)
        rig.throng("run", rig.url, "-c", 60, "--rate", "120/s", *HOLD, *FAST)
        rig.check(int(group.read("cpu.stat").split()[3]) > 10, "it was throttled")


@scenario(limited("target", "saturated"))
def one_lock(rig):
    """Each request holds the only lock for 20 ms of sleep: 50 a second, and the CPU idles."""
    loop(rig, "--lock", 0.02)
    rig.throng("run", rig.url, "-c", 80, *HOLD, *FAST)


@scenario(limited("target", "saturated"))
def small_pool_of_a_database(rig):
    """Five places of 100 ms each, as a small pool of database connections: 50 a second, and 100 are due."""
    loop(rig, "--lock", 0.1, "--pool", 5)
    rig.throng("run", rig.url, "-c", 200, "--rate", "100/s", "-d", "3s", "--timeout", "8s", *FAST)


@scenario(limited("target", "saturated", "threads"))
def go_pool(rig):
    """Eight handlers at once, each 200 ms asleep: 40 a second, and 100 are due."""
    go(rig, "pool", 8)
    rig.throng("run", rig.url, "-c", 200, "--rate", "100/s", "-d", "3s", "--timeout", "8s", *FAST)


@scenario(limited("target", "saturated", "threads"))
def java_waits(rig):
    """Six permits of 100 ms: 60 a second, and 120 connections want one each second."""
    java(rig, "waits", 6)
    rig.throng("run", rig.url, "-c", 120, "--think", "400ms", "-d", "4s", "--timeout", "8s", *FAST)


@scenario(limited("target", "saturated", "threads"))
def puma_threads(rig):
    """puma with five threads, and 200 ms of sleep a request."""
    rig.needs("puma")
    rig.write("config.ru", "run ->(env) { sleep 0.2; [200, {'content-length' => '2'}, ['ok']] }\n")
    rig.start("puma", "-t", "5:5", "-b", f"tcp://127.0.0.1:{rig.port}", "config.ru")
    rig.throng("run", rig.url, "-c", 100, "-d", "5s", "--timeout", "10s", "--threshold", "latency.p99 < 500ms")


@scenario(limited("target", "saturated", "threads", "accept-queue", "slow-accept"))
def gunicorn_workers(rig):
    """Two synchronous workers of gunicorn with 400 ms of sleep a request, and 40 connections: five responses a second."""
    rig.needs("gunicorn")
    rig.write("app.py", "import time\ndef app(environ, start):\n    time.sleep(0.4)\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "2", "-b", f"127.0.0.1:{rig.port}", "app:app")
    rig.throng("run", rig.url, "-c", 40, "--ramp", "100/s", *HOLD)


@scenario(limited("target", "ended", "closed", "request-timeout"))
def gunicorn_kills_slow_workers(rig):
    """A request takes 20 s and gunicorn's limit is 2 s: its log says `WORKER TIMEOUT`, and the worker ends without a response."""
    rig.needs("gunicorn")
    rig.write("app.py", "import time\ndef app(environ, start):\n    time.sleep(20)\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "4", "-t", "2", "-b", f"127.0.0.1:{rig.port}", "app:app")
    rig.throng("run", rig.url, "-c", 4, "-d", "5s", "--timeout", "8s")
    rig.check("WORKER TIMEOUT" in rig.output(), "its log says so")


@scenario(healthy())
def busy_but_in_time(rig):
    """Node computes for 4 ms a request, 120 a second: half a core, and all are in time."""
    node(rig, "spin", 4)
    rig.throng("run", rig.url, "-c", 60, "--rate", "120/s", *HOLD, "--threshold", "latency.p95 < 300ms", "--threshold", "faults == 0")


@scenario(healthy())
def leaks_a_little(rig):
    """Node keeps 10 KiB of objects a request, and its heap suffices."""
    node(rig, "leak", 2)
    rig.throng("run", rig.url, "-c", 60, "--think", "500ms", *HOLD)


@scenario(healthy())
def java_in_a_small_heap(rig):
    """A thread a connection in a heap of 64 MiB, of which a third is used."""
    java(rig, "heap", 100, flags=("-Xmx64m",))
    climb(rig, 150, "80/s")
    rig.check("OutOfMemoryError" not in rig.output(), "the heap suffices")


@scenario(healthy())
def gunicorn_threads_suffice(rig):
    """Twenty threads with 50 ms of sleep a request, and 40 requests a second; gunicorn keeps connections."""
    rig.needs("gunicorn")
    rig.write("app.py", "import time\ndef app(environ, start):\n    time.sleep(0.05)\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "--threads", "20", "--keep-alive", "30", "-b", f"127.0.0.1:{rig.port}", "app:app")
    rig.throng("run", rig.url, "-c", 40, "--think", "1s", *HOLD)


@scenario(healthy())
def apart_from_its_limit(rig):
    """300 of 512 open files, in a group of 400 MiB, of which a tenth is used."""
    with Cgroup(rig, "memory", {"memory.limit_in_bytes": 400 << 20}) as group:
        group.take(c(rig, 512, 0, 0, 64, files=512))
        climb(rig, 300, "200/s")

"""HTTP/1.1 servers that are odd and well: nothing stops the run."""

import time

from recording import healthy, scenario

PACED = ("-d", "3s", "--timeout", "4s")


def loop(rig, *options, **more):
    """The asyncio server with these options."""
    return rig.start("python3", rig.server("ho_async.py"), rig.port, *options, **more)


def paced(rig, connections, think, *more):
    """A load far below what one Python loop can do."""
    return rig.throng("run", rig.url, "-c", connections, "--think", think, *PACED, *more)


@scenario(healthy())
def announced_close_after_requests(rig):
    """The server says `Connection: close` in each third response and closes."""
    loop(rig, "--calls", 3, "--announce")
    paced(rig, 100, "300ms")


@scenario(healthy())
def http_1_0_without_length(rig):
    """HTTP/1.0 responses without a length, which end with the connection, each with one request."""
    loop(rig, "--style", "http10")
    paced(rig, 60, "500ms")


@scenario(healthy())
def until_close(rig):
    """HTTP/1.1 responses with `Connection: close` and no length."""
    loop(rig, "--style", "until-close", "--body", 3_000)
    paced(rig, 60, "500ms")


@scenario(healthy())
def chunked_with_trailers(rig):
    """Chunks 10 ms apart, with extensions and a trailer."""
    loop(rig, "--style", "chunked", "--body", 9_000)
    paced(rig, 100, "300ms..600ms")


@scenario(healthy())
def dribbled_bytes(rig):
    """Each response in single bytes, 2 ms apart: 100 ms for all of them."""
    loop(rig, "--style", "dribble", "--delay", 0.01)
    paced(rig, 20, "500ms..900ms")


@scenario(healthy())
def slow_and_steady(rig):
    """Each response takes 800 ms of sleep, and 2 s are allowed."""
    loop(rig, "--delay", 0.8)
    rig.throng("run", rig.url, "-c", 200, "-d", "4s", "--timeout", "5s", "--threshold", "latency.p99 < 2s", "--threshold", "faults == 0")


@scenario(healthy())
def long_poll(rig):
    """A response after 2 s, on 300 connections."""
    loop(rig, "--delay", 2)
    rig.throng("run", rig.url, "-c", 300, "-d", "5s", "--timeout", "8s")


@scenario(healthy())
def early_hints(rig):
    """103 Early Hints before each response."""
    loop(rig, "--style", "early")
    paced(rig, 60, "500ms..800ms")


@scenario(healthy())
def continues_first(rig):
    """The server sends 100 Continue before the response to each POST, though the client asked for none."""
    loop(rig, "--style", "continue")
    paced(rig, 50, "500ms", "-X", "POST", "--body", '{"name": "{rand 1 900}"}')


@scenario(healthy())
def redirects_expected(rig):
    """302 to each request, which is what the load expects."""
    loop(rig, "--status", "302 Found", "--head", "Location: /other")
    paced(rig, 50, "500ms", "--expect", "status=302")


@scenario(healthy())
def not_found_expected(rig):
    """404 to each request, which is what the load expects."""
    loop(rig, "--status", "404 Not Found")
    paced(rig, 50, "500ms", "--expect", "status=404")


@scenario(healthy())
def no_content(rig):
    """204 without a body or a length."""
    loop(rig, "--status", "204 No Content", "--style", "none")
    paced(rig, 50, "500ms")


@scenario(healthy())
def heads_only(rig):
    """HEAD: a length of 5,000 is announced and no body follows."""
    loop(rig, "--style", "none", "--head", "Content-Length: 5000")
    paced(rig, 50, "500ms", "-X", "HEAD")


@scenario(healthy())
def odd_headers(rig):
    """No reason phrase, mixed case, 4 KB of headers."""
    loop(rig, "--style", "odd")
    paced(rig, 80, "500ms")


@scenario(healthy())
def large_bodies(rig):
    """1 MiB from nginx on each of 20 connections, twice a second."""
    rig.needs("nginx")
    (rig.folder / "index.html").write_bytes(b"x" * (1 << 20))
    config = f"daemon off; pid n.pid; events {{ }} http {{ access_log off; server {{ listen {rig.port}; root {rig.folder}; }} }}"
    rig.folder.chmod(0o755)
    rig.start("nginx", "-p", rig.folder, "-c", rig.write("n.conf", config), "-e", "stderr")
    paced(rig, 20, "500ms", "--expect", "status=200,length=1048576")


@scenario(healthy())
def large_requests(rig):
    """Bodies of 200 KB are sent, which the server reads to their end."""
    loop(rig)
    body = rig.write("body", "y" * 200_000)
    paced(rig, 20, "500ms..900ms", "--body-file", body)


@scenario(healthy())
def pauses_below_the_threshold(rig):
    """node computes for 150 ms each second, as a collector of garbage might; 1 s is allowed."""
    rig.needs("node")
    rig.start("node", rig.server("ho_node.js"), rig.port, "block", 150)
    paced(rig, 100, "400ms", "--threshold", "latency.p99 < 1s", "--threshold", "faults == 0")


@scenario(healthy())
def frozen_below_the_threshold(rig):
    """The loop sleeps for 300 ms each 1.2 s, without CPU; 1 s is allowed."""
    loop(rig, "--pause", 0.3, "--every", 0.9)
    paced(rig, 100, "400ms", "--threshold", "latency.p99 < 1s", "--threshold", "faults == 0")


@scenario(healthy())
def bursts(rig):
    """Responses leave together, each 250 ms."""
    loop(rig, "--tick", 0.25)
    paced(rig, 200, "300ms")


@scenario(healthy())
def many_destinations(rig):
    """Twenty addresses of one server."""
    loop(rig)
    rig.throng("run", f"http://127.0.0.{{1..20}}:{rig.port}/", "-c", 200, "--think", "500ms", *PACED)


@scenario(healthy())
def six(rig):
    """IPv6."""
    loop(rig, "--six", "--host", "::1")
    rig.throng("run", f"http://[::1]:{rig.port}/", "-c", 100, "--think", "400ms", *PACED)


@scenario(healthy())
def small_backlog_that_suffices(rig):
    """A backlog of 32, and 100 connections a second."""
    loop(rig, "--backlog", 32)
    paced(rig, 200, "800ms", "--ramp", "100/s")


@scenario(healthy())
def exactly_enough_connections(rig):
    """The server resets the 301st connection, and there are 300."""
    loop(rig, "--max", 300)
    paced(rig, 300, "800ms")
    rig.check("over" not in rig.output(), "none was above the limit")


@scenario(healthy())
def exactly_enough_files(rig):
    """Threads with 310 open files for 300 connections."""
    rig.start("python3", rig.server("threads.py"), rig.port, files=310)
    paced(rig, 300, "800ms")
    rig.check("Too many open files" not in rig.output(), "the files suffice")


@scenario(healthy())
def exactly_enough_per_address(rig):
    """150 connections per address, and 300 from two addresses."""
    loop(rig, "--per-ip", 150)
    paced(rig, 300, "800ms", "--sources", "127.0.0.2,127.0.0.3")
    rig.check("over" not in rig.output(), "none was above the limit")


@scenario(healthy())
def restarted_before(rig):
    """A first server is killed; the second on the same port serves."""
    first = loop(rig)
    first.kill()
    first.wait()
    time.sleep(0.3)
    rig.start("node", rig.server("ho_node.js"), rig.port, "plain")
    paced(rig, 100, "400ms")


@scenario(healthy())
def arrivals(rig):
    """100 connections a second, with three requests each."""
    loop(rig)
    rig.throng("run", rig.url, "--arrive", "100/s", "--total", 300, "--calls", 3, "--timeout", "4s")


@scenario(healthy())
def arrivals_one_call_each(rig):
    """150 connections a second to a server that closes each after its response, announced."""
    loop(rig, "--calls", 1, "--announce")
    rig.throng("run", rig.url, "--arrive", "150/s", "-d", "3s", "--timeout", "4s")


@scenario(healthy())
def open_loop(rig):
    """150 requests a second on 50 connections."""
    rig.needs("node")
    rig.start("node", rig.server("ho_node.js"), rig.port, "plain")
    rig.throng("run", rig.url, "-c", 50, "--rate", "150/s", *PACED)


@scenario(healthy())
def counted_requests(rig):
    """600 requests in total, and the end."""
    loop(rig, "--delay", 0.05)
    rig.throng("run", rig.url, "-c", 30, "-n", 600, "--think", "50ms", "--timeout", "4s", "-d", "20s")


@scenario(healthy())
def probed(rig):
    """A probe of its own beside 100 connections."""
    loop(rig)
    paced(rig, 100, "500ms", "--probe", "10/s")


@scenario(healthy())
def stages_and_steps(rig):
    """A scenario file: two populations, and half of the users leave in the last stage."""
    loop(rig)
    file = rig.write("load.toml", f"""target = "{rig.url}"
[[stage]]
of = ["idle"]
ramp = "100/s"
[[stage]]
of = ["users"]
ramp = "1s"
for = "1s"
[[stage]]
of = ["users"]
to = "50%"
for = "1s"
[[population]]
name = "idle"
connections = 100
think = "2s..3s"
[[population]]
name = "users"
connections = 60
think = "300ms..500ms"
loop = "look"
[[population.step]]
name = "login"
request = "GET /login"
[[population.step]]
name = "look"
request = "GET /look?page={{rand 1 20}}"
expect = {{ status = 200, body = "xx" }}
""")
    rig.throng("run", file)


@scenario(healthy())
def busy_neighbour(rig):
    """The server shares a core with a process that computes without end; it gets enough of it, and 1 s is allowed."""
    loop(rig, cpus={1})
    rig.start("python3", "-c", "while True: pass", cpus={1}, wait=False)
    paced(rig, 50, "1s", "--threshold", "latency.p99 < 1s", "--threshold", "faults == 0")


@scenario(healthy())
def deep_pool_with_waits(rig):
    """Requests wait for one of ten places, each held 20 ms: 500 a second, and 150 are asked for."""
    loop(rig, "--lock", 0.02, "--pool", 10)
    paced(rig, 75, "500ms", "--threshold", "latency.p99 < 1s", "--threshold", "faults == 0")

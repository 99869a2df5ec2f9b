"""The target itself: CPU in several languages, closes, limits, TLS, timeouts, and what one of its parts does to the others."""

import json
import os
import pathlib
import signal
import socket
import time

from recording import healthy, limited, run_quietly, scenario, unknowable
from tuned.processors import SPIN, cpu_of, was_busy
from tuned.stock_limits import haproxy

PAGES = ("--think", "300ms..700ms", "--timeout", "3s")


def node(rig, kind, *values, **start):
    rig.needs("node")
    return rig.start("node", rig.server("t4_app.js"), rig.port, kind, *values, **start)


def ends(rig, kind, *values, around=(), **start):
    return rig.start(*around, "python3", rig.server("t4_ends.py"), rig.port, kind, *values, **start)


def did(rig, name="counts.json"):
    """What a server of this file says it did, as of at most 0.2 s ago."""
    return json.loads(rig.output(name) or "{}")


def jdk(rig, kind, value, **start):
    rig.needs("java")
    return rig.start("java", "-Xmx96m", "-XX:+UseSerialGC", rig.server("t4_Work.java"), rig.port, kind, value, **start)


def shop(rig, file, *options, **start):
    """HTTPS in Go with a certificate of `t4_apps make`, in the folder of the scenario."""
    program = rig.built("t4_apps.go")
    rig.check(rig.start(program, "make", rig.folder, wait=False).wait(20) == 0, "certificates")
    return rig.start(program, "tls", rig.port, rig.folder / file, *options, **start)


def https(rig, *words, **more):
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", rig.folder / "ca.pem", *words, **more)


def waited_s(program):
    """How long its threads were ready to run, and did not."""
    return sum(int(file.read_text().split()[1]) for file in pathlib.Path(f"/proc/{program.pid}/task").glob("*/schedstat")) / 1e9


# --- CPU ---


@scenario(limited("target", "cpu"), alone=True)
def two_processes_in_c_are_both_full(rig):
    """C, two processes with a listener in common, 13 ms of CPU for each request, and 237/s are due: both are busy all the time. They are nice,
    so that throng has what it needs."""
    server = rig.start("nice", "-n", "15", rig.built("t4_workers.c"), rig.port, 2, 13_000)
    rig.throng("run", rig.url, "-c", "118", "--rate", "237/s", "-d", "6s", "--timeout", "9s", "--threshold", "latency.p90 < 120ms", "--max-lag", "300ms")
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    ready = [sum(map(int, pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[:2])) / 1e9 for pid in children]
    rig.check(len(ready) == 2 and min(ready) > 5.5, f"both were running, or ready to run, for seconds: {ready}")


@scenario(healthy(), alone=True)
def two_processes_in_c_have_some_left(rig):
    """The same with 43/s, which is a quarter of what both can do; the threshold is 400 ms."""
    server = rig.start("nice", "-n", "15", rig.built("t4_workers.c"), rig.port, 2, 13_000)
    rig.throng("run", rig.url, "-c", "59", "--rate", "43/s", "-d", "5s", "--timeout", "4s", "--threshold", "latency.p99 < 400ms", "--max-lag", "100ms")
    children = pathlib.Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    used = sum(int(pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in children) / 1e9
    rig.check(2 < used < 4, f"they used {used:.1f} s of CPU")


@scenario(limited("target", "cpu", "stall", "saturated"), alone=True)
def an_expression_that_backtracks(rig):
    """Node: each twentieth request is checked with an expression that takes some 40 ms of CPU, and all others wait meanwhile, in the one
    thread; a core is not full. 163/s are due, and the threshold is 15 ms."""
    server = node(rig, "regex", 20, 22)
    rig.throng("run", rig.url, "-c", "71", "--rate", "163/s", "-d", "7s", "--timeout", "3s", "--threshold", "latency.p90 < 15ms", "--max-lag", "50ms")
    counts = did(rig)
    rig.check(20 < counts["slow_ms"] / counts["slow"] < 70, f"an expression takes {counts['slow_ms'] / counts['slow']:.0f} ms")
    rig.check(1 < cpu_of(server) < 6.5, f"it used {cpu_of(server)} s of CPU")


@scenario(healthy(), alone=True)
def an_expression_that_backtracks_within_the_budget(rig):
    """The same expression once in ninety requests, of which 97/s are due; the threshold is 250 ms."""
    node(rig, "regex", 90, 22)
    rig.throng("run", rig.url, "-c", "37", "--rate", "97/s", "-d", "5s", "--timeout", "3s", "--threshold", "latency.p99 < 250ms", "--max-lag", "50ms")
    rig.check(did(rig)["slow"] >= 4, "it was asked for")


@scenario(limited("target", "cpu"), alone=True)
def java_compresses_each_page(rig):
    """Java, three threads on one processor; each response is a page of 140 kB, compressed at level 9. Users wait for each response, and have a
    timeout of 2.5 s."""
    server = jdk(rig, "gzip", 140_000, cpus={1})
    before = cpu_of(server)
    rig.throng("run", rig.url, "-c", "93", "--ramp", "31/s", "-d", "5s", "--think", "100ms..500ms", "--timeout", "2500ms",
               "--threshold", "latency.p90 < 400ms", cpus={0})
    rig.check(cpu_of(server) - before > 5, f"it used {cpu_of(server) - before} s of CPU")


@scenario(limited("target", "cpu"), alone=True)
def handshakes_with_rsa_of_4096_bits(rig):
    """nginx with one worker and a key of RSA with 4,096 bits; 380 connections arrive in a second, with full handshakes, and it signs
    some 150 a second: its core is full of nothing but signatures."""
    rig.needs("nginx")
    program = rig.built("t4_apps.go")
    rig.check(rig.start(program, "make", rig.folder, wait=False).wait(20) == 0, "certificates")
    rig.folder.chmod(0o755)
    text = f"""daemon off; master_process off; pid {rig.folder}/nginx.pid; error_log stderr warn; worker_processes 1;
events {{ worker_connections 3000; }}
http {{ access_log off; ssl_session_cache off; ssl_session_tickets off; ssl_certificate rsa.pem; ssl_certificate_key rsa.pem;
  server {{ listen {rig.port} ssl backlog=1023; location / {{ return 200 ok; }} }} }}
"""
    server = rig.start("nginx", "-p", rig.folder, "-c", rig.write("nginx.conf", text), cpus={1})
    https(rig, "--no-resume", "--arrive", "380/s", "-d", "6s", "--timeout", "2s", cpus={0})
    was_busy(rig, server, 5)


@scenario(limited("target", "cpu", "stall"), alone=True)
def a_program_of_real_time_takes_its_processor(rig):
    """From second 2.3 on a program with a real-time priority has the server's processor for 1.8 s, and its kernel leaves the server 50 ms of
    each second; the threshold is 140 ms."""
    server = rig.odd("--work", "0.003", cpus={1})
    rig.later("2.3", "taskset", "-c", "1", "chrt", "-f", "41", "timeout", "1.8", "python3", "-c", SPIN)
    rig.throng("run", rig.url, "-c", "61", "--rate", "73/s", "-d", "7s", "--timeout", "5s", "--threshold", "latency.p95 < 140ms", cpus={0})
    rig.check(waited_s(server) > 1, f"it waited {waited_s(server):.1f} s for its processor")


@scenario(healthy(), alone=True)
def a_neighbour_that_leaves_enough(rig):
    """A program spins on the server's processor all the time, with the same priority; the server needs a seventh of it, and the threshold is
    200 ms."""
    server = rig.odd("--work", "0.002", cpus={1})
    rig.start("python3", "-c", SPIN, cpus={1}, wait=False)
    rig.throng("run", rig.url, "-c", "67", "--rate", "67/s", "-d", "5s", "--timeout", "4s", "--threshold", "latency.p95 < 200ms", cpus={0})
    rig.check(waited_s(server) > 0.05, f"it waited {waited_s(server):.2f} s for its processor")


# --- closes and resets ---


@scenario(limited("target", "closed"))
def go_panics_for_some_items(rig):
    """Go: one item in 29 does not exist, its handler dereferences nil, and net/http closes the connection without a response. All others are served."""
    rig.start(rig.built("t4_apps.go"), "items", rig.port)
    rig.throng("run", rig.url + "item/{rand 1 986}", "-c", "83", "--ramp", "120/s", "-d", "4s", *PAGES)
    rig.check(rig.output().count("http: panic serving") > 15 and "nil pointer" in rig.output(), "it panicked")


@scenario(limited("target", "idle-cut"))
def gunicorn_keeps_alive_for_a_second(rig):
    """gunicorn, 40 threads, --keep-alive 1, which it does not announce; the pauses are 0.4 s to 2.6 s, so that some requests find their
    connection closed."""
    rig.needs("gunicorn")
    rig.write("app.py", "def app(environ, start):\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "--worker-class", "gthread", "--threads", 40, "--keep-alive", 1, "--bind", f"127.0.0.1:{rig.port}", "app:app")
    rig.throng("run", rig.url, "-c", "34", "--ramp", "40/s", "-d", "5s", "--think", "400ms..2600ms", "--timeout", "3s")
    with socket.create_connection((rig.host, rig.port), timeout=9) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: one\r\n\r\n")
        text, began = one.recv(900), time.monotonic()
        while part := one.recv(900):
            text += part
        idle = time.monotonic() - began
    rig.check(b"200 OK" in text and b"timeout=" not in text and b"close" not in text.lower() and 0.9 < idle < 2.6, f"closed after {idle:.1f} s: {text}")


UPLOADS = """target = "URL"
ramp = "90/s"
duration = "4s"
timeout = "3s"
think = "200ms..600ms"
[[population]]
name = "writers"
connections = 59
[[population.step]]
name = "note"
weight = 6
request = "POST /note"
body = "n=1"
[[population.step]]
name = "photo"
weight = 1
request = "POST /photo"
body-file = "photo.bin"
"""


@scenario(limited("target", "wrong-answer", "closed", says="413|reset|photo"))
def photos_that_nobody_reads(rig):
    """Python: a body beyond 37 kB gets 413 and a close, and is not read: what is unread turns the close into a reset, which may overtake the
    413. One upload in seven is a photo of 58 kB; the others are served."""
    ends(rig, "uploads", 37_000)
    rig.write("photo.bin", "p" * 58_000)
    rig.throng("run", rig.write("load.toml", UPLOADS.replace("URL", rig.url)))
    rig.check(did(rig)["odd"] > 20 and did(rig)["responses"] > 150, f"some were: {did(rig)}")


@scenario(limited("target", "requests-per-connection", "closed"))
def ends_its_half_after_seven_responses(rig):
    """Python: after seven responses on a connection it ends its half of it, without an announcement, and reads on until the client closes."""
    ends(rig, "half-close", 7)
    rig.throng("run", rig.url, "-c", "62", "--ramp", "100/s", "-d", "5s", "--think", "150ms..450ms", "--timeout", "3s", "--reconnect", "200ms..1s")
    rig.check(did(rig)["odd"] >= 62, f"halves ended: {did(rig)}")


@scenario(healthy())
def ends_its_half_and_announces_it(rig):
    """The same after eleven responses, with `Connection: close` in the last one."""
    ends(rig, "half-close", 11, "announce")
    rig.throng("run", rig.url, "-c", "47", "--ramp", "100/s", "-d", "4s", "--think", "40ms..160ms", "--timeout", "3s")
    rig.check(did(rig)["odd"] > 60, f"halves ended: {did(rig)}")


@scenario(limited("target", "ended", "refused"))
def drains_and_comes_back_too_late(rig):
    """Node: on SIGTERM in second 2.4 it announces closes and ends, as it should; what starts it again needs 1.1 s, and nothing listens meanwhile."""
    rig.needs("node")
    loop = f'while :; do node {rig.server("t4_app.js")} {rig.port} drain & echo $! > pid; wait $!; echo "exit status $?"; sleep 1.1; done'
    rig.start("bash", "-c", loop)
    rig.later("2.4", "sh", "-c", f"kill -TERM $(cat {rig.folder}/pid)")
    rig.throng("run", rig.url, "-c", "57", "--ramp", "100/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "3s")
    rig.check("drained" in rig.output() and "exit status 0" in rig.output(), "it drained and ended")


@scenario(limited("target", "connection-limit", at=(160, 169)))
def one_of_them_at_random_has_to_go(rig):
    """Node: beyond 167 connections it destroys one of all, drawn at random, the new one as likely as any other."""
    node(rig, "evict", 167)
    rig.throng("run", rig.url, "-c", "213", "--ramp", "75/s", "-d", "4s", "--think", "400ms..900ms", "--timeout", "3s")
    counts = did(rig)
    rig.check(counts["evicted"] >= 40 and counts["most_open"] <= 168, f"{counts}")


# --- limits on connections ---


def each_process(rig):
    return [did(rig, f"counts-{nth}.json") for nth in range(3)]


@scenario(limited("target", "connection-limit", at=(75, 115)))
def three_processes_with_38_connections_each(rig):
    """Python, three processes at one port (SO_REUSEPORT); each closes connections beyond its 38, which some reach while others have room."""
    ends(rig, "processes", 3, 38)
    rig.throng("run", rig.url, "-c", "149", "--ramp", "58/s", "-d", "4s", *PAGES)
    counts = each_process(rig)
    rig.check(sum(one["odd"] for one in counts) >= 20 and max(one["most_open"] for one in counts) == 39, f"{counts}")


@scenario(healthy())
def three_processes_with_room_for_all(rig):
    """The same with 71 connections each, for 103: unevenly distributed, and none is full."""
    ends(rig, "processes", 3, 71)
    rig.throng("run", rig.url, "-c", "103", "--ramp", "150/s", "-d", "4s", *PAGES)
    counts = each_process(rig)
    rig.check(all(one["odd"] == 0 and one["accepted"] > 5 for one in counts), f"{counts}")


@scenario(limited("target", "connection-limit", "saturated"))
def slows_down_beyond_83_connections(rig):
    """Node, a soft limit: each response waits for 9 ms for each connection beyond 83. 141 come slowly, and the threshold is 150 ms."""
    server = node(rig, "soft", 83, 9)
    rig.throng("run", rig.url, "-c", "141", "--ramp", "45/s", "-d", "4s", "--think", "200ms..400ms", "--timeout", "3s", "--threshold", "latency.p90 < 150ms")
    rig.check(did(rig)["delayed"] > 300 and cpu_of(server) < 3, f"{did(rig)}")


@scenario(limited("target", "threads", "memory", "connection-limit", at=(45, 53)))
def a_control_group_of_53_threads(rig):
    """Python, a thread for each connection, in a control group of 53 tasks (pids.max, as containers have it): connections beyond are closed, with
    a line in its log."""
    around, group = rig.cgroup("pids", max=53)
    ends(rig, "threads", around=around)
    rig.throng("run", rig.url, "-c", "86", "--ramp", "43/s", "-d", "4s", *PAGES)
    events = (group / "pids.events").read_text()
    rig.check("can't start new thread" in rig.output() and int(events.split()[1]) > 0, f"{events}")


# --- TLS ---


@scenario(limited("target", "tls", says="certificate"))
def it_wants_a_client_certificate(rig):
    """Go, TLS 1.3, client certificates required, and the load has none: the alert comes after the client's side of the handshake is done."""
    shop(rig, "good.pem", "-client")
    https(rig, "-c", "43", "--ramp", "43/s", "-d", "2s", *PAGES)
    rig.check("client didn't provide a certificate" in rig.output(), "its log says so")


@scenario(healthy())
def client_certificates_of_an_old_server(rig):
    """Go, TLS 1.2 only, client certificates required; the load has one, and makes full handshakes."""
    shop(rig, "good.pem", "-client", "-12")
    https(rig, "--cert", rig.folder / "client.pem", "--key", rig.folder / "client.key", "--no-resume", "--arrive", "31/s", "--calls", "3", "-d", "4s", "--timeout", "3s")
    rig.check("handshake error" not in rig.output(), "no error in its log")


@scenario(limited("target", "tls"))
def ciphers_of_ten_years_ago(rig):
    """Go, TLS 1.2 with ciphers of CBC only, of which throng offers none: an alert to each ClientHello."""
    shop(rig, "good.pem", "-cbc")
    https(rig, "-c", "38", "--ramp", "50/s", "-d", "2s", *PAGES)
    rig.check("no cipher suite supported by both client and server" in rig.output(), "its log says so")


@scenario(limited("target", "tls", says="expired"))
def an_intermediate_that_has_expired(rig):
    """Its own certificate is valid for a year; the intermediate that it sends with it has expired two days ago."""
    shop(rig, "stale.pem")
    https(rig, "-c", "29", "--ramp", "40/s", "-d", "2s", *PAGES)
    own = run_quietly("openssl", "x509", "-in", rig.folder / "stale.pem", "-noout", "-checkend", "0")
    rig.check("will not expire" in own, "its own has not expired")


@scenario(limited("target", "tls", says="name"))
def a_certificate_of_another_name(rig):
    """Its certificate is valid for the address 127.0.0.1, and not for the name that the load asks for, as after a move to a new domain."""
    shop(rig, "good.pem")
    rig.throng("run", f"https://shop.example.net:{rig.port}/", "--cacert", rig.folder / "ca.pem", "--connect-to", f"::127.0.0.1:{rig.port}",
               "-c", "31", "--ramp", "40/s", "-d", "2s", *PAGES)
    rig.check("bad certificate" in rig.output(), f"its log says so: {rig.output()[-300:]}")


@scenario(limited("target", "tls", "closed", "wrong-answer"))
def an_alert_in_the_middle(rig):
    """Go, TLS: one request in 37 gets an alert (internal_error), which is not encrypted, and a close instead of a response; the others are served."""
    shop(rig, "good.pem", "-alert", 37)
    https(rig, "-c", "52", "--ramp", "100/s", "-d", "4s", "--think", "200ms..500ms", "--timeout", "3s")
    rig.check(rig.output().count("alert sent") > 8, f"{rig.output().count('alert sent')} alerts")


@scenario(limited("target", "timeout", "tls"))
def handshakes_that_wait_for_a_staple(rig):
    """From second 1.7 on each third handshake waits, after the ClientHello, for a responder of OCSP that never replies; the others are
    served. 47 connections arrive in a second."""
    file = rig.certificate()
    ends(rig, "stapling", "1.7", file)
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "--arrive", "47/s", "-d", "5s", "--timeout", "1500ms")
    rig.check(did(rig)["odd"] > 30, f"{did(rig)}")


@scenario(unknowable(may=("tls", "closed")))
def one_handshake_in_nine_ends_afar(rig):
    """A host afar closes one connection in nine after its ClientHello, with a FIN: a balancer, a filter or the server, which cannot be known."""
    far = rig.far()
    ends(rig, "cuts", 9, rig.certificate(), netns=far)
    rig.throng("run", f"https://{rig.host}:{rig.port}/", "-k", "--arrive", "53/s", "-d", "5s", "--timeout", "3s")
    rig.check(did(rig)["odd"] > 15, f"{did(rig)}")


# --- timeouts ---


@scenario(limited("target", "timeout", "stall"))
def one_of_seven_shards_hangs(rig):
    """From second 1.4 on requests for items of one of seven shards get no response; the others are served at once."""
    ends(rig, "shards", "1.4")
    rig.throng("run", rig.url + "item/{rand 1 6300}", "-c", "89", "--ramp", "150/s", "-d", "5s", "--think", "200ms..600ms", "--timeout", "1700ms")
    rig.check(did(rig)["odd"] > 40, f"{did(rig)}")


@scenario(limited("target", "wrong-answer", says="504"))
def haproxy_waits_for_half_a_second(rig):
    """haproxy with `timeout server 530ms` before a service that takes 140 ms to 640 ms, as it likes: a fifth of the responses is 504."""
    rig.odd("--delay", "0.14", "--spread", "0.5", port=3_001)
    haproxy(rig, "server one 127.0.0.1:3001", defaults="option httplog\n timeout server 530ms", globals_="log stderr format raw daemon info")
    rig.throng("run", rig.url, "-c", "67", "--ramp", "90/s", "-d", "5s", "--think", "200ms..500ms", "--timeout", "3s")
    log = rig.output()
    rig.check(log.count(" 504 ") > 40 and log.count(" sH") > 40 and rig.counted()["responses"] > 100, "its log says so, and the service responds")


PARTS = """ramp = "100/s"
duration = "7s"
timeout = "5s"
think = "100ms..300ms"
thresholds = ["users.latency.p99 < 350ms", "faults == 0"]
[[population]]
name = "users"
target = "http://127.0.0.1:PORT/page"
connections = 53
[[population]]
name = "visitors"
target = "http://127.0.0.1:PORT/about"
connections = 19
"""


@scenario(limited("target", "stall"))
def what_it_depends_on_hangs_for_two_seconds(rig):
    """Node before a service that is stopped from second 3 to 5: pages wait for it, and /about is served at once. The threshold is on the pages."""
    service = rig.odd(port=3_001)
    node(rig, "pages", 3_001, log="node.log")
    rig.later("3", "kill", "-STOP", service.pid)
    rig.later("5", "kill", "-CONT", service.pid)
    rig.throng("run", rig.write("load.toml", PARTS.replace("PORT", str(rig.port))))
    rig.check("service:" not in rig.output("node.log"), "none failed")
    rig.check(rig.summary["verdict"] != "invalid", "a quiet machine")


TRANSFERS = """ramp = "100/s"
duration = "5s"
timeout = "1800ms"
think = "150ms..450ms"
[[population]]
name = "clerks"
target = "http://127.0.0.1:PORT/transfer"
connections = 31
[[population]]
name = "readers"
target = "http://127.0.0.1:PORT/rates"
connections = 44
"""


@scenario(limited("target", "timeout", "stall"))
def java_deadlocks_and_half_of_it_lives_on(rig):
    """Java: from second 1.9 on transfers lock two accounts in either order, and soon two threads wait for each other and all other transfers for
    them; rates are served as before."""
    rig.needs("jstack")
    server = jdk(rig, "accounts", 1_900)
    rig.throng("run", rig.write("load.toml", TRANSFERS.replace("PORT", str(rig.port))))
    os.kill(server.pid, signal.SIGQUIT)
    time.sleep(1)
    rig.check("Found one Java-level deadlock" in rig.output(), "its JVM says so")


@scenario(limited("target", "wrong-answer", "closed", "timeout", "request-timeout", says="408|close"))
def uploads_too_slow_for_its_protection(rig):
    """Go with a ReadTimeout of 0.9 s against slow clients, behind a link of 3 Mbit/s: 19 uploads of 50 kB a second share it, take longer, and get
    408 and a close."""
    router, far = rig.behind_router()
    run_quietly(*f"ip netns exec {router} tc qdisc add dev next0 root tbf rate 3mbit burst 16k latency 2s".split())
    rig.start(rig.built("t4_apps.go"), "uploads", rig.port, "-read", "900ms", netns=far)
    body = rig.write("upload.bin", "u" * 50_000)
    rig.throng("run", rig.url, "--body-file", body, "--arrive", "19/s", "-d", "6s", "--timeout", "6s")
    rig.check(rig.output().count("i/o timeout") > 10, f"{rig.output().count('i/o timeout')} were too slow")


@scenario(unknowable(may=("closed",)))
def its_hosts_firewall_resets_some(rig):
    """A host afar: its firewall answers one request in 61 with a reset in the server's name, whatever it asks for, and the server never sees it:
    from here it is the server or its host or what is before them."""
    far = rig.far()
    rig.odd(netns=far)
    rig.nft("table ip own {\n chain in {\n type filter hook input priority 0\n tcp dport 8080 tcp flags & (psh | ack) == (psh | ack) "
            "numgen random mod 61 == 0 counter reject with tcp reset\n }\n}\n", netns=far)
    rig.throng("run", rig.url, "-c", "73", "--ramp", "140/s", "-d", "5s", "--think", "200ms..500ms", "--timeout", "3s")
    counted = rig.netns_output(far, "nft", "list", "ruleset").split("packets ")[1].split()[0]
    rig.check(int(counted) > 5, f"{counted} packets")

"""Limits and faults of targets: places for clients, closes for reasons of their own, pools and locks, TLS, processors, memory, and manners that only
look like faults."""

import json
import os
import time

from recording import healthy, limited, run_quietly, scenario, unknowable
from tuned.processors import SPIN, cpu_of, was_busy
from tuned.stock import MODULES
from tuned.stock_limits import nginx


def manners(rig, kind, *values, around=(), **start):
    return rig.start(*around, "python3", rig.server("manners.py"), rig.port, kind, *values, **start)


def clients(rig, kind, value, **start):
    rig.needs("node")
    return rig.start("node", rig.server("clients.js"), rig.port, kind, value, **start)


def doors(rig, kind, *values, around=(), **start):
    return rig.start(*around, rig.built("doors.go"), rig.port, kind, *values, **start)


def pools(rig, kind, value, *options):
    rig.needs("java")
    return rig.start("java", "-XX:+UseSerialGC", *options, rig.server("Pools.java"), rig.port, kind, value)


def authorities(rig):
    """The certificates of `t4_apps make` in the folder of the scenario."""
    rig.check(rig.start(rig.built("t4_apps.go"), "make", rig.folder, wait=False).wait(20) == 0, "certificates")


def did(rig, name="counts.json"):
    """What a server of this file says it did, as of at most 0.2 s ago."""
    time.sleep(0.3)
    return json.loads(rig.output(name) or "{}")


# --- places for clients ---


@scenario(limited("target", "connection-limit", "timeout", at=(35, 39)))
def tls_handshakes_wait_for_a_thread(rig):
    """Python, 37 threads, each with one connection from its handshake to its end; the others are accepted at once, and nobody reads their
    ClientHello while the first ones stay."""
    manners(rig, "tls-threads", 37, rig.certificate())
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "-c", "58", "--ramp", "29/s", "-d", "4s", "--think", "250ms..650ms", "--timeout", "2s")
    counts = did(rig)
    rig.check(counts["most_open"] == 37 and counts["responses"] > 200, f"{counts}")


LINES = """target = "tcp://127.0.0.1:PORT"
ramp = "48/s"
duration = "3s"
timeout = "2s"
[[population]]
name = "apps"
connections = 97
[[population.step]]
send = "PING\\r\\n"
expect = { body = "+PONG" }
[[population.step]]
wait = "300ms..700ms"
"""


@scenario(limited("target", "connection-limit", at=(59, 62)))
def max_number_of_clients_reached(rig):
    """A store with room for 61 clients: the others get `-ERR max number of clients reached` and a close, as Redis does it. Raw TCP with lines."""
    manners(rig, "clients", 61)
    rig.throng("run", rig.write("load.toml", LINES.replace("PORT", str(rig.port))))
    counts = did(rig)
    rig.check(counts["odd"] >= 30 and counts["most_open"] >= 62, f"{counts}")


DEVICES = """ramp = "60/s"
duration = "3s"
timeout = "2s"
[[population]]
name = "devices"
target = "ws://127.0.0.1:PORT/chat?user={csv users.id}"
connections = 89
ping = "400ms"
[csv.users]
file = "users.csv"
"""


@scenario(limited("target", "connection-limit", "closed"))
def a_fourth_device_signs_out_the_first(rig):
    """Node, WebSockets: each user may have three of them; the fourth closes the oldest one with 4001 (signed in elsewhere). The load has 89 devices of
    23 users."""
    clients(rig, "devices", 3)
    rig.write("users.csv", "id\n" + "".join(f"u{nth}\n" for nth in range(23)))
    rig.throng("run", rig.write("load.toml", DEVICES.replace("PORT", str(rig.port))))
    counts = did(rig)
    rig.check(15 <= counts["odd"] <= 25 and counts["responses"] > 300, f"{counts}")


@scenario(limited("target", "connection-limit", "closed"))
def resets_what_comes_faster_than_19_a_second(rig):
    """Go, a listener that protects itself: connections of an address beyond 19 a second (and eleven at once) are reset as soon as they are accepted. 43
    arrive in a second, with a request each, and few are open at a time."""
    doors(rig, "pace", 19, 11)
    rig.throng("run", rig.url, "--arrive", "43/s", "-d", "5s", "--timeout", "3s")
    counts = did(rig, f"counts-{rig.port}.json")
    rig.check(counts["odd"] > 80 and counts["responses"] > 80, f"{counts}")


@scenario(limited("target", "connection-limit", at=(139, 145)))
def node_drops_those_that_come_again_and_again(rig):
    """Node with maxConnections 143; 190 users come, and those without a place dial again after a back-off, until the end."""
    clients(rig, "maximum", 143)
    rig.throng("run", rig.url, "-c", "190", "--ramp", "95/s", "-d", "4s", "--think", "500ms..900ms", "--timeout", "3s", "--reconnect", "300ms..900ms")
    counts = did(rig)
    rig.check(counts["odd"] > 100 and counts["most_open"] == 143, f"{counts}")


@scenario(limited("target", "connection-limit", "closed", at=(18, 22)))
def goaway_to_each_session_beyond_nineteen(rig):
    """Node, HTTP/2: a connection beyond 19 gets GOAWAY with NO_ERROR before its first request, which is polite and of no use: who dials again gets the
    same."""
    clients(rig, "sessions", 19)
    rig.throng("run", rig.url, "--http2", "-c", "31", "--ramp", "21/s", "-d", "4s", "--think", "200ms..400ms", "--timeout", "3s")
    counts = did(rig)
    rig.check(counts["odd"] >= 12 and counts["responses"] > 300, f"{counts}")


# --- closes for reasons of its own ---


ITEMS = """target = "http://127.0.0.1:PORT/"
ramp = "90/s"
duration = "4s"
timeout = "3s"
[[population]]
name = "shoppers"
connections = 53
think = "150ms..450ms"
[[population.step]]
name = "there"
weight = 9
request = "GET /item/{rand 1 12}"
expect = { status = 200 }
[[population.step]]
name = "sold-out"
weight = 1
request = "GET /item/13"
expect = { status = 404 }
"""


@scenario(limited("target", "closed"))
def closes_after_each_404(rig):
    """Python: one item in ten is sold out, and 404 is what the load expects of it; after such a response, and no other one, the connection is closed
    without a word."""
    manners(rig, "errors")
    rig.throng("run", rig.write("load.toml", ITEMS.replace("PORT", str(rig.port))))
    counts = did(rig)
    rig.check(counts["odd"] > 25 and counts["responses"] > 200, f"{counts}")


@scenario(limited("target", "idle-cut", "closed"))
def sweeps_idle_ones_each_two_seconds(rig):
    """Go: each 2.1 s a sweep closes all connections that have been idle for 0.9 s or longer at that moment, so that some are closed after 0.9 s of
    silence, and others are served after 2.5 s of it."""
    doors(rig, "sweep", "2100ms", "900ms")
    rig.throng("run", rig.url, "-c", "73", "--ramp", "60/s", "-d", "5s", "--think", "400ms..3s", "--timeout", "3s")
    counts = did(rig, f"counts-{rig.port}.json")
    rig.check(counts["odd"] >= 25, f"{counts}")


@scenario(limited("target", "closed", "wrong-answer", says="calm|too_many_pings"))
def too_many_pings(rig):
    """Node, gRPC: it takes more than four PINGs without a call between them for an attack, and says GOAWAY with ENHANCE_YOUR_CALM, too_many_pings. The
    load keeps its connections alive each 310 ms, and calls each 1 s to 2.6 s."""
    clients(rig, "calls", 4)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/shop.Prices/Get", "-c", "41", "--ramp", "60/s", "-d", "5s", "--think", "1s..2600ms", "--ping", "310ms",
               "--timeout", "3s")
    counts = did(rig)
    rig.check(counts["odd"] >= 20, f"{counts}")


@scenario(limited("target", "closed", "ended"))
def gunicorn_workers_end_one_after_the_other(rig):
    """gunicorn, three workers with 20 threads each, --max-requests 140 and a jitter of 70: a worker that had its share ends with all of its connections, which it
    does not announce to those that are idle, and another one is started."""
    rig.needs("gunicorn")
    rig.write("app.py", "def app(environ, start):\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "--worker-class", "gthread", "--workers", 3, "--threads", 20, "--keep-alive", 20, "--max-requests", 140, "--max-requests-jitter", 70,
              "--bind", f"127.0.0.1:{rig.port}", "app:app")
    rig.throng("run", rig.url, "-c", "43", "--ramp", "86/s", "-d", "5s", "--think", "80ms..240ms", "--timeout", "3s")
    ends = rig.output().count("Autorestarting worker")
    rig.check(ends >= 2, f"{ends} workers ended")


# --- pools, locks, nodes ---


@scenario(limited("target", "timeout", "stall"))
def leaks_a_place_of_its_pool_with_each_cancelled_order(rig):
    """Java: one order in 31 was cancelled, and its page comes as quickly as others, but the place that it had in the pool of thirteen is never given
    back. When the last one is gone, no request gets a response any more."""
    pools(rig, "leak", 13, "-Xmx80m")
    rig.throng("run", rig.url + "order/{rand 1 310}", "-c", "52", "--ramp", "104/s", "-d", "6s", "--think", "200ms..500ms", "--timeout", "1600ms")
    counts = did(rig)
    rig.check(counts["odd"] == 13 and counts["responses"] > 150, f"{counts}")


@scenario(limited("target"))
def nginx_tries_a_dead_node_first(rig):
    """nginx before two nodes, without checks (max_fails=0); the host of one is switched off, so nginx waits for 0.9 s (proxy_connect_timeout) before it
    asks the other one: half of the responses take 0.9 s. The threshold is 300 ms. No cause of the list fits."""
    far = rig.far()
    run_quietly("ip", "-n", far, "link", "set", "veth1", "down")
    rig.host = "127.0.0.1"
    rig.nft("table ip own {\n chain out {\n type filter hook output priority 0; tcp dport 3002 counter drop\n }\n}\n")
    rig.odd(port=3_001)
    nginx(rig, "location / { proxy_pass http://nodes; proxy_connect_timeout 900ms; }",
          http="upstream nodes { server 10.77.0.2:3002 max_fails=0; server 127.0.0.1:3001 max_fails=0; }")
    rig.throng("run", rig.url, "-c", "64", "--rate", "38/s", "-d", "5s", "--timeout", "4s", "--threshold", "latency.p90 < 300ms")
    seen = rig.output().count("upstream timed out")
    rig.check(seen > 50, f"{seen} in its log: {rig.output()[-200:]}")


CLERKS = """ramp = "60/s"
duration = "6s"
timeout = "5s"
thresholds = ["latency.p99 < 250ms", "faults == 0"]
[[population]]
name = "clerks"
target = "tcp://127.0.0.1:{port}"
connections = 43
loop = "query"
[[population.step]]
name = "start"
send-hex = "{start}"
expect = {{ body = "server_version" }}
[[population.step]]
wait = "200ms..400ms"
[[population.step]]
name = "query"
send-hex = "{query}"
expect = {{ body = "SELECT 1" }}
[[population.step]]
wait = "200ms..400ms"
"""


@scenario(limited("target", "stall"))
def a_migration_locks_the_table(rig):
    """PostgreSQL: in second 3 a migration takes the table that all read (ACCESS EXCLUSIVE), and keeps it for 1.7 s. All queries wait for it, without CPU,
    and none fails; the threshold is 250 ms."""
    rig.needs("postgres", "initdb", "psql", "setpriv")
    rig.folder.chmod(0o755)
    data = rig.folder / "data"
    data.mkdir()
    run_quietly("chown", "postgres", data)
    own = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups")
    run_quietly(*own, "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", cwd=rig.folder)
    options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "autovacuum": "off", "log_lock_waits": "on",
               "deadlock_timeout": "300ms"}
    rig.start(*own, "postgres", "-D", data, "-p", rig.port, *(word for name, value in options.items() for word in ("-c", f"{name}={value}")))
    psql = ("psql", "-h", "127.0.0.1", "-p", rig.port, "-U", "postgres", "-q", "-c")
    for _ in range(50):
        try:
            run_quietly(*psql, "create table t as select 7 as n", cwd=rig.folder)
            break
        except Exception:  # noqa: BLE001  (it is starting)
            time.sleep(0.2)
    rig.later("3", *psql, "begin; lock table t; select pg_sleep(1.7); commit")
    parameters = b"\0\3\0\0user\0postgres\0database\0postgres\0\0"
    start, text = (len(parameters) + 4).to_bytes(4, "big") + parameters, b"select n from t\0"
    query = b"Q" + (len(text) + 4).to_bytes(4, "big") + text
    rig.throng("run", rig.write("load.toml", CLERKS.format(port=rig.port, start=start.hex(), query=query.hex())))
    rig.check(rig.output().count("still waiting for AccessShareLock") > 20, "its log says so")


@scenario(limited("target", "saturated", "stall", "timeout"))
def its_log_is_read_too_slowly(rig):
    """Python: each request writes a line of 1.9 kB to standard output, a pipe, and what collects it reads 41 kB a second. From second 1.5 on it waits in
    write(2) nearly all the time, without CPU: 21 requests a second, and 47 are due."""
    slow = "import os, time\nwhile os.read(0, 4096): time.sleep(0.1)"
    reader = rig.write("collector.py", slow)
    rig.start("bash", "-c", f"python3 {rig.server('manners.py')} {rig.port} log 1900 | python3 {reader}")
    rig.throng("run", rig.url, "-c", "77", "--rate", "47/s", "-d", "7s", "--timeout", "6s", "--threshold", "latency.p90 < 250ms")
    counts = did(rig)
    rig.check(counts["log_ms"] > 3_500, f"it wrote its log for {counts['log_ms']:.0f} ms")


@scenario(limited("target", "saturated"))
def asyncio_has_six_threads_for_what_blocks(rig):
    """Python, asyncio.to_thread around a driver that blocks for 170 ms: the default executor has four threads more than the machine has processors, which are six
    here, 35 requests a second; 58 users would send 86. The threshold is 600 ms."""
    manners(rig, "to-thread", 170)
    rig.throng("run", rig.url, "-c", "58", "--ramp", "58/s", "-d", "5s", "--think", "300ms..700ms", "--timeout", "6s", "--threshold", "latency.p90 < 600ms")
    counts = did(rig)
    rig.check(counts["odd"] > 30 and 120 < counts["responses"] < 300, f"as many waited for a thread at once: {counts}")


HOOKS = """ramp = "80/s"
duration = "6s"
timeout = "2500ms"
[[population]]
name = "readers"
target = "http://127.0.0.1:PORT/page"
connections = 47
think = "200ms..600ms"
[[population]]
name = "hooks"
target = "http://127.0.0.1:PORT/hook"
connections = 91
rate = "7/s"
"""


@scenario(limited("target", "saturated", "timeout"))
def two_threads_of_libuv_wait_for_names(rig):
    """Node: a webhook looks up a name (dns.lookup), whose server never replies, for 1 s; seven are due each second, and libuv gives such calls two of its four threads,
    so that they wait longer and longer. Pages, which are read from a file, have the other two, and are served. No CPU is used."""
    rig.start("python3", "-c", "import socket, time\none = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); one.bind(('127.0.0.1', 53)); time.sleep(99)", wait=False)
    run_quietly("mount", "--bind", rig.write("resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"), "/etc/resolv.conf")
    rig.write("page.html", "a page\n")
    server = clients(rig, "names", 0)
    rig.throng("run", rig.write("load.toml", HOOKS.replace("PORT", str(rig.port))))
    counts = did(rig)
    rig.check(counts["odd"] > 15 and cpu_of(server) < 2, f"{counts}, {cpu_of(server)} s of CPU")


# --- TLS ---


@scenario(limited("target", "tls"))
def its_renewed_certificate_lacks_the_intermediate(rig):
    """Go: in second 2.3 its certificate is renewed, and the new file has the certificate alone, without the intermediate: from then on no handshake of
    the 37 arrivals a second succeeds."""
    authorities(rig)
    text = (rig.folder / "good.pem").read_text()
    head, *_ = text.split("-----END CERTIFICATE-----")
    rig.write("live.pem", text)
    rig.write("renewed.pem", head + "-----END CERTIFICATE-----\n" + text[text.index("-----BEGIN PRIVATE KEY"):])
    doors(rig, "renewed", rig.folder / "live.pem")
    rig.later("2.3", "cp", rig.folder / "renewed.pem", rig.folder / "live.pem")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", rig.folder / "ca.pem", "--no-resume", "--arrive", "37/s", "-d", "5s", "--timeout", "3s")
    counts, said = did(rig, f"counts-{rig.port}.json"), rig.output()
    rig.check(counts["responses"] > 40 and said.count("handshake error") > 50, f"{counts}, {said.count('handshake error')} handshakes failed")


@scenario(limited("target", "tls", "wrong-answer"))
def h2_is_not_offered_over_tls(rig):
    """Go, HTTPS with ALPN, which has http/1.1 only: the load wants HTTP/2, and gets an alert (no_application_protocol)."""
    authorities(rig)
    doors(rig, "alpn", rig.folder / "good.pem")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--http2", "--cacert", rig.folder / "ca.pem", "-c", "27", "--ramp", "40/s", "-d", "2s", "--timeout", "3s")
    rig.check("client requested unsupported application protocols" in rig.output(), f"its log says so: {rig.output()[-200:]}")


OFFICES = """target = "https://127.0.0.1:PORT/"
insecure = true
tls = "1.2"
ramp = "60/s"
duration = "4s"
timeout = "3s"
[[population]]
name = "office"
connections = 39
think = "200ms..500ms"
[[population.step]]
name = "page"
weight = 8
request = "GET /"
[[population.step]]
name = "admin"
weight = 1
request = "GET /admin/"
"""


@scenario(limited("target", "tls", "closed", "wrong-answer", never="version or cipher"))
def apache_renegotiates_for_one_path(rig):
    """Apache, TLS 1.2: /admin demands a client certificate (SSLVerifyClient in a Location), for which it renegotiates in the middle of a connection; the
    load does not renegotiate, as hardly anyone does today. All other pages are served."""
    rig.needs("apache2")
    rig.folder.chmod(0o755)
    (rig.folder / "admin").mkdir()
    rig.write("index.html", "ok\n")
    rig.write("admin/index.html", "admin\n")
    file = rig.certificate()
    loads = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in ("mpm_event", "authz_core", "dir", "socache_shmcb", "ssl"))
    text = f"""ServerRoot {rig.folder}
{loads}PidFile {rig.folder}/apache.pid
ServerName localhost
User www-data
Group www-data
Listen {rig.port} https
ErrorLog /proc/self/fd/2
LogLevel info
DocumentRoot {rig.folder}
DirectoryIndex index.html
KeepAliveTimeout 30
MaxKeepAliveRequests 0
SSLEngine on
SSLCertificateFile {file}
SSLCACertificateFile {file}
<Directory {rig.folder}>
Require all granted
</Directory>
<Location /admin>
SSLVerifyClient require
</Location>
"""
    rig.start("apache2", "-DFOREGROUND", "-f", rig.write("apache.conf", text))
    rig.throng("run", rig.write("load.toml", OFFICES.replace("PORT", str(rig.port))))
    seen = rig.output().count("Requesting connection re-negotiation")
    rig.check(seen > 15, f"{seen} in its log: {rig.output()[-400:]}")


NAMES = """ramp = "50/s"
duration = "3s"
timeout = "3s"
insecure = true
[[population]]
name = "browsers"
target = "https://127.0.0.1:PORT/"
sni = "shop.example.net"
host = "shop.example.net"
connections = 34
think = "200ms..500ms"
[[population]]
name = "monitors"
target = "https://127.0.0.1:PORT/health"
arrive = "9/s"
"""


@scenario(limited("target", "tls"))
def nginx_rejects_handshakes_without_a_name(rig):
    """nginx with ssl_reject_handshake in its default server: browsers send the name of the shop, and are served; monitors dial the address, send no name, and
    get an alert (unrecognized_name)."""
    file = rig.certificate()
    nginx(rig, "ssl_reject_handshake on;", listen="ssl default_server backlog=1023",
          http=f"error_log stderr info; server {{ listen {rig.port} ssl; server_name shop.example.net; ssl_certificate {file}; ssl_certificate_key {file};"
               f" access_log {rig.folder}/access.log; location / {{ return 200 ok; }} }}")
    rig.throng("run", rig.write("load.toml", NAMES.replace("PORT", str(rig.port))))
    served = rig.output("access.log").count(" 200 ")
    rig.check(served > 100 and "GET /health" not in rig.output("access.log"), f"{served} were served, and no monitor")


# --- processors ---


REPORTS = """ramp = "80/s"
duration = "7s"
timeout = "6s"
thresholds = ["readers.latency.p90 < 120ms", "faults == 0"]
max-lag = "100ms"
[[population]]
name = "readers"
target = "http://127.0.0.1:PORT/page"
connections = 57
think = "150ms..450ms"
[[population]]
name = "reports"
target = "http://127.0.0.1:PORT/report"
connections = 83
rate = "15/s"
"""


@scenario(limited("target", "cpu"), alone=True)
def a_costly_report_beside_cheap_pages(rig):
    """Node: a report takes 74 ms of CPU, and 15 a second are due, which is more than its thread has; pages take none, and wait for it. The threshold is on the
    pages."""
    server = clients(rig, "reports", 74)
    rig.throng("run", rig.write("load.toml", REPORTS.replace("PORT", str(rig.port))))
    was_busy(rig, server, 6)


@scenario(limited("target", "cpu", "heap", "memory"), alone=True)
def go_collects_all_the_time(rig):
    """Go with a table of 96 MiB and GOMEMLIMIT=70MiB, set before the table grew: it collects without a break, in its one processor, and 120 requests a second,
    which take next to nothing otherwise, wait. The threshold is 25 ms."""
    server = doors(rig, "table", 96, 300, env={"GOMAXPROCS": "1", "GOMEMLIMIT": "70MiB", "GOGC": "off"})
    rig.throng("run", rig.url, "-c", "63", "--rate", "120/s", "-d", "6s", "--timeout", "4s", "--threshold", "latency.p90 < 25ms", "--max-lag", "100ms")
    counts = did(rig, f"counts-{rig.port}.json")
    rig.check(counts["collections"] > 40 and cpu_of(server) > 5, f"{counts}, {cpu_of(server)} s of CPU")


@scenario(limited("target", "cpu"), alone=True)
def its_sidecar_eats_the_quota(rig):
    """A control group with 38 ms of CPU each 100 ms for a service, which needs 30 ms of it, and a sidecar that spins: what is left for the service is half, at
    most. The threshold is 200 ms."""
    around, group = rig.cgroup("cpu", cfs_period_us=100_000, cfs_quota_us=38_000)
    rig.odd_in(around, "--work", "0.005")
    rig.start(*around, "python3", "-c", SPIN, wait=False)
    rig.throng("run", rig.url, "-c", "67", "--rate", "61/s", "-d", "6s", "--timeout", "4s", "--threshold", "latency.p90 < 200ms", "--max-lag", "100ms")
    throttled = int((group / "cpu.stat").read_text().split("nr_throttled")[1].split()[0])
    rig.check(throttled > 40, f"throttled {throttled} times")


@scenario(healthy(may=("cpu",)), alone=True)
def throttled_in_most_periods_and_within_the_budget(rig):
    """A control group with 7 ms of CPU each 100 ms, and 4 ms for each request, of which 11/s are due: it is throttled again and again, responses wait for the next
    period, and the threshold is 450 ms."""
    around, group = rig.cgroup("cpu", cfs_period_us=100_000, cfs_quota_us=7_000)
    rig.odd_in(around, "--work", "0.004")
    rig.throng("run", rig.url, "-c", "33", "--rate", "11/s", "-d", "5s", "--timeout", "4s", "--threshold", "latency.p95 < 450ms", "--max-lag", "100ms")
    throttled = int((group / "cpu.stat").read_text().split("nr_throttled")[1].split()[0])
    rig.check(throttled > 8, f"throttled {throttled} times")


# --- memory, disks ---


@scenario(limited("target", "saturated", "stall"))
def its_disk_writes_80_kilobytes_a_second(rig):
    """Python in a control group whose disk has a limit of 80 kB a second (blkio, as for a small volume of a cloud): each order is 4 kB, written and synced before its
    response, 20 a second; 31 are due. The threshold is 300 ms."""
    device = f"{os.major(rig.folder.stat().st_dev)}:{os.minor(rig.folder.stat().st_dev)}"
    around, group = rig.cgroup("blkio", **{"throttle.write_bps_device": f"{device} 80000"})
    manners(rig, "journal", 4_096, around=around)
    rig.throng("run", rig.url, "--body", "n={seq}", "-c", "61", "--rate", "31/s", "-d", "6s", "--timeout", "5s", "--threshold", "latency.p90 < 300ms")
    counts = did(rig)
    rig.check(counts["log_ms"] > 4_000, f"{counts}")


@scenario(limited("target", "memory", "heap", "connection-limit", at=(70, 75), never="heap was full"))
def java_has_no_direct_memory_left(rig):
    """Java: a buffer of 170 kB outside of the heap for each connection, and MaxDirectMemorySize=12m: connections beyond 74 are closed, with an OutOfMemoryError
    (direct buffer memory) in its log, while the heap is empty. Each time it first collects and waits for half a second, and others are in its queue meanwhile."""
    pools(rig, "direct", 170_000, "-Xmx64m", "-XX:MaxDirectMemorySize=12m")
    rig.throng("run", rig.url, "-c", "101", "--ramp", "50/s", "-d", "5s", "--think", "300ms..700ms", "--timeout", "3s")
    counts = did(rig)
    rig.check(counts["odd"] >= 6 and "direct buffer memory" in rig.output(), f"{counts}")


@scenario(healthy())
def page_cache_fills_its_group(rig):
    """Python in a control group of 40 MiB; each request adds 300 kB to a spool file, whose pages the kernel keeps for as long as there is room: the group is full
    all the time, its limit is hit again and again, and nothing is wrong."""
    around, group = rig.cgroup("memory", limit_in_bytes=40 << 20)
    manners(rig, "cache", 300_000, around=around)
    rig.throng("run", rig.url, "-c", "36", "--rate", "53/s", "-d", "6s", "--timeout", "4s")
    most, failed = (int((group / f"memory.{name}").read_text()) for name in ("max_usage_in_bytes", "failcnt"))
    rig.check(most > 39 << 20 and failed > 10, f"{most} bytes, {failed} times")


# --- healthy, and odd ---


@scenario(healthy())
def tls_in_records_of_nine_bytes(rig):
    """Python, TLS: each response of 470 bytes comes in 53 records."""
    manners(rig, "records", 9, rig.certificate())
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "-c", "29", "--ramp", "60/s", "-d", "4s", "--think", "150ms..450ms", "--timeout", "3s")
    counts = did(rig)
    rig.check(counts["odd"] > 40 * counts["responses"] > 4_000, f"{counts}")


@scenario(healthy())
def tickets_that_the_other_process_cannot_read(rig):
    """Go, HTTPS, two processes at one port (SO_REUSEPORT), each with keys of its own for its tickets: half of the resumptions become full handshakes, and all are
    served."""
    authorities(rig)
    doors(rig, "tickets", rig.folder / "good.pem", "one")
    doors(rig, "tickets", rig.folder / "good.pem", "two")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", rig.folder / "ca.pem", "--arrive", "61/s", "--calls", "2", "-d", "4s", "--timeout", "3s")
    both = [did(rig, f"counts-{rig.port}-{name}.json") for name in ("one", "two")]
    rig.check(all(one["full"] > 30 and one["resumed"] > 30 for one in both), f"{both}")


@scenario(healthy())
def announces_closes_while_it_is_crowded(rig):
    """Python: while more than 44 connections are open, each response announces a close, as servers do that are short of places; who dials again is served."""
    manners(rig, "shed", 44)
    rig.throng("run", rig.url, "-c", "71", "--ramp", "120/s", "-d", "4s", "--think", "120ms..360ms", "--timeout", "3s")
    counts = did(rig)
    rig.check(counts["odd"] > 100 and counts["responses"] > counts["odd"], f"{counts}")


@scenario(healthy(may=("wrong-answer",)))
def allows_one_stream_for_a_while(rig):
    """Node, HTTP/2: five streams on each connection, and 1.4 s after it was opened SETTINGS allow one, and five again 1.1 s later: requests wait for each other here,
    and those few that were on their way at that moment are refused (REFUSED_STREAM), which is within the budget of 3 %."""
    clients(rig, "narrows", 5)
    rig.throng("run", rig.url, "--http2", "--streams", "5", "-c", "13", "--ramp", "40/s", "-d", "4s", "--timeout", "3s", "--threshold", "errors < 3%")
    counts = did(rig)
    rig.check(counts["odd"] == 26 and counts["responses"] > 500, f"{counts}")


# --- what cannot be known from here ---


@scenario(unknowable(may=("accept-queue", "syn-loss")))
def a_short_queue_afar_and_slow_accepts(rig):
    """A host afar accepts 23 a second, and its queue has five places; 47 arrive in a second: SYNs are lost at its host, and from here a path that loses them
    looks the same."""
    far = rig.far()
    rig.odd("--backlog", 5, "--accept-rate", 23, netns=far)
    rig.throng("run", rig.url, "--arrive", "47/s", "-d", "6s", "--timeout", "2500ms")
    counters = rig.netns_output(far, "nstat", "-asz", "TcpExtListenDrops", "TcpExtTCPReqQFullDrop", "TcpExtListenOverflows")
    rig.check(sum(int(line.split()[1]) for line in counters.splitlines()[1:]) > 40, counters)


@scenario(unknowable(may=("stall", "saturated")))
def its_transactions_wait_afar(rig):
    """A host afar: from second 2.6 to 3.9 each response takes 0.7 s more, as with a lock in its database: from here it may be the server, what it asks, or a
    queue on the way. The threshold is 250 ms."""
    far = rig.far()
    rig.odd("--then", "delay", "--at", "2.6", "--for", "1.3", "--amount", "0.7", netns=far)
    rig.throng("run", rig.url, "-c", "59", "--ramp", "118/s", "-d", "6s", "--think", "150ms..350ms", "--timeout", "4s", "--threshold", "latency.p95 < 250ms")
    rig.check(rig.counted()["odd"] > 50, f"{rig.counted()}")

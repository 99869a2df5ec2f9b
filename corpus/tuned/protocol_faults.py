"""HTTP/2, gRPC, WebSocket, TLS and others with the troubles of their own; steps, connections and moments that are slow; what comes back by
itself."""

import json
import time

from recording import healthy, limited, scenario
from tuned.stock import nginx

QUICK = ("--think", "100ms..300ms", "--timeout", "2s")
PACED = ("--think", "300ms..700ms", "--timeout", "3s")


def did(rig, name):
    """What a server of this folder says it did."""
    return json.loads(rig.output(name) or "{}")


def node(rig, program, *options, **start):
    rig.needs("node")
    return rig.start("node", rig.server(program), rig.port, *options, **start)


def named(rig, text):
    """Names of this scenario's own: the text of /etc/hosts."""
    rig.check(rig.start("mount", "--bind", rig.write("hosts", text), "/etc/hosts", wait=False).wait(5) == 0, "names of our own")


def load(rig, text):
    rig.throng("run", rig.write("load.toml", text.replace("URL", rig.url)))


# --- HTTP/2 and gRPC ---


@scenario(limited("target", "timeout"))
def uploads_into_a_closed_window(rig):
    """Node, HTTP/2: of one upload in three its handler reads nothing, so it opens no window beyond the first 64 KiB of 150, and never replies."""
    node(rig, "t3_h2.js", "upload")
    body = rig.write("upload.bin", "u" * 153_000)
    rig.throng("run", f"{rig.url}upload", "--http2", "--body-file", body, "-c", "30", "--ramp", "40/s", "-d", "4s", *QUICK)
    rig.check(did(rig, "h2.json")["unread"] >= 20 and did(rig, "h2.json")["ok"] >= 20, f"a third unread: {did(rig, 'h2.json')}")


@scenario(limited("target", "wrong-answer", says="UNAVAILABLE"))
def grpc_unavailable_until_its_cache_is_warm(rig):
    """UNAVAILABLE to each call of the first 1.9 s, and OK to all afterwards."""
    node(rig, "t3_h2.js", "warming")
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/shop.Prices/Get", "-c", "45", "--ramp", "90/s", "-d", "5s", *QUICK)
    counts = did(rig, "h2.json")
    rig.check(counts["unavailable"] >= 40 and counts["ok"] > 300, f"first the one, then the other: {counts}")


@scenario(limited("target", "timeout", "stall"))
def grpc_feeds_of_which_some_fall_silent(rig):
    """Server streaming, a message each 170 ms; one stream in six says nothing any more from 2.1 s on, and stays open."""
    node(rig, "t3_h2.js", "feed")
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/shop.Prices/Watch", "--server-streaming", "-c", "48", "--ramp", "48/s", "-d", "5s", "--timeout", "1500ms")
    rig.check(did(rig, "h2.json")["quiet"] >= 8, f"some fell silent: {did(rig, 'h2.json')}")


@scenario(healthy())
def http2_with_all_that_is_seldom_seen(rig):
    """CONTINUATIONs, 103, padding, empty DATA, unknown frames and settings, PRIORITY, PINGs and SETTINGS in the middle, trailers."""
    rig.start("python3", rig.server("t3_frames.py"), rig.port)
    rig.throng("run", rig.url, "--http2", "--streams", "3", "-c", "24", "--ramp", "24/s", "-d", "3s", "--timeout", "3s", "--rate", "210/s")
    counts = did(rig, "frames.json")
    rig.check(counts["pongs"] > 30 and counts["acks"] > 30, f"they were answered: {counts}")


# --- WebSocket ---

CHATS = """target = "ws://127.0.0.1:8080/chat"
timeout = "2500ms"
ramp = "60/s"
duration = "4s"
[[population]]
name = "chat"
connections = 60
[[population.step]]
name = "line"
weight = 17
send = "a line of a chat, {seq}"
expect = { echo = true }
think = "150ms..350ms"
[[population.step]]
name = "picture"
weight = 1
send-file = "picture.bin"
expect = { echo = true }
think = "150ms..350ms"
"""


@scenario(limited("target", "closed", "wrong-answer", says="1009"))
def websockets_closed_for_a_picture(rig):
    """Messages over 4,096 bytes are closed with 1009; one message in 18 is a picture of 6 kB."""
    node(rig, "t3_ws.js", "--most", 4_096)
    rig.write("picture.bin", "p" * 6_100)
    load(rig, CHATS)
    rig.check(did(rig, "ws.json")["too_big"] >= 10, f"some were: {did(rig, 'ws.json')}")


@scenario(limited("target"))
def pushes_that_come_late_from_second_3_on(rig):
    """A message to all each 240 ms with its time; from second 2.6 on each waits for 0.7 s in a queue before it is sent. The threshold on the
    delay is 150 ms. No cause of the list fits."""
    node(rig, "t3_ws.js", "--push", 240, "--late", 700, "--at", 2_600)
    load(rig, """target = "ws://127.0.0.1:8080/feed"
timeout = "3s"
ramp = "90/s"
duration = "5s"
thresholds = ["lost == 0", "delay.p95 < 150ms"]
[[population]]
name = "viewers"
connections = 80
message = ""
expect = { time = "json:/ts", number = "json:/seq" }
""")
    rig.check(did(rig, "ws.json")["late"] > 200, f"late ones: {did(rig, 'ws.json')}")


@scenario(healthy())
def websockets_that_go_away(rig):
    """Each WebSocket is closed with 1001 after 1.5 s to 2.3 s, as before a restart, and may come again."""
    node(rig, "t3_ws.js", "--away", 1_500)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/chat", "-c", "50", "--ramp", "50/s", "-d", "5s", "--ping", "200ms", "--timeout", "3s")
    rig.check(did(rig, "ws.json")["away"] > 60, f"they went: {did(rig, 'ws.json')}")


@scenario(healthy())
def websockets_in_fragments_between_pings(rig):
    """Each echo comes in four fragments, and between them are pings."""
    node(rig, "t3_ws.js", "--pieces", 4)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/chat", "-c", "70", "--ramp", "70/s", "-d", "3s", "--ping", "300ms", "--message", "how are you today?",
               "--timeout", "3s", "--threshold", "latency.p95 < 200ms", "--threshold", "faults == 0")
    rig.check(did(rig, "ws.json")["pongs"] > 500, f"pings were answered: {did(rig, 'ws.json')}")


# --- TLS ---


@scenario(limited("target", "tls", says="expired"))
def one_of_three_nodes_with_an_expired_certificate(rig):
    """A name of three addresses; two nodes have a certificate that is valid, and the third one has last year's."""
    program = rig.built("t3_tls.go")
    rig.check(rig.start(program, "make", rig.folder, wait=False).wait(10) == 0, "certificates")
    for last in (1, 2, 3):
        rig.start(program, "serve", rig.port, rig.folder / ("expired.pem" if last == 3 else "good.pem"), "-address", f"127.0.0.{last}")
    time.sleep(0.5)
    named(rig, "".join(f"127.0.0.{last} farm\n" for last in (1, 2, 3)))
    rig.throng("run", f"https://farm:{rig.port}/", "--cacert", rig.folder / "ca.pem", "-c", "66", "--ramp", "66/s", "-d", "2s", *PACED)
    dates = rig.start("openssl", "x509", "-in", rig.folder / "expired.pem", "-noout", "-checkend", "0", wait=False)
    rig.check(dates.wait(5) == 1, "it has expired")


@scenario(limited("target", "saturated", "timeout"))
def signatures_of_a_slow_module(rig):
    """The module that keeps its key makes one signature each 43 ms, 23 a second; 41 connections arrive each second, with full handshakes, which
    time out in the end. It has CPU to spare."""
    program = rig.built("t3_tls.go")
    rig.check(rig.start(program, "make", rig.folder, wait=False).wait(10) == 0, "certificates")
    rig.start(program, "serve", rig.port, rig.folder / "good.pem", "-sign", "43ms")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", rig.folder / "ca.pem", "--no-resume", "--arrive", "41/s", "-d", "7s", "--timeout", "2s")
    rig.check(100 < int(rig.output("signed.txt")) < 260, f"23 a second: {rig.output('signed.txt')}")


# --- connections and users of which some are unlucky ---


@scenario(limited("target", "thread", "timeout"))
def one_of_six_threads_ends(rig):
    """Python, six threads with a share of the connections each; in second 2.4 the fifth one ends by an exception, and what it had stays open."""
    rig.start("python3", rig.server("t3_shards.py"), rig.port)
    rig.throng("run", rig.url, "-c", "72", "--ramp", "90/s", "-d", "5s", *QUICK)
    rig.check("Exception in thread shard-4" in rig.output() and "KeyError" in rig.output(), "its log says so")


@scenario(limited("target", "timeout", "stall"))
def haproxy_before_four_nodes_of_which_one_is_stopped(rig):
    """haproxy passes on bytes (mode tcp) to four nodes in turn, on a host of its own; one node is stopped, and its kernel takes connections and
    requests all the same: on each fourth connection no response ever comes."""
    rig.needs("haproxy")
    far = rig.far()
    nodes = []
    for nth in range(4):
        (rig.folder / f"node{nth}").mkdir()
        nodes.append(rig.start("sh", "-c", f'cd {rig.folder}/node{nth} && exec python3 {rig.server("odd.py")} {9_001 + nth}', netns=far, port=9_001 + nth))
    servers = "".join(f" server n{nth} 127.0.0.1:{9_001 + nth}\n" for nth in range(4))
    text = f"global\ndefaults\n mode tcp\n timeout client 30s\n timeout server 30s\n timeout connect 3s\nlisten web\n bind :{rig.port}\n balance roundrobin\n{servers}"
    rig.start("haproxy", "-db", "-f", rig.write("haproxy.cfg", text), netns=far)
    rig.check(rig.start("kill", "-STOP", nodes[2].pid, wait=False).wait(5) == 0, "stopped")
    rig.throng("run", rig.url, "-c", "64", "--ramp", "64/s", "-d", "4s", *QUICK)
    counts = [json.loads(rig.output(f"node{nth}/counts.json"))["accepted"] for nth in range(4)]
    rig.check(counts[2] == 0 and min(counts[0], counts[1], counts[3]) >= 10, f"three of four: {counts}")


LOGIN = """target = "URL"
timeout = "3s"
ramp = "60/s"
duration = "4s"
think = "200ms..500ms"
[[population]]
name = "users"
connections = 63
loop = "home"
[[population.step]]
name = "start"
wait = "1200ms..2s"
[[population.step]]
name = "login"
request = "POST /login"
headers = { Content-Type = "application/json" }
body = '{"user": {csv users.id}}'
capture = { token = { json = "/token" } }
[[population.step]]
name = "home"
request = "GET /home"
headers = { Authorization = "Bearer {var token}" }
expect = { status = 200, body = "home" }
[csv.users]
file = "users.csv"
"""


@scenario(limited("target", "wrong-answer", says="403"))
def one_user_in_nine_is_locked(rig):
    """Users start the application, log in, and see their page; each ninth one is locked, and gets 403 at the login."""
    node(rig, "t3_site.js", "--locked", 9)
    rig.write("users.csv", "id\n" + "".join(f"{nth}\n" for nth in range(1, 64)))
    load(rig, LOGIN)
    counts = did(rig, "site.json")
    rig.check(5 <= counts["locked"] <= 7 and counts["home"] > 100, f"some are locked: {counts}")


# --- thresholds on latency ---


@scenario(limited("target"))
def the_first_request_of_each_connection_is_slow(rig):
    """The first request of a connection takes 430 ms, since a directory is asked who it is; those after it take 4 ms. 23 connections arrive in a
    second, with six requests each; the threshold is 150 ms. No cause of the list fits."""
    node(rig, "t3_site.js", "--first", 430)
    rig.throng("run", f"{rig.url}list", "--arrive", "23/s", "--calls", "6", "-d", "5s", "--timeout", "3s", "--threshold", "latency.p95 < 150ms")
    rig.check(did(rig, "site.json")["first"] > 90, f"first ones: {did(rig, 'site.json')}")


@scenario(limited("target", "stall"))
def pauses_of_a_third_of_a_second(rig):
    """Each 1.35 s the whole process sleeps for 0.34 s, without CPU, as when it waits for a disk; the threshold is 120 ms."""
    node(rig, "t3_site.js", "--pause", 340, "--each", 1_350)
    rig.throng("run", f"{rig.url}list", "-c", "40", "--rate", "170/s", "-d", "6s", "--timeout", "3s", "--threshold", "latency.p95 < 120ms")
    rig.check(did(rig, "site.json")["pauses"] >= 3, f"pauses: {did(rig, 'site.json')}")


EXPORTS = """target = "URL"
timeout = "5s"
ramp = "45/s"
duration = "5s"
think = "150ms..350ms"
thresholds = ["latency.p95 < 500ms", "faults == 0"]
[[population]]
name = "clerks"
connections = 45
[[population.step]]
name = "list"
weight = 7
request = "GET /"
[[population.step]]
name = "export"
weight = 1
request = "GET /export"
"""


@scenario(limited("target", says="export"))
def nginx_sends_exports_at_160_kilobytes_a_second(rig):
    """limit_rate 160k of one path, whose 210 kB take 1.3 s; all other responses are quick, and the threshold is 500 ms for all. No cause of the
    list fits; the step does."""
    export = rig.write("export", "e" * 210_000)
    nginx(rig, server=f"location /export {{ limit_rate 160k; alias {export}; }}")
    load(rig, EXPORTS)
    took = rig.start("curl", "-s", "-o", "/dev/null", "-w", "%{time_total}", f"{rig.url}export", wait=False, log="curl.log")
    rig.check(took.wait(9) == 0 and 0.9 < float(rig.output("curl.log")) < 2, f"it takes its time: {rig.output('curl.log')}")


def echo(rig, millis):
    rig.needs("escript")
    return rig.start("escript", rig.server("t3_echo.escript"), rig.port, millis)


@scenario(limited("target"))
def a_threshold_below_what_it_takes_by_design(rig):
    """Erlang, raw TCP: each message comes back after 31 ms, always; the threshold on the median is 20 ms. Nothing is wrong but the threshold."""
    echo(rig, 31)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "--message", "how much?", "--ping", "150ms", "-c", "60", "--ramp", "60/s", "-d", "4s", "--timeout", "3s",
               "--threshold", "latency.p50 < 20ms")
    rig.check(25_000 < rig.summary["latency_us"]["p50"] < 60_000, "31 ms, and a little")


@scenario(healthy())
def erlang_that_takes_31_ms(rig):
    """The same with a threshold of 90 ms; echoes come in two pieces."""
    echo(rig, 31)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "--message", "how much?", "--ping", "150ms", "-c", "60", "--ramp", "60/s", "-d", "3s", "--timeout", "3s",
               "--threshold", "latency.p95 < 90ms")


@scenario(limited("target", "saturated", "accept-queue", "slow-accept", "timeout"))
def php_one_request_at_a_time(rig):
    """PHP's own server has one process, which takes 48 ms (without CPU) for each request: 20 a second, of 33 that arrive."""
    rig.needs("php")
    rig.write("index.php", "<?php usleep(48000); file_put_contents('served.txt', 'x', FILE_APPEND); echo 'ok';\n")
    rig.start("php", "-S", f"0.0.0.0:{rig.port}", "index.php")
    rig.throng("run", rig.url, "--arrive", "33/s", "-d", "6s", "--timeout", "2500ms")
    rig.check(80 < len(rig.output("served.txt")) < 230, f"20 a second: {len(rig.output('served.txt'))}")


# --- what comes back by itself ---


@scenario(healthy(may=("ended", "refused", "closed")))
def restarted_and_the_load_comes_back(rig):
    """The process exits in second 2.3, and its supervisor starts it again 0.7 s later; the load dials again with a back-off, and its threshold
    is on what is held in the end."""
    again = f'python3 {rig.server("odd.py")} {rig.port} --then exit --at 2.3; echo exited; sleep 0.7; exec python3 {rig.server("odd.py")} {rig.port}'
    rig.start("sh", "-c", again)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "6s", "--think", "200ms..500ms", "--timeout", "3s", "--reconnect", "100ms..600ms",
               "--threshold", "held >= 99%")
    rig.check("exited" in rig.output() and rig.counted()["accepted"] >= 55, "it was restarted")

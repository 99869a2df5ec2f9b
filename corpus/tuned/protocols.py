"""HTTP/2, gRPC, WebSocket, TLS, and loads of several kinds."""

from recording import healthy, limited, scenario, unknowable

PACED = ("--think", "300ms..700ms", "--timeout", "3s")
QUICK = ("--think", "100ms..300ms", "--timeout", "3s")
CALM = 11


def h2(rig, *options):
    rig.odd(*options, name="h2.py")


def reference(rig, *options, url="127.0.0.1", **start):
    """throng's own server."""
    return rig.start(rig.binary, "serve", "--listen", f"{url}:{rig.port}", "--threads", 1, *options, **start)


@scenario(healthy())
def http2_as_it_is(rig):
    """HTTP/2 with prior knowledge."""
    h2(rig)
    rig.throng("run", rig.url, "--http2", "-c", "100", "--ramp", "100/s", "-d", "3s", *PACED)


@scenario(healthy())
def http2_with_four_streams(rig):
    """HTTP/2, four requests at a time on each connection."""
    h2(rig, "--delay", "0.4")
    rig.throng("run", rig.url, "--http2", "--streams", "4", "-c", "20", "--ramp", "100/s", "-d", "3s", "--timeout", "3s")


@scenario(healthy())
def http2_with_fewer_streams_than_wanted(rig):
    """SETTINGS allows two streams where the load would send eight; it keeps to them."""
    h2(rig, "--delay", "0.4", "--max-streams", 2)
    rig.throng("run", rig.url, "--http2", "--streams", "8", "-c", "20", "--ramp", "100/s", "-d", "3s", "--timeout", "5s")


@scenario(healthy())
def http2_goaway_after_ten(rig):
    """GOAWAY without an error after ten responses: announced, and the load dials again."""
    h2(rig, "--goaway-after", 10)
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "3s", "--think", "50ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["goaways"] > 10, "GOAWAYs")


@scenario(healthy())
def http2_goaway_for_idleness(rig):
    """GOAWAY without an error after 1 s without a frame: announced, and the load dials again."""
    h2(rig, "--goaway-idle", 1)
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "5s", "--think", "1500ms..2s", "--timeout", "3s")
    rig.check(rig.counted()["goaways"] > 10, "GOAWAYs")


@scenario(limited("target", "closed", "wrong-answer", "requests-per-connection", says="ENHANCE_YOUR_CALM|calm"))
def http2_enhance_your_calm(rig):
    """GOAWAY with ENHANCE_YOUR_CALM after ten responses."""
    h2(rig, "--goaway-after", 10, "--goaway-code", CALM)
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "3s", "--think", "50ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["goaways"] > 10, "GOAWAYs")


@scenario(limited("target", "wrong-answer", says="REFUSED_STREAM", never="--streams"))
def http2_refuses_some_streams(rig):
    """One request in five is refused (REFUSED_STREAM), though each connection has one stream at a time."""
    h2(rig, "--reset-code", 7, "--reset-every", 5)
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "3s", *QUICK)
    rig.check(rig.counted()["resets"] > 10, "resets")


@scenario(limited("target", "wrong-answer", says="REFUSED_STREAM"))
def http2_refuses_beyond_two_streams(rig):
    """SETTINGS allows 100 streams, and from the third one on they are refused."""
    h2(rig, "--refuse-beyond", 2, "--delay", "0.4")
    rig.throng("run", rig.url, "--http2", "--streams", "6", "-c", "20", "--ramp", "40/s", "-d", "3s", "--timeout", "3s")
    rig.check(rig.counted()["resets"] > 10, "resets")


@scenario(limited("target", "wrong-answer", says="INTERNAL_ERROR"))
def http2_internal_errors(rig):
    """One request in ten is reset with INTERNAL_ERROR."""
    h2(rig, "--reset-code", 2, "--reset-every", 10)
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "3s", *QUICK)
    rig.check(rig.counted()["resets"] > 10, "resets")


@scenario(limited("target", "timeout"))
def http2_never_responds(rig):
    """Requests are read and PINGs answered, and no response comes."""
    h2(rig, "--delay", 1_000)
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "3s", "--timeout", "2s")


@scenario(limited("target", "wrong-answer", "tls", "closed"))
def http1_where_http2_is_wanted(rig):
    """A server of HTTP/1.1 only replies 400 to the preface of HTTP/2."""
    rig.odd("--response", "HTTP/1.1 400 Bad Request\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n", "--responses", 1)
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "2s", "--timeout", "3s")


@scenario(limited("target", "wrong-answer"))
def ssh_where_http2_is_wanted(rig):
    """A greeting of SSH to the preface of HTTP/2."""
    h2(rig, "--raw", "SSH-2.0-OpenSSH_9.2\\r\\n")
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "40/s", "-d", "2s", "--timeout", "3s")


@scenario(limited("target", "reset-after", "closed"))
def http2_maximum_age_with_an_error(rig):
    """GOAWAY with NO_ERROR would be planned; this one has ENHANCE_YOUR_CALM, 2 s after each connection was opened."""
    h2(rig, "--age", 2, "--goaway-code", CALM)
    rig.throng("run", rig.url, "--http2", "-c", "60", "--ramp", "30/s", "-d", "5s", *QUICK)
    rig.check(rig.counted()["goaways"] > 10, "GOAWAYs")


@scenario(healthy())
def http2_maximum_age_announced(rig):
    """GOAWAY without an error 1.5 s after each connection was opened, between responses: the load dials again."""
    h2(rig, "--age", "1.5")
    rig.throng("run", rig.url, "--http2", "-c", "40", "--ramp", "20/s", "-d", "4s", "--think", "300ms..700ms", "--timeout", "3s")
    rig.check(rig.counted()["goaways"] > 10, "GOAWAYs")


@scenario(healthy())
def grpc_as_it_is(rig):
    """gRPC, unary."""
    h2(rig, "--grpc", 1)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/throng.Echo/Say", "-c", "60", "--ramp", "60/s", "-d", "3s", *PACED)


@scenario(limited("target", "timeout", says="timeout|timed out"))
def grpc_later_than_our_timeout(rig):
    """Each response takes 3 s; our own --timeout, 1 s, is the deadline."""
    h2(rig, "--grpc", 1, "--delay", 3)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/throng.Echo/Say", "-c", "40", "--ramp", "40/s", "-d", "4s", "--timeout", "1s")


@scenario(limited("target", "wrong-answer", says="DEADLINE_EXCEEDED"))
def grpc_deadline_of_the_server(rig):
    """The server itself replies DEADLINE_EXCEEDED, as when its own dependency is late."""
    h2(rig, "--grpc", 1, "--grpc-status", 4, "--delay", "0.3")
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/throng.Echo/Say", "-c", "40", "--ramp", "40/s", "-d", "3s", *QUICK)


@scenario(limited("target", "wrong-answer", says="RESOURCE_EXHAUSTED"))
def grpc_resource_exhausted(rig):
    """RESOURCE_EXHAUSTED to all."""
    h2(rig, "--grpc", 1, "--grpc-status", 8)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/throng.Echo/Say", "-c", "40", "--ramp", "40/s", "-d", "2s", *QUICK)


@scenario(healthy())
def grpc_of_slow_responses(rig):
    """Each response takes 1 s; the timeout is 5 s."""
    h2(rig, "--grpc", 1, "--delay", 1)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/throng.Echo/Say", "-c", "60", "--ramp", "60/s", "-d", "4s", "--timeout", "5s")


@scenario(healthy())
def websocket_echoes(rig):
    """Messages of WebSocket, each 500 ms on each connection."""
    reference(rig)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/echo", "-c", "200", "--ramp", "200/s", "-d", "3s", "--ping", "500ms", "--timeout", "3s")


@scenario(healthy())
def websocket_idle(rig):
    """Idle WebSockets, without a message in the run."""
    reference(rig)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/echo", "-c", "500", "--ramp", "500/s", "-d", "3s", "--ping", "30s", "--timeout", "3s")


@scenario(healthy())
def websocket_pushes(rig):
    """The server pushes a message each 500 ms."""
    reference(rig)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/push?every=500ms", "-c", "200", "--ramp", "200/s", "-d", "3s", "--timeout", "3s")


@scenario(healthy())
def websockets_over_http2(rig):
    """Four WebSockets on each connection of HTTP/2."""
    reference(rig)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/echo", "--http2", "--streams", "4", "-c", "50", "--ramp", "100/s", "-d", "3s",
               "--ping", "1s", "--timeout", "3s")


@scenario(limited("target", "wrong-answer", says="404|200|upgrade|status"))
def no_websocket_at_the_path(rig):
    """404 to the upgrade."""
    rig.odd("--status", "404 Not Found")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/chat", "-c", "50", "--ramp", "100/s", "-d", "2s", "--timeout", "3s")


@scenario(limited("target", "idle-cut"))
def websockets_cut_when_idle(rig):
    """Closes a WebSocket after 2 s without a message; one comes each 30 s."""
    reference(rig, "--idle-cut", "2s")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/echo", "-c", "60", "--ramp", "40/s", "-d", "6s", "--ping", "30s", "--timeout", "3s")


@scenario(healthy())
def websockets_kept_by_pings(rig):
    """Closes a WebSocket after 3 s without a message; one comes each second."""
    reference(rig, "--idle-cut", "3s")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/echo", "-c", "60", "--ramp", "100/s", "-d", "5s", "--ping", "1s", "--timeout", "3s")


@scenario(limited("target", "connection-limit", at=(195, 205)))
def websockets_beyond_200_are_closed(rig):
    """Closes connections beyond 200."""
    reference(rig, "--max-open", 200)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/echo", "-c", "300", "--ramp", "200/s", "-d", "2s", "--ping", "1s", "--timeout", "3s")


@scenario(limited("target", "timeout"))
def a_tenth_of_messages_without_echo(rig):
    """One message in ten gets no echo."""
    reference(rig, "--stall", "10%")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/ws/echo", "-c", "60", "--ramp", "60/s", "-d", "4s", "--ping", "500ms", "--timeout", "2s")


@scenario(limited("target", "connection-limit", at=(145, 155)))
def tls_beyond_150_is_closed(rig):
    """Closes connections beyond 150 in their TLS handshakes."""
    reference(rig, "--max-open", 150, "--tls")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "-c", "250", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(healthy())
def tls_as_it_is(rig):
    """HTTPS with a full handshake each."""
    reference(rig, "--tls")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "--no-resume", "-c", "150", "--ramp", "80/s", "-d", "2s", *PACED)


@scenario(healthy())
def tls_of_python(rig):
    """HTTPS of Python's ssl, which trusts what is given with --cacert."""
    file = rig.certificate()
    rig.odd("--cert", file)
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", rig.folder / "one.pem", "-c", "60", "--ramp", "40/s", "-d", "2s", *PACED)


@scenario(limited("target", "tls-expected"))
def plain_text_to_a_tls_port(rig):
    """The load is http, the server expects TLS and closes."""
    reference(rig, "--tls")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(limited("target", "tls"))
def tls_to_a_plain_port(rig):
    """The load is https, the server speaks plain HTTP."""
    reference(rig)
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "-c", "50", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(limited("target", "slow-accept", "accept-queue", detail=r"it accepts a steady (4[5-9]|5[0-5])(\.\d)?/s", fix="--ramp "))
def slow_accepts_of_the_reference(rig):
    """Accepts 50 a second; all are dialled at once."""
    reference(rig, "--slow-accept", "50/s")
    rig.throng("run", rig.url, "-c", "400", "--ramp", "5k/s", "-d", "4s", "--think", "1m", "--timeout", "3s")


@scenario(limited("target", "reset-after"))
def resets_of_the_reference(rig):
    """Resets a connection 2 s after it was accepted."""
    reference(rig, "--reset-after", "2s")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "40/s", "-d", "5s", "--think", "50ms..150ms", "--timeout", "3s")


@scenario(healthy(held=(1_000, 1_000), reason="no requests sent"))
def raw_tcp_held(rig):
    """1,000 idle connections over raw TCP."""
    rig.odd()
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "1000", "--ramp", "400/s", "-d", "2s", "--timeout", "3s")


@scenario(healthy())
def raw_tcp_with_a_greeting(rig):
    """The server greets, as mail servers do, and the connections stay idle."""
    rig.odd("--greeting", "220 hello\\r\\n")
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "200", "--ramp", "200/s", "-d", "2s", "--timeout", "3s")


@scenario(healthy())
def several_destinations(rig):
    """Five addresses of one server."""
    rig.odd()
    rig.throng("run", f"http://127.0.0.{{1..5}}:{rig.port}/", "-c", "250", "--ramp", "250/s", "-d", "3s", *PACED)


@scenario(limited("target", "refused", "ended"))
def one_of_two_destinations_refuses(rig):
    """Nothing listens at the second address."""
    rig.odd("--address", "127.0.0.1")
    rig.throng("run", f"http://127.0.0.{{1..2}}:{rig.port}/", "-c", "100", "--ramp", "200/s", "-d", "2s", *PACED)


@scenario(healthy())
def over_ipv6(rig):
    """[::1]."""
    rig.odd("--address", "::1")
    rig.throng("run", f"http://[::1]:{rig.port}/", "-c", "150", "--ramp", "150/s", "-d", "3s", *PACED)


@scenario(healthy())
def a_rate_of_requests(rig):
    """100 requests a second over 50 connections."""
    rig.odd("--delay", "0.02")
    rig.throng("run", rig.url, "-c", "50", "--rate", "100/s", "-d", "4s", "--timeout", "3s")


@scenario(healthy())
def arrivals_of_five_calls(rig):
    """20 connections a second with five requests each."""
    rig.odd("--delay", "0.02")
    rig.throng("run", rig.url, "--arrive", "20/s", "--calls", "5", "-d", "4s", "--timeout", "3s")


@scenario(healthy())
def a_number_of_requests(rig):
    """500 requests in total."""
    rig.odd("--delay", "0.02")
    rig.throng("run", rig.url, "-c", "50", "-n", "500", "-d", "8s", *QUICK)


@scenario(healthy())
def with_a_probe(rig):
    """A probe of 10 requests a second beside the load."""
    rig.odd()
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "--probe", "10/s", "-d", "3s", *PACED)


@scenario(limited("target", "connection-limit", at=(95, 110)))
def a_probe_without_a_place(rig):
    """100 connections at most, for a load of 100 and a probe."""
    rig.odd("--most", 100)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "--probe", "10/s", "-d", "4s", *PACED)
    rig.check(rig.counted()["turned_away"] > 0, "turned away")


TWO = """timeout = "3s"
ramp = "200/s"
duration = "{duration}"
[[population]]
name = "idle"
target = "{idle}"
connections = 150
{how}
[[population]]
name = "users"
target = "{users}"
connections = 40
think = "100ms..300ms"
"""


def two(rig, idle, how, users=None, duration="3s"):
    rig.throng("run", rig.write("load.toml", TWO.format(idle=idle, how=how, users=users or rig.url, duration=duration)))


@scenario(healthy())
def two_populations(rig):
    """Idle WebSockets beside users."""
    reference(rig)
    two(rig, f"ws://127.0.0.1:{rig.port}/ws/echo", 'ping = "1s"')


@scenario(limited("target", "wrong-answer", says="404|status"))
def two_populations_and_one_has_no_page(rig):
    """The users get 404, the WebSockets are served."""
    reference(rig)
    two(rig, f"ws://127.0.0.1:{rig.port}/ws/echo", 'ping = "1s"', users=f"{rig.url}nothing/here")


@scenario(limited("target", "idle-cut"))
def two_populations_and_idle_ones_are_cut(rig):
    """Connections are closed after 2 s without a request; only the idle population is."""
    rig.odd("--idle", 2)
    two(rig, rig.url, 'think = "20s..30s"', duration="5s")


@scenario(healthy())
def stages_of_two_populations(rig):
    """First the idle ones, then the users."""
    reference(rig)
    text = TWO.format(idle=f"ws://127.0.0.1:{rig.port}/ws/echo", how='ping = "1s"', users=rig.url, duration="3s")
    text = text.replace('ramp = "200/s"\nduration = "3s"\n', '[[stage]]\nname = "first"\nof = ["idle"]\nramp = "100/s"\n\n[[stage]]\nname = "then"\n'
                        'of = ["users"]\nramp = "40/s"\nfor = "2s"\n\n')
    rig.throng("run", rig.write("load.toml", text))


@scenario(unknowable(may=("closed",)))
def closes_without_a_word(rig):
    """Closes each connection at its first request, without a byte and without a reason."""
    rig.odd("--then", "close")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "2s", *PACED)

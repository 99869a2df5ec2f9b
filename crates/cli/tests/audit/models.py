"""The load models that are audited: throng's arguments for each, and how the server behaves meanwhile.

The server misbehaves on purpose, for known shares, so that figures other than zero are audited. The request determines what
it does: each has a number, drawn by throng (`{rand 1 1000}`), which is looked up in BEHAVIOUR."""

HTTP, WS, TCP = 7001, 7002, 7003
PATH = "/audit?n={rand 1 1000}"

# Up to this number (of 1,000): what the server does. The last row applies to most requests.
BEHAVIOUR = [
    (15, "missing"),  # 404
    (25, "broken"),  # 500
    (31, "never"),  # no response
    (38, "close"),  # closed without one
    (45, "reset"),  # reset without one
    (51, "truncated"),  # closed in the middle of one
    (70, "goodbye"),  # `Connection: close`, announced
    (150, "slow"),
    (1000, "right"),
]
# Seconds from the request to its response.
DELAY = {"slow": 0.060, "never": None}
BASE_DELAY = 0.010
# Octets of content of a correct response: by its number, so that sums are not multiples of one length.
LENGTH = lambda n: 20 + n % 50


def behaviour(n):
    return next(name for most, name in BEHAVIOUR if n <= most)


class Model:
    """One run: `words` are the arguments of `throng run`; the other fields are what the audit needs to read the wire.

    kind: how requests become due (closed, think, rate, arrive, ping, none); each a `due` of outside.py.
    populations: name → server port, and its own kind."""

    def __init__(self, words, kind, port, connections, **more):
        self.words, self.kind, self.port, self.connections = words, kind, port, connections
        self.think = more.get("think", 0.0)
        self.rate = more.get("rate")
        self.ping = more.get("ping")
        self.ramp = more.get("ramp")
        self.timeout = more.get("timeout", 10.0)
        self.message = more.get("message")
        self.refusing = more.get("refusing", ())
        self.destinations = more.get("destinations", ())
        self.scenario = more.get("scenario")
        self.populations = more.get("populations", {})
        self.probe = more.get("probe")
        self.faulty_messages = more.get("faulty_messages", False)
        self.total = more.get("total")
        self.duration = more.get("duration")
        self.calls = more.get("calls")


LOST_COME_BACK = ["--timeout", "1s", "--reconnect", "100ms..200ms"]


def http(host="127.0.0.1"):
    return f"http://{host}:{HTTP}{PATH}"


SCENARIO = f"""
target = "http://127.0.0.1:{HTTP}/audit?n={{rand 1 1000}}"
timeout = "1s"
reconnect = "100ms..200ms"
threads = 2

[[stage]]
name = "up"
ramp = "40/s"
for = "4s"

[probe]
rate = "20/s"
target = "http://127.0.0.1:{HTTP}/probe"

[[population]]
name = "users"
connections = 12
think = "20ms"

[[population.step]]
name = "first"
request = "GET /audit?step=first&n={{rand 1 1000}}"

[[population.step]]
name = "second"
request = "POST /audit?step=second&n={{rand 1 1000}}"
body = "twenty octets of body"

[[population]]
name = "chat"
target = "ws://127.0.0.1:{WS}/echo"
connections = 20
ping = "50ms"
message = "a message"
"""

MODELS = {
    "closed": Model(
        [http(), "-c", "20", "--ramp", "40/s", "-d", "4s", "--threads", "2", *LOST_COME_BACK],
        "closed", HTTP, 20, ramp=40.0, timeout=1.0, duration=4.0),
    "think": Model(
        [http("127.0.0.{1..3}"), "-c", "30", "--ramp", "60/s", "-d", "4s", "--think", "40ms", "--threads", "2",
         "--timeout", "1s"],
        "think", HTTP, 30, ramp=60.0, think=0.040, timeout=1.0, refusing=("127.0.0.3",),
        destinations=("127.0.0.1", "127.0.0.2", "127.0.0.3"), duration=4.0),
    "rate": Model(
        [http(), "-c", "60", "--ramp", "60/s", "-d", "4s", "--rate", "400/s", "--threads", "1", *LOST_COME_BACK],
        "rate", HTTP, 60, ramp=60.0, rate=400.0, timeout=1.0, duration=4.0),
    "arrivals": Model(
        [http(), "--arrive", "100/s", "--total", "400", "--calls", "3", "-d", "8s", "--threads", "1",
         "--timeout", "1s"],
        "arrive", HTTP, 400, rate=100.0, total=400, calls=3, timeout=1.0),
    "messages": Model(
        [f"ws://127.0.0.1:{WS}/echo", "-c", "40", "--ramp", "80/s", "-d", "4s", "--ping", "50ms",
         "--message", "a message of 26 octets, ok", "--threads", "2", "--timeout", "1s"],
        "ping", WS, 40, ramp=80.0, ping=0.050, timeout=1.0, message=26, faulty_messages=True, duration=4.0),
    "pings": Model(
        [f"ws://127.0.0.1:{WS}/echo", "-c", "100", "--ramp", "100/s", "-d", "3s", "--ping", "500ms",
         "--message", "", "--threads", "2"],
        "ping", WS, 100, ramp=100.0, ping=0.500, message=0, duration=3.0),
    "echo": Model(
        [f"tcp://127.0.0.1:{TCP}", "-c", "40", "--ramp", "80/s", "-d", "3s", "--ping", "50ms",
         "--message", "sixteen octets!!", "--threads", "2"],
        "ping", TCP, 40, ramp=80.0, ping=0.050, message=16, duration=3.0),
    "idle": Model(
        [f"tcp://127.0.0.1:{TCP}", "-c", "300", "--ramp", "200/s", "-d", "3s", "--threads", "2"],
        "none", TCP, 300, ramp=200.0, duration=3.0),
    "populations": Model(
        [], "mixed", HTTP, 32, ramp=40.0, timeout=1.0, scenario=SCENARIO, probe="/probe", duration=4.0,
        populations={
            # The stage's 40 dials/s are shared by their sizes.
            "users": Model([], "think", HTTP, 12, think=0.020, timeout=1.0, ramp=15.0, duration=4.0),
            "chat": Model([], "ping", WS, 20, ping=0.050, message=9, timeout=1.0, ramp=25.0, duration=4.0),
        }),
}

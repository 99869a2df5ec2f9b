"""Targets of another protocol, which are quoted; upgrades that are refused; and what HTTP/2 servers lack."""

from recording import limited, scenario
from tuned.protocols import h2

SHORT = ("-c", "2", "-d", "300ms", "--timeout", "500ms", "--reconnect", "never")
MAIL, REDIS = ("--greeting", "220 mail ESMTP\\r\\n"), ("--reply=-NOAUTH\\r\\n",)
LONG = ("--ping", "100ms", "--message", "a message that is longer than the reply")
NEVER = "violated the TLS protocol"


def raw(rig, *options):
    """Any bytes over TCP."""
    return rig.start("python3", rig.server("raw.py"), rig.port, *options)


def quoted(server, about, of, scheme, *options):
    """A scenario in which a server of another protocol is quoted in the fix."""
    name, quote = ("mail", "220 mail ESMTP") if server is MAIL else ("redis", "-NOAUTH")

    def run(rig):
        raw(rig, *server)
        rig.throng("run", f"{scheme}://127.0.0.1:{rig.port}", *SHORT, *options)

    run.__name__, run.__doc__ = f"{name}_instead_of_{of}", about
    causes = ("tls",) if scheme in ("https", "wss", "tls") else ("wrong-answer", "timeout")
    scenario(limited("target", *causes, fix=f'it begins with "{quote}"', never=NEVER))(run)


for scheme, options in (("http", ()), ("ws", ()), ("https", ("-k",)), ("wss", ("-k",)), ("tls", ("-k",)), ("tcp", LONG)):
    quoted(MAIL, f"A greeting of SMTP, and the load is {scheme}.", scheme, scheme, *options)
quoted(MAIL, "A greeting of SMTP to the preface of HTTP/2.", "http2", "http", "--http2")
for of, scheme, options in (("http", "http", ()), ("http2", "http", ("--http2",)), ("tcp", "tcp", LONG)):
    quoted(REDIS, f"An error of Redis to the first bytes; the load is {of}.", of, scheme, *options)


@scenario(limited("target", "wrong-answer", fix='it begins with "SSH-2.0-OpenSSH_9.2": check that the port is',
                  sentence="^response that the protocol does not allow .neither HTTP/1.0 nor HTTP/1.1. × 2"))
def ssh_instead_of_http(rig):
    """A greeting of SSH to each request."""
    raw(rig, "--reply", "SSH-2.0-OpenSSH_9.2\\r\\n" + "x" * 60)
    rig.throng("run", rig.url, "-c", "2", "-d", "20s")


@scenario(limited("target", "wrong-answer", fix='it redirects to "/login"'))
def redirects_an_upgrade_to_a_login(rig):
    """302 to the upgrade of a WebSocket."""
    rig.odd("--status", "302 Found", "--header", "Location: /login")
    rig.throng("run", f"ws://127.0.0.1:{rig.port}", *SHORT)


@scenario(limited("target", "wrong-answer", fix='it redirects to "https://shop.example/"'))
def redirects_to_https(rig):
    """301 to another origin."""
    rig.odd("--status", "301 Moved Permanently", "--header", "Location: https://shop.example/")
    rig.throng("run", rig.url, *SHORT)


CURL = "-H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' http://127.0.0.1:8080/chat$"


def refused(status, why):
    """A scenario in which the upgrade gets this status."""
    code = status[:3]

    def run(rig):
        rig.odd("--status", status, "--length", 0)
        rig.throng("run", f"ws://127.0.0.1:{rig.port}/chat", "-c", "3", "-d", "200ms")

    run.__name__, run.__doc__ = f"an_upgrade_gets_{code}", f"{status} to the upgrade of a WebSocket."
    reason = f"^fail: WebSocket upgrade refused with status {code} × 3: {why}"
    scenario(limited("target", "wrong-answer", reason=reason, fix=CURL))(run)


refused("401 Unauthorized", "it requires credentials; send them with the upgrade: -H 'Authorization: …'")
refused("403 Forbidden", "probably it requires an Origin")
refused("404 Not Found", "there is no WebSocket at this path")
refused("426 Upgrade Required", "it requires another version or sub-protocol")


@scenario(limited("target", "wrong-answer", fix="if the target does not echo, use --message ''", never="curl"))
def replies_and_does_not_echo(rig):
    """`pong` to each message: a service that is no echo."""
    raw(rig, "--reply", "pong", "--every", 1)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "2", "-d", "300ms", "--message", "ping", "--ping", "50ms")


@scenario(limited("target", "wrong-answer", "closed", "tls",
                  detail="^3 handshakes failed: the target does not offer WebSocket over HTTP/2 .RFC 8441.",
                  fix="leave out --http2"))
def http2_without_websockets(rig):
    """SETTINGS without ENABLE_CONNECT_PROTOCOL, and the load is WebSockets over HTTP/2."""
    h2(rig)
    rig.throng("run", f"ws://127.0.0.1:{rig.port}/", "--http2", "-c", "3", "-d", "20s")


@scenario(limited("target", "wrong-answer", "closed", "tls", detail="^3 handshakes failed: the target does not speak HTTP/2 without TLS",
                  fix="https://"))
def http1_to_the_preface(rig):
    """400 of HTTP/1.1 to the preface of HTTP/2."""
    raw(rig, "--reply", "HTTP/1.1 400 Bad Request\\r\\n\\r\\n")
    rig.throng("run", rig.url, "--http2", "-c", "3", "-d", "20s")


def s_server(scheme):
    """A scenario against OpenSSL's own server."""

    def run(rig):
        file = rig.certificate()
        rig.start("openssl", "s_server", "-www", "-accept", rig.port, "-key", file, "-cert", file)
        rig.throng("run", f"{scheme}://127.0.0.1:{rig.port}/", "-c", "5", "-d", "300ms")
        rig.check(rig.summary["requests"]["bytes_in"] == 0, "it says nothing to plain text")

    run.__name__, run.__doc__ = f"openssl_expects_tls_of_{scheme}", "OpenSSL's s_server closes plain connections without a byte."
    scenario(limited("target", "tls-expected", certainty="seen", detail="a TLS ClientHello received a reply"))(run)


for scheme in ("http", "ws"):
    s_server(scheme)

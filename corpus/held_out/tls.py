"""TLS: mistakes, and odd but right ones."""

from held_out.starting import certificates, go, haproxy, loop, nginx
from recording import healthy, limited, scenario

PACED = ("-c", 40, "--think", "400ms", "-d", "3s", "--timeout", "4s")


def secure(rig, *options, **made):
    """The asyncio server with a certificate of its own CA; the CA's file."""
    ca, certificate, key = certificates(rig, **made)
    loop(rig, "--tls", f"{certificate},{key}", *options)
    rig.secure = f"https://127.0.0.1:{rig.port}/"
    return ca


def nginx_tls(rig, more="", protocols="TLSv1.2 TLSv1.3", listen="ssl", **made):
    """nginx with a certificate of its own CA; the CA's file."""
    ca, certificate, key = certificates(rig, **made)
    nginx(rig, f"server {{ listen {rig.port} {listen}; ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_protocols {protocols}; {more} return 200 ok; }}")
    rig.secure = f"https://127.0.0.1:{rig.port}/"
    return ca


@scenario(limited("target", "tls", says="expired"))
def expired(rig):
    """The certificate expired yesterday."""
    ca = secure(rig, days=-1)
    rig.throng("run", rig.secure, "--cacert", ca, *PACED)


@scenario(limited("target", "tls"))
def unknown_issuer(rig):
    """A certificate of a CA that this machine does not know."""
    secure(rig)
    rig.throng("run", rig.secure, *PACED)


@scenario(limited("target", "tls", says="name"))
def wrong_name(rig):
    """The certificate is for other.example."""
    ca = secure(rig, name="DNS:other.example")
    rig.throng("run", rig.secure, "--cacert", ca, *PACED)


@scenario(limited("target", "tls-expected", "wrong-answer"))
def plain_to_a_tls_port(rig):
    """http:// to a port of nginx that speaks TLS: it answers 400."""
    nginx_tls(rig)
    rig.throng("run", rig.url, *PACED)


@scenario(limited("target", "tls-expected", "closed"))
def plain_to_a_bare_tls_port(rig):
    """http:// to a port that speaks TLS and only closes what is none."""
    secure(rig)
    rig.throng("run", rig.url, *PACED)


@scenario(limited("target", "tls"))
def tls_to_a_plain_port(rig):
    """https:// to a port that speaks plain HTTP."""
    nginx(rig, f"server {{ listen {rig.port}; return 200 ok; }}")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", *PACED)


@scenario(limited("target", "tls"))
def only_tls_1_2(rig):
    """The server has TLS 1.2 only and the client offers TLS 1.3 only."""
    ca = nginx_tls(rig, protocols="TLSv1.2")
    rig.throng("run", rig.secure, "--cacert", ca, "--tls", "1.3", *PACED)


@scenario(limited("target", "tls"))
def asks_for_a_certificate(rig):
    """The server wants a client's certificate, and there is none."""
    ca, certificate, key = certificates(rig)
    loop(rig, "--tls", f"{certificate},{key}", "--ca", ca)
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", ca, *PACED)


@scenario(limited("target", "tls"))
def haproxy_asks_for_a_certificate(rig):
    """haproxy wants a client's certificate, gets none, and says so by an alert."""
    ca, certificate, key = certificates(rig)
    rig.write("both.pem", certificate.read_text() + key.read_text())
    haproxy(rig, f"global\nDEFAULTS\nfrontend f\n bind :{rig.port} ssl crt {rig.folder}/both.pem ca-file {ca} verify required\n http-request return status 200\n")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", ca, *PACED)


@scenario(limited("target", "tls"))
def no_http_2(rig):
    """HTTP/2 is asked for, and the server has only HTTP/1.1."""
    ca = nginx_tls(rig)
    rig.throng("run", rig.secure, "--cacert", ca, "--http2", *PACED)


@scenario(limited("target", "connection-limit", at=(55, 62)))
def tls_resets_above(rig):
    """TLS, and a reset above 60 connections."""
    ca = secure(rig, "--max", 60)
    rig.throng("run", rig.secure, "--cacert", ca, "-c", 120, "--ramp", "40/s", "--think", "500ms", "-d", "3s", "--timeout", "4s")
    rig.check("over at 61" in rig.output(), "the 61st was reset")


@scenario(healthy())
def tls_with_a_client_certificate(rig):
    """The server wants a client's certificate, and gets one."""
    ca, certificate, key = certificates(rig)
    loop(rig, "--tls", f"{certificate},{key}", "--ca", ca)
    own = ("--cert", rig.folder / "client.pem", "--key", rig.folder / "client.key")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--cacert", ca, *own, *PACED)


@scenario(healthy())
def resumed_sessions(rig):
    """New connections to nginx with session tickets: most handshakes are resumed."""
    ca = nginx_tls(rig)
    rig.throng("run", rig.secure, "--cacert", ca, "--arrive", "60/s", "-d", "3s", "--timeout", "4s")


@scenario(healthy())
def tls_1_2(rig):
    """TLS 1.2, each handshake in full."""
    ca = nginx_tls(rig, protocols="TLSv1.2")
    rig.throng("run", rig.secure, "--cacert", ca, "--no-resume", *PACED)


@scenario(healthy())
def nginx_http_2(rig):
    """HTTP/2 over TLS with five streams a connection."""
    ca = nginx_tls(rig, listen="ssl http2")
    rig.throng("run", rig.secure, "--cacert", ca, "--http2", "--streams", 5, "-c", 20, "--rate", "200/s", "-d", "3s", "--timeout", "4s")


@scenario(healthy())
def caddy_http_2(rig):
    """HTTP/2 over TLS of caddy, which has a certificate of its own CA."""
    rig.needs("caddy")
    config = f"{{\n admin off\n}}\nhttps://localhost:{rig.port} {{\n tls internal\n respond ok\n}}\n"
    rig.start("caddy", "run", "--config", rig.write("Caddyfile", config), "--adapter", "caddyfile", env={"HOME": str(rig.folder), "XDG_DATA_HOME": str(rig.folder)})
    rig.throng("run", f"https://localhost:{rig.port}/", "-k", "--http2", *PACED)


@scenario(healthy())
def plain_http_2(rig):
    """HTTP/2 without TLS of Go, ten streams a connection."""
    go(rig, "plain")
    rig.throng("run", rig.url, "--http2", "--streams", 10, "-c", 20, "--rate", "300/s", "-d", "3s", "--timeout", "4s")


@scenario(healthy())
def goaway_announced(rig):
    """Go ends each HTTP/2 connection with GOAWAY after ten requests, all of which it answers."""
    go(rig, "goaway", 10)
    rig.throng("run", rig.url, "--http2", "-c", 40, "--think", "150ms", "-d", "3s", "--timeout", "4s")


@scenario(healthy())
def grpc_works(rig):
    """gRPC calls, each with an empty message."""
    go(rig, "grpc", 0)
    rig.throng("run", f"grpc://127.0.0.1:{rig.port}/a.B/C", *PACED)

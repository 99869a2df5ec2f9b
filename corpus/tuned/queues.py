"""Connections that wait to be accepted, that nobody accepts, or that are closed for their number or after their responses."""

import os
import signal
import time

from recording import FOLDER, limited, scenario
from tuned.protocols import reference

PACED = ("--think", "300ms..700ms", "--timeout", "3s")
IDLE = ("--think", "1m", "--timeout", "3s")
SILENT = "it closes each connection after its response without announcing it"
# io_uring_setup, unshare and close_range, on x86-64.
ONE_TABLE = "425,272,436"


def overflows(rig):
    """How often an accept queue of this network namespace has overflowed, by the kernel's counter."""
    names, values = [line.split() for line in open("/proc/net/netstat") if line.startswith("TcpExt:")]
    return int(dict(zip(names, values))["ListenOverflows"])


@scenario(limited("target", "accept-queue", at=(1, 14), sentence="accept queue of 8 was full", detail="followed by: open files .second ",
                  certainty="seen"))
def accepts_five_and_runs_out_of_files_later(rig):
    """Serves five connections, and leaves the others in a queue of 8; 2.5 s later it uses up its 100 files, which no connection waits for."""
    rig.start("python3", rig.server("two_faults.py"), rig.port, files=100)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "1k/s", "-d", "4s", "--think", "1m", "--timeout", "1500ms")
    rig.check(overflows(rig) > 0 and "out of files" in rig.output(), "both")


@scenario(limited("target", "accept-queue", "connection-limit", held=(5, 5)))
def five_of_twenty_are_accepted(rig):
    """Accepts and serves five connections; its kernel has four more in the queue, and closes come with the end of the load."""
    rig.odd("--most", 5, "--beyond", "leave", "--backlog", 3)
    rig.throng("run", rig.url, "-c", "20", "-d", "2s", "--timeout", "2s", "--max-lag", "1s", "--threshold", "held >= 50%")
    rig.check(rig.counted()["accepted"] == 5, "five")


@scenario(limited("target", "accept-queue", at=(40, 40), held=(40, 40), certainty="seen", detail="^20 connections were in its accept queue of 500"))
def a_standing_queue_without_overflows(rig):
    """Accepts 40 at a time; the other 20 wait in the accept queue of 500."""
    rig.odd("--most", 40, "--beyond", "leave", "--backlog", 500)
    rig.throng("run", rig.url, "-c", "60", "-d", "3s", "--think", "1m", "--timeout", "2s")
    rig.check(rig.counted()["most_open"] == 40 and overflows(rig) == 0, "40 at a time")


@scenario(limited("target", "accept-queue", certainty="seen", sentence="^the target's accept queue of 5 was full: it overflowed ", held=(0, 197)))
def a_queue_of_five_overflows(rig):
    """A backlog of 5, all of 200 dial at once: of some connections only the load has an end."""
    rig.odd("--backlog", 5)
    rig.throng("run", rig.url, "-c", "200", "-d", "2s", "--ramp", "0s", "--timeout", "3s", "--threshold", "held >= 99%")
    rig.check(overflows(rig) > 0, "it overflowed")


@scenario(limited("target", "accept-queue", certainty="seen", detail="accept queue of 8", fix="listen backlog .gunicorn and uvicorn: --backlog "))
def a_queue_of_eight_overflows(rig):
    """A backlog of 8 and 20 accepts a second, for 200 that dial at once."""
    rig.odd("--backlog", 8, "--accept-rate", 20)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "5k/s", "-d", "1s", "--think", "1m", "--timeout", "2s")
    rig.check(overflows(rig) > 0, "it overflowed")


@scenario(limited("target", "open-files", at=(200, 256), detail="256 files open", fix="--nofile="))
def the_reference_out_of_files_over_epoll(rig):
    """throng's own server where neither io_uring nor further tables of files are to be had: 256 files."""
    refuse = FOLDER.parent / "crates/cli/tests/black_box/refuse.py"
    rig.start("python3", refuse, ONE_TABLE, rig.binary, "serve", "--listen", f"127.0.0.1:{rig.port}", "--io", "epoll", "--threads", 1, files=256)
    rig.throng("run", rig.url, "-c", "400", "--ramp", "5k/s", "-d", "3s", "--think", "1m", "--timeout", "2s")
    rig.check(rig.summary["connections"]["held"] < 256, "files were short")


@scenario(limited("target", "connection-limit", at=(500, 500), detail="beyond 500 open ones", fix="maxconn"))
def the_reference_closes_beyond_500(rig):
    """Closes connections beyond 500, at once."""
    reference(rig, "--max-open", 500)
    rig.throng("run", rig.url, "-c", "900", "-d", "1s", "--think", "1m")


@scenario(limited("target", "connection-limit", at=(500, 500), detail="beyond 500 open ones", fix="maxconn"))
def raw_tcp_beyond_500_is_closed(rig):
    """Closes connections beyond 500, over raw TCP without a message."""
    reference(rig, "--max-open", 500)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "900", "-d", "1s")


@scenario(limited("target", "connection-limit", at=(500, 500), detail="beyond 500 open ones", fix="maxconn"))
def tls_beyond_500_is_closed(rig):
    """Closes connections beyond 500 in their TLS handshakes."""
    reference(rig, "--max-open", 500, "--tls")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "-c", "900", "-d", "1s", "--think", "1m")


@scenario(limited("target", "requests-per-connection", certainty="inferred", detail="after 10 responses"))
def ten_requests_and_the_load_dials_again(rig):
    """Closes each connection after 10 responses, without a notice; the load reconnects with a back-off."""
    rig.odd("--responses", 10)
    rig.throng("run", rig.url, "-c", "20", "-d", "2s", "--think", "20ms..60ms", "--reconnect", "10ms..100ms")
    rig.check(rig.counted()["closed"] > 20, "closes")


@scenario(limited("target", "requests-per-connection", detail=SILENT))
def closes_a_second_after_each_arrival(rig):
    """Responds after 1 s and closes: no limit on the age of connections."""
    rig.odd("--delay", 1, "--responses", 1)
    rig.throng("run", rig.url, "--arrive", "60/s", "--total", "60", "--calls", "10", "-d", "3s")


@scenario(limited("target", "requests-per-connection", detail=SILENT))
def resets_after_each_late_response(rig):
    """Responds after 1 s, and resets 0.2 s later, as a busy loop that closes what is finished when it comes to it; connections arrive."""
    rig.odd("--delay", 1, "--responses", 1, "--linger", "0.2", "--end-by", "reset")
    rig.throng("run", rig.url, "--arrive", "60/s", "--total", "60", "--calls", "10", "-d", "3s")


@scenario(limited("target", "requests-per-connection", detail=SILENT))
def resets_held_ones_after_their_response(rig):
    """The same for 20 connections that are held."""
    rig.odd("--delay", 1, "--responses", 1, "--linger", "0.2", "--end-by", "reset")
    rig.throng("run", rig.url, "-c", "20", "-d", "2s", "--ramp", "40/s")


@scenario(limited("target", "stall", certainty="seen", held=(0, 0)))
def stopped_before_the_first_dial(rig):
    """SIGSTOP before the load begins: its kernel completes 100 connections, and the process has none of them."""
    server = rig.odd()
    os.kill(server.pid, signal.SIGSTOP)
    time.sleep(0.2)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "100", "-d", "1s")
    os.kill(server.pid, signal.SIGCONT)
    time.sleep(0.6)
    rig.check(rig.counted()["accepted"] <= 100, "after the load, at the earliest")


@scenario(limited("target", "closed", "idle-cut", detail="connections were lost: closed by the peer", fix="idle timeout"))
def says_408_to_idle_ones(rig):
    """0.4 s after a response comes 408 Request Timeout with an announced close, for no request."""
    rig.odd("--after-response", "HTTP/1.1 408 Request Timeout\\r\\nConnection: close\\r\\nContent-Length: 0\\r\\n\\r\\n")
    rig.throng("run", rig.url, "-c", "6", "--ramp", "10k/s", "-d", "4s", "--think", "1m")


@scenario(limited("target", "wrong-answer", sentence=r"^truncated response × \d+$"))
def two_of_three_are_cut_off(rig):
    """One request in three is reset, two get half a response."""
    rig.odd("--then", "half-or-reset")
    rig.throng("run", rig.url, "-c", "60", "-d", "3s", "--ramp", "100/s")
    rig.check(rig.counted()["odd"] > 30, "both")

"""Servers that respond late, never, wrongly, or in odd ways that are allowed."""

from recording import healthy, limited, scenario, unknowable

PACED = ("--think", "300ms..700ms", "--timeout", "3s")
QUICK = ("--think", "100ms..300ms", "--timeout", "3s")
HALF = "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nHell"


def went_odd(rig):
    rig.check(rig.counted()["odd"] > 0, "the odd requests took place")


# --- late or never ---


@scenario(limited("target", "timeout", says="timeout"))
def each_response_later_than_our_timeout(rig):
    """Each response takes 2.5 s; our own --timeout is 1 s: the deadline is ours."""
    rig.odd("--delay", "2.5")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "4s", "--timeout", "1s")
    rig.check(rig.counted()["accepted"] > 0, "accepted")


@scenario(limited("target", "timeout"))
def some_responses_later_than_our_timeout(rig):
    """Responses take 0.1 s to 1.4 s; our own --timeout is 1 s."""
    rig.odd("--delay", "0.1", "--spread", "1.3")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "4s", "--think", "100ms..300ms", "--timeout", "1s")


@scenario(limited("target", "timeout", sentence="50 requests timed out"))
def never_responds(rig):
    """Accepts and reads, and does not respond."""
    rig.odd("--then", "hang")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "4s", "--timeout", "2s")
    went_odd(rig)


@scenario(limited("target", "timeout"))
def never_responds_to_one_in_ten(rig):
    """One request in ten gets no response."""
    rig.odd("--then", "hang", "--every", 10)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "2s")
    went_odd(rig)


@scenario(limited("target", "timeout", "stall"))
def responds_no_more_from_second_2_on(rig):
    """From second 2 on no request gets a response; its loop runs on, and reads them."""
    rig.odd("--then", "hang", "--at", 2)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "2s")
    went_odd(rig)


@scenario(limited("target", "stall"))
def blocks_its_loop_for_2_s(rig):
    """A request in second 2 blocks the event loop for 2 s, once; latency has a threshold."""
    rig.odd("--then", "block", "--at", 2, "--for", "0.1", "--every", 1, "--amount", "2")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "8s",
               "--threshold", "latency.max < 500ms")
    went_odd(rig)


@scenario(limited("target", "stall"))
def stopped_for_2_s(rig):
    """SIGSTOP in second 2, SIGCONT in second 4; latency has a threshold."""
    server = rig.odd()
    rig.later(2, "kill", "-STOP", server.pid)
    rig.later(4, "kill", "-CONT", server.pid)
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "8s",
               "--threshold", "latency.max < 500ms")


@scenario(limited("target", "stall"))
def stopped_to_the_end(rig):
    """SIGSTOP in second 2: requests time out."""
    server = rig.odd()
    rig.later(2, "kill", "-STOP", server.pid)
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "2s")


@scenario(limited("target", "closed"))
def stopped_only_after_its_faults(rig):
    """Closes one request in ten instead of responding, in seconds 1 and 2; is stopped for 0.3 s in second 5, after that."""
    server = rig.odd("--then", "close", "--every", 10, "--at", "0.5", "--for", "1.5")
    rig.later(5, "kill", "-STOP", server.pid)
    rig.later("5.3", "kill", "-CONT", server.pid)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "6s", *QUICK)
    went_odd(rig)


@scenario(healthy())
def pauses_that_no_threshold_minds(rig):
    """The whole process pauses for 0.2 s each 1.5 s, as in collections; there is no threshold."""
    rig.odd("--stall-every", "1.5", "--stall-for", "0.2")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "4s", *QUICK)


@scenario(healthy())
def pauses_within_the_threshold(rig):
    """Pauses of 0.2 s; the threshold is 2 s."""
    rig.odd("--stall-every", "1", "--stall-for", "0.2")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "4s", *QUICK, "--threshold", "latency.p99 < 2s")


@scenario(limited("target", "stall", says="ms|stop|stall|respon"))
def pauses_beyond_the_threshold(rig):
    """The whole process pauses for 0.8 s each 1.5 s; the threshold is 300 ms."""
    rig.odd("--stall-every", "1.5", "--stall-for", "0.8")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", *QUICK, "--threshold", "latency.p99 < 300ms")


@scenario(limited("target"))
def one_in_twenty_takes_a_second(rig):
    """One response in 20 takes 1 s, by a timer and without CPU; the threshold is 500 ms. No cause of the list fits."""
    rig.odd("--then", "delay", "--every", 20, "--amount", "1")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "4s", *QUICK, "--threshold", "latency.p99 < 500ms")
    went_odd(rig)


@scenario(healthy())
def steady_slow_responses(rig):
    """Each response takes 1.2 s."""
    rig.odd("--delay", "1.2")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "4s", "--timeout", "5s")


@scenario(healthy())
def long_polls(rig):
    """Each response takes 2 to 3 s, by design."""
    rig.odd("--delay", "2", "--spread", "1")
    rig.throng("run", rig.url, "-c", "300", "--ramp", "300/s", "-d", "4s", "--timeout", "8s")


@scenario(limited("target"))
def slow_from_second_3_on(rig):
    """From second 3 on responses take 0.8 s, as with a slow database; the threshold is 300 ms. No cause of the list fits."""
    rig.odd("--then", "delay", "--at", 3, "--amount", "0.8")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "6s", *QUICK, "--threshold", "latency.p99 < 300ms")
    went_odd(rig)


@scenario(limited("target", "saturated", "connection-limit"))
def a_pool_of_five(rig):
    """Five requests at a time, 50 ms each, for 400/s that are due: they queue inside of the process, which has CPU to spare."""
    rig.odd("--pool", 5, "--delay", "0.05")
    rig.throng("run", rig.url, "-c", "200", "--rate", "400/s", "-d", "5s", "--timeout", "8s", "--threshold", "latency.p99 < 300ms")


@scenario(healthy())
def a_pool_that_suffices(rig):
    """20 requests at a time, 50 ms each, for 100/s that are due."""
    rig.odd("--pool", 20, "--delay", "0.05")
    rig.throng("run", rig.url, "-c", "100", "--rate", "100/s", "-d", "4s", "--timeout", "3s", "--threshold", "latency.p99 < 1s")


@scenario(limited("host", "too-few-connections", sentence="10 carried 10 of the 50 requests that were due each second$",
                  fix="^use -c 50 or more", never="strace"))
def a_rate_with_too_few_connections(rig):
    """Each response takes 1 s, whatever the load; 10 connections are to carry 50/s."""
    rig.odd("--delay", "1")
    rig.throng("run", rig.url, "-c", "10", "--rate", "50/s", "-d", "5s", "--timeout", "8s", "--threshold", "latency.p99 < 1500ms")


@scenario(healthy())
def a_rate_with_just_enough_connections(rig):
    """Each response takes 0.5 s; 50 connections carry 50/s."""
    rig.odd("--delay", "0.5")
    rig.throng("run", rig.url, "-c", "50", "--rate", "50/s", "-d", "4s", "--timeout", "5s", "--threshold", "latency.p99 < 1500ms")


@scenario(healthy())
def bursts_of_requests(rig):
    """All 300 connections send at once, each second."""
    rig.odd()
    rig.throng("run", rig.url, "-c", "300", "--ramp", "1k/s", "-d", "4s", "--think", "1s", "--timeout", "3s")


@scenario(limited("target", "timeout", says="slow|trickl|part|timeout|timed out"))
def trickles_its_responses(rig):
    """Responses come a byte each 0.1 s, without an end."""
    rig.odd("--then", "trickle", "--amount", "0.1")
    rig.throng("run", rig.url, "-c", "40", "--ramp", "100/s", "-d", "4s", "--timeout", "2s")
    went_odd(rig)


# --- wrong, or allowed ---


@scenario(limited("target", "closed", detail="connections were lost: closed by the peer", fix="it closed them instead of responding"))
def closes_instead_of_responding(rig):
    """Closes one connection in five at a request."""
    rig.odd("--then", "close", "--every", 5)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "3s", *QUICK)
    went_odd(rig)


@scenario(limited("target", "closed", detail="connections were lost: reset by the peer", fix="it closed them instead of responding"))
def resets_instead_of_responding(rig):
    """Resets one connection in five at a request."""
    rig.odd("--then", "reset", "--every", 5)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "3s", *QUICK)
    went_odd(rig)


@scenario(limited("target", "wrong-answer", detail="responses were wrong: cut off in the middle", fix="curl -i"))
def half_a_response(rig):
    """One response in ten ends in the middle."""
    rig.odd("--then", "half", "--every", 10)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "3s", *QUICK)
    went_odd(rig)


@scenario(limited("target", "wrong-answer", says="503"))
def errors_from_second_2_on(rig):
    """From second 2 on each response is 503, at once."""
    rig.odd("--then", "error", "--at", 2)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "4s", *QUICK)
    went_odd(rig)


@scenario(limited("target", "wrong-answer", says="503"))
def one_in_a_hundred_is_503(rig):
    """One response in a hundred is 503."""
    rig.odd("--then", "error", "--every", 100)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "4s", *QUICK)
    went_odd(rig)


@scenario(limited("target", "wrong-answer", sentence=r"^unexpected status: 404 × \d+$",
                  fix="^check the path of the target; reproduce it with: curl -i -H User-Agent: -H Accept: http://127.0.0.1:8080/$"))
def no_such_page(rig):
    """404 to all."""
    rig.odd("--status", "404 Not Found")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(healthy())
def a_404_that_is_expected(rig):
    """404 to all, and that is what is expected."""
    rig.odd("--status", "404 Not Found")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED, "--expect", "status=404")


@scenario(limited("target", "wrong-answer", says="302|30[0-9]|redirect", fix='it redirects to "/login"'))
def redirects_to_a_login(rig):
    """302 to all."""
    rig.odd("--status", "302 Found", "--header", "Location: /login")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(limited("target", "wrong-answer", detail="responses were wrong: not allowed by the protocol",
                  fix='it begins with "220 mail.example ESMTP"'))
def another_protocol(rig):
    """A greeting of SMTP instead of HTTP."""
    rig.odd("--response", "220 mail.example ESMTP\\r\\n")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(limited("target", "wrong-answer", detail="responses were wrong: not allowed by the protocol"))
def two_lengths(rig):
    """Two different Content-Length fields in one response."""
    rig.odd("--response", "HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nContent-Length: 6\\r\\n\\r\\nHello!")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(limited("target", "wrong-answer"))
def a_body_cut_off(rig):
    """Announces five bytes, sends four, and closes."""
    rig.odd("--response", HALF, "--responses", 1)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(limited("target", "wrong-answer", "closed"))
def talks_without_being_asked(rig):
    """0.3 s after a response comes a second one, without a request."""
    rig.odd("--after-response", "HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "3s", "--think", "5s", "--timeout", "3s")


@scenario(limited("target", "wrong-answer", says="length"))
def a_wrong_length(rig):
    """Responses of 100 bytes where 200 are expected."""
    rig.odd("--length", 100)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED, "--expect", "length=200")


@scenario(healthy())
def chunks_with_trailers(rig):
    """Chunks with an extension, and trailers."""
    rig.odd("--response", "HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\nHello\\r\\n6;x=y\\r\\n World\\r\\n0\\r\\nDigest: 1\\r\\n\\r\\n")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "2s", *PACED)


@scenario(healthy())
def early_hints(rig):
    """100 and 103 before each response."""
    rig.odd("--response", "HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 103 Early Hints\\r\\nLink: </a.css>\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "2s", *PACED)


@scenario(healthy())
def no_content(rig):
    """204 to all."""
    rig.odd("--response", "HTTP/1.1 204 No Content\\r\\n\\r\\n")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "2s", *PACED)


@scenario(healthy())
def responses_in_pieces(rig):
    """Each response comes in 10 pieces, 20 ms apart."""
    rig.odd("--pieces", 10)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "3s", *PACED)


@scenario(healthy())
def large_responses(rig):
    """Responses of 200 kB."""
    rig.odd("--length", 200_000)
    rig.throng("run", rig.url, "-c", "50", "--ramp", "100/s", "-d", "3s", *PACED)


@scenario(unknowable(may=("timeout",)))
def one_request_in_300_is_lost(rig):
    """One request in 300 gets no response, for no reason that can be seen."""
    rig.odd("--then", "hang", "--every", 300)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "2s")
    went_odd(rig)

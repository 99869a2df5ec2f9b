"""Servers that limit connections: how many, how long, how many responses each; and those that close politely."""

from recording import healthy, limited, scenario, unknowable

PACED = ("--think", "300ms..700ms", "--timeout", "3s")
IDLE = ("--think", "1m", "--timeout", "3s")


def turned_away(rig):
    return rig.check(rig.counted()["turned_away"] > 0, "it turned connections away")


@scenario(limited("target", "connection-limit", at=(295, 305), fix="maxconn"))
def closes_beyond_300(rig):
    """Accepts and closes connections beyond 300."""
    rig.odd("--most", 300)
    rig.throng("run", rig.url, "-c", "500", "--ramp", "200/s", "-d", "2s", *PACED)
    turned_away(rig)


@scenario(limited("target", "connection-limit", at=(195, 205)))
def resets_beyond_200(rig):
    """Accepts and resets connections beyond 200."""
    rig.odd("--most", 200, "--beyond", "reset")
    rig.throng("run", rig.url, "-c", "300", "--ramp", "200/s", "-d", "2s", *PACED)
    turned_away(rig)


@scenario(limited("target", "connection-limit", "wrong-answer", says="503|connections"))
def answers_503_beyond_200(rig):
    """Answers the first request of connections beyond 200 with 503, and closes them as announced."""
    rig.odd("--most", 200, "--beyond", "503")
    rig.throng("run", rig.url, "-c", "300", "--ramp", "200/s", "-d", "2s", *PACED)
    turned_away(rig)


@scenario(limited("target", "connection-limit", "accept-queue", at=(95, 105), held=(100, 100), certainty="seen",
                  detail="^50 connections were in its accept queue of 500"))
def leaves_beyond_100_in_the_queue(rig):
    """Accepts 100 at a time; the others wait in the accept queue of 500."""
    rig.odd("--most", 100, "--beyond", "leave", "--backlog", 500)
    rig.throng("run", rig.url, "-c", "150", "--ramp", "200/s", "-d", "3s", *IDLE)
    rig.check(rig.counted()["most_open"] == 100, "100 at a time")


@scenario(limited("target", "connection-limit", "timeout", at=(95, 105)))
def serves_100_and_holds_the_others(rig):
    """Accepts all, and serves 100 of them; the others get no response."""
    rig.odd("--most", 100, "--beyond", "silence")
    rig.throng("run", rig.url, "-c", "150", "--ramp", "200/s", "-d", "4s", "--think", "100ms..300ms", "--timeout", "3s")
    turned_away(rig)


@scenario(limited("target", "connection-limit", at=(95, 105), certainty="inferred", detail="as others opened",
                  sentence="to admit new ones, and keeps about 100$"))
def evicts_the_longest_idle_beyond_100(rig):
    """Beyond 100 it closes the connection that was idle for longest, to make room."""
    rig.odd("--most", 100, "--beyond", "evict")
    rig.throng("run", rig.url, "-c", "150", "--ramp", "100/s", "-d", "2s", *IDLE)
    turned_away(rig)


@scenario(limited("target", "connection-limit", at=(990, 1_010), says="1,?000|connections"))
def closes_beyond_1000_which_is_no_file_limit(rig):
    """Accepts and closes connections beyond 1,000, with 4,096 files."""
    rig.odd("--most", 1_000, files=4_096)
    rig.throng("run", rig.url, "-c", "1300", "--ramp", "400/s", "-d", "2s", *IDLE)
    turned_away(rig)


@scenario(healthy())
def a_limit_that_is_exactly_enough(rig):
    """300 connections at most, for 300 connections."""
    rig.odd("--most", 300)
    rig.throng("run", rig.url, "-c", "300", "--ramp", "300/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["turned_away"] == 0, "none was turned away")


@scenario(limited("target", "connection-limit", says="address|source|connections"))
def limits_connections_of_each_address(rig):
    """80 connections of each source address; all come from one."""
    rig.odd("--per-address", 80)
    rig.throng("run", rig.url, "-c", "160", "--ramp", "100/s", "-d", "2s", *PACED)
    turned_away(rig)


@scenario(healthy())
def limits_each_address_with_enough_addresses(rig):
    """80 connections of each source address, which come from four."""
    rig.odd("--per-address", 80)
    rig.throng("run", rig.url, "-c", "160", "--ramp", "100/s", "-d", "2s", "--sources", "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4", *PACED)
    rig.check(rig.counted()["turned_away"] == 0, "none was turned away")


@scenario(limited("target", "idle-cut", detail=r"^50 connections were closed after 2(\.\d)? s of inactivity$", fix="idle timeout"))
def idle_timeout_of_2_s(rig):
    """Closes connections after 2 s without a request, without a notice."""
    rig.odd("--idle", 2)
    rig.throng("run", rig.url, "-c", "50", "--ramp", "40/s", "-d", "6s", "--think", "20s..40s", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "idle-cut"))
def idle_timeout_that_some_think_times_exceed(rig):
    """Closes connections after 2 s without a request; the pauses of the load are 0.2 s to 3 s."""
    rig.odd("--idle", 2)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "7s", "--think", "200ms..3s", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(healthy())
def idle_timeout_longer_than_pauses(rig):
    """Closes connections after 3 s without a request; the pauses are 1.5 s at most."""
    rig.odd("--idle", 3)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "200/s", "-d", "4s", "--think", "200ms..1500ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] == 0, "it closed none")


@scenario(healthy())
def announced_keep_alive_of_1_s(rig):
    """Announces `Keep-Alive: timeout=1`, and closes after 1 s; the load dials again."""
    rig.odd("--idle", 1, "--header", "Keep-Alive: timeout=1")
    rig.throng("run", rig.url, "-c", "40", "--ramp", "40/s", "-d", "4s", "--think", "1600ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "request-timeout", "idle-cut"))
def closes_those_that_never_send(rig):
    """Closes connections that have sent nothing for 2 s, as against slow requests; the load is idle raw TCP."""
    rig.odd("--first", 2)
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "60", "--ramp", "40/s", "-d", "5s", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "reset-after", detail=r"(1\.9|2|2\.[0-3]) s after they were opened", fix="maximum connection age"))
def maximum_age_of_2_s(rig):
    """Closes each connection 2 s after it was opened, in use or not."""
    rig.odd("--age", 2)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "30/s", "-d", "5s", "--think", "50ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "reset-after"))
def maximum_age_of_2_s_by_resets(rig):
    """Resets each connection 2 s after it was opened, idle or not."""
    rig.odd("--age", 2, "--end-by", "reset")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "30/s", "-d", "5s", "--think", "100ms..300ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "reset-after", "closed"))
def maximum_age_with_a_spread(rig):
    """Closes each connection 2 to 3 s after it was opened, as a server that spreads reconnections."""
    rig.odd("--age", 2, "--age-spread", 1)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "30/s", "-d", "5s", "--think", "50ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(healthy())
def maximum_age_longer_than_the_run(rig):
    """Closes each connection after a minute."""
    rig.odd("--age", 60)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["closed"] == 0, "it closed none")


@scenario(limited("target", "requests-per-connection", detail="after 10 responses", certainty="inferred"))
def ten_requests_a_connection(rig):
    """Closes each connection after 10 responses, without a notice."""
    rig.odd("--responses", 10)
    rig.throng("run", rig.url, "-c", "30", "--ramp", "30/s", "-d", "3s", "--think", "20ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "requests-per-connection", detail="^it closes each connection after its response without announcing it$"))
def one_request_a_connection(rig):
    """Closes each connection after its first response, without a notice."""
    rig.odd("--responses", 1)
    rig.throng("run", rig.url, "-c", "30", "--ramp", "30/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(limited("target", "requests-per-connection", says="5 responses"))
def five_requests_by_reset(rig):
    """Resets each connection after 5 responses."""
    rig.odd("--responses", 5, "--end-by", "close", "--delay", "0.1")
    rig.throng("run", rig.url, "-c", "30", "--ramp", "30/s", "-d", "3s", "--think", "20ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(healthy())
def announces_each_close(rig):
    """`Connection: close` in each response; the load dials again for each request."""
    rig.odd("--responses", 1, "--announce", 1)
    rig.throng("run", rig.url, "-c", "50", "--ramp", "50/s", "-d", "3s", *PACED)
    rig.check(rig.counted()["closed"] > 50, "it closed them")


@scenario(healthy())
def announces_each_tenth_close(rig):
    """`Connection: close` in the tenth response of a connection, as nginx's keepalive_requests."""
    rig.odd("--responses", 10, "--announce", 1)
    rig.throng("run", rig.url, "-c", "50", "--ramp", "50/s", "-d", "3s", "--think", "50ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["closed"] > 50, "it closed them")


@scenario(limited("target", "idle-cut", verdicts=("pass",)))
def reconnects_after_unannounced_closes(rig):
    """Closes idle connections after 1 s; the load reconnects with a back-off, and its threshold is on latency."""
    rig.odd("--idle", 1)
    rig.throng("run", rig.url, "-c", "40", "--ramp", "40/s", "-d", "4s", "--think", "500ms..1500ms", "--reconnect", "10ms..100ms",
               "--threshold", "latency.p99 < 2s")
    rig.check(rig.counted()["closed"] > 0, "it closed some")


@scenario(healthy())
def http_1_0_closes_each(rig):
    """HTTP/1.0 without keep-alive: the close ends the response."""
    rig.odd("--response", "HTTP/1.0 200 OK\\r\\n\\r\\nhello", "--responses", 1)
    rig.throng("run", rig.url, "-c", "50", "--ramp", "50/s", "-d", "3s", *PACED)


@scenario(limited("target", "accept-queue", "slow-accept"))
def short_backlog_and_slow_accepts(rig):
    """A backlog of 8, and 20 accepts a second."""
    rig.odd("--backlog", 8, "--accept-rate", 20)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "2k/s", "-d", "2s", *IDLE)
    rig.check(rig.counted()["accepted"] < 200, "it did not accept all")


@scenario(healthy())
def short_backlog_that_suffices(rig):
    """A backlog of 16, dialled at 100/s."""
    rig.odd("--backlog", 16)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "100/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["accepted"] >= 200, "it accepted all")


@scenario(limited("target", "slow-accept", "accept-queue"))
def accepts_40_a_second(rig):
    """40 accepts a second and a queue of 4,096; all are dialled within a second."""
    rig.odd("--accept-rate", 40)
    rig.throng("run", rig.url, "-c", "400", "--ramp", "1k/s", "-d", "4s", *IDLE)
    rig.check(rig.counted()["accepted"] < 400, "it did not accept all")


@scenario(limited("target", "slow-accept"))
def arrivals_beyond_its_accepts(rig):
    """40 accepts a second; 100 arrive."""
    rig.odd("--accept-rate", 40)
    rig.throng("run", rig.url, "--arrive", "100/s", "-d", "5s", "--timeout", "3s", "--threshold", "latency.p99 < 500ms")
    rig.check(rig.counted()["accepted"] < 450, "it did not accept all")


@scenario(healthy())
def accepts_faster_than_arrivals(rig):
    """200 accepts a second at most; 50 arrive."""
    rig.odd("--accept-rate", 200)
    rig.throng("run", rig.url, "--arrive", "50/s", "-d", "4s", "--timeout", "3s", "--calls", "2")


@scenario(limited("target", "accept-queue", "thread", "stall"))
def stops_accepting_in_the_middle(rig):
    """From second 1 on no connection is accepted; those that are open are served."""
    rig.odd("--then", "stop-accepting", "--at", 1, "--backlog", 20)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "50/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["accepted"] < 120, "it stopped accepting")


@scenario(limited("target", "refused"))
def stops_listening_in_the_middle(rig):
    """In second 1 it closes its listener, and serves those that are open."""
    rig.odd("--then", "unlisten", "--at", 1)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "50/s", "-d", "2s", *PACED)
    rig.check(rig.counted()["accepted"] < 150, "it stopped listening")


@scenario(limited("target", "refused"))
def nothing_listens(rig):
    """The server listens at another port."""
    rig.odd(port=8_181)
    rig.throng("run", rig.url, "-c", "50", "-d", "1s")


@scenario(limited("target", "refused", verdicts=("fail", "pass")))
def listens_half_a_second_late(rig):
    """The server listens 0.5 s after the first dials."""
    rig.odd("--listen-after", "0.6", wait=False)
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(unknowable(may=("closed",)))
def closes_a_few_at_random(rig):
    """One request in 50 gets a close instead of a response, at random."""
    rig.odd("--then", "close", "--share", "0.02")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "4s", "--think", "50ms..150ms", "--timeout", "3s")
    rig.check(rig.counted()["odd"] > 0, "it closed some")

"""The expected figures, from the wire alone: of the whole run, of a population, a destination or a step.

When a request was due cannot be seen, but follows from what can: in closed loop it is the response before it, with think time that
and the time to think; the schedules of open loops and of messages are known but for where they begin, and that is the lower
envelope of what was sent. So `latency` here is from that time to the response's last octet, and `lateness` from it to the request:
throng's turnaround, which bounds how far any of its times may be from the wire's (see `Times`)."""

import bisect
import math

# An event this near to a bound of a window may be counted on either side of it: the bounds are by throng's clock, and its first
# dial was made this much earlier than the first SYN passed the tap.
EDGE = 0.006
# The histograms': three significant digits, at least 64 ns.
GRAIN, LEAST = 0.001, 64e-9
# The kernel's (sched/debug/base_slice_ns).
SLICE = 0.003


class Times:
    """A distribution measured outside, and how far throng's may be from it.

    throng reads a response a little after its packet passed (`rd`), and in closed loop and with think time the next request
    is due from there: the times differ by rd(i) - rd(i-1), where rd(i) is no longer than the turnaround to the next request, which is
    seen (`late`). So for all but a share 2d of them the difference is at most e, the (1 - d) quantile of `late`; hence the q quantile
    lies between those at q - 2d and q + 2d, e around. Of schedules (rate, ping) due is exact, and rd(i) alone remains. d is
    small against 1 - q, so that each percentile is held against its own neighbourhood."""

    # What throng subtracts from the latency of outstanding requests for its own stalls of 10 ms or more; set by context.py.
    stall = 0.0

    def __init__(self, values, late=(), edges=0, censored=0, chains=None, missing=0, exact=False, least=None):
        self.values, self.late = sorted(values), sorted(late)
        # From the request's packet to the response's: nothing that throng measures is shorter.
        self.shortest = sorted(least) if least is not None else None
        # What is due by a schedule is known exactly: throng's time is the longer one.
        self.exact = exact
        self.edges, self.censored, self.missing = edges, censored, missing
        self.chains = len(self.values) if chains is None else chains

    @property
    def n(self):
        return len(self.values)

    def at(self, q, values=None):
        values = self.values if values is None else values
        rank = min(max(math.ceil(q * len(values) * (1 - 1e-12)), 1), len(values))
        return values[rank - 1]

    # throng's turnarounds of the whole run, for requests whose own turnaround does not show on the wire; set by context.py.
    turnarounds = ()
    slice = SLICE

    def slack(self, d):
        # 0.1 ms: at least from the packet to the program, and the clock is read once per turn.
        own = self.at(1 - d, self.late) if self.late else 0.0
        if self.exact and Times.turnarounds:
            own += self.at(1 - d, Times.turnarounds)
            # A wake-up may wait for another program's time slice, and among few values one of them decides.
            own += Times.slice if d < 0.005 or self.n < 20 else 0.0
        return 1e-4 + own

    def before(self, d):
        """By how much throng's time may be shorter."""
        # 1 ms: a dial that replaces another one is this late in its slot.
        return self.stall + (1e-3 if self.exact else self.slack(d))

    def low(self, q, n, d):
        """The least that the q quantile of `n` may be."""
        if self.shortest is None:
            rank = min(max(math.ceil(q * n * (1 - 1e-12)), 1), n)
            value = self.values[rank - 1] if rank <= self.n else math.inf
            return value - self.before(d)
        rank = min(max(math.ceil(q * n * (1 - 1e-12)), 1), n)
        return (self.shortest[rank - 1] if rank <= len(self.shortest) else math.inf) - self.stall

    def quantile(self, q, beyond=0):
        """(least, expected, most); of `beyond` values more that are longer than all."""
        n = self.n + beyond
        def at(q):
            rank = min(max(math.ceil(q * n * (1 - 1e-12)), 1), n)
            return self.values[rank - 1] if rank <= self.n else math.inf
        d = min(0.01, (1 - q) / 2) / 2
        e, share = self.slack(d), 2 * d + (self.edges + self.missing) / max(n, 1)
        high = at(min(q + share, 1))
        return self.low(max(q - share, 0), n, d) * (1 - GRAIN) - LEAST, at(q), (high + e) * (1 + GRAIN) + LEAST

    def least(self):
        return self.low(0.0, self.n, 0.0) - LEAST, self.values[0], self.values[0] + self.slack(0.0)

    def most(self):
        near = self.values[max(0, self.n - 1 - self.edges)]
        near = self.shortest[max(0, self.n - 1 - self.edges)] - self.stall if self.shortest else near - self.before(0.0)
        return near - LEAST, self.values[-1], self.values[-1] + self.slack(0.0)

    def mean(self):
        """In a chain of requests, each due with the response before it, the differences cancel except at its ends."""
        mean = sum(self.values) / self.n
        late = sum(self.late) / len(self.late) if self.late else 0.0
        if self.exact and Times.turnarounds:
            late += sum(Times.turnarounds) / len(Times.turnarounds)
        slack = (1e-4 + late) * min(1.0, 2 * self.chains / self.n) + self.edges * self.values[-1] / self.n
        short = min(slack, 1e-4 + self.edges * self.values[-1] / self.n) if self.exact else slack
        short += self.stall
        if self.shortest:
            # A pause ends with throng's timer, up to a millisecond later than it is long.
            short = max(short, mean - sum(self.shortest) / self.n)
        return mean - short - GRAIN * mean, mean, mean + slack + GRAIN * mean

    def stdev(self):
        mean = sum(self.values) / self.n
        own = math.sqrt(sum((v - mean) ** 2 for v in self.values) / self.n)
        rms = math.sqrt(sum(v * v for v in self.late) / len(self.late)) if self.late else 0.0
        far = max(self.values[-1] - mean, mean - self.values[0])
        edges = self.edges * far * far / (2 * max(own, 1e-5) * self.n)
        slack = 1e-4 + 1.5 * rms + edges + GRAIN * self.values[-1]
        return max(0.0, own - slack), own, own + slack


class Lag(Times):
    """How late throng was. For a schedule it shows on the wire. In closed loop, with think time and for messages, a request is due once
    throng has read the response before it, which does not show: lag is at most the turnaround."""

    def __init__(self, late, edges, exact):
        super().__init__(late, late, edges, exact=exact)

    def least_of(self, low):
        return low if self.exact else 0.0

    def quantile(self, q, beyond=0):
        low, middle, high = super().quantile(q, beyond)
        # It counts until the turn that sends has ended.
        return self.least_of(low), middle, high + 5e-4

    def least(self):
        low, middle, high = super().least()
        return self.least_of(low), middle, high

    def most(self):
        low, middle, high = super().most()
        return self.least_of(low), middle, high + 5e-4

    def mean(self):
        low, middle, high = super().mean()
        return self.least_of(low), middle, high


class Scope:
    """The connections of one population (or destination) with the period of full load."""

    # A connection that throng ends later than this after the load was held to its end; set by context.py.
    grace = EDGE

    def __init__(self, connections, model, begin, end, wanted, first=None, step=None):
        self.connections, self.model, self.begin, self.end, self.wanted = connections, model, begin, end, wanted
        # First dials.
        self.first = connections[:wanted] if first is None else first
        exchanges = [x for c in connections for x in c.exchanges]
        self.exchanges = sorted((x for x in exchanges if step is None or step in (x.path or "")), key=lambda x: x.asked)

    # Connections

    def succeeded(self):
        return [c for c in self.connections if c.synack is not None]

    def opened(self):
        return sum(c.synack is not None for c in self.first)

    def failed(self):
        return sum(c.synack is None for c in self.connections)

    def redialled(self):
        return len(self.succeeded()) - self.opened()

    def open_at(self, time):
        return sum(c.synack <= time and (c.over()[0] is None or c.over()[0] > time) for c in self.succeeded())

    def held(self):
        counts = [self.open_at(self.end + shift) for shift in (-EDGE, 0.0, EDGE)]
        return min(counts), counts[1], max(counts)

    def peak(self):
        """throng sees an end a little after it passed, and so may see the next opening before it."""
        def most(shift, grid=None):
            changes = [(c.synack, 1) for c in self.succeeded()]
            changes += [(c.over()[0] + shift, -1) for c in self.succeeded() if c.over()[0]]
            open_, peak = 0, 0
            for _, change in sorted(changes):
                open_ += change
                peak = max(peak, open_)
            return peak
        return self.peak_seen(), most(0.0), most(EDGE)

    def peak_seen(self):
        """Of all threads together it sees what is open at the ends of its periods of 0.2 s: the minimum, wherever these lie."""
        events = sorted([(c.synack, 1) for c in self.succeeded()] + [(c.over()[0], -1) for c in self.succeeded() if c.over()[0]])
        times, levels, open_ = [], [], 0
        for time, change in events:
            open_ += change
            times.append(time)
            levels.append(open_)
        def at(time):
            place = bisect.bisect_right(times, time) - 1
            return levels[place] if place >= 0 else 0
        begin, end = times[0], max(times[-1], self.end)
        offsets = [n * 0.01 for n in range(20)]
        return min(max(at(begin + offset + k * 0.2) for k in range(int((end - begin) / 0.2) + 1)) for offset in offsets)

    def fate(self, c):
        """How a connection ended: closed (announced), dropped, finished, or still open (None)."""
        over, side = c.over()
        if over is None or c.synack is None:
            return None
        if self.model.calls and any(x.goodbye for x in c.exchanges):
            # It had a number of requests to make: a server that announces a close before that has dropped it.
            return "finished" if len(c.exchanges) >= self.model.calls else "dropped"
        if any(x.goodbye for x in c.exchanges) or (c.server_close and not (c.client_close and c.client_close < c.server_close)):
            return "closed"
        if side == "server":
            return "dropped"
        if any(self.cause(x) == "timeout" for x in c.waiting):
            return "dropped"
        return "finished" if over < self.end + Scope.grace else None

    def fated(self, fate):
        return sum(self.fate(c) == fate for c in self.connections)

    def left(self):
        """Those that throng itself closes when the run is over."""
        return len(self.succeeded()) - sum(self.fated(fate) for fate in ("dropped", "closed", "finished"))

    def released(self):
        """Of those, the ones that it may have closed before, while it waited long for responses to others: (least, expected, most)."""
        last = max((c.over()[0] for c in self.connections if c.over()[0]), default=self.end)
        return 0, 0, self.left() if last - self.end > 0.5 else 0

    def open_at_last(self):
        return self.left() - self.released()[2], self.left(), self.left()

    def dropped_in_drain(self):
        """throng counts from the end of the period of 0.2 s in which the load ended."""
        after = [c.over()[0] for c in self.connections if self.fate(c) == "dropped" and c.over()[0] > self.end - EDGE]
        return sum(t > self.end + 0.25 for t in after), sum(t > self.end for t in after), len(after)

    def ramp(self):
        """From the first dial to the result of the last first dial."""
        outcomes = [c.synack or c.refused for c in self.first if c.synack or c.refused]
        return max(outcomes) - min(c.due for c in self.first)

    # Requests

    def cause(self, x):
        """Why a request has no response: a kind of fault, or unanswered; None if it has one."""
        if x.answered is not None:
            return None
        c = x.connection
        over, side = c.over()
        if c.server_close and not (c.client_close and c.client_close < c.server_close):
            # It crossed with an announced close, and was retried: throng may read the close only after it has sent.
            return "withdrawn"
        if over is not None and side == "server":
            if c.into.rst == over:
                return "reset"
            return "truncated" if x.first else "closed"
        if over is not None and over - x.asked >= self.model.timeout * 0.98:
            return "timeout"
        return "unanswered"

    def sent(self):
        """Those that await a response."""
        return len(self.exchanges) - self.caused("withdrawn")

    def caused(self, kind):
        return sum(self.cause(x) == kind for x in self.exchanges)

    def backlog(self):
        """When each message fell due that was never sent: at its interval, while its connection awaited the reply to one before, until that
        was lost or the load had ended."""
        if self.model.kind != "ping":
            return []
        last = [c.exchanges[-1] for c in self.connections if c.exchanges]
        awaited = [x for x in last if x.answered is None or x.answered > self.end]
        until = lambda x: min(x.connection.over()[0] or self.end, self.end)
        return [x.due + n * self.model.ping for x in awaited for n in range(1, 1 + max(0, int((until(x) - x.due) / self.model.ping)))]

    def missed(self):
        """Due, and never sent."""
        return self.unconnected() + len(self.backlog())

    def unconnected(self):
        """The same, for their connection was refused: those that arrive, and those that are dialled again."""
        first = {id(c) for c in self.first}
        is_due = lambda c: self.model.kind == "arrive" or id(c) not in first
        return sum(c.synack is None and is_due(c) for c in self.connections)

    def due(self):
        return self.sent() + self.missed()

    def lost(self):
        """Those that a fault has ended."""
        return [x for x in self.exchanges if self.cause(x) not in (None, "unanswered", "withdrawn")]

    def wrong(self):
        """Those with a response that is not the expected one."""
        is_wrong = lambda x: not 200 <= x.status < 300 if x.status else not x.right
        return [x for x in self.answered() if not self.cause(x) and is_wrong(x)]

    def answered(self):
        return [x for x in self.exchanges if x.answered is not None]

    def statuses(self):
        counts = {}
        for x in self.answered():
            if x.status:
                counts[str(x.status)] = counts.get(str(x.status), 0) + 1
        return counts

    def faults(self):
        """side·stage·kind → count."""
        counts = {}
        def count(fault, n=1):
            counts[fault] = counts.get(fault, 0) + n
        for x in self.exchanges:
            cause = self.cause(x)
            if cause and cause not in ("unanswered", "withdrawn"):
                count(f"target·exchange·{cause}")
            elif x.answered and x.status and not 200 <= x.status < 300:
                count("target·exchange·wrong-status")
            elif x.answered and not x.right:
                count("target·exchange·wrong-echo")
        for c in self.connections:
            if c.synack is None and c.refused:
                count("target·dial·refused")
            elif self.fate(c) == "dropped" and not any(self.cause(x) for x in c.exchanges):
                # Nothing was outstanding.
                count("target·hold·reset" if c.into.rst else "target·hold·closed")
        return counts

    def octets(self, way):
        return sum((c.into if way == "in" else c.out).octets for c in self.connections)

    def bodies(self):
        """Of complete responses: truncated ones do not count as content."""
        return sum(x.body for x in self.answered())

    # Counted until a time, for the figures of each second

    def until(self, time, of):
        """(least, expected, most) of events up to `time`; `of`: their times."""
        times = sorted(of)
        return tuple(bisect.bisect_right(times, time + shift) for shift in (-EDGE, 0.0, EDGE))

    # Times

    def at_load(self, x):
        return self.begin <= x.due < self.end

    def edges(self, moments):
        moments = sorted(moments)
        before = lambda time: bisect.bisect_right(moments, time)
        if self.end - self.begin <= 2 * EDGE:
            return before(self.end + EDGE) - before(self.begin - EDGE)
        return sum(before(bound + EDGE) - before(bound - EDGE) for bound in (self.begin, self.end))

    def per_s(self):
        moments = [x.answered for x in self.answered()]
        n, near = sum(self.begin <= m < self.end for m in moments), self.edges(moments)
        span = self.end - self.begin
        return (n - near) / span, n / span, (n + near) / span

    def times(self, of, ramp=False, late=True):
        """From due to `of`(exchange), of the requests due at full load, or before it."""
        mine = [x for x in self.exchanges if (x.due < self.begin if ramp else self.at_load(x))]
        known = [x for x in mine if of(x) is not None]
        without = sum(self.cause(x) not in (None, "withdrawn") for x in mine)
        without += sum(due < self.begin if ramp else self.begin <= due < self.end for due in self.backlog())
        chains = len({id(x.connection) for x in mine}) + without if self.model.kind in ("closed", "think") else None
        return Times([of(x) - x.due for x in known], [x.asked - x.due for x in mine] if late else (),
                     self.edges([x.due for x in mine]) + (self.edges([x.due for x in self.exchanges]) if not mine else 0),
                     without, chains, exact=self.model.kind in ("rate", "ping"), least=[of(x) - x.asked for x in known])

    def latency(self):
        return self.times(lambda x: x.answered)

    def ramp_latency(self):
        return self.times(lambda x: x.answered, ramp=True)

    def first_byte(self):
        """A WebSocket message is seen whole only."""
        times = self.times(lambda x: None if x.connection.handshake else x.first)
        # A truncated response had a first octet too.
        times.censored = sum(x.first is None and self.cause(x) not in (None, "withdrawn") for x in self.exchanges
                             if self.at_load(x) and not x.connection.handshake)
        return times

    def ramp_first_byte(self):
        """The same of the ramp."""
        times = self.times(lambda x: None if x.connection.handshake else x.first, ramp=True)
        times.censored = sum(x.first is None and self.cause(x) not in (None, "withdrawn") for x in self.exchanges
                             if x.due < self.begin and not x.connection.handshake)
        return times

    def lag(self):
        late = [x.late() for x in self.exchanges if self.at_load(x)]
        if self.model.kind == "arrive":
            # The schedule is that of the connections; a request that follows a response at once cannot be late.
            late = [c.syn - c.due for c in self.connections]
        return Lag(late, self.edges([x.due for x in self.exchanges]), self.model.kind in ("rate", "arrive"))

    def connect(self):
        late = [self.dial_late(c) for c in self.connections]
        return Times([c.synack - c.due for c in self.succeeded()], late, censored=self.failed(), exact=True,
                     least=[c.synack - c.syn for c in self.succeeded()])

    def dial_late(self, c):
        """How late the dial was, and how long until throng had seen its SYN-ACK: what it sent first is behind that."""
        first = c.handshake or (c.exchanges[0] if c.exchanges and c.exchanges[0].path else None)
        # If nothing is sent at once it does not show: a turn that is late by more than that is a stall.
        seen = first.asked - c.synack if first and c.synack else 0.010
        # A dial that is due at its own time, not by the ramp's rate, waits for the timer's next millisecond.
        return c.syn - c.due + seen + (0.001 if c.due == c.syn else 0.0)

    def tls(self):
        """The runs that are audited are in plain text, so that the wire can be read."""
        return Times([], [], exact=True)

    def handshake(self):
        shakes = [c.handshake for c in self.connections if c.handshake and c.handshake.answered]
        return Times([h.answered - h.asked for h in shakes], [x.asked - x.due for x in self.exchanges], exact=True)


def schedule(connections, first, model, begin):
    """Sets `due` of all connections and their exchanges; `first`: the first dials."""
    new = set(map(id, first))
    for c in connections:
        if id(c) not in new:
            c.due = c.syn
        before = None
        for x in c.exchanges:
            if before is None:
                x.due = (c.handshake.answered if c.handshake else c.synack) if id(c) in new else c.syn
            else:
                x.due = (before.answered or x.asked) + model.think
            before = x
    if model.kind == "ping":
        for c in connections:
            base = min((x.asked - x.number * model.ping for x in c.exchanges), default=0.0)
            for x in c.exchanges:
                x.due = base + x.number * model.ping
    if model.kind == "rate":
        for c in connections:
            free = c.synack
            for x in c.exchanges:
                x.free, free = free or 0.0, x.answered
        slots([x for c in connections for x in c.exchanges], model.rate, begin)


def first_dials(connections, model, wanted):
    """Those of the ramp's slots, each the next SYN after its slot: a connection lost in the ramp is dialled again between them.
    Sets when each was due."""
    pace = model.ramp or (model.rate if model.kind == "arrive" else None)
    if not pace:
        first = connections[:wanted]
        for c in first:
            c.due = c.syn
        return first
    left, first = list(connections), []
    # Nothing is lost so early, and one of three is in time.
    base = min(c.syn - slot / pace for slot, c in enumerate(connections[:3]))
    for slot in range(wanted):
        found = next((c for c in left if c.syn >= base + slot / pace - 0.001), None)
        if found is None:
            break
        left.remove(found)
        first.append(found)
    base = min(c.syn - slot / pace for slot, c in enumerate(first))
    for slot, c in enumerate(first):
        c.due = base + slot / pace
    return first


def slots(exchanges, rate, begin):
    """The slots of an open loop at full load: 1/rate from each other; the k-th request took the k-th, for throng sends in their
    order. Those of the ramp, whose rate rises, are taken as sent in time."""
    exchanges.sort(key=lambda x: x.asked)
    for x in exchanges:
        x.due = x.asked
    exchanges = [x for x in exchanges if x.asked >= begin - EDGE]
    base = min((x.asked - at / rate for at, x in enumerate(exchanges)), default=0.0)
    for at, x in enumerate(exchanges):
        x.due = base + at / rate

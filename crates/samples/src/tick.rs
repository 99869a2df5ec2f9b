//! Ticks: everything that happened in one period. Ticks merge associatively and commutatively over shards and agents, and extend over
//! periods, so that any aggregation order gives the same totals.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    agents::{AgentTicks, at},
    breakdown::Breakdown,
    congestion::Congestion,
    counts::{Counts, Imbalance},
    destination::Destination,
    encode::{self, STATUSES},
    error_sample::ErrorSamples,
    example::Examples,
    fault::Faults,
    latency::Latency,
    mark::Marks,
    merge::{Merge, merged},
    moments::{Moments, Rates},
    probe::Probe,
    pushes::Pushes,
    words::words,
};

words! {
    /// The phase of a run.
    #[derive(Default)]
    #[cfg_attr(test, derive(ts_rs::TS))]
    Phase {
        /// Connections are being dialled for the first time.
        #[default]
        Ramp = "ramp",
        /// Nothing new begins, by someone's wish.
        Pause = "pause",
        /// Full load.
        Hold = "hold",
        /// Nothing new is sent; what is under way may end.
        Drain = "drain",
    }
}

impl Phase {
    /// A pause during the hold counts as part of the hold.
    pub(crate) const fn or_hold(self) -> Phase {
        if matches!(self, Phase::Pause) { Phase::Hold } else { self }
    }
}

merged! {
    /// One period of one shard, or of several merged.
    pub struct Tick {
        /// Which period, counted from the start of the run.
        pub index: u64 => most,
        /// When it began and ended.
        #[cfg_attr(test, ts(type = "number"))]
        pub from: Nanos => always least,
        /// When it ended.
        #[cfg_attr(test, ts(type = "number"))]
        pub until: Nanos => always most,
        /// The phase at its end; merged: the earliest phase.
        pub phase: Phase => least,
        /// Connections open at its end.
        pub open: u64 => sum,
        /// The most connections that were open at once in it, of a worker; merged: of one of them. 0 in what sinks are shown.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub most_open: u64 => always most,
        /// Connections planned at its end; set by the conductor, zero in a shard's tick.
        pub wanted: u64 => sum,
        /// Connections dialled at least once, with the outcome known, since the start.
        pub resolved: u64 => sum,
        /// Outstanding requests at its end.
        pub waiting: u64 => sum,
        /// Requests due whose outcome is not known at its end: those, and all that wait for a connection.
        pub unsettled: u64 => sum,
        /// Of those, the ones that were due at a full load that is over.
        pub owed: u64 => sum,
        /// When the outcome of the last first dial was known; [`Nanos::NEVER`] while one is not.
        #[serde(with = "encode::never")]
        #[cfg_attr(test, ts(type = "number | null"))]
        pub ramped_at: Nanos => most,
        /// Connections times the nanoseconds that they were open in it.
        #[serde(with = "encode::wide")]
        #[cfg_attr(test, ts(type = "number"))]
        pub open_ns: u128,
        /// What was counted.
        pub counts: Counts,
        /// What went wrong.
        #[cfg_attr(test, ts(type = "FaultCount[]"))]
        pub faults: Faults,
        /// Responses by status, those that refused a WebSocket upgrade among them.
        #[serde(with = "encode::statuses")]
        #[cfg_attr(test, ts(type = "Record<string, number>"))]
        pub status: Box<[u64; STATUSES]> = Box::new([0; STATUSES]),
        /// Each population by itself, of a plan that has several; in what a shard hands over, none.
        pub populations: Vec<Tick>,
        /// [`Tick::latency`] by step of the plan's program, of populations that have several.
        pub steps: Vec<Latency>,
        /// [`Tick::ramp_latency`] by step, of the same populations.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub ramp_steps: Vec<Latency>,
        /// What went wrong with requests by step, of the same populations: also part of [`Tick::faults`], where a response that lacks
        /// what its connection needs counts as the end of that.
        #[serde(skip_serializing_if = "encode::are_empty")]
        #[cfg_attr(test, ts(type = "Array<FaultCount[]>"))]
        pub step_faults: Vec<Faults>,
        /// Each destination of the plan by itself, where there are several; see [`crate::row_of`].
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub destinations: Vec<Destination>,
        /// Responses per second of each shard in each of its ticks at full load.
        pub shard_rates: Rates,
        /// Bytes of each HTTP response's head.
        pub head_sizes: Moments,
        /// Bytes of each response, head and content, without the framing of chunks and messages.
        pub answer_sizes: Moments,
        /// What the probe did; in what a shard hands over, none.
        pub probe: Option<Box<Probe>>,
        /// By how much a turn of a shard came later than it was due at the latest; the most. Beyond [`Tick::STALL`] it is taken
        /// off the latency of what was under way, and is lag.
        #[cfg_attr(test, ts(type = "number"))]
        pub stalled: Nanos => always most,
        /// Dials of connections that were opened, which a stall of the shard had delayed.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub late_dials: u64,
        /// The longest of these delays: connect times count from when the dial was due.
        #[serde(skip_serializing_if = "encode::is_zero")]
        #[cfg_attr(test, ts(type = "number"))]
        pub dial_lag: Nanos => always most,
        /// For how long the connection had been silent, of those open when full load ended, that was silent for longest.
        #[cfg_attr(test, ts(type = "number"))]
        pub longest_silence: Nanos => always most,
        /// After how long the server closes idle connections, as its responses announced (Keep-Alive, RFC 2068 section 19.7.1.1): the longest,
        /// seconds; 0 if none did.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub keep_alive_s: u64 => always most,
        /// Connections that had their first response before the load ended; of those that are dialled again only the first counts.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub served: u64,
        /// CPU time that the process of an agent used, nanoseconds; 0 in what a shard hands over.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub cpu_ns: u64,
        /// The agents of a fleet each by itself; only in what sinks are shown, and in what comes late.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub agents: Option<Box<AgentTicks>>,
        /// Responses that connections had received when the target closed them without notice; of a sample.
        pub responses_at_close: Moments,
        /// What first dials of an adaptive ramp have met.
        #[serde(skip_serializing_if = "Congestion::is_empty")]
        pub congestion: Congestion,
        /// A few wrong responses of each kind.
        #[serde(skip_serializing_if = "ErrorSamples::is_empty")]
        #[cfg_attr(test, ts(type = "ErrorSample[]"))]
        pub error_samples: ErrorSamples,
        /// The first exchange of each fault that was looked at as a whole.
        #[serde(skip_serializing_if = "Examples::is_empty")]
        #[cfg_attr(test, ts(type = "Example[]"))]
        pub examples: Examples,
        /// Stages and commands; only in what sinks are shown.
        #[serde(skip_serializing_if = "Marks::is_empty")]
        #[cfg_attr(test, ts(type = "Mark[]"))]
        pub marks: Marks,
        /// Messages that servers sent by themselves.
        #[serde(skip_serializing_if = "Pushes::is_empty")]
        pub pushes: Pushes,
        /// Requests by what they may have in common; in what sinks are shown, none.
        #[serde(skip_serializing_if = "Breakdown::is_empty")]
        #[cfg_attr(test, ts(skip))]
        pub breakdown: Breakdown,
        /// By how much the books do not balance.
        #[serde(skip_serializing_if = "Imbalance::is_none")]
        pub imbalance: Imbalance,
        /// The fewest concurrent streams that a server allowed on a connection, where that was fewer than wanted.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub streams_allowed: Option<u64> => always fewest,
    }

    /// Times that are measured, of what happened in a period.
    times Timing {
        /// From due to the complete response, of requests due at full load.
        Latency = latency,
        /// The same, of requests due during the ramp.
        RampLatency = ramp_latency,
        /// From when a dial was due to the connection.
        Connect = connect,
        /// From when the transport was open to TLS, by a full handshake.
        Tls = tls,
        /// The same, by resuming an earlier session.
        TlsResumed = tls_resumed,
        /// From when the WebSocket upgrade was sent to its 101.
        Handshake = handshake,
        /// HTTP and TCP: from due to the first byte of the response, of requests due at full load. gRPC: to its first message; of
        /// server streaming, of calls due during the ramp too.
        FirstByte = first_byte,
        /// The same, of requests due during the ramp.
        RampFirstByte = ramp_first_byte,
        /// From due to when the loop was able to send.
        Lag = lag,
        /// From one message of a server to the next: of a response of gRPC, of server streaming; of a WebSocket, those of
        /// [`Tick::pushes`].
        Gap = gap,
        /// From the time in such a message to its receipt.
        Delay = delay,
        /// Broadcasts: from the first receiver's receipt to the last's; censored where one of them got none.
        Spread = spread,
        /// HTTP/2: from when a PING was sent beside requests to its acknowledgement; censored where none came in time.
        PingRtt = ping_rtt,
        /// How long each connection that was lost had been silent.
        Silence = silence,
    }

    none { from: Nanos::NEVER, phase: Phase::Drain }
}

impl Tick {
    /// An iteration that is later than this is a stall of the shard: what it reads then may have been waiting in throng.
    pub const STALL: Nanos = Nanos::from_millis(10);
    /// Half of the usual length of a tick as sinks get it.
    const HALF: Nanos = Nanos::from_millis(500);

    /// An empty tick that begins at `from`.
    pub fn starting(from: Nanos) -> Tick {
        Tick { from, ..Tick::default() }
    }

    /// The neutral element of merging.
    pub fn none() -> Tick {
        Merge::none()
    }

    /// The tick with its times converted to another clock; `to` converts a time.
    #[must_use]
    pub fn translated(mut self, to: impl Fn(Nanos) -> Nanos) -> Tick {
        for at in [&mut self.from, &mut self.until, &mut self.ramped_at] {
            if *at != Nanos::NEVER {
                *at = to(*at);
            }
        }
        self.pushes.receipts.translate(to);
        self
    }

    /// Counts a response with this status.
    pub fn count_status(&mut self, status: u16) {
        self.status[usize::from(status).min(STATUSES - 1)] += 1;
    }

    /// Adds the same period of another shard.
    pub fn merge(&mut self, other: &Tick) {
        Merge::merge(self, other);
    }

    /// Adds a later period of the same shards: counts and times add up, and the state is that of the later period.
    pub fn extend(&mut self, later: &Tick) {
        Merge::extend(self, later);
    }

    /// Whether this late tick belongs to a period that ended at `until`: the ends of ticks of one second differ by at most half a second.
    pub fn is_of(&self, until: Nanos) -> bool {
        self.until < until + Tick::HALF
    }

    /// Adds a late tick of this period, or of a part of it. It adds to the state only if it ended together with this period.
    pub fn amend(&mut self, late: &Tick) {
        let (from, until) = (self.from, self.until);
        if until < late.until + Tick::HALF {
            self.merge(late);
        } else {
            let mut all = late.clone();
            all.extend(self);
            *self = all;
        }
        (self.from, self.until) = (from, until);
    }

    /// Adds this tick, which covers all workers of the agent at `place` for a second, to the per-agent figures.
    pub fn report(&self, place: usize, agents: &mut AgentTicks) {
        let counts = &self.counts;
        *at(&mut agents.reports, place) += 1;
        *at(&mut agents.open.0, place) = self.open;
        *at(&mut agents.connects, place) += counts.opened + counts.redialled;
        *at(&mut agents.requests, place) += counts.answered + counts.told;
        *at(&mut agents.faults, place) += self.faults.total();
        *at(&mut agents.cpu_ms, place) += self.cpu_ns / 1_000_000;
        let (at_load, in_ramp) = (&self.latency, &self.ramp_latency);
        let mut both = Latency::default();
        let latency = if in_ramp.is_empty() {
            at_load
        } else if at_load.is_empty() {
            in_ramp
        } else {
            both.merge(at_load);
            both.merge(in_ramp);
            &both
        };
        for (column, times) in [(&mut agents.latency_p99_us, latency), (&mut agents.lag_p99_us, &self.lag)] {
            let highest = at(&mut column.0, place);
            // 0 means "not measured", so less than a microsecond is reported as one.
            let us = (times.count() > 0).then(|| (times.quantile(0.99).0 / 1_000).max(1));
            *highest = (*highest).max(us.unwrap_or_default());
        }
    }

    /// Reduces all histograms to two significant digits, a fifth of the memory, for charts. Sums, minima and maxima stay exact.
    pub fn coarsen(&mut self) {
        Merge::coarsen(self);
    }

    /// Resets the tick, keeping its memory.
    pub fn clear(&mut self) {
        Merge::clear(self);
        self.populations.clear();
    }

    /// Allocates all memory that the tick may need, so that counting does not allocate later.
    pub fn reserve(&mut self) {
        Merge::reserve(self);
    }

    /// Whether nothing happened in this period and nothing was open at its end.
    pub fn is_idle(&self) -> bool {
        self.open == 0 && self.counts == Counts::default()
    }

    /// Converts a tick of the probe's connections to its contribution to the run: its requests, their times (in the histogram selected by
    /// `among`), and throng's lag.
    pub fn of_probe(&self, among: impl FnOnce(&mut Probe) -> &mut Latency) -> Tick {
        let Tick { index, from, until, phase, waiting, owed, ramped_at, stalled, .. } = *self;
        let c = &self.counts;
        let mut probe = Probe {
            sent: c.due(),
            answered: c.answered,
            failed: c.failed_requests + c.missed,
            unanswered: c.unanswered,
            faults: self.faults.clone(),
            status: self.status.clone(),
            held: self.latency.clone(),
            connect: self.connect.clone(),
            ..Probe::default()
        };
        let times = among(&mut probe);
        times.merge(&self.latency);
        times.merge(&self.ramp_latency);
        let counts = Counts { addresses_skipped: c.addresses_skipped, ..Counts::default() };
        let lag = self.lag.clone();
        let imbalance = self.imbalance;
        let state = Tick {
            index,
            from,
            until,
            phase,
            waiting,
            owed,
            ramped_at,
            stalled,
            imbalance,
            ..Tick::default()
        };
        Tick { counts, lag, probe: Some(Box::new(probe)), ..state }
    }

    /// TLS handshakes: full ones and resumed ones.
    pub fn handshakes(&self) -> u64 {
        self.tls.count() + self.tls_resumed.count()
    }

    /// Dials of the probe that succeeded.
    pub fn dials_of_probe(&self) -> u64 {
        self.probe.as_ref().map_or(0, |probe| probe.connect.count())
    }
}

impl Merge for Box<[u64; STATUSES]> {
    fn merge(&mut self, other: &Self) {
        self.iter_mut().zip(other.iter()).for_each(|(own, other)| *own += other);
    }

    fn clear(&mut self) {
        self.fill(0);
    }
}

#[cfg(test)]
pub(crate) mod tests;

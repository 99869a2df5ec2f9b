//! What happened in one period. Ticks merge: of shards, of agents, of periods.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{
    destination::Destination,
    fault::Faults,
    latency::Latency,
    moments::{Moments, Rates},
    probe::Probe,
    record,
};

/// Where a run stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Connections are being dialled for the first time.
    #[default]
    Ramp,
    /// Nothing new begins, by someone's wish.
    Pause,
    /// Full load.
    Hold,
    /// Nothing new is sent; what is under way may end.
    Drain,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 4] = [Phase::Ramp, Phase::Pause, Phase::Hold, Phase::Drain];

    /// What happens in a pause of the hold happens in the hold.
    pub(crate) const fn or_hold(self) -> Phase {
        if matches!(self, Phase::Pause) { Phase::Hold } else { self }
    }

    /// The word.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Ramp => "ramp",
            Phase::Pause => "pause",
            Phase::Hold => "hold",
            Phase::Drain => "drain",
        }
    }
}

/// Answers are counted by these statuses and one place for all others.
pub(crate) const STATUSES: usize = 1000;

/// Things counted in a period.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Counts {
    /// Dials that led to a connection for the first time.
    pub opened: u64,
    /// Dials that did not.
    pub failed: u64,
    /// Connections lost without notice.
    pub dropped: u64,
    /// Connections closed by the server with notice.
    pub closed: u64,
    /// Dialled again successfully, after that or after a loss.
    pub redialled: u64,
    /// Connections that throng closed as planned: their calls were done, or fewer are wanted.
    pub finished: u64,
    /// Of those, the ones that have nothing more to do, and are not dialled again.
    pub done: u64,
    /// Idle connections that the server ended after the load had ended, while responses to others were awaited.
    pub ended_after: u64,
    /// First dials made after an adaptive ramp had given up: the target had answered none before for a whole timeout.
    pub forced: u64,
    /// Local addresses that turned out to be taken; the next was used.
    pub addresses_skipped: u64,
    /// Requests sent.
    pub sent: u64,
    /// Of those, the ones that are not to be answered: on their way when the server closed by announcement, and sent again;
    /// or messages that were only listened for when the load ended.
    pub withdrawn: u64,
    /// Of those, the ones that had neither a response nor a fault when the run ended.
    pub unanswered: u64,
    /// Messages sent whose answer nobody awaits; not among the requests.
    pub told: u64,
    /// Messages of the server's that nobody awaited; bytes without framing are none.
    pub pushed: u64,
    /// Due by the open loop's schedule and never sent: no connection was free in time.
    pub missed: u64,
    /// Right and wrong answers, complete ones.
    pub answered: u64,
    /// Of those, the ones that came at full load.
    pub answered_at_load: u64,
    /// Of the answers, the ones after which the connection was kept.
    pub kept: u64,
    /// Bytes received, heads included.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes of complete answers without their heads.
    pub body_bytes_in: u64,
}

impl Counts {
    fn merge(&mut self, o: &Counts) {
        self.opened += o.opened;
        self.failed += o.failed;
        self.dropped += o.dropped;
        self.closed += o.closed;
        self.redialled += o.redialled;
        self.finished += o.finished;
        self.done += o.done;
        self.ended_after += o.ended_after;
        self.forced += o.forced;
        self.addresses_skipped += o.addresses_skipped;
        self.sent += o.sent;
        self.withdrawn += o.withdrawn;
        self.unanswered += o.unanswered;
        self.told += o.told;
        self.pushed += o.pushed;
        self.missed += o.missed;
        self.answered += o.answered;
        self.answered_at_load += o.answered_at_load;
        self.kept += o.kept;
        self.bytes_in += o.bytes_in;
        self.bytes_out += o.bytes_out;
        self.body_bytes_in += o.body_bytes_in;
    }
}

/// One period of one shard, or of several merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct Tick {
    /// Which period, counted from the start of the run.
    pub index: u64,
    /// When it began and ended.
    #[cfg_attr(test, ts(type = "number"))]
    pub from: Nanos,
    /// When it ended.
    #[cfg_attr(test, ts(type = "number"))]
    pub until: Nanos,
    /// Where the run stood at its end; merged: the earliest phase.
    pub phase: Phase,
    /// Connections open at its end.
    pub open: u64,
    /// Connections that the plan wants at its end; known to who leads the shards, zero in what a shard hands over.
    pub wanted: u64,
    /// Connections dialled at least once, with the outcome known, since the start.
    pub resolved: u64,
    /// Requests waiting for their answer at its end.
    pub waiting: u64,
    /// Of those, and of the ones that wait for a connection, those that were due at a full load that is over.
    pub owed: u64,
    /// When the outcome of the last first dial was known; [`Nanos::NEVER`] while one is not.
    #[serde(with = "record::never")]
    #[cfg_attr(test, ts(type = "number | null"))]
    pub ramped_at: Nanos,
    /// Connections times the nanoseconds that they were open in it.
    pub open_ns: u128,
    /// What was counted.
    pub counts: Counts,
    /// What went wrong.
    #[cfg_attr(test, ts(type = "FaultCount[]"))]
    pub faults: Faults,
    /// Answers by status.
    #[serde(with = "record::statuses")]
    #[cfg_attr(test, ts(type = "Record<string, number>"))]
    pub status: Box<[u64; STATUSES]>,
    /// From due to the whole answer, of requests due at full load.
    pub latency: Latency,
    /// The same, of requests due during the ramp.
    pub ramp_latency: Latency,
    /// Each population by itself, of a plan that has several; in what a shard hands over, none.
    pub populations: Vec<Tick>,
    /// [`Tick::latency`] by step of the plan's program, of populations that have several.
    pub steps: Vec<Latency>,
    /// Each destination of the plan by itself, where there are several; see [`crate::row_of`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Destination>,
    /// From when a dial was due to the connection.
    pub connect: Latency,
    /// From when the WebSocket upgrade was sent to its 101.
    pub handshake: Latency,
    /// HTTP and TCP: from due to the first byte of the answer, of requests due at full load.
    pub first_byte: Latency,
    /// The same, of requests due during the ramp.
    pub ramp_first_byte: Latency,
    /// From due to when the loop was able to send.
    pub lag: Latency,
    /// Answers per second of each shard in each of its ticks at full load.
    pub shard_rates: Rates,
    /// Bytes of each HTTP answer's head.
    pub head_sizes: Moments,
    /// Bytes of each answer, head and content, without the framing of chunks and messages.
    pub answer_sizes: Moments,
    /// What the probe lane did, where this shard runs it.
    pub probe: Option<Box<Probe>>,
    /// How long each connection that was lost had been silent.
    pub silence: Latency,
    /// By how much a turn of a shard came later than it was due at the latest; the most. Beyond [`Tick::STALL`] it is taken
    /// off the latency of what was under way, and is lag.
    #[cfg_attr(test, ts(type = "number"))]
    pub stalled: Nanos,
    /// For how long the connection had been silent, of those open when full load ended, that was silent for longest.
    #[cfg_attr(test, ts(type = "number"))]
    pub longest_silence: Nanos,
    /// Responses that connections had received when the target closed them without notice; of a sample.
    pub responses_at_close: Moments,
}

impl Default for Tick {
    fn default() -> Self {
        Tick {
            index: 0,
            from: Nanos::ZERO,
            until: Nanos::ZERO,
            phase: Phase::Ramp,
            open: 0,
            wanted: 0,
            resolved: 0,
            waiting: 0,
            owed: 0,
            ramped_at: Nanos::ZERO,
            open_ns: 0,
            counts: Counts::default(),
            faults: Faults::default(),
            status: Box::new([0; STATUSES]),
            latency: Latency::default(),
            ramp_latency: Latency::default(),
            populations: Vec::new(),
            steps: Vec::new(),
            destinations: Vec::new(),
            connect: Latency::default(),
            handshake: Latency::default(),
            first_byte: Latency::default(),
            ramp_first_byte: Latency::default(),
            lag: Latency::default(),
            shard_rates: Rates::default(),
            head_sizes: Moments::default(),
            answer_sizes: Moments::default(),
            probe: None,
            silence: Latency::default(),
            stalled: Nanos::ZERO,
            longest_silence: Nanos::ZERO,
            responses_at_close: Moments::default(),
        }
    }
}

impl Tick {
    /// A shard whose turn comes later than this stood still, and what it then reads may have waited here.
    pub const STALL: Nanos = Nanos::from_millis(10);

    /// Counts an answer with this status.
    pub fn count_status(&mut self, status: u16) {
        self.status[usize::from(status).min(STATUSES - 1)] += 1;
    }

    /// Adds the same period of another shard.
    pub fn merge(&mut self, other: &Tick) {
        self.open += other.open;
        self.wanted += other.wanted;
        self.resolved += other.resolved;
        self.waiting += other.waiting;
        self.owed += other.owed;
        self.ramped_at = self.ramped_at.max(other.ramped_at);
        self.phase = self.phase.min(other.phase);
        self.make_room(other.populations.len());
        self.populations.iter_mut().zip(&other.populations).for_each(|(own, other)| own.merge(other));
        self.add(other);
    }

    /// Adds a later period of the same shards: counts and times add up, the state is the later one's.
    pub fn extend(&mut self, later: &Tick) {
        (self.index, self.phase) = (later.index, later.phase);
        (self.open, self.resolved, self.waiting) = (later.open, later.resolved, later.waiting);
        self.owed = later.owed;
        self.wanted = later.wanted;
        self.ramped_at = later.ramped_at;
        self.make_room(later.populations.len());
        self.populations.iter_mut().zip(&later.populations).for_each(|(own, later)| own.extend(later));
        self.add(later);
    }

    fn make_room(&mut self, populations: usize) {
        if self.populations.len() < populations {
            // As one that has not begun, so that what is added says when it did.
            let none = || Tick { from: Nanos::NEVER, phase: Phase::Drain, ..Tick::default() };
            self.populations.resize_with(populations, none);
        }
    }

    fn add(&mut self, other: &Tick) {
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
        self.open_ns += other.open_ns;
        self.counts.merge(&other.counts);
        self.faults.merge(&other.faults);
        for (a, b) in self.status.iter_mut().zip(other.status.iter()) {
            *a += b;
        }
        self.latency.merge(&other.latency);
        self.ramp_latency.merge(&other.ramp_latency);
        self.steps.resize_with(self.steps.len().max(other.steps.len()), Latency::default);
        for (step, other) in self.steps.iter_mut().zip(&other.steps) {
            step.merge(other);
        }
        self.destinations
            .resize_with(self.destinations.len().max(other.destinations.len()), Default::default);
        self.destinations.iter_mut().zip(&other.destinations).for_each(|(own, other)| own.merge(other));
        self.connect.merge(&other.connect);
        self.handshake.merge(&other.handshake);
        self.first_byte.merge(&other.first_byte);
        self.ramp_first_byte.merge(&other.ramp_first_byte);
        self.lag.merge(&other.lag);
        self.shard_rates.merge(&other.shard_rates);
        self.head_sizes.merge(&other.head_sizes);
        self.answer_sizes.merge(&other.answer_sizes);
        if let Some(probe) = &other.probe {
            self.probe.get_or_insert_default().merge(probe);
        }
        self.silence.merge(&other.silence);
        self.stalled = self.stalled.max(other.stalled);
        self.longest_silence = self.longest_silence.max(other.longest_silence);
        self.responses_at_close.merge(&other.responses_at_close);
    }

    /// All its times to two significant digits, as [`Latency::coarsen`] has them.
    pub fn coarsen(&mut self) {
        let times = [
            &mut self.latency,
            &mut self.ramp_latency,
            &mut self.connect,
            &mut self.handshake,
            &mut self.first_byte,
            &mut self.ramp_first_byte,
            &mut self.lag,
            &mut self.silence,
        ];
        times.into_iter().chain(&mut self.steps).for_each(Latency::coarsen);
        self.probe.iter_mut().for_each(|probe| probe.coarsen());
        self.populations.iter_mut().for_each(Tick::coarsen);
    }

    /// Whether nothing happened in it, and nothing was open at its end.
    pub fn is_idle(&self) -> bool {
        self.open == 0 && self.counts == Counts::default()
    }

    /// Dials of the probe lane that succeeded.
    pub fn dials_of_probe(&self) -> u64 {
        self.probe.as_ref().map_or(0, |probe| probe.connect.count())
    }

    /// Forgets all, keeping the memory.
    pub fn clear(&mut self) {
        (self.index, self.from, self.until, self.phase) = (0, Nanos::ZERO, Nanos::ZERO, Phase::Ramp);
        (self.open, self.wanted, self.resolved, self.waiting, self.owed) = (0, 0, 0, 0, 0);
        self.ramped_at = Nanos::ZERO;
        self.open_ns = 0;
        self.counts = Counts::default();
        self.faults.clear();
        self.status.fill(0);
        self.latency.clear();
        self.ramp_latency.clear();
        self.populations.clear();
        self.steps.iter_mut().for_each(Latency::clear);
        self.destinations.iter_mut().for_each(Destination::clear);
        self.connect.clear();
        self.handshake.clear();
        self.first_byte.clear();
        self.ramp_first_byte.clear();
        self.lag.clear();
        self.shard_rates.clear();
        (self.head_sizes, self.answer_sizes) = (Moments::default(), Moments::default());
        if let Some(probe) = &mut self.probe {
            probe.clear();
        }
        self.silence.clear();
        self.stalled = Nanos::ZERO;
        self.longest_silence = Nanos::ZERO;
        self.responses_at_close = Moments::default();
    }
}

#[cfg(test)]
pub(crate) mod tests;

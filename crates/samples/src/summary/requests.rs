//! Requests in the summary.

use std::collections::BTreeMap;

use units::Nanos;

use crate::{encode, merge::merged, tick::Tick};

mod by_status;

merged! {
    /// Requests over the whole run; `per_s` at full load.
    pub struct Requests {
        /// Due: the sum of `answered`, `failed`, `unanswered` and `missed`, and on a fleet `lost`.
        pub due: u64,
        /// Sent. A request or message that met an announced close, and is sent again, counts once.
        pub sent: u64,
        /// Complete responses.
        pub answered: u64,
        /// Of those, the ones that were not as expected, or lacked a value that their connection needed.
        pub wrong: u64,
        /// Of `answered`, those after which the connection stayed open for another request.
        pub kept: u64,
        /// Sent, and ended by a fault without a complete response.
        pub failed: u64,
        /// Outstanding when the run ended.
        pub unanswered: u64,
        /// Due and not sent: no connection was free within the timeout, or none could be dialled.
        pub missed: u64,
        /// Due on agents of a fleet that were lost before its outcome was reported; absent if there are none.
        #[serde(skip_serializing_if = "encode::is_zero")]
        pub lost: u64,
        /// Fire-and-forget messages.
        pub told: u64,
        /// Messages in gRPC responses, including calls that were cancelled when the load ended, and messages pushed by servers
        /// on WebSockets.
        pub messages: u64,
        /// Responses per second at full load; of several populations, each at its own.
        pub per_s: f64,
        /// A closed loop that left throng's threads no time: the target may be able to do more than `per_s`.
        pub lower_bound: bool => always any,
        /// Bytes received.
        pub bytes_in: u64,
        /// Bytes sent.
        pub bytes_out: u64,
        /// Content bytes of complete responses; those of a truncated one are only in `bytes_in`.
        pub body_bytes_in: u64,
        /// `bytes_in` per second of `elapsed_s`.
        pub bytes_in_per_s: f64,
        /// `bytes_out` per second of `elapsed_s`.
        pub bytes_out_per_s: f64,
        /// Responses by status, those that refused a WebSocket upgrade among them.
        #[serde(with = "by_status")]
        #[cfg_attr(test, ts(type = "Record<string, number>"))]
        pub status: BTreeMap<u16, u64>,
    }
}

impl Requests {
    /// The figures of the requests counted in this tick. `elapsed`: time from the first dial to the end of full load, which lasted
    /// `at_load`; `lost`: requests of lost agents, which no tick contains.
    pub fn new(counted: &Tick, (at_load, elapsed): (Nanos, Nanos), lost: u64) -> Requests {
        let counts = &counted.counts;
        Requests {
            due: counts.due(),
            sent: counts.sent(),
            answered: counts.answered,
            wrong: counts.wrong,
            kept: counts.kept,
            failed: counts.failed_requests,
            unanswered: counts.unanswered,
            missed: counts.missed,
            lost,
            told: counts.told,
            messages: counts.messages,
            per_s: per_second(counts.answered_at_load, at_load),
            lower_bound: false,
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            bytes_in_per_s: per_second(counts.bytes_in, elapsed),
            bytes_out_per_s: per_second(counts.bytes_out, elapsed),
            body_bytes_in: counts.body_bytes_in,
            status: (0..).zip(counted.status.iter().copied()).filter(|(_, n)| *n > 0).collect(),
        }
    }
}

fn per_second(n: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { n as f64 / time.secs_f64() }
}

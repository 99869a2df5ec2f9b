//! What was measured: faults, counts, latencies, the [`Tick`] that carries them, and the [`Summary`] they end in.

mod fault;
mod latency;
mod moments;
mod probe;
mod sink;
mod summary;
mod tick;

pub use fault::{Fault, Faults, Kind, Side, Stage};
pub use latency::{Latency, Quantiles};
pub use moments::{Moments, Rates};
pub use probe::{Probe, ProbePoint, ProbeSummary};
pub use sink::{Ask, Header, Sink};
pub use summary::{
    Connections, FaultCount, Generator, KernelCost, Limit, ProcessCost, Requests, Summary, ThresholdResult,
    Verdict,
};
pub use tick::{Counts, Phase, Tick};

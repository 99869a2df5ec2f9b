//! Kinds of trouble, into which faults are classified.

use samples::{FaultCount, Kind, Side, Stage};

/// The most frequent trouble of a run. Of equally frequent ones the first counts: throng's before others', refusals before slowness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// Nothing went wrong, and yet the run fails.
    None,
    /// Dials that this machine could not make.
    Ours,
    Refused,
    /// Dials and requests without a response.
    Waiting,
    /// Connections closed or reset by the peer.
    Lost,
    WrongAnswer,
    /// No route, or not permitted.
    Path,
    Other,
}

pub(crate) fn trouble_of(fault: &FaultCount) -> Trouble {
    match (fault.side, fault.kind) {
        (_, Kind::AddressInUse | Kind::NoMemory | Kind::OpenFiles) => Trouble::Ours,
        (_, Kind::Unreachable | Kind::Denied) => Trouble::Path,
        (Side::Host, _) => Trouble::Ours,
        // On an open connection a stream was refused.
        (_, Kind::Refused) if fault.stage == Stage::Dial => Trouble::Refused,
        (_, Kind::Timeout) => Trouble::Waiting,
        (_, Kind::Reset | Kind::Closed) => Trouble::Lost,
        (_, Kind::Other) => Trouble::Other,
        _ => Trouble::WrongAnswer,
    }
}

/// Whether it is a wrong response. A connection that ends because of a response is counted with that response.
pub(crate) fn is_response(fault: &FaultCount) -> bool {
    let is_other = matches!(fault.stage, Stage::Tls | Stage::Hold) || fault.kind == Kind::Refused;
    !is_other && trouble_of(fault) == Trouble::WrongAnswer
}

//! Kinds of what goes wrong.

use samples::{FaultCount, Kind, Side, Stage};

/// What went wrong most of all. Of equals the first: our own doing before others', what is refused before what is only slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trouble {
    /// Nothing did, and yet the run is not as it should be.
    None,
    /// Dials that this machine could not make.
    Ours,
    Refused,
    /// Dials and requests without a response.
    Waiting,
    /// Connections closed or reset by the peer.
    Lost,
    WrongAnswer,
    /// No way, or not let through.
    Path,
    Other,
}

pub(crate) fn trouble_of(fault: &FaultCount) -> Trouble {
    match (fault.side, fault.kind) {
        (_, Kind::AddressInUse | Kind::NoMemory | Kind::OpenFiles) => Trouble::Ours,
        (_, Kind::Unreachable | Kind::Denied) => Trouble::Path,
        (Side::Host, _) => Trouble::Ours,
        // Of an open connection it is a stream that was refused.
        (_, Kind::Refused) if fault.stage == Stage::Dial => Trouble::Refused,
        (_, Kind::Timeout) => Trouble::Waiting,
        (_, Kind::Reset | Kind::Closed) => Trouble::Lost,
        (_, Kind::Other) => Trouble::Other,
        _ => Trouble::WrongAnswer,
    }
}

/// Whether it is a response, and a wrong one. A connection that ends because of a response is counted with that response.
pub(crate) fn is_response(fault: &FaultCount) -> bool {
    let is_other = matches!(fault.stage, Stage::Tls | Stage::Hold) || fault.kind == Kind::Refused;
    !is_other && trouble_of(fault) == Trouble::WrongAnswer
}

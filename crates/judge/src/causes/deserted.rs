//! Cause: one of several destinations on this machine lost its listener.

use super::*;

/// One of several destinations on this machine had a listener and has none any more, and connections were lost or refused.
pub(crate) struct Deserted {
    pub(crate) address: String,
}

impl Cause for Deserted {
    const ID: &'static str = "deserted";
    const OF: (Side, Name) = (Side::Target, Name::Ended);
    const FIX: &'static str = "check its log and exit status";

    fn find(case: &Case) -> Option<Found<Deserted>> {
        let is_over = matches!(case.trouble, Trouble::Lost | Trouble::Refused);
        let address = case.evidence.deserted.filter(|_| is_over)?.to_string();
        Some(Found::seen(Deserted { address }, case.peak()).began(Began::Seen(Sign::Deserted)))
    }

    fn sentence(&self) -> String {
        format!("the target at {} is gone: nothing listens there any more", self.address)
    }

    fn detail(&self, _: &Case) -> String {
        let address = &self.address;
        format!("nothing listens on {address} any more: its process has ended, or closed its listener")
    }
}

//! Cause: this machine has no more ports, files or memory for connections.

use super::*;

/// Throng's own system calls failed: EADDRNOTAVAIL or EADDRINUSE, ENOMEM, EMFILE, or another error.
pub(crate) struct NoRoomHere {
    pub(crate) what: What,
    pub(crate) count: u64,
}

pub(crate) enum What {
    /// Dials from addresses that this machine does not have.
    ForeignSource,
    Ports,
    Memory,
    Files,
    /// The error.
    Other(String),
}

impl Cause for NoRoomHere {
    const ID: &'static str = "no-room-here";
    const OF: (Side, Name) = (Side::Host, Name::Ports);

    fn find(case: &Case) -> Option<Found<NoRoomHere>> {
        if case.trouble != Trouble::Ours {
            return None;
        }
        let what = match (case.kind?, case.detail) {
            // From a foreign address no dial ever succeeds; from a local one, dials succeed until its ports are used up.
            (Kind::AddressInUse, NOT_OURS) if case.peak() == 0 => What::ForeignSource,
            (Kind::AddressInUse, _) => What::Ports,
            (Kind::NoMemory, _) => What::Memory,
            (Kind::OpenFiles, _) => What::Files,
            (kind, detail) => What::Other(format!("{}{}", kind.name(), detail.suffix())),
        };
        let certainty = if matches!(what, What::Other(_)) { Certainty::Guess } else { Certainty::Seen };
        Some(Found::seen(NoRoomHere { what, count: case.count }, case.peak()).certain(certainty))
    }

    fn of(&self) -> (Side, Name) {
        let name = match self.what {
            What::ForeignSource | What::Ports => Name::Ports,
            What::Memory => Name::Memory,
            What::Files => Name::OpenFiles,
            What::Other(_) => Name::Unknown,
        };
        (Side::Host, name)
    }

    fn sentence(&self) -> String {
        let (dials, sockets) = (some(self.count, "dial"), some(self.count, "socket"));
        match &self.what {
            What::ForeignSource => format!("{dials} used a source address that this machine does not have"),
            What::Ports => format!("this machine had no free local port for {dials}"),
            What::Memory => format!("this machine had no memory for {sockets}"),
            What::Files => format!("this machine had no file descriptors for {sockets}"),
            What::Other(error) => format!("{dials} failed on this machine: {error}"),
        }
    }

    fn detail(&self, _: &Case) -> String {
        let (dials, sockets) = (some(self.count, "dial"), some(self.count, "socket"));
        match &self.what {
            What::ForeignSource => format!("{dials} used a source address that is not local (EADDRNOTAVAIL)"),
            What::Ports => format!("{dials} found no free local port"),
            What::Memory => format!("{sockets} could not be created: out of memory"),
            What::Files => format!("{sockets} could not be created: no file descriptors left"),
            What::Other(_) => self.sentence(),
        }
    }

    fn fix(&self, case: &Case) -> String {
        match self.what {
            What::ForeignSource => {
                "use --sources that are addresses of this machine (ip -brief address)".to_owned()
            }
            What::Ports => {
                "use more --sources or destinations, or sysctl -w net.ipv4.ip_local_port_range='1024 65535'"
                    .to_owned()
            }
            What::Memory => case.or_less("free memory", "hold fewer connections on this machine"),
            What::Files => "ulimit -n 1048576".to_owned(),
            What::Other(_) => "run strace on throng".to_owned(),
        }
    }
}

/// EADDRNOTAVAIL: the source is not an address of this machine, or has no free port.
const NOT_OURS: Detail = Detail::new(99);

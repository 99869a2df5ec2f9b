//! What went wrong with a connection or a request: data, never an error of ours.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::summary::FaultCount;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word that users and scripts read.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<$name, D::Error> {
                let word = String::deserialize(d)?;
                let known = $name::ALL.iter().find(|known| known.name() == word);
                known.copied().ok_or_else(|| D::Error::custom(format!("no such word: {word}")))
            }
        }
    };
}

words! {
    /// Whose doing it was.
    Side {
        /// The server under load.
        Target = "target",
        /// The network between.
        Path = "path",
        /// This machine, or throng itself.
        Host = "host",
        /// What was seen does not tell.
        Unknown = "unknown",
    }
}

words! {
    /// When in a connection's life.
    Stage {
        /// Before it was connected.
        Dial = "dial",
        /// While TLS was set up.
        Tls = "tls",
        /// While a protocol was agreed upon.
        Handshake = "handshake",
        /// Between a request and its answer.
        Exchange = "exchange",
        /// While it was held idle.
        Hold = "hold",
        /// While it was being closed.
        Close = "close",
    }
}

words! {
    /// What happened.
    Kind {
        /// Nobody listens.
        Refused = "refused",
        /// Reset by the peer.
        Reset = "reset",
        /// No answer within the time allowed.
        Timeout = "timeout",
        /// No way there.
        Unreachable = "unreachable",
        /// Closed by the peer without notice.
        Closed = "closed",
        /// The end came in the middle of an answer.
        Truncated = "truncated",
        /// Not the status that was expected.
        WrongStatus = "wrong-status",
        /// Not the length that was expected.
        WrongLength = "wrong-length",
        /// Not what was sent.
        WrongEcho = "wrong-echo",
        /// Without a header field that was expected.
        WrongHeader = "wrong-header",
        /// Without a text that was expected.
        WrongBody = "wrong-body",
        /// Not what the protocol allows.
        BadAnswer = "bad-answer",
        /// No local address and port were free.
        AddressInUse = "address-in-use",
        /// No memory for another socket.
        NoMemory = "no-memory",
        /// No more open files allowed.
        OpenFiles = "open-files",
        /// Not permitted.
        Denied = "denied",
        /// Another error of the operating system.
        Other = "other",
    }
}

impl Kind {
    /// Whether a whole answer came, and was not what was expected.
    pub const fn is_wrong_answer(self) -> bool {
        use Kind::{WrongBody, WrongEcho, WrongHeader, WrongLength, WrongStatus};
        matches!(self, WrongStatus | WrongLength | WrongEcho | WrongHeader | WrongBody)
    }
}

/// One kind of failure; an index into [`Faults`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// Whose doing.
    pub side: Side,
    /// When.
    pub stage: Stage,
    /// What.
    pub kind: Kind,
}

impl Fault {
    /// A failure of the target.
    pub const fn target(stage: Stage, kind: Kind) -> Fault {
        Fault { side: Side::Target, stage, kind }
    }

    /// A failure of this machine or of throng.
    pub const fn host(stage: Stage, kind: Kind) -> Fault {
        Fault { side: Side::Host, stage, kind }
    }

    const fn index(self) -> usize {
        (self.side as usize * Stage::ALL.len() + self.stage as usize) * Kind::ALL.len() + self.kind as usize
    }
}

const PLACES: usize = Side::ALL.len() * Stage::ALL.len() * Kind::ALL.len();

/// How often each fault occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<FaultCount>", into = "Vec<FaultCount>")]
pub struct Faults(Box<[u64; PLACES]>);

impl Default for Faults {
    fn default() -> Self {
        Faults(Box::new([0; PLACES]))
    }
}

impl From<Vec<FaultCount>> for Faults {
    fn from(counts: Vec<FaultCount>) -> Faults {
        let mut faults = Faults::default();
        for FaultCount { side, stage, kind, count } in counts {
            faults.0[Fault { side, stage, kind }.index()] += count;
        }
        faults
    }
}

impl From<Faults> for Vec<FaultCount> {
    fn from(faults: Faults) -> Vec<FaultCount> {
        let occurred = faults.iter();
        occurred.map(|(Fault { side, stage, kind }, count)| FaultCount { side, stage, kind, count }).collect()
    }
}

impl Faults {
    /// One more.
    pub fn count(&mut self, fault: Fault) {
        self.0[fault.index()] += 1;
    }

    /// Those that occurred, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        Side::ALL
            .iter()
            .flat_map(|&side| Stage::ALL.iter().map(move |&stage| (side, stage)))
            .flat_map(|(side, stage)| Kind::ALL.iter().map(move |&kind| Fault { side, stage, kind }))
            .map(|fault| (fault, self.0[fault.index()]))
            .filter(|(_, n)| *n > 0)
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds another's counts.
    pub fn merge(&mut self, other: &Faults) {
        for (a, b) in self.0.iter_mut().zip(other.0.iter()) {
            *a += b;
        }
    }

    /// Back to zero, keeping the memory.
    pub fn clear(&mut self) {
        self.0.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_a_place_of_its_own() {
        let mut faults = Faults::default();
        let mut n = 0;
        for &side in Side::ALL {
            for &stage in Stage::ALL {
                for &kind in Kind::ALL {
                    n += 1;
                    for _ in 0..n {
                        faults.count(Fault { side, stage, kind });
                    }
                }
            }
        }
        assert_eq!(n as usize, PLACES);
        assert!(faults.iter().map(|(_, count)| count).eq(1..=n), "each place counts alone");
        assert_eq!(faults.total(), n * (n + 1) / 2);
    }
}

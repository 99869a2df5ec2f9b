//! Faults: failures of connections and requests, as data that is counted. A fault is never an error of throng's code, and never a string on
//! the hot path.

use serde::{Deserialize, Serialize};

use crate::{detail::Detail, merge::Merge, sparse::SparseCounts, words::words};

words! {
    /// Whose doing it was.
    #[derive(Default)]
    Side {
        /// The server under load.
        Target = "target",
        /// The network between.
        Path = "path",
        /// This machine, or throng itself.
        Host = "host",
        /// Not known from the observations.
        #[default]
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
        /// Between a request and its response.
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
        /// Connection refused: nothing is listening.
        Refused = "refused",
        /// Reset by the peer.
        Reset = "reset",
        /// No response within the timeout.
        Timeout = "timeout",
        /// No way there.
        Unreachable = "unreachable",
        /// Closed by the peer without notice.
        Closed = "closed",
        /// The connection ended in the middle of a response.
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
        /// A response without a value that was to be captured, or with one that cannot be used: the connection cannot go on.
        MissingValue = "missing-value",
        /// A response with a value to be captured, or cookies, longer than a connection keeps.
        ValueTooLong = "value-too-long",
        /// Not what the protocol allows.
        BadAnswer = "bad-answer",
        /// It expects TLS and received plain text.
        TlsExpected = "tls-expected",
        /// Its certificate was not issued by a trusted CA.
        UnknownIssuer = "unknown-issuer",
        /// Its certificate is for another name.
        WrongName = "wrong-name",
        /// Its certificate has expired.
        Expired = "expired-certificate",
        /// Its certificate is not valid yet.
        NotYetValid = "not-yet-valid",
        /// Its certificate cannot be used for another reason.
        BadCertificate = "bad-certificate",
        /// It does not accept our certificate, or expects one.
        CertificateRequired = "certificate-required",
        /// No TLS version or cipher that both have, or no version of HTTP where no TLS negotiates it.
        NothingInCommon = "nothing-in-common",
        /// It does not offer the protocol that was asked for in TLS (ALPN).
        NoProtocol = "no-protocol",
        /// It ended the connection with an alert of TLS.
        TlsAlert = "tls-alert",
        /// It did not respond with TLS.
        NotTls = "not-tls",
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
    /// Whether a complete response arrived and was not the expected one.
    pub const fn is_wrong_response(self) -> bool {
        use Kind::{WrongBody, WrongEcho, WrongHeader, WrongLength, WrongStatus};
        matches!(self, WrongStatus | WrongLength | WrongEcho | WrongHeader | WrongBody)
    }

    /// As `is_wrong_response`, including responses that lack what their connection needs.
    pub const fn is_of_response(self) -> bool {
        self.is_wrong_response() || matches!(self, Kind::MissingValue | Kind::ValueTooLong)
    }
}

/// One kind of failure; an index into [`Faults`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The side that caused it.
    pub side: Side,
    /// The part of the connection's life in which it occurred.
    pub stage: Stage,
    /// The kind of failure.
    pub kind: Kind,
    /// The kernel's error, unless the kind implies it; the code of a GOAWAY or a close; or the rule that a response broke.
    pub detail: Detail,
}

impl Fault {
    /// A failure of the target.
    pub const fn target(stage: Stage, kind: Kind) -> Fault {
        Fault { side: Side::Target, stage, kind, detail: Detail::NONE }
    }

    /// A failure of this machine or of throng.
    pub const fn host(stage: Stage, kind: Kind) -> Fault {
        Fault { side: Side::Host, stage, kind, detail: Detail::NONE }
    }

    /// `target dial refused`, `host dial other (EINVAL)`.
    pub fn name(self) -> String {
        let Fault { side, stage, kind, detail } = self;
        format!("{} {} {}{}", side.name(), stage.name(), kind.name(), detail.suffix())
    }

    /// Whether it is the end of a connection that follows from a faulty response: one failure, counted as one error.
    pub fn follows_response(self) -> bool {
        self.stage == Stage::Hold && matches!(self.kind, Kind::MissingValue | Kind::ValueTooLong)
    }

    /// The fault with this detail.
    pub const fn with(self, detail: Detail) -> Fault {
        Fault { detail, ..self }
    }

    const fn index(self) -> usize {
        (self.side as usize * Stage::ALL.len() + self.stage as usize) * Kind::ALL.len() + self.kind as usize
    }

    /// The fault with this index, without detail.
    fn of(index: usize) -> Fault {
        let (kinds, stages) = (Kind::ALL.len(), Stage::ALL.len());
        let (side, stage) = (Side::ALL[index / kinds / stages], Stage::ALL[index / kinds % stages]);
        Fault { side, stage, kind: Kind::ALL[index % kinds], detail: Detail::NONE }
    }
}

const PLACES: usize = Side::ALL.len() * Stage::ALL.len() * Kind::ALL.len();

/// Maximum number of combinations of fault and detail that are counted separately; beyond it, those with the lowest indices are kept.
const MAX_DETAILS: usize = 16;

/// How often each fault occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<FaultCount>", into = "Vec<FaultCount>")]
pub struct Faults {
    /// Counts by the fault's index, with and without detail.
    places: SparseCounts,
    /// Counts by index and detail, ascending. If there are too many, the smallest keys are kept, so that the sum does not depend on the
    /// order of merging.
    details: Vec<(u16, Detail, u64)>,
}

impl From<Vec<FaultCount>> for Faults {
    fn from(counts: Vec<FaultCount>) -> Faults {
        let mut faults = Faults::default();
        for FaultCount { side, stage, kind, count, detail } in counts {
            faults.add(Fault { side, stage, kind, detail }, count);
        }
        faults
    }
}

impl From<Faults> for Vec<FaultCount> {
    fn from(faults: Faults) -> Vec<FaultCount> {
        faults.iter().map(|(fault, count)| FaultCount::new(fault, count)).collect()
    }
}

impl Faults {
    /// Counts one fault.
    pub fn count(&mut self, fault: Fault) {
        self.add(fault, 1);
    }

    fn add(&mut self, fault: Fault, count: u64) {
        if count == 0 {
            return;
        }
        let place = fault.index();
        self.places.add(place, count);
        if !fault.detail.is_none() {
            self.add_detail((place as u16, fault.detail), count);
        }
    }

    fn add_detail(&mut self, key: (u16, Detail), count: u64) {
        let at = self.details.partition_point(|(place, detail, _)| (*place, *detail) < key);
        match self.details.get_mut(at) {
            Some((place, detail, n)) if (*place, *detail) == key => *n += count,
            _ if at < MAX_DETAILS => {
                self.details.truncate(MAX_DETAILS - 1);
                self.details.insert(at, (key.0, key.1, count));
            }
            _ => {}
        }
    }

    /// Faults with their counts, one entry per detail.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        let split = |(fault, all): (Fault, u64)| {
            let with = self.details_of(fault.index());
            let without = all - with.clone().map(|(_, n)| n).sum::<u64>();
            with.map(move |(detail, n)| (fault.with(detail), n)).chain([(fault, without)])
        };
        self.by_kind().flat_map(split).filter(|(_, n)| *n > 0)
    }

    /// Faults with their counts, details combined: one entry per side, stage and kind.
    pub fn by_kind(&self) -> impl Iterator<Item = (Fault, u64)> + '_ {
        self.places.iter().map(|(place, n)| (Fault::of(place), n))
    }

    fn details_of(&self, place: usize) -> impl Iterator<Item = (Detail, u64)> + Clone + '_ {
        let details = self.details.iter();
        details.filter(move |(at, ..)| usize::from(*at) == place).map(|(_, detail, n)| (*detail, *n))
    }

    /// Total number of faults.
    pub fn total(&self) -> u64 {
        self.places.iter().map(|(_, n)| n).sum()
    }

    /// Whether there are no faults.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds the counts of another set.
    pub fn merge(&mut self, other: &Faults) {
        self.places.merge(&other.places);
        for (place, detail, n) in &other.details {
            self.add_detail((*place, *detail), *n);
        }
    }
}

impl Merge for Faults {
    fn merge(&mut self, other: &Faults) {
        Faults::merge(self, other);
    }

    fn clear(&mut self) {
        self.places.clear();
        self.details.clear();
    }

    fn reserve(&mut self) {
        self.places.reserve(PLACES);
        self.details.reserve(MAX_DETAILS);
    }
}

/// One fault and how often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct FaultCount {
    /// Whose doing it was.
    #[cfg_attr(test, ts(type = "string"))]
    pub side: Side,
    /// In which part of a connection's life.
    #[cfg_attr(test, ts(type = "string"))]
    pub stage: Stage,
    /// What went wrong.
    #[cfg_attr(test, ts(type = "string"))]
    pub kind: Kind,
    /// How often.
    pub count: u64,
    /// The kernel's error, `EADDRNOTAVAIL`; the code of a GOAWAY, `ENHANCE_YOUR_CALM`, or of a WebSocket close; of a `bad-answer`, what is wrong with it. Of the same fault with another detail there is a count of its own.
    #[cfg_attr(test, ts(as = "Option<String>", optional))]
    #[serde(default, skip_serializing_if = "Detail::is_none")]
    pub detail: Detail,
}

impl FaultCount {
    /// A fault that occurred so often.
    pub fn new(Fault { side, stage, kind, detail }: Fault, count: u64) -> FaultCount {
        FaultCount { side, stage, kind, count, detail }
    }

    /// Which.
    pub fn fault(&self) -> Fault {
        Fault { side: self.side, stage: self.stage, kind: self.kind, detail: self.detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_fault_has_a_place_of_its_own() {
        let mut faults = Faults::default();
        let mut n = 0;
        for &side in Side::ALL {
            for &stage in Stage::ALL {
                for &kind in Kind::ALL {
                    n += 1;
                    for _ in 0..n {
                        faults.count(Fault { side, stage, kind, detail: Detail::NONE });
                    }
                }
            }
        }
        assert_eq!(n as usize, PLACES);
        assert!(faults.iter().map(|(_, count)| count).eq(1..=n), "each place counts alone");
        assert_eq!(faults.total(), n * (n + 1) / 2);
    }

    #[test]
    fn errors_are_reported_by_their_numbers() {
        let other = Fault::host(Stage::Dial, Kind::Other);
        let mut faults = Faults::default();
        for (errno, n) in [(99, 3), (22, 2), (0, 4)] {
            (0..n).for_each(|_| faults.count(other.with(Detail::new(errno))));
        }
        let counted: Vec<(String, u64)> = faults.iter().map(|(f, n)| (f.detail.name(), n)).collect();
        let expected = [("EINVAL", 2), ("EADDRNOTAVAIL", 3), ("errno 0", 4)];
        assert_eq!(counted, expected.map(|(name, n)| (name.to_owned(), n)));
        let json = serde_json::to_string(&faults).unwrap();
        assert!(json.contains(r#""count":2,"detail":"EINVAL"}"#) && json.contains(r#""count":4}"#), "{json}");
        assert_eq!(serde_json::from_str::<Faults>(&json).unwrap(), faults);
    }

    proptest! {
        /// More errors than are distinguished: the sum is the same in any order, and no count is lost.
        #[test]
        fn details_merge_in_any_order(seen in proptest::collection::vec((0..2usize, 1..40i32), 0..90)) {
            let of = |seen: &mut dyn Iterator<Item = &(usize, i32)>| {
                let mut faults = Faults::default();
                for (stage, errno) in seen {
                    let fault = Fault::host(Stage::ALL[*stage], Kind::Other);
                    faults.count(fault.with(Detail::new(*errno)));
                }
                faults
            };
            let whole = of(&mut seen.iter());
            let (first, second) = seen.split_at(seen.len() / 3);
            let (mut a, mut b) = (of(&mut first.iter()), of(&mut second.iter().rev()));
            let first = a.clone();
            a.merge(&b);
            b.merge(&first);
            prop_assert_eq!(&a, &whole);
            prop_assert_eq!(&b, &whole);
            prop_assert_eq!(whole.iter().map(|(_, n)| n).sum::<u64>(), seen.len() as u64);
        }
    }
}

//! Why a session cannot continue, or a response will not come.

use samples::{Detail, Fault, Kind, Rule, Stage};
use wire::{Breach, http2::Code};

/// The kind of a failure, and its detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    pub(crate) kind: Kind,
    pub(crate) detail: Detail,
}

impl Failure {
    /// The failure as a fault of the target at this stage.
    pub fn at(self, stage: Stage) -> Fault {
        Fault::target(stage, self.kind).with(self.detail)
    }

    /// The failure for the code with which throng would end an HTTP/2 connection because of the server's input.
    pub(crate) fn of_http2(code: Code) -> Failure {
        let rule = match code {
            Code::FLOW_CONTROL_ERROR => Rule::FlowControl,
            Code::STREAM_CLOSED => Rule::StreamClosed,
            Code::FRAME_SIZE_ERROR => Rule::FrameSize,
            Code::COMPRESSION_ERROR => Rule::Compression,
            Code::ENHANCE_YOUR_CALM => Rule::FieldsTooLong,
            _ => Rule::Http2Frame,
        };
        rule.into()
    }
}

impl From<Kind> for Failure {
    fn from(kind: Kind) -> Failure {
        Failure { kind, detail: Detail::NONE }
    }
}

/// Input that is not a valid response.
impl From<Rule> for Failure {
    fn from(rule: Rule) -> Failure {
        Failure { kind: Kind::BadAnswer, detail: Detail::of_rule(rule) }
    }
}

impl From<Breach> for Failure {
    fn from(breach: Breach) -> Failure {
        let rule = match breach {
            Breach::Truncated => return Kind::Truncated.into(),
            Breach::HeadTooLong => Rule::HeadTooLong,
            Breach::BadHead => Rule::Head,
            Breach::BadVersion => Rule::Version,
            Breach::BadLength => Rule::Length,
            Breach::BadChunk => Rule::Chunk,
            Breach::UnexpectedBytes => Rule::Unrequested,
            Breach::BadHandshake => Rule::Handshake,
            Breach::NotOffered => Rule::SubProtocol,
            Breach::BadFrame => Rule::WebSocketFrame,
            Breach::BadUtf8 => Rule::Utf8,
            Breach::MessageTooLong => Rule::MessageTooLong,
            Breach::BadClose => Rule::Close,
            Breach::BadPrefix => Rule::GrpcPrefix,
        };
        rule.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of rules quote the code's limits.
    #[test]
    fn limits_are_quoted_as_they_are() {
        let of = |rule: Rule| rule.name();
        let head = format!("{} KiB or {} fields", wire::http1::MAX_HEAD >> 10, wire::http1::MAX_FIELDS);
        assert!(of(Rule::HeadTooLong).contains(&head), "{head}");
        let list = wire::http2::MAX_LIST >> 10;
        let frames = wire::http2::MAX_CONTINUATIONS;
        assert!(
            of(Rule::FieldsTooLong).contains(&format!("over {list} KiB or {frames} CONTINUATION frames"))
        );
        assert!(of(Rule::MessageTooLong).contains("1 GiB") && crate::protocol::LARGEST_MESSAGE == 1 << 30);
    }

    /// Each breach, and each code of reading HTTP/2, has a rule; no two breaches share one.
    #[test]
    fn each_breach_has_a_rule_of_its_own() {
        let mut rules: Vec<_> =
            Breach::ALL.map(Failure::from).into_iter().map(|it| it.detail.rule()).collect();
        assert_eq!(rules.iter().filter(|rule| rule.is_none()).count(), 1, "the one that is cut off");
        rules.sort();
        rules.dedup();
        assert_eq!(rules.len(), Breach::ALL.len());
        let of_code = |code: u32| Failure::of_http2(Code(code)).detail.rule();
        assert_eq!(of_code(0x3), Some(Rule::FlowControl));
        assert_eq!([of_code(0x1), of_code(0x99)], [Some(Rule::Http2Frame); 2]);
    }

    #[test]
    fn a_failure_is_a_fault_with_its_rule() {
        let fault = Failure::from(Rule::Chunk).at(Stage::Exchange);
        assert_eq!(fault, Fault::target(Stage::Exchange, Kind::BadAnswer).with(Detail::of_rule(Rule::Chunk)));
        assert_eq!(fault.name(), "target exchange bad-answer (malformed chunk)");
    }
}

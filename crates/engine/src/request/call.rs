//! gRPC calls: the parts of a request that differ from other HTTP/2 requests.

use plan::{Body, Content, Text};
use units::Nanos;
use wire::grpc;

/// Number of messages in the response to a gRPC call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// One.
    Unary,
    /// Any number.
    Streaming,
}

/// Adds the gRPC fields to a request, and the length prefix to its message.
pub(super) fn prepare(template: &mut plan::Request, call: plan::Call, timeout: Nanos) -> Call {
    let mut fields = vec![("content-type", "application/grpc".to_owned()), ("te", "trailers".to_owned())];
    if !call.is_streaming {
        fields.push(("grpc-timeout", grpc_timeout(timeout)));
    }
    let fields = fields.into_iter().map(|(name, value)| (name.to_owned(), Text::fixed(&value)));
    template.headers.splice(0..0, fields);
    let length = u32::try_from(call.message.len()).expect("the plan limits messages");
    let mut bytes = vec![0; grpc::PREFIX];
    grpc::write_prefix(&mut bytes, length).expect("there is room for it");
    bytes.extend(call.message);
    template.body = Some(Body::File(Content { file: String::new(), bytes }));
    if call.is_streaming { Call::Streaming } else { Call::Unary }
}

/// The value of `grpc-timeout`: at most eight digits and a unit (`grpc/doc/PROTOCOL-HTTP2.md`).
fn grpc_timeout(timeout: Nanos) -> String {
    const MOST: u64 = 99_999_999;
    match timeout.millis() {
        ms @ 1..=MOST => format!("{ms}m"),
        0 => format!("{}u", (timeout.0 / 1_000).max(1)),
        ms => format!("{}S", (ms / 1_000).min(MOST)),
    }
}

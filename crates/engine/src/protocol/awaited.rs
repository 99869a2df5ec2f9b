//! What a connection awaits, and the check of what has come.

use samples::Kind;
use wire::grpc::{self as rpc, status_of_http};

use super::Head;
use crate::{check::Check, exchange::Exchange};

/// What an exchange awaits.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaited<'a> {
    /// The response to an HTTP request.
    Response(&'a Check),
    /// A message; with what was sent, for an echo.
    Message(&'a Check, &'a [u8]),
    /// The pong to a control ping.
    Pong,
    /// The response to an upgrade after HTTP requests.
    Upgrade,
}

/// Whether a status is one of gRPC: those are below the statuses of HTTP.
fn is_grpc(status: u16) -> bool {
    status <= rpc::status::LAST
}

/// The gRPC status of a call whose response has this status: the same, or the one that an HTTP status maps to.
fn as_grpc(status: u16) -> u16 {
    if is_grpc(status) { status } else { status_of_http(status) }
}

impl Awaited<'_> {
    /// What is wrong with a complete response or message; `head`: its head, if it has one.
    pub(crate) fn wrong(self, exchange: &Exchange, head: Option<Head>) -> Option<Kind> {
        self.all_wrong(exchange, head).next()
    }

    /// Everything that is wrong with it, the most telling first.
    pub(crate) fn all_wrong(self, exchange: &Exchange, head: Option<Head>) -> impl Iterator<Item = Kind> {
        let checked = match self {
            Awaited::Response(check) => Some((check, Kind::WrongHeader)),
            Awaited::Message(check, _) => Some((check, Kind::WrongEcho)),
            Awaited::Pong | Awaited::Upgrade => None,
        };
        let kinds = checked.map(|(check, differs)| checks(check, differs, exchange, head));
        kinds.into_iter().flatten().filter(|(right, _)| !right).map(|(_, kind)| kind)
    }
}

/// Each check, whether it is met, and the kind of fault if it is not.
fn checks(check: &Check, differs: Kind, exchange: &Exchange, head: Option<Head>) -> [(bool, Kind); 4] {
    let right_status = head.is_none_or(|head| match check.expected.status {
        None => (200..300).contains(&head.status),
        Some(status) => status == head.status || is_grpc(status) && status == as_grpc(head.status),
    });
    let right_length = exchange.expected == u64::MAX || exchange.expected == exchange.content;
    let right_body = check.body.as_ref().is_none_or(|needle| needle.is_found(exchange.found));
    [
        (right_status, Kind::WrongStatus),
        (!exchange.differs, differs),
        (right_length, Kind::WrongLength),
        (right_body, Kind::WrongBody),
    ]
}

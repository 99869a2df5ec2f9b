//! The orders that the API sends to a shard, and the replies.

use std::sync::Arc;

use samples::Tick;
use tokio::sync::oneshot::Sender;
use units::Nanos;

use crate::{place::Place, target::Target};

/// An order to a shard.
#[derive(Debug)]
pub(crate) enum Order {
    /// Dial these clients.
    Add(Vec<Dial>),
    /// The state of this client; `None` if the shard has no such client.
    Get(u32, Sender<Option<View>>),
    /// Send a text on this client.
    Send(u32, Arc<str>, Sender<Option<Result<View, NotSent>>>),
    /// Close and remove this client.
    Delete(u32, Sender<Option<View>>),
    /// The numbers of all clients that pass the filter.
    List(Filter, Sender<Vec<u32>>),
    /// The counts since the start.
    Report(Sender<Box<Tick>>),
    /// Close all clients.
    Stop,
}

/// A client to be dialled.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) number: u32,
    pub(crate) target: Arc<Target>,
    /// When to dial, by the clock that all shards share.
    pub(crate) due: Nanos,
    /// Interval of pings.
    pub(crate) ping: Nanos,
    pub(crate) place: Place,
}

/// A client as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// Its number.
    pub(crate) number: u32,
    /// The target, as it was given.
    pub(crate) ws: String,
    /// Whether its WebSocket is open now.
    pub(crate) connected: bool,
    /// Why it is lost: the name of a fault, or that the server closed it; `None` unless lost.
    pub(crate) lost: Option<String>,
    /// The last texts sent, newest first.
    pub(crate) sent: Vec<Arc<str>>,
    /// The last messages received, newest first.
    pub(crate) received: Vec<Arc<str>>,
}

/// Why a text was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The client is lost.
    Lost,
    /// The server does not read, or too many texts are waiting for the connection.
    Busy,
}

/// Which clients to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Clients that are not lost: connected, or connecting.
    #[default]
    Live,
    /// Only the connected ones.
    Connected,
    /// Only lost ones.
    Lost,
    /// All.
    All,
}

impl Filter {
    /// Parses `live`, `connected`, `lost` or `all`.
    pub(crate) fn parse(text: &str) -> Option<Filter> {
        match text {
            "live" => Some(Filter::Live),
            "connected" => Some(Filter::Connected),
            "lost" => Some(Filter::Lost),
            "all" => Some(Filter::All),
            _ => None,
        }
    }
}

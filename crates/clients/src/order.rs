//! What the API asks of a shard, and what it replies.

use std::sync::Arc;

use samples::Tick;
use tokio::sync::oneshot::Sender;
use units::Nanos;

use crate::{place::Place, target::Target};

/// An order to a shard.
#[derive(Debug)]
pub(crate) enum Order {
    /// Dial these.
    Add(Vec<Dial>),
    /// What is known of this client; none where the shard has no such client.
    Get(u32, Sender<Option<View>>),
    /// Send a text on it.
    Send(u32, Arc<str>, Sender<Option<Result<View, NotSent>>>),
    /// Close it, and forget it.
    Delete(u32, Sender<Option<View>>),
    /// The numbers of all clients in one of these states.
    List(Filter, Sender<Vec<u32>>),
    /// What was counted since the start.
    Report(Sender<Box<Tick>>),
    /// Close all.
    Stop,
}

/// A client to be dialled.
#[derive(Debug)]
pub(crate) struct Dial {
    pub(crate) number: u32,
    pub(crate) target: Arc<Target>,
    /// When, by the clock of all shards.
    pub(crate) due: Nanos,
    /// Between two pings.
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
    /// Why it is no more: the words of a fault, or that the server closed it.
    pub(crate) lost: Option<String>,
    /// The last texts sent, the newest first.
    pub(crate) sent: Vec<Arc<str>>,
    /// The last messages received, the newest first.
    pub(crate) received: Vec<Arc<str>>,
}

/// Why a text was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSent {
    /// The client is lost.
    Lost,
    /// The server does not read what it is sent, or the client is not connected and has many texts to send already.
    Busy,
}

/// Which clients to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Those that count: connected, or being connected.
    #[default]
    Live,
    /// Only the connected ones.
    Connected,
    /// Those that were lost.
    Lost,
    /// All.
    All,
}

impl Filter {
    /// `live`, `connected`, `lost` or `all`.
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

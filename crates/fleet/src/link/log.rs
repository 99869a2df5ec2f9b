//! Logs of runs in a JetStream stream: what was stored stays, whoever was connected.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use async_nats::{
    HeaderMap, HeaderValue, Message,
    jetstream::{
        self,
        consumer::{DeliverPolicy, pull::OrderedConfig},
        context::PublishError,
        stream::{Config, DiscardPolicy, StorageType},
    },
};
use futures_util::{
    StreamExt,
    future::{Either, select},
};
use units::Nanos;

use super::{
    Inbox, Link,
    inbox::{self, Filler},
    pieces::{Pieces, Place, cut},
};
use crate::{
    message::{Entry, LOGS, log_of},
    outbox::{Parcel, Ticket, decode},
};

const STREAM: &str = "throng";
/// A run is over, and its log of no use, after this time.
const KEPT: Duration = Duration::from_hours(24);
/// The server has stored an entry, or has not, within this time.
const STORES: Duration = Duration::from_secs(5);
/// Before a log that could not be read is read again.
const AGAIN: Duration = Duration::from_millis(200);

/// Octets of headers beside an entry, which count as part of the message.
const HEADERS: usize = 512;
/// The header of a [piece](super::pieces) of an entry: its place. The entry's name is in the one before.
const PIECE: &str = "throng-piece";
const ENTRY: &str = "throng-entry";

/// What became of entries that were sent.
pub(crate) type Stored = (Ticket, bool);

/// An entry of a log, and when the server stored it, since 1970.
pub(crate) type Stamped = (Nanos, Entry);

/// What comes of the log of a run.
pub(crate) struct LogReader {
    entries: Inbox<Stamped>,
    is_current: Arc<AtomicBool>,
}

impl LogReader {
    /// The next entry, if one comes in time.
    pub(crate) fn next(&self, wait: Nanos) -> Option<Stamped> {
        self.entries.next(wait)
    }

    /// Whether everything that was in the log has been read, as far as the server reports it.
    pub(crate) fn is_current(&self) -> bool {
        self.is_current.load(Relaxed)
    }
}

impl Link {
    /// The server keeps logs from now on.
    ///
    /// # Errors
    /// It does not, with the fix.
    pub(crate) fn keep_logs(&self) -> Result<(), String> {
        let config = Config {
            name: STREAM.to_owned(),
            subjects: vec![LOGS.to_owned()],
            // A log is forgotten when its run is over, and this is the bound of those whose coordinator was killed. No `max_bytes`: at that
            // the server would discard the oldest entries, of runs in progress, which their agents know to be stored. Its own
            // `max_file_store` bounds all streams: from there on it refuses, and agents keep what they counted in their spools.
            max_age: KEPT,
            storage: StorageType::File,
            discard: DiscardPolicy::Old,
            ..Config::default()
        };
        match self.wait(self.jetstream().get_or_create_stream(config)) {
            Ok(_) => Ok(()),
            Err(e) => Err(format!(
                "the NATS server keeps no streams ({e}); start it with nats-server -js, or allow this user what \
                deploy/nats/fleet.conf does"
            )),
        }
    }

    /// Sends an entry; what became of it goes to `stored`.
    pub(crate) fn store(&self, parcel: Parcel, stored: Sender<Stored>) {
        let (context, mut connections) = (self.jetstream(), self.connections());
        // A server that takes less than that takes no offer, either.
        let longest = self.longest().saturating_sub(HEADERS).max(HEADERS);
        self.spawn(async move {
            let Parcel { ticket, subject, id, bytes } = parcel;
            let is_whole = bytes.len() <= longest;
            let sent = async {
                for (place, piece) in cut(&bytes, longest) {
                    let mut headers = HeaderMap::new();
                    if is_whole {
                        headers.insert(async_nats::header::NATS_MESSAGE_ID, id.as_str());
                    } else {
                        let own = format!("{id}-{}", place.text());
                        headers.insert(async_nats::header::NATS_MESSAGE_ID, own);
                        headers.insert(ENTRY, id.as_str());
                        headers.insert(PIECE, place.text());
                    }
                    let piece = piece.to_vec().into();
                    context.publish_with_headers(subject.clone(), headers, piece).await?.await?;
                }
                Ok::<_, PublishError>(())
            };
            // The response to what went out on a connection before does not come any more.
            let is_stored =
                match select(pin!(tokio::time::timeout(STORES, sent)), pin!(connections.changed())).await {
                    Either::Left((sent, _)) => matches!(sent, Ok(Ok(()))),
                    Either::Right(_) => false,
                };
            // No one waits for it any more if the run has ended.
            let _ = stored.send((ticket, is_stored));
        });
    }

    /// The log of a run from its beginning, and what is added to it.
    pub(crate) fn read_log(&self, run: &str) -> LogReader {
        let (filler, entries) = inbox::of_log();
        let is_current = Arc::<AtomicBool>::default();
        let mut reading = Reading {
            context: self.jetstream(),
            subject: log_of(run),
            next: 0,
            pieces: Pieces::default(),
            read: None,
            entries: filler,
            is_current: is_current.clone(),
        };
        let mut connections = self.connections();
        self.spawn(async move {
            // Until its reader is gone.
            loop {
                connections.mark_unchanged();
                // The consumer of a server that was started again is no more, which the library notices only after two heartbeats that
                // did not come: 15 s.
                let is_over = match select(pin!(reading.read()), pin!(connections.changed())).await {
                    Either::Left((is_over, _)) => is_over.unwrap_or(false),
                    Either::Right(_) => false,
                };
                reading.is_current.store(false, Relaxed);
                if is_over {
                    return;
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
        LogReader { entries, is_current }
    }

    /// Asks the server for its stream of logs; its reply arrives once, or never.
    pub(crate) fn ask_broker(&self) -> Receiver<()> {
        let (context, (sender, reply)) = (self.jetstream(), mpsc::channel());
        self.spawn(async move {
            if let Ok(Ok(_)) = tokio::time::timeout(STORES, context.get_stream(STREAM)).await {
                // No one waits for it any more if something came meanwhile.
                let _ = sender.send(());
            }
        });
        reply
    }

    /// Forgets the log of a run.
    pub(crate) fn forget_log(&self, run: &str) {
        let context = self.jetstream();
        let purged = async {
            let stream = context.get_stream(STREAM).await.ok()?;
            stream.purge().filter(log_of(run)).await.ok()
        };
        // If that fails, it is forgotten after its time.
        let _ = self.wait(async { tokio::time::timeout(STORES, purged).await });
    }
}

/// A log that is being read.
struct Reading {
    context: jetstream::Context,
    subject: String,
    /// The place in the stream of what follows.
    next: u64,
    pieces: Pieces,
    /// An entry before `next` for which there was no room yet, and its size in bytes.
    read: Option<(usize, Stamped)>,
    entries: Filler<Stamped>,
    is_current: Arc<AtomicBool>,
}

impl Reading {
    /// Reads on; none where the connection is lost, and true if the receiver is gone.
    async fn read(&mut self) -> Option<bool> {
        if !self.entries.put(&mut self.read).await {
            return Some(true);
        }
        let stream = self.context.get_stream(STREAM).await.ok()?;
        let deliver_policy = match self.next {
            0 => DeliverPolicy::All,
            start_sequence => DeliverPolicy::ByStartSequence { start_sequence },
        };
        let filter_subject = self.subject.clone();
        let config = OrderedConfig { deliver_policy, filter_subject, ..OrderedConfig::default() };
        let consumer = stream.create_consumer(config).await.ok()?;
        self.is_current.store(consumer.cached_info().num_pending == 0, Relaxed);
        let mut messages = consumer.messages().await.ok()?;
        while let Some(message) = messages.next().await {
            let message = message.ok()?;
            let info = message.info().ok()?;
            let at = Nanos(u64::try_from(info.published.unix_timestamp_nanos()).unwrap_or(0));
            self.next = info.stream_sequence + 1;
            // What is not of this protocol is not ours.
            self.read = self.entry(&message).map(|(bytes, entry)| (bytes, (at, entry)));
            if self.read.as_ref().is_some_and(|(bytes, _)| !self.entries.has_room(*bytes)) {
                self.is_current.store(false, Relaxed);
            }
            if !self.entries.put(&mut self.read).await {
                return Some(true);
            }
            self.is_current.store(info.pending == 0, Relaxed);
        }
        None
    }

    /// The entry that is complete with this message, and its size in bytes.
    fn entry(&mut self, message: &Message) -> Option<(usize, Entry)> {
        let header = |name| message.headers.as_ref()?.get(name).map(HeaderValue::as_str);
        match (header(ENTRY), header(PIECE).and_then(Place::parse)) {
            (Some(name), Some(place)) => {
                let bytes = self.pieces.put(name, place, &message.payload)?;
                Some((bytes.len(), decode(&bytes)?))
            }
            _ => Some((message.payload.len(), decode(&message.payload)?)),
        }
    }
}

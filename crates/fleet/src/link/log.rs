//! Logs of runs in a JetStream stream, which stores entries independently of connections.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc::{self, Receiver},
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
use futures_util::StreamExt;
use units::Nanos;

use super::{
    Inbox, Link, before,
    inbox::{self, Filler},
    pieces::{Pieces, Place, cut},
};
use crate::{
    error::Error,
    message::{Entry, LOGS, log_of},
    outbox::{Outbox, Parcel, decode},
};

const STREAM: &str = "throng";
/// Maximum age of a log: its run is over.
const KEPT: Duration = Duration::from_hours(24);
/// Maximum time for the server to store an entry.
const STORES: Duration = Duration::from_secs(5);
/// Delay before reading a log again after a failure.
const AGAIN: Duration = Duration::from_millis(200);

/// Bytes of headers of an entry, which count as part of the message.
const HEADERS: usize = 512;
/// Header of a [piece](super::pieces) of an entry: its place. [`ENTRY`] holds the entry's name.
const PIECE: &str = "throng-piece";
const ENTRY: &str = "throng-entry";

/// An entry of a log, and when the server stored it, since 1970.
pub(crate) type Stamped = (Nanos, Entry);

/// Receives the entries of a run's log.
pub(crate) struct LogReader {
    entries: Inbox<Stamped>,
    is_current: Arc<AtomicBool>,
}

impl LogReader {
    /// The next entry, if one arrives in time.
    pub(crate) fn next(&self, wait: Nanos) -> Option<Stamped> {
        self.entries.next(wait)
    }

    /// Whether the whole log has been read, as far as the server reports.
    pub(crate) fn is_current(&self) -> bool {
        self.is_current.load(Relaxed)
    }
}

impl Link {
    /// Creates the stream of logs, if it does not exist.
    ///
    /// # Errors
    /// The server cannot or may not keep streams; contains the fix.
    pub(crate) fn keep_logs(&self) -> Result<(), Error> {
        let config = Config {
            name: STREAM.to_owned(),
            subjects: vec![LOGS.to_owned()],
            // A log is deleted after its run; this is the limit for runs whose coordinator was killed. No `max_bytes`: at that limit the
            // server would discard the oldest entries of active runs, which their agents believe to be stored. `max_file_store` of the
            // server limits all streams: beyond it, entries are refused, and agents keep them in their spools.
            max_age: KEPT,
            storage: StorageType::File,
            discard: DiscardPolicy::Old,
            ..Config::default()
        };
        let kept = self.wait(self.jetstream().get_or_create_stream(config));
        let failed = |e| {
            Error::Unavailable(format!(
                "the NATS server keeps no streams ({e}); start it with nats-server -js, or allow this user what \
                deploy/nats/fleet.conf does"
            ))
        };
        kept.map(|_| ()).map_err(failed)
    }

    /// Sends entries that are due, and handles the outcome of those sent before.
    pub(crate) fn deliver(&self, now: Nanos, outbox: &mut Outbox) {
        while let Ok((ticket, is_stored)) = self.stored.1.try_recv() {
            outbox.handle(now, &ticket, is_stored);
        }
        while let Some(parcel) = outbox.poll(now) {
            self.store(parcel);
        }
    }

    fn store(&self, parcel: Parcel) {
        let stored = self.stored.0.clone();
        let (context, mut connections) = (self.jetstream(), self.connections());
        // A server with a smaller limit would not accept an offer either.
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
            // Acknowledgements of what was sent on an earlier connection will not arrive.
            let sent = before(connections.changed(), tokio::time::timeout(STORES, sent)).await;
            let is_stored = matches!(sent, Some(Ok(Ok(()))));
            // The receiver is gone if the connection was given up.
            let _ = stored.send((ticket, is_stored));
        });
    }

    /// Reads the log of a run from its beginning, and then new entries.
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
            // Until the reader is dropped.
            loop {
                connections.mark_unchanged();
                // After a restart of the server the consumer no longer exists, which the library notices only after two missed
                // heartbeats: 15 s.
                let is_over = before(connections.changed(), reading.read()).await.flatten();
                reading.is_current.store(false, Relaxed);
                if is_over == Some(true) {
                    return;
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
        LogReader { entries, is_current }
    }

    /// Probes the server by requesting its stream of logs. The reply arrives once, or never.
    pub(crate) fn ask_broker(&self) -> Receiver<()> {
        let (context, (sender, reply)) = (self.jetstream(), mpsc::channel());
        self.spawn(async move {
            if let Ok(Ok(_)) = tokio::time::timeout(STORES, context.get_stream(STREAM)).await {
                // The receiver may be gone if something else arrived.
                let _ = sender.send(());
            }
        });
        reply
    }

    /// Deletes the log of a run.
    pub(crate) fn forget_log(&self, run: &str) {
        let context = self.jetstream();
        let purged = async {
            let stream = context.get_stream(STREAM).await.ok()?;
            stream.purge().filter(log_of(run)).await.ok()
        };
        // If that fails, it is deleted after its maximum age.
        let _ = self.wait(async { tokio::time::timeout(STORES, purged).await });
    }
}

/// The state of reading a log.
struct Reading {
    context: jetstream::Context,
    subject: String,
    /// The stream sequence of the next message.
    next: u64,
    pieces: Pieces,
    /// An entry before `next` that did not fit into the queue yet, with its size in bytes.
    read: Option<(usize, Stamped)>,
    entries: Filler<Stamped>,
    is_current: Arc<AtomicBool>,
}

impl Reading {
    /// Continues reading. `None` if the connection is lost, true if the receiver is gone.
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
            // Ignores messages that are not of this protocol.
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

    /// The entry that this message completes, and its size in bytes.
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

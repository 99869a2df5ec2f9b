//! Logs of runs in a JetStream stream: what was stored stays, whoever was connected.

use std::{
    sync::mpsc::{self, Receiver, Sender},
    time::Duration,
};

use async_nats::{
    HeaderMap, HeaderValue,
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
    Link,
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

impl Link {
    /// The server keeps logs from now on.
    ///
    /// # Errors
    /// It does not, with the fix.
    pub(crate) fn keep_logs(&self) -> Result<(), String> {
        let config = Config {
            name: STREAM.to_owned(),
            subjects: vec![LOGS.to_owned()],
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
        let context = self.jetstream();
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
            let is_stored = matches!(tokio::time::timeout(STORES, sent).await, Ok(Ok(())));
            // No one waits for it any more if the run has ended.
            let _ = stored.send((ticket, is_stored));
        });
    }

    /// The log of a run from its beginning, and what is added to it.
    pub(crate) fn read_log(&self, run: &str) -> Receiver<Stamped> {
        let (sender, entries) = mpsc::channel();
        let (context, subject) = (self.jetstream(), log_of(run));
        self.spawn(async move {
            let (mut next, mut pieces) = (0, Pieces::default());
            // Until its reader is gone.
            while read(&context, &subject, (&mut next, &mut pieces), &sender)
                .await
                .is_none_or(|is_read| is_read)
            {
                tokio::time::sleep(AGAIN).await;
            }
        });
        entries
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

/// Reads from the `next` entry of the stream on; none where the connection is lost, and false if the receiver is gone.
async fn read(
    context: &jetstream::Context,
    subject: &str,
    (next, pieces): (&mut u64, &mut Pieces),
    entries: &Sender<Stamped>,
) -> Option<bool> {
    let stream = context.get_stream(STREAM).await.ok()?;
    let deliver_policy = match *next {
        0 => DeliverPolicy::All,
        start_sequence => DeliverPolicy::ByStartSequence { start_sequence },
    };
    let filter_subject = subject.to_owned();
    let config = OrderedConfig { deliver_policy, filter_subject, ..OrderedConfig::default() };
    let mut messages = stream.create_consumer(config).await.ok()?.messages().await.ok()?;
    while let Some(message) = messages.next().await {
        let message = message.ok()?;
        let info = message.info().ok()?;
        let at = Nanos(u64::try_from(info.published.unix_timestamp_nanos()).unwrap_or(0));
        *next = info.stream_sequence + 1;
        let header = |name| message.headers.as_ref()?.get(name).map(HeaderValue::as_str);
        let place = header(PIECE).and_then(Place::parse);
        let entry = match (header(ENTRY), place) {
            (Some(name), Some(place)) => {
                pieces.put(name, place, &message.payload).and_then(|bytes| decode(&bytes))
            }
            _ => decode(&message.payload),
        };
        // What is not of this protocol is not ours.
        if let Some(entry) = entry
            && entries.send((at, entry)).is_err()
        {
            return Some(false);
        }
    }
    None
}

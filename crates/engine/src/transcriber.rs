//! Writes down what a connection sends and receives, in the words of its protocol, for people: `throng try`.
//!
//! The client reports its events, and passes the bytes of both directions as the protocol sees them, without TLS. What belongs to a
//! step is held back until its response is complete: only then is it known which values in it are secret.

mod explain;
mod pieces;

use std::sync::mpsc::Sender;

use samples::transcript::{Content, Entry, Event, Piece};
use units::Nanos;

use crate::coding::Coding;

pub(crate) use self::{explain::Findings, pieces::Pieces};

/// Maximum number of pieces of a step: a server may send frames without end.
const MOST_PIECES: usize = 1_000;
/// Maximum number of bytes that are kept of the content of an exchange of a run; `throng try` keeps [`Content::KEPT`].
const KEPT_OF_EXCHANGE: usize = 8 << 10;

/// The transcript of a client that has one connection, or of one exchange of any client.
pub struct Transcriber {
    out: Entries,
    /// The connection that it is about; `None`: the only one.
    index: Option<u32>,
    shows_secrets: bool,
    /// Values that are masked, besides those with a known name.
    secrets: Vec<Box<[u8]>>,
    sent: Pieces,
    received: Pieces,
    /// The pieces of the step under way, as they are.
    held: Vec<(Nanos, Event)>,
    /// The step under way: when it was sent, and when the first byte of its response came.
    under_way: Option<(Nanos, Option<Nanos>)>,
    /// When the transcript began, and when its last dial did.
    start: Option<Nanos>,
    dialled: Nanos,
}

/// Where the entries go.
enum Entries {
    /// To a reader; one that is gone wants no more.
    Passed(Sender<Entry>),
    Kept(Vec<Entry>),
}

impl Transcriber {
    /// A transcript of one exchange of the connection at this index; it keeps its entries.
    pub(crate) fn of_exchange(index: u32) -> Transcriber {
        Transcriber { index: Some(index), ..Transcriber::to(Entries::Kept(Vec::new()), false) }
    }

    /// A transcript whose entries go to `out`. Secrets are masked, unless it `shows_secrets`.
    pub fn new(out: Sender<Entry>, shows_secrets: bool) -> Transcriber {
        Transcriber::to(Entries::Passed(out), shows_secrets)
    }

    fn to(out: Entries, shows_secrets: bool) -> Transcriber {
        Transcriber {
            out,
            index: None,
            shows_secrets,
            secrets: Vec::new(),
            sent: Pieces::Raw,
            received: Pieces::Raw,
            held: Vec::new(),
            under_way: None,
            start: None,
            dialled: Nanos::ZERO,
        }
    }

    /// Whether it is about the connection at this index.
    pub(crate) fn is_of(&self, index: u32) -> bool {
        self.index.is_none_or(|own| own == index)
    }

    /// Whether it is about one exchange.
    pub(crate) fn is_of_exchange(&self) -> bool {
        self.index.is_some()
    }

    /// The entries that it has kept, with the secrets masked.
    pub(crate) fn entries(self) -> Vec<Entry> {
        let Entries::Kept(mut entries) = self.out else { return Vec::new() };
        entries.iter_mut().for_each(|entry| entry.event.mask(&self.secrets));
        entries
    }

    /// Both directions are read as these formats, from their beginning.
    pub(crate) fn begin(&mut self, sent: Pieces, received: Pieces) {
        (self.sent, self.received) = (sent, received);
    }

    /// The connection is open.
    pub(crate) fn opened(&mut self, now: Nanos) {
        self.enter(now, Event::Open(now.since(self.dialled)));
    }

    /// A step begins, or its request after a redirect. These values are secret from now on.
    pub(crate) fn step(&mut self, now: Nanos, step: Option<u16>, secrets: Vec<Box<[u8]>>) {
        self.release();
        self.secrets = secrets;
        self.under_way = Some((now, None));
        step.into_iter().for_each(|step| self.enter(now, Event::Step(step)));
    }

    /// These bytes were sent.
    pub(crate) fn sent(&mut self, now: Nanos, bytes: &[u8]) {
        let (held, most) = (&mut self.held, most_kept(self.index));
        self.sent.read(bytes, |piece| hold(held, now, piece, (Event::Sent, most)));
        self.release_unless_held();
    }

    /// These bytes were received.
    pub(crate) fn received(&mut self, now: Nanos, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if let Some((_, first @ None)) = &mut self.under_way {
            *first = Some(now);
        }
        let (held, most) = (&mut self.held, most_kept(self.index));
        self.received.read(bytes, |piece| hold(held, now, piece, (Event::Received, most)));
        self.release_unless_held();
    }

    /// These bytes were received, and nothing more will be: they are no complete piece.
    pub(crate) fn left_over(&mut self, now: Nanos, bytes: &[u8]) {
        if !bytes.is_empty() {
            let mut content = Content::default();
            content.push(bytes);
            hold(&mut self.held, now, Piece::Content(content), (Event::Received, most_kept(self.index)));
        }
    }

    /// The step under way has ended with this event. These values are secret from now on.
    pub(crate) fn end_step(&mut self, now: Nanos, secrets: Vec<Box<[u8]>>, event: Event) {
        self.secrets = secrets;
        self.release();
        self.enter(now, event);
    }

    /// Something happened beside the steps.
    pub(crate) fn enter(&mut self, now: Nanos, event: Event) {
        if !matches!(event, Event::Step(_)) {
            self.release();
        }
        if matches!(event, Event::Dial { .. }) {
            self.dialled = now;
        }
        self.write(now, event);
    }

    /// What the step under way has received so far, with its times.
    pub(crate) fn findings(&mut self, is_wrong: bool) -> Findings<'_> {
        if is_wrong {
            self.decode();
        }
        let received = self.held.iter().filter_map(|(_, event)| match event {
            Event::Received(piece) => Some(piece),
            _ => None,
        });
        Findings::new(received, self.under_way)
    }

    /// Whether the bytes are those of a step whose response is not complete yet.
    fn release_unless_held(&mut self) {
        if self.under_way.is_none() {
            self.release();
        }
    }

    /// Decodes the content that was held back, where it has a coding.
    fn decode(&mut self) {
        let mut coding = None;
        for (_, event) in &mut self.held {
            match event {
                Event::Received(Piece::Head(head)) => coding = coding_of(head).or(coding),
                Event::Received(Piece::Content(content)) if content.decoded.is_none() => {
                    content.decoded = coding.and_then(|coding| coding.decode(&content.bytes));
                }
                _ => {}
            }
        }
    }

    /// Writes what was held back.
    fn release(&mut self) {
        self.under_way = None;
        if matches!(self.out, Entries::Passed(_)) {
            self.decode();
        }
        for (at, event) in std::mem::take(&mut self.held) {
            self.write(at, event);
        }
    }

    fn write(&mut self, now: Nanos, mut event: Event) {
        let at = now.since(*self.start.get_or_insert(now));
        match &mut self.out {
            Entries::Passed(out) => {
                if !self.shows_secrets {
                    event.mask(&self.secrets);
                }
                out.send(Entry { at, event }).unwrap_or_default();
            }
            // Most are dropped: they are masked when they are taken.
            Entries::Kept(entries) if entries.len() < MOST_PIECES => entries.push(Entry { at, event }),
            Entries::Kept(_) => {}
        }
    }
}

/// The content coding that a head names.
fn coding_of(head: &str) -> Option<Coding> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let named = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    named.map(|(_, value)| value).find_map(|value| Coding::named(value.as_bytes()))
}

/// Maximum number of bytes of content that are kept.
fn most_kept(index: Option<u32>) -> usize {
    if index.is_some() { KEPT_OF_EXCHANGE } else { Content::KEPT }
}

/// Adds a piece; content is added to the content before it, also across control frames. At most `most` bytes of content are kept.
fn hold(
    held: &mut Vec<(Nanos, Event)>,
    now: Nanos,
    mut piece: Piece,
    (of, most): (fn(Piece) -> Event, usize),
) {
    if held.len() >= MOST_PIECES {
        return;
    }
    if held.len() == MOST_PIECES - 1 {
        piece = Piece::Control("more than is shown".to_owned());
    }
    let event = of(piece);
    let last = held.iter_mut().rev().map(|(_, earlier)| (&*earlier, &event)).position(|pair| match pair {
        (Event::Sent(earlier), Event::Sent(_)) | (Event::Received(earlier), Event::Received(_)) => {
            !matches!(earlier, Piece::Control(_))
        }
        _ => false,
    });
    let last = last.map(|back| held.len() - 1 - back).map(|at| &mut held[at].1);
    match (last, &event) {
        (
            Some(Event::Sent(Piece::Content(content)) | Event::Received(Piece::Content(content))),
            Event::Sent(Piece::Content(more)) | Event::Received(Piece::Content(more)),
        ) => content.add(more, most),
        _ => {
            let mut event = event;
            if let Event::Sent(Piece::Content(content)) | Event::Received(Piece::Content(content)) =
                &mut event
            {
                content.bytes.truncate(most);
            }
            held.push((now, event));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_one_piece_across_control_frames_and_the_other_direction() {
        let content = |text: &str| {
            let mut content = Content::default();
            content.push(text.as_bytes());
            Piece::Content(content)
        };
        let mut held = Vec::new();
        let mut add = |piece, of| hold(&mut held, Nanos::ZERO, piece, (of, 100));
        add(Piece::Head("HTTP/2 200".to_owned()), Event::Received);
        add(content("a"), Event::Received);
        add(Piece::Control("PING".to_owned()), Event::Received);
        add(Piece::Control("PING ACK".to_owned()), Event::Sent);
        add(content("b"), Event::Received);
        add(content("c"), Event::Sent);
        let all: Vec<Event> = held.into_iter().map(|(_, event)| event).collect();
        let expected = [
            Event::Received(Piece::Head("HTTP/2 200".to_owned())),
            Event::Received(content("ab")),
            Event::Received(Piece::Control("PING".to_owned())),
            Event::Sent(Piece::Control("PING ACK".to_owned())),
            Event::Sent(content("c")),
        ];
        assert_eq!(all, expected);
    }
}

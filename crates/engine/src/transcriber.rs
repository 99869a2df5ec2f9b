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
    /// Each stays one: a value that was captured anew was sent before.
    secrets: Vec<Box<[u8]>>,
    sent: Pieces,
    received: Pieces,
    /// The pieces of the step under way, as they are.
    held: Held,
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
        let held = Held { most: KEPT_OF_EXCHANGE, ..Held::default() };
        Transcriber { index: Some(index), held, ..Transcriber::to(Entries::Kept(Vec::new()), false) }
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
            held: Held::default(),
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

    /// These values are secret, too, from now on.
    pub(crate) fn learn(&mut self, secrets: Vec<Box<[u8]>>) {
        learn(&mut self.secrets, secrets);
    }

    /// The connection is open.
    pub(crate) fn opened(&mut self, now: Nanos) {
        self.enter(now, Event::Open(now.since(self.dialled)));
    }

    /// A step begins, or its request after a redirect.
    pub(crate) fn step(&mut self, now: Nanos, step: Option<u16>) {
        self.release();
        self.under_way = Some((now, None));
        step.into_iter().for_each(|step| self.enter(now, Event::Step(step)));
    }

    /// These bytes were sent.
    pub(crate) fn sent(&mut self, now: Nanos, bytes: &[u8]) {
        let Transcriber { held, secrets, .. } = self;
        self.sent.read(bytes, |piece| {
            if let Piece::Head(head) = &piece {
                learn(secrets, secrets_of(head));
            }
            held.add(now, Way::Sent, piece);
        });
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
        let held = &mut self.held;
        self.received.read(bytes, |piece| held.add(now, Way::Received, piece));
        self.release_unless_held();
    }

    /// These bytes were received, and nothing more will be: they are no complete piece.
    pub(crate) fn left_over(&mut self, now: Nanos, bytes: &[u8]) {
        let held = &mut self.held;
        Pieces::Raw.read(bytes, |piece| held.add(now, Way::Received, piece));
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

    /// What the step under way has received so far, with its times. `decodes`: its checks have read decoded content.
    pub(crate) fn findings(&mut self, decodes: bool) -> Findings<'_> {
        if decodes {
            self.held.decode();
        }
        Findings::new(self.held.received(), decodes, self.under_way)
    }

    /// Whether the bytes are those of a step whose response is not complete yet.
    fn release_unless_held(&mut self) {
        if self.under_way.is_none() {
            self.release();
        }
    }

    /// Writes what was held back.
    fn release(&mut self) {
        self.under_way = None;
        if matches!(self.out, Entries::Passed(_)) {
            self.held.decode();
        }
        for Part { at, way, piece } in std::mem::take(&mut self.held.parts) {
            let event = match way {
                Way::Sent => Event::Sent(piece),
                Way::Received => Event::Received(piece),
            };
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

/// The pieces of a step, in order.
struct Held {
    parts: Vec<Part>,
    /// Maximum number of bytes that are kept of a content.
    most: usize,
}

struct Part {
    at: Nanos,
    way: Way,
    piece: Piece,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Sent,
    Received,
}

impl Default for Held {
    fn default() -> Held {
        Held { parts: Vec::new(), most: Content::KEPT }
    }
}

impl Held {
    /// Adds a piece; content is added to the content before it, also across control frames and the other direction.
    fn add(&mut self, at: Nanos, way: Way, mut piece: Piece) {
        if self.parts.len() >= MOST_PIECES {
            return;
        }
        let is_before = |part: &&mut Part| part.way == way && !matches!(part.piece, Piece::Control(_));
        let before = self.parts.iter_mut().rev().find(is_before).map(|part| &mut part.piece);
        if let (Some(Piece::Content(content)), Piece::Content(more)) = (before, &piece) {
            return content.add(more, self.most);
        }
        if let Piece::Content(content) | Piece::Message { content, .. } = &mut piece {
            content.bytes.truncate(self.most);
        }
        if self.parts.len() == MOST_PIECES - 1 {
            piece = Piece::Control("more than is shown".to_owned());
        }
        self.parts.push(Part { at, way, piece });
    }

    fn received(&self) -> impl Iterator<Item = &Piece> {
        self.parts.iter().filter(|part| part.way == Way::Received).map(|part| &part.piece)
    }

    /// Decodes the content of a response that has a coding.
    fn decode(&mut self) {
        let mut coding = None;
        for part in self.parts.iter_mut().filter(|part| part.way == Way::Received) {
            match &mut part.piece {
                Piece::Head(head) => coding = coding_of(head).or(coding),
                Piece::Content(content) if content.decoded.is_none() => {
                    content.decoded =
                        coding.and_then(|coding| coding.decode(&content.bytes, content.is_whole()));
                }
                _ => {}
            }
        }
    }
}

fn learn(known: &mut Vec<Box<[u8]>>, more: impl IntoIterator<Item = Box<[u8]>>) {
    for secret in more {
        if !known.contains(&secret) {
            known.push(secret);
        }
    }
}

/// The values of header fields of a request that may be secret, and their words. The values of their variables are as they were sent.
fn secrets_of(head: &str) -> impl Iterator<Item = Box<[u8]>> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    fields
        .filter(|(name, _)| !plan::is_public(name))
        .flat_map(|(_, value)| samples::secret_words(value.as_bytes()))
}

/// The content coding that a head names.
fn coding_of(head: &str) -> Option<Coding> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let named = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-encoding"));
    named.map(|(_, value)| value).find_map(|value| Coding::named(value.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Piece {
        let mut content = Content::default();
        content.push(text.as_bytes(), 1_000);
        Piece::Content(content)
    }

    #[test]
    fn content_is_one_piece_across_control_frames_and_the_other_direction() {
        let mut held = Held::default();
        let mut add = |piece, way| held.add(Nanos::ZERO, way, piece);
        add(Piece::Head("HTTP/2 200".to_owned()), Way::Received);
        add(content("a"), Way::Received);
        add(Piece::Control("PING".to_owned()), Way::Received);
        add(Piece::Control("PING ACK".to_owned()), Way::Sent);
        add(content("b"), Way::Received);
        add(content("c"), Way::Sent);
        let all: Vec<Piece> = held.parts.into_iter().map(|part| part.piece).collect();
        let expected = [
            Piece::Head("HTTP/2 200".to_owned()),
            content("ab"),
            Piece::Control("PING".to_owned()),
            Piece::Control("PING ACK".to_owned()),
            content("c"),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_a_server_sends_without_end_is_bounded() {
        let mut held = Held { most: 4, ..Held::default() };
        for _ in 0..2 * MOST_PIECES {
            let Piece::Content(content) = content("abcdef") else { unreachable!() };
            held.add(Nanos::ZERO, Way::Received, Piece::Message { is_text: true, content });
        }
        assert_eq!(held.parts.len(), MOST_PIECES);
        let kept = |part: &Part| match &part.piece {
            Piece::Message { content, .. } => content.bytes.len(),
            _ => 0,
        };
        assert!(held.parts.iter().all(|part| kept(part) <= 4));
        assert!(
            matches!(&held.parts[MOST_PIECES - 1].piece, Piece::Control(words) if words == "more than is shown")
        );
    }

    #[test]
    fn a_value_that_was_secret_stays_one() {
        let (out, entries) = std::sync::mpsc::channel();
        let mut transcriber = Transcriber::new(out, false);
        transcriber.learn(vec![b"first-1".to_vec().into()]);
        transcriber.step(Nanos::ZERO, None);
        transcriber.sent(Nanos::ZERO, b"first-1");
        transcriber.learn(vec![b"second-2".to_vec().into()]);
        transcriber.received(Nanos::ZERO, b"second-2");
        transcriber.enter(Nanos::ZERO, Event::Redirect);
        let all: Vec<Event> = entries.try_iter().map(|entry| entry.event).collect();
        let masked = [Event::Sent(content("*******")), Event::Received(content("********")), Event::Redirect];
        assert_eq!(all, masked);
    }
}

//! Input on connections: responses, unsolicited messages, and the end of a session.

use net::{Cx, Gone, Io, Key, Program};
use samples::{Fault, Kind, Stage, transcript::Event};
use units::Nanos;

use super::{Client, responses::Done};
use crate::{
    connections::State,
    exchange::PendingRequest,
    failure::Failure,
    out::Out,
    pool::NOTHING,
    protocol::{Progress, Reply, Speaks},
};

impl Client {
    /// The transport (and its layer, if any) is open: opens the protocol's session.
    pub(super) fn open<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { job, conns, source, tick, transport, .. } = self;
        let (conn, session, _) = conns.parts(k.index, NOTHING);
        let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
        if !job.protocol.open(session, conn.destination.into(), out) {
            return self.connected(cx, k);
        }
        self.conns.transition(k.index, State::Upgrading);
        self.exchange(k).started = cx.now();
        self.wake_at(cx, k, cx.now() + self.job.timeout);
    }

    /// Reads all input that has arrived; returns the number of bytes used.
    pub(super) fn read_all<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, input: &[u8]) -> usize {
        let has_streams = self.job.is_http2();
        // Where the response being read begins. With streams, the frames of several responses are mixed: no sample.
        let (mut used, mut from, mut is_first) = (0, 0, has_streams || self.is_before_response(k));
        let sampled = |from: usize, until: usize| if has_streams { &[][..] } else { &input[from..until] };
        // What the connection continues with, once it has read all earlier input.
        let mut done = None;
        loop {
            let (stream, progress) = self.read(cx, k, &input[used..]);
            self.note_first_byte(k, stream, &progress, (used < input.len(), cx.now()));
            match progress {
                Ok(Progress::More(n)) => {
                    self.note_begun(k, &input[used..used + n]);
                    self.has_read(cx, k, done);
                    return used + n;
                }
                Ok(Progress::Turned(n) | Progress::Began(n) | Progress::Pong(n, _)) => used += n,
                Ok(Progress::Messages(n, came)) => {
                    used += n;
                    self.messages(cx, k, stream, came);
                }
                Ok(Progress::Opened(n)) => {
                    used += n;
                    self.transcribe_upgraded(k);
                    match self.conn(k).state() {
                        State::Busy => {
                            self.upgraded(k, stream, cx.now());
                            done = self.go_on_after(cx, k, stream, used < input.len());
                        }
                        _ => self.session_opened(cx, k),
                    }
                }
                Ok(Progress::Responded(n)) => {
                    used += n;
                    done = self.go_on_after(cx, k, stream, used < input.len() && !has_streams);
                    self.sample_wrong(k, cx.now(), sampled(from, used), is_first);
                    (from, is_first) = (used, true);
                }
                Ok(Progress::Failed(n, failure)) => {
                    used += n;
                    self.stream_failed(cx, k, stream, failure.at(Stage::Exchange));
                }
                Ok(Progress::Withdrawn(n)) => {
                    used += n;
                    self.withdrawn(cx, k, stream);
                }
                Ok(Progress::Pushed(n)) => {
                    used += n;
                    self.pushed(cx, k);
                }
                Ok(Progress::Reply(n, reply)) => {
                    used += n;
                    self.reply(cx, k, reply);
                }
                Ok(Progress::Ending(reply, words)) => self.session_ended(cx, k, reply, words),
                Ok(Progress::Left) => self.gone(cx, k, Gone::Ended),
                Ok(Progress::Refused(status)) => {
                    self.refused(cx, k, status, sampled(from, input.len()), is_first);
                }
                Err(failure) => self.unreadable(cx, k, failure, &input[from..], is_first),
            }
            if !cx.is_open(k) {
                return input.len();
            }
            if used == input.len() && self.conns.is_between_messages(k.index) {
                self.has_read(cx, k, done);
                return used;
            }
        }
    }

    /// A response is complete: continues, or returns what to continue with if there `is_more` input and the next step sends
    /// something. Input that was sent earlier must not be taken for its reply.
    fn go_on_after<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32, has_more: bool) -> Option<Done> {
        let done = self.take_response(cx, k, stream)?;
        if has_more && self.sends_next(k) {
            self.wake_at(cx, k, done.due);
            return Some(done);
        }
        self.follow_up(cx, k, done);
        None
    }

    /// All input has been read: continues with `done`, if any.
    fn has_read<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, done: Option<Done>) {
        done.into_iter().for_each(|done| self.follow_up(cx, k, done));
        if cx.is_open(k) {
            self.rest_if_quiet(k);
        }
    }

    /// Notes the first byte of the awaited response, if input `has_come`. Interim responses do not count.
    fn note_first_byte(
        &mut self,
        k: Key,
        stream: u32,
        progress: &Result<Progress<'_>, Failure>,
        (has_come, now): (bool, Nanos),
    ) {
        if self.job.is_http2() {
            if progress.as_ref().is_ok_and(Progress::is_of_response) {
                self.begun(stream, now);
            }
        } else if has_come
            && !matches!(progress, Ok(Progress::Turned(_)))
            && self.conn(k).state() == State::Busy
        {
            self.begun(self.conns.latest(k.index), now);
        }
    }

    /// Reads up to the next event; also returns the stream that it belongs to.
    fn read<'a, I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        k: Key,
        input: &'a [u8],
    ) -> (u32, Result<Progress<'a>, Failure>) {
        let now = cx.now();
        let Client { job, conns, source, pushed, .. } = self;
        let at = conns[k.index].at;
        conns.open_session(k.index, || job.session(at));
        let (stream, conn, session, exchange) = conns.reading(k.index);
        source.now = now;
        let mut watch = source.take_watch(k.index);
        let asked = exchange.filter(|_| conn.state() == State::Busy).map(|exchange| {
            let awaited = job.awaited(exchange, k.index, source);
            (exchange, awaited)
        });
        let read = session.read(input, asked, watch.as_deref_mut(), &mut pushed.of(k.index));
        source.put_watch(k.index, watch);
        if let Some(transcriber) = self.transport.transcriber_of(k.index) {
            let used = read.as_ref().map_or(input.len(), |progress| progress.used(input.len()));
            transcriber.received(now, &input[..used]);
        }
        if let Ok(Progress::Pong(_, number)) = read {
            self.acknowledged(cx, k, number);
        }
        (stream, read)
    }

    /// A response will not come, but the connection goes on.
    pub(super) fn stream_failed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32, fault: Fault) {
        // A gRPC call carries its deadline, so the server may be first to end it when throng's timeout is reached.
        let fault = if self.is_late(stream, cx.now()) { self.timeout_of(k, stream) } else { fault };
        let exchange = self.conns.end_exchange(k.index, stream);
        self.transcribe_end(k.index, Event::Failed(fault), cx.now());
        self.failed(&exchange, k.index, fault, cx.now());
        self.go_on_without(cx, k);
    }

    /// Whether a request has reached its timeout.
    pub(super) fn is_late(&self, stream: u32, now: Nanos) -> bool {
        now >= self.conns.at(stream).started + self.job.timeout
    }

    /// A response will not come, because the server has announced the end of the session: the request is due again on the next
    /// connection. Other requests continue beside it.
    fn withdrawn<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32) {
        if self.conns.at(stream).request == PendingRequest::Again {
            // The request was withdrawn before: the server acts on nothing, on one connection after another.
            let error = self.conns.error(k.index);
            let fault = Fault::target(Stage::Exchange, Kind::Closed).with(error.announced());
            return self.lost(cx, k, fault);
        }
        let exchange = self.conns.end_exchange(k.index, stream);
        let destination = self.conns[k.index].destination;
        let again = self.withdraw(&exchange, destination);
        match self.has_pings() {
            // The next message takes its place.
            true => self.miss_withdrawn(again, destination),
            false => self.withdrawn.add(k.index, again),
        }
    }

    /// The input violates the protocol.
    pub(super) fn misread<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, failure: Failure) {
        self.fail(cx, k, failure.at(self.conns[k.index].state().stage()));
    }

    /// Returns an idle connection's session to the pool once no message is incomplete.
    fn rest_if_quiet(&mut self, k: Key) {
        if self.conn(k).state() == State::Idle {
            self.conns.transition(k.index, State::Idle);
        }
    }

    /// The connection has become a WebSocket, after requests.
    fn upgraded(&mut self, k: Key, stream: u32, now: Nanos) {
        let started = self.conns.at(stream).started;
        self.tick.handshake.record_seen(self.took(started, started, now));
        self.begin_pushes(k, now);
    }

    fn session_opened<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let exchange = *self.exchange(k);
        self.learn(&exchange, cx.now(), true);
        let asked = exchange.started;
        // Over TLS the server's SETTINGS come unrequested: there is no time to measure. A connection that is upgraded later
        // records its handshake then.
        let is_later = self.job.is_before_upgrade(self.conns[k.index].at);
        if !is_later
            && (self.transport.layer.is_none() || !self.job.protocol.properties().is_opened_by_server)
        {
            self.tick.handshake.record_seen(self.took(asked, asked, cx.now()));
        }
        self.connected(cx, k);
    }

    /// Sends what the protocol itself replies, such as a pong.
    pub(super) fn reply<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, reply: Reply<'_>) {
        let Client { source, tick, transport, .. } = self;
        reply.send(&mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source));
        self.send_output(cx, k);
    }

    /// Sends what the session produced in response to input, if anything.
    pub(super) fn send_output<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if !self.conns.find_session(k.index).is_some_and(|session| session.has_output()) {
            return;
        }
        if self.job.tunnels > 1 {
            self.note_allowed_streams(k);
        }
        self.send_more(cx, k);
    }

    /// Continues sending on a connection once earlier output has left.
    pub(super) fn send_more<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Client { conns, source, tick, transport, .. } = self;
        let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
        out.to.send_deferred();
        conns.find_session(k.index).into_iter().for_each(|session| session.send_more(&mut out.to));
    }

    /// Records a stream limit of the server below the wanted number; SETTINGS always cause output, so this is called for each. A
    /// limit of zero does not count: the connection is not open yet, or is ending.
    fn note_allowed_streams(&mut self, k: Key) {
        let Client { job, conns, tick, .. } = self;
        let allowed = conns.find_session(k.index).and_then(|session| session.allowed_streams());
        let fewer = allowed.filter(|allowed| (1..job.tunnels).contains(allowed)).map(u64::from);
        tick.streams_allowed = tick.streams_allowed.into_iter().chain(fewer).min();
    }

    /// The server announced the end of the session: the connection stays closed until its next message is due. A WebSocket closed
    /// with an error is a loss.
    fn session_ended<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, reply: Reply<'_>, words: &[u8]) {
        self.end_tick_before_losses(cx.now());
        let error = reply.error().unwrap_or_else(|| self.conns.error(k.index));
        self.reply(cx, k, reply);
        if error.close_code().is_some() {
            let fault = Fault::target(self.conn(k).state().stage(), Kind::Closed).with(error);
            self.sample_words(k, fault, cx.now(), words);
            return self.lost(cx, k, fault);
        }
        let due = match self.conn(k).state() {
            // The message crossed with the close: it is still owed.
            State::Busy => self.exchange(k).due,
            _ => self.idle_until(cx, k),
        };
        self.closed_as_announced(cx, k, due);
    }
}

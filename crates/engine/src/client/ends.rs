//! How connections end (as announced, as planned, or lost), and which are dialled again.

use std::collections::VecDeque;

use net::{Close, Cx, Gone, Inner, Io, Key};
use plan::Reconnect;
use samples::{Detail, Fault, Kind, Side, Stage, books::End, transcript::Event};
use units::Nanos;

use super::{Client, withdrawn::Again};
use crate::{
    connections::{Conn, State},
    exchange::{Exchange, PendingRequest},
    op::Op,
    out::Out,
    pool::NOTHING,
    protocol::Speaks,
};

/// The longest time that a request may have been waiting for the server to read it when the connection was closed: a request that
/// the server has not read meets the close within a round trip plus this time. If the close is a reset, the kernel of a busy
/// server reports unread data (RFC 9293, section 3.6.1), and [`SLOWER`] times its slowest response counts instead, at most
/// [`LONGEST_UNREAD`], which is shorter than the timeouts of servers. A request that waited longer was received and got no
/// response.
const UNREAD: Nanos = Nanos::from_millis(50);
const SLOWER: u64 = 4;
const LONGEST_UNREAD: Nanos = Nanos::from_secs(1);

impl Client {
    /// Ends a connection: counts it, closes its layer and removes its record.
    pub(super) fn end<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, end: End) {
        self.count_ended(k, end);
        if end != End::Dropped {
            self.transcribe_end(k.index, Event::End(None), cx.now());
        }
        if end != End::Dropped {
            // Also in reply to the server's close_notify: it may wait for one (RFC 8446, section 6.1; RFC 5246, section 7.2.1).
            self.close_layer(cx, k);
        }
        self.remove(cx, k, if end == End::Dropped { Close::Reset } else { Close::Graceful });
    }

    /// Closes the socket and removes the record of a connection that was never open, or whose end is counted already.
    pub(super) fn remove<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, how: Close) {
        self.transport.layer.iter_mut().for_each(|layered| layered.end(k.index));
        self.end_keep_alive(k);
        self.drop_withdrawn(k);
        self.forget(k);
        // Bytes that were never used have been received, too.
        self.tick.counts.bytes_in += cx.leftover(k).len() as u64;
        cx.close(k, how);
    }

    /// The server closed the connection as announced: not a loss. `due`: when the connection's next request is due, unless one is
    /// under way; never, if slots determine that.
    pub(super) fn closed_as_announced<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos) {
        self.ended_as_announced(cx, k, due, Gone::Ended);
    }

    /// The same for a connection that ended in the way `why`.
    fn ended_as_announced<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, due: Nanos, why: Gone) {
        let error = self.conns.error(k.index);
        if self.pacer.comes_and_goes() && !self.course.is_draining() {
            // An arrival has more calls to make than the server allows on one connection.
            let stage = self.conn(k).state().stage();
            return self.lost(cx, k, Fault::target(stage, Kind::Closed).with(error.announced()));
        }
        let conn = *self.conn(k);
        if conn.state() == State::Busy {
            let exchange = *self.exchange(k);
            let may_have_crossed = self.job.is_http2() || self.may_have_crossed(&exchange, why, cx.now());
            if exchange.request == PendingRequest::Again
                || self.conns.has_several(k.index)
                || !may_have_crossed
            {
                // A request is sent again only once: a server that closes instead of responding is not healthy. With several
                // requests under way, a server that ends its session in good order responds to all of them first.
                let fault = Fault::target(Stage::Exchange, Kind::Closed).with(error.announced());
                return self.lost(cx, k, fault);
            }
            let again = self.withdraw(&exchange, conn.destination);
            if error.is_none() && self.may_send_again(k) {
                self.end(cx, k, End::Closed);
                let exchange = Exchange::new(again.due, cx.now());
                return self.dial_next(cx, Exchange { request: PendingRequest::Again, ..exchange });
            }
            self.withdrawn.add(k.index, again);
            self.idle(k);
        }
        if !error.is_none() && !self.course.is_draining() {
            // Announced with an error, not as planned (RFC 9113 section 6.8): requests that were not acted on get no next
            // connection.
            return self.lost(cx, k, Fault::target(Stage::Hold, Kind::Closed).with(error));
        }
        let again = match self.job.reconnect {
            // No connection follows: ending this one counts the withdrawn requests as missed.
            Reconnect::Never => VecDeque::new(),
            _ => self.withdrawn.take(k.index),
        };
        self.end(cx, k, End::Closed);
        if !again.is_empty() {
            self.redial_for(cx, k.index, &conn, again);
        } else if self.job.reconnect != Reconnect::Never && self.is_replaced() {
            self.redial_at(cx, k.index, &conn, due);
        }
    }

    /// Whether the server, which does not say which requests it has read, may not have read this one when it closed the
    /// connection. False if connections are never replaced: then the request was sent, and has failed.
    fn may_have_crossed(&self, exchange: &Exchange, why: Gone, now: Nanos) -> bool {
        let waited = self.took(exchange.started, exchange.started, now).time;
        let slower =
            if why == Gone::Reset { self.extremes.slowest_response.0.saturating_mul(SLOWER) } else { 0 };
        let unread = UNREAD.max(Nanos(slower)).min(LONGEST_UNREAD);
        self.job.reconnect != Reconnect::Never && waited <= unread + Nanos(2 * self.extremes.shortest_dial.0)
    }

    /// Dials an ended connection again for withdrawn requests: they have been due since before, even if the load has ended in the
    /// meantime.
    fn redial_for<I: Io>(&mut self, cx: &mut Cx<I>, index: u32, conn: &Conn, mut again: VecDeque<Again>) {
        let first = again.pop_front().expect("there are some");
        let k = self.disconnect(cx, index, conn.destination, first.at);
        // A connection that was never served still waits for its first response.
        self.conn(k).served = conn.served;
        self.withdrawn.put(k.index, again);
        self.dial_late(first.due, cx.now());
        self.redial(cx, k, Exchange { request: PendingRequest::Again, ..first.exchange(cx.now()) });
    }

    /// The last response on a connection redirects its request: the next connection sends it.
    pub(super) fn move_on<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let (conn, exchange) = (*self.conn(k), *self.exchange(k));
        let again = self.withdraw(&exchange, conn.destination);
        // The redirected call is not complete, so it still counts among the remaining calls.
        let left = self.columns.calls_left.get(k.index);
        self.end(cx, k, End::Closed);
        self.redial_for(cx, k.index, &conn, VecDeque::from([again]));
        self.columns.calls_left.get_mut(k.index).into_iter().zip(left).for_each(|(own, left)| *own = left);
    }

    /// Dials a closed connection again for its next request, which is due at `due`.
    fn redial_at<I: Io>(&mut self, cx: &mut Cx<I>, index: u32, conn: &Conn, due: Nanos) {
        let k = self.disconnect(cx, index, conn.destination, conn.at);
        self.conn(k).served = conn.served;
        if self.pacer.puts_off() {
            self.put_off(cx, k);
        } else if due <= cx.now() {
            self.dial_late(due, cx.now());
            let request = self.next_is_due(k);
            self.redial(cx, k, Exchange { request, ..Exchange::new(due, cx.now()) });
        } else if self.pacer.is_open_loop() {
            self.await_slot(cx, k);
        } else {
            self.wake_at(cx, k, due);
        }
    }

    /// Records the lag of a dial that became possible only now, because the server has just closed.
    fn dial_late(&mut self, due: Nanos, now: Nanos) {
        if self.full_load.has(due) {
            self.lateness.leaves(now);
        }
    }

    /// Takes the place of a connection again, without a socket for now; `index` is the one it had, `at` the operation that it
    /// continues with.
    fn disconnect<I: Io>(&mut self, cx: &mut Cx<I>, index: u32, destination: u16, at: u16) -> Key {
        let at = self.job.led_to(at);
        let k = cx.take().expect("a place was given back just now");
        assert_eq!(k.index, index, "what was given back last is taken first");
        // A new record: the announced timeout ends with the connection.
        let mut conn = Conn::new(destination, at, State::Disconnected);
        conn.served = true;
        self.conns.insert(index, conn);
        self.columns.calls_left.begin(index);
        k
    }

    /// Handles a failed connection: as a failed dial if it was not open yet, otherwise as a loss.
    pub(super) fn fail<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        let is_opening = self.conn(k).state().is_opening();
        if is_opening { self.dial_failed(cx, k, fault) } else { self.lost(cx, k, fault) }
    }

    /// Handles the unplanned end of an open connection: each request under way fails, and the connection may be dialled again.
    pub(super) fn lost<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, fault: Fault) {
        let conn = *self.conn(k);
        self.transcribe_lost(cx, k, fault);
        self.sample_farewell(k, fault, cx.now());
        // A close with an announced error has its reason; for the others, silence and number of responses may show one.
        if matches!(fault.kind, Kind::Closed | Kind::Reset) && fault.detail.is_none() {
            let silence = self.silence(k, cx.now());
            self.tick.silence.record(silence);
            self.lives.responses(k.index).into_iter().for_each(|n| self.tick.responses_at_close.record(n));
        }
        if conn.state() == State::Busy {
            if !self.course.is_draining() {
                self.miss_backlog(k.index, cx.now());
            }
            self.fail_all(k, fault, cx.now());
        } else {
            // Withdrawn requests are missed with their connection: the fault must not count as a second error.
            let of_request = self.withdrawn.has(k.index);
            self.tick.connection_failed(self.job.row(conn.destination), fault, of_request);
        }
        self.end(cx, k, End::Dropped);
        self.back_off(cx, k.index, conn.destination, conn.served);
    }

    /// All requests under way on a lost connection fail, with one fault each.
    fn fail_all(&mut self, k: Key, fault: Fault, now: Nanos) {
        let mut stream = self.conns.oldest(k.index);
        while stream != NOTHING {
            let exchange = *self.conns.at(stream);
            self.failed(&exchange, k.index, fault, now);
            stream = exchange.next;
        }
    }

    /// How long neither side has sent anything.
    fn silence(&mut self, k: Key, now: Nanos) -> Nanos {
        let conn = *self.conn(k);
        match conn.state() {
            State::Busy => conn.silent_for(now).min(now.since(self.exchange(k).started)),
            _ => conn.silent_for(now),
        }
    }

    /// Dials a lost connection or failed dial again after a delay, if configured. Full jitter: a random part of a delay that
    /// doubles with each failure, so that connections lost together do not return together (Brooker, "Exponential Backoff And
    /// Jitter", AWS Architecture Blog, 2015). `served`: whether a connection at this place has had a response.
    pub(super) fn back_off<I: Io>(&mut self, cx: &mut Cx<I>, index: u32, destination: u16, served: bool) {
        let Reconnect::Backoff(span) = self.job.reconnect else { return };
        if !self.is_replaced() {
            return;
        }
        let failures = self.columns.failures.get_mut(index).expect("a load with a back-off counts them");
        let most = span.min.0.saturating_mul(1u64.checked_shl((*failures).into()).unwrap_or(u64::MAX));
        *failures = failures.saturating_add(1);
        let wait = Nanos(self.source.random.between(0, most.min(span.max.0)));
        // The connection starts over with its first operation.
        let k = self.disconnect(cx, index, destination, 0);
        self.conn(k).served = served;
        self.wake_at(cx, k, cx.now() + wait);
    }

    /// The connection works: resets its number of consecutive failures.
    pub(super) fn succeeded(&mut self, k: Key) {
        if let Some(failures) = self.columns.failures.get_mut(k.index) {
            *failures = 0;
        }
    }

    /// Closes an idle connection that has completed its calls; a held connection is dialled again for its next operation.
    pub(super) fn leave<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let Conn { destination, at, .. } = *self.conn(k);
        self.finish(cx, k);
        // After a close that the plan orders, the next operation follows.
        let at = at + u16::from(matches!(self.job.op(at), Op::Close));
        if !self.pacer.replaces(self.there()) {
            return;
        }
        if self.job.reconnect == Reconnect::Never || matches!(self.job.op(at), Op::Stay) {
            self.tick.counts.done += 1;
            return;
        }
        self.tick.counts.left += 1;
        if self.begins_nothing() {
            return;
        }
        let k = self.disconnect(cx, k.index, destination, at);
        if self.pacer.is_open_loop() {
            self.await_slot(cx, k)
        } else if self.pacer.puts_off() {
            self.put_off(cx, k)
        } else {
            let request = self.next_is_due(k);
            self.redial(cx, k, Exchange { request, ..Exchange::new(cx.now(), cx.now()) })
        }
    }

    /// Leaves a connection without a socket until a slot needs it; dials it immediately if it has something else to do first.
    fn await_slot<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let at = self.conn(k).at;
        if self.job.op(at).awaits_response() {
            self.set_free(cx, k);
        } else {
            self.redial(cx, k, Exchange::new(cx.now(), cx.now()));
        }
    }

    /// Closes an idle connection that has completed its calls or is surplus.
    pub(super) fn finish<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        if !self.course.is_draining() {
            self.count_silence_of(k.index, cx.now());
        }
        self.close_idle(cx, k, End::Finished);
    }

    /// Closes an idle connection in good order, with the protocol's closing message.
    pub(super) fn close_idle<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, end: End) {
        let Client { job, conns, source, tick, transport, .. } = self;
        // HTTP/1.1 has no closing message.
        if job.is_http2() || !job.is_before_upgrade(conns[k.index].at) {
            let session = conns.find_session(k.index);
            let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
            job.protocol.close(session, out);
        }
        self.end(cx, k, end);
    }

    /// The socket of a connection with requests under way has ended.
    pub(super) fn gone_busy<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, why: Gone) {
        let stream = self.conns.latest(k.index);
        let Exchange { due, started, .. } = *self.exchange(k);
        let error = self.conns.reason(k.index);
        let rest = cx.leftover_len(k)
            + self.transport.layer.as_ref().map_or(0, |layered| layered.leftover(k.index).len());
        let session = self.conns.session(k.index);
        let ended = match (why, &self.transport.layer) {
            (Gone::Ended, Some(layered)) if !layered.layer.is_closed(k.index) => {
                // Without close_notify, anyone on the path may have ended the connection: the response may be truncated (RFC 8446
                // section 6.1).
                session.handle_end().and_then(|whole| if whole { Err(Kind::Truncated) } else { Ok(false) })
            }
            (Gone::Ended, _) => session.handle_end(),
            _ => Ok(false),
        };
        // An incomplete head is the beginning of a response; it is left unconsumed.
        let untouched = session.response().head.is_none() && rest == 0;
        if ended == Ok(true) {
            return self.response_complete(cx, k, stream);
        }
        if untouched && (self.conn(k).has_met_announced(started, cx.now()) || self.may_send_again(k)) {
            // The request crossed with a close that the server had announced or may make when idle: it is still owed, on a new
            // connection.
            return self.ended_as_announced(cx, k, due, why);
        }
        let fault = match (ended, why) {
            (Err(kind), _) if !untouched => Fault::target(Stage::Exchange, kind),
            _ if error.is_none() => fault_of(Stage::Exchange, why),
            _ => fault_of(Stage::Exchange, why).with(error),
        };
        self.lost(cx, k, fault);
    }

    /// Whether a request that met a close is sent again on another connection: if connections are dialled on demand and this one
    /// had been idle (RFC 9112, section 9.3.1).
    fn may_send_again(&mut self, k: Key) -> bool {
        let is_by_pool = self.job.dials_on_demand() && self.job.protocol.properties().may_send_again;
        is_by_pool && !self.course.is_draining() && !self.exchange(k).has_request()
    }

    /// The fault of a failed dial. EACCES otherwise means that this machine refused; over IPv6 it is the error for an ICMPv6
    /// "prohibited" message from a host on the path (RFC 4443, section 3.1; net/ipv6/icmp.c).
    pub(super) fn fault_of_dial(&self, k: Key, why: Gone) -> Fault {
        const EACCES: i32 = 13;
        let destination = usize::from(self.conns[k.index].destination);
        match why {
            Gone::Denied(EACCES) if self.job.destinations[destination].is_ipv6() => {
                fault_of(Stage::Dial, Gone::Unreachable(EACCES))
            }
            _ => fault_of(Stage::Dial, why),
        }
    }

    /// When an idle connection's next request is due; never, if slots determine that.
    pub(super) fn idle_until<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> Nanos {
        if self.pacer.is_open_loop() { Nanos::NEVER } else { self.timer(cx, k) }
    }
}

/// The fault of a connection that ended unplanned at this stage.
pub fn fault_of(stage: Stage, why: Gone) -> Fault {
    match why {
        Gone::Ended => Fault::target(stage, Kind::Closed),
        Gone::Reset => Fault::target(stage, Kind::Reset),
        Gone::Refused => Fault::target(stage, Kind::Refused),
        Gone::TimedOut => Fault::target(stage, Kind::Timeout),
        Gone::Unreachable(errno) => {
            let unreachable = Fault { side: Side::Path, ..Fault::target(stage, Kind::Unreachable) };
            unreachable.with(Detail::new(errno))
        }
        Gone::AddressInUse(errno) => Fault::host(stage, Kind::AddressInUse).with(Detail::new(errno)),
        Gone::NoMemory(errno) => Fault::host(stage, Kind::NoMemory).with(Detail::new(errno)),
        Gone::OpenFiles(errno) => Fault::host(stage, Kind::OpenFiles).with(Detail::new(errno)),
        Gone::Denied(errno) => Fault::host(stage, Kind::Denied).with(Detail::new(errno)),
        Gone::Other(errno) => {
            let other = Fault { side: Side::Unknown, ..Fault::target(stage, Kind::Other) };
            other.with(Detail::new(errno))
        }
    }
}

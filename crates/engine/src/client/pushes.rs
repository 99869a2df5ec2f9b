//! Unsolicited messages of the server: counted, measured, and replied to if a rule matches. Also heartbeats.

use net::{Cx, Io, Key};
use samples::Took;
use units::Nanos;

use super::Client;
use crate::{out::Out, pushes::Arrival};

impl Client {
    /// The connection is open or upgraded: no message has come yet; the heartbeat begins if it is a WebSocket.
    pub(super) fn begin_pushes(&mut self, k: Key, now: Nanos) {
        self.pushed.begin(k.index);
        let is_websocket = !self.job.is_before_upgrade(self.conns[k.index].at);
        if let (Some((_, every)), Some(next)) = (&self.job.heartbeat, self.columns.beats.get_mut(k.index)) {
            *next = if is_websocket { now + *every } else { Nanos::NEVER };
        }
    }

    /// A message that nothing awaited is complete.
    pub(super) fn pushed<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        self.tick.counts.pushed += 1;
        self.message_came(cx.now());
        let came = self.pushed.came;
        // A message that matches a rule or is awaited by a step has another form: it may lack the fields searched for.
        self.tick.pushes.unread += u64::from(came.rule.is_none() && self.pushed.watch().lacks(&came));
        if let Some(rule) = came.rule {
            self.answer(cx, k, rule);
        }
    }

    /// Measures a message that is not the reply to a message of throng.
    pub(super) fn message_came(&mut self, now: Nanos) {
        let came = self.pushed.came;
        self.tick.counts.messages += 1;
        let pushes = &mut self.tick.pushes;
        pushes.count += 1;
        pushes.bytes += came.bytes;
        pushes.bytes_max = pushes.bytes_max.max(came.bytes);
        if let Some(before) = self.pushed.before(came.place, now) {
            self.count_gap(before, now);
        }
        if let Some(sent) = came.time {
            self.delayed(sent, now);
        }
        if let Some(number) = came.number {
            self.numbered(came.place, number, now);
        }
    }

    /// Records the gap since the previous message.
    pub(super) fn count_gap(&mut self, before: Nanos, now: Nanos) {
        let gap = self.took(before, before, now);
        self.extremes.longest_gap = self.extremes.longest_gap.max(gap.time);
        self.tick.gap.record_seen(gap);
    }

    /// The load ends: records the final silence of all open connections.
    pub(super) fn count_silences(&mut self, now: Nanos) {
        for index in 0..self.conns.len() {
            if self.conns[index].state().is_open() {
                self.count_silence_of(index, now);
            }
        }
    }

    /// Records the final silence of a connection. A WebSocket with one message only (a greeting) need not send more. Cancelled
    /// calls were counted when they were cancelled.
    pub(super) fn count_silence_of(&mut self, index: u32, now: Nanos) {
        let streams = self.pushed.streams();
        for place in index * streams..(index + 1) * streams {
            if let Some(last) = self.pushed.last_of_several(place) {
                self.count_silence(last, now);
            }
        }
    }

    /// Nothing came from `last` until the load ended: if that is longer than any gap before, the server may have stopped, and the
    /// silence is recorded as a gap of at least this length.
    pub(super) fn count_silence(&mut self, last: Nanos, now: Nanos) {
        if now.since(last) > self.extremes.longest_gap {
            let gap = self.took(last, last, now);
            self.tick.gap.record_seen(gap);
        }
    }

    /// Records the delay of a message that was sent at `sent`, a time since 1970.
    fn delayed(&mut self, sent: Nanos, now: Nanos) {
        let date = self.job.date + now;
        self.tick.pushes.ahead += u64::from(sent > date);
        let delay = date.since(sent);
        let stalled = self.lateness.stood_still(now.since(delay), now);
        let time = Nanos(delay.0.saturating_sub(stalled.0));
        self.tick.delay.record_seen(Took { time, stalled });
    }

    fn numbered(&mut self, place: u32, number: u64, now: Nanos) {
        let (pushes, is_broadcast) = (&mut self.tick.pushes, self.pushed.watch().is_broadcast);
        pushes.numbered += 1;
        self.pushed.number(place, number, |number, arrival, was_there| {
            match arrival {
                Arrival::Next(left_out) => pushes.skipped += left_out,
                Arrival::Late => pushes.late += 1,
                Arrival::Before => {}
                Arrival::Duplicate => pushes.duplicates += 1,
                Arrival::Restart => pushes.restarts += 1,
            }
            if is_broadcast && arrival != Arrival::Duplicate && was_there {
                pushes.receipts.record(number, now);
            }
        });
    }

    /// Replies to a message that matches a rule, unless the connection is write-blocked: replies must not pile up.
    fn answer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, rule: u8) {
        let is_blocked = cx.is_write_blocked(k) || self.conns.is_blocked(k.index);
        let Client { job, conns, source, tick, transport, pushed, .. } = self;
        let Some(reply) = pushed.watch().reply(rule).filter(|_| !is_blocked) else { return };
        let stream = (pushed.came.place % job.tunnels) as usize;
        let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
        job.protocol.send_on(reply, (conns.find_session(k.index), stream), out);
        tick.counts.told += 1;
    }

    /// Sends a connection's heartbeat, if due.
    pub(super) fn beat<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let (now, state) = (cx.now(), self.conn(k).state());
        let Some(next) = self.columns.beats.get_mut(k.index).filter(|next| **next <= now) else { return };
        let is_on = state.is_open() && !self.course.is_draining();
        let Client { job, conns, source, tick, transport, .. } = self;
        let Some((message, every)) = job.heartbeat.as_ref().filter(|_| is_on) else {
            *next = Nanos::NEVER;
            return;
        };
        *next = now + *every;
        if cx.is_write_blocked(k) || conns.is_blocked(k.index) {
            return;
        }
        for stream in 0..job.tunnels as usize {
            let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
            job.protocol.send_on(message, (conns.find_session(k.index), stream), out);
            tick.counts.told += 1;
        }
    }
}

//! Output of a client: its pings, and the texts of the API.

use std::sync::Arc;

use net::{Cx, Io, Key};
use units::Nanos;

use super::ClientShard;
use crate::{
    client::{MAX_UNSENT, PING, State},
    history::{LONGEST, shown},
    order::{NotSent, View},
};

impl ClientShard {
    /// Sends the ping that is due; only one, if the shard is late by whole intervals.
    pub(super) fn ping<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32) {
        let (now, text) = (cx.now(), Arc::clone(&self.ping));
        let client = self.client(number);
        let due = client.ping_due;
        let intervals = now.since(due).0 / client.ping.0 + 1;
        client.ping_due = due + Nanos(client.ping.0 * intervals);
        // Output must not pile up; a server that reads nothing is detected by its silence.
        if cx.is_write_blocked(k) {
            self.tick.counts.missed += 1;
            return;
        }
        client.sent.add(text);
        let is_given_up = client.pinged.add(due);
        self.tick.lag.record(now.since(due));
        self.tick.counts.sent += 1;
        if is_given_up {
            self.tick.latency.censor();
        } else {
            self.tick.waiting += 1;
        }
        self.send(cx, k, number, PING);
    }

    /// Sends a text of the API, now or once the client is connected. `None` if there is no such client.
    pub(super) fn send_text<I: Io>(
        &mut self,
        cx: &mut Cx<I>,
        number: u32,
        text: Arc<str>,
    ) -> Option<Result<View, NotSent>> {
        let client = self.clients.get_mut(&number)?;
        match (client.state, client.key) {
            (State::Lost(_), _) => return Some(Err(NotSent::Lost)),
            (State::Open, Some(k)) if !cx.is_write_blocked(k) => self.tell(cx, k, number, text),
            (State::Open, _) => return Some(Err(NotSent::Busy)),
            _ if client.unsent.len() == MAX_UNSENT => return Some(Err(NotSent::Busy)),
            _ => client.unsent.push(text),
        }
        self.view(number).map(Ok)
    }

    /// Sends a text on an open connection, without awaiting a reply.
    pub(super) fn tell<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u32, text: Arc<str>) {
        self.send(cx, k, number, &text);
        self.tick.counts.told += 1;
        let is_short = text.len() <= LONGEST;
        let kept = if is_short { text } else { shown(text.as_bytes(), text.len()).into() };
        self.client(number).sent.add(kept);
    }
}

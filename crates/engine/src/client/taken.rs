//! What is taken from responses: captured values, cookies, and where redirects lead.

use net::{Cx, Io, Key};
use plan::Reconnect;
use samples::Kind;
use units::Nanos;

use super::Client;
use crate::{exchange::Exchange, op::Op, protocol::Response};

impl Client {
    /// The response in this exchange is complete: keeps what is taken from it. What is wrong with that.
    pub(super) fn taken(
        &mut self,
        exchange: &Exchange,
        index: u32,
        is_right: bool,
        now: Nanos,
    ) -> Option<Kind> {
        let op = self.job.op(exchange.at);
        let wanted = op.wanted()?;
        let destination = usize::from(self.conns[index].destination);
        let origin = match op {
            Op::Request(request) => Some(request.authority(destination)),
            _ => None,
        };
        self.source.captures.as_mut()?.end(index, wanted, (is_right, origin, exchange.nth > 0), now)
    }

    /// Follows a redirect, if the step says so and it leads to the same host: the exchange goes on with another request, on the next
    /// connection where its response ends this one. What came before it is part of its latency, and is not counted.
    pub(super) fn follow<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32, response: Response) -> bool {
        let Response { head, keeps_alive } = response;
        let is_last =
            !keeps_alive && (self.job.reconnect == Reconnect::Never || !self.conns.error(k.index).is_none());
        let Client { job, conns, source, errors, .. } = self;
        let Exchange { at, nth: followed, started, .. } = *conns.at(stream);
        let Op::Request(request) = job.op(at) else { return false };
        let (Some(wanted), Some(captures), Some(head)) = (&request.check.wanted, &mut source.captures, head)
        else {
            return false;
        };
        let destination = usize::from(conns[k.index].destination);
        if !matches!(head.status, 301 | 302 | 303 | 307 | 308) {
            return false;
        }
        let from = (followed, request.authority(destination), request.becomes_get(head.status));
        match captures.redirect(k.index, wanted, from, is_last, source.now) {
            None => return false,
            Some(Err(why)) => {
                errors.not_followed(why.detail());
                return false;
            }
            Some(Ok(())) => {}
        }
        let exchange = conns.at_mut(stream);
        (exchange.content, exchange.found, exchange.differs) = (0, 0, false);
        exchange.nth = followed + 1;
        if keeps_alive {
            self.send_request(cx, k, stream);
            // The whole of it has one timeout.
            self.conns.at_mut(stream).started = started;
        } else {
            self.move_on(cx, k);
        }
        true
    }
}

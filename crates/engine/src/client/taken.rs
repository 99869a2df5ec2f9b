//! What is taken from responses: captured values, cookies, and the targets of redirects.

use net::{Cx, Io, Key};
use plan::Reconnect;
use samples::{Kind, transcript::Event};
use units::Nanos;

use super::Client;
use crate::{exchange::Exchange, op::Op, protocol::Response};

impl Client {
    /// The response of this exchange is complete: reads its content decoded, if it has a coding.
    pub(super) fn read_decoded(&mut self, exchange: &mut Exchange, index: u32) {
        let Op::Request(request) = self.job.op(exchange.at) else { return };
        if !request.check.wanted.as_ref().is_some_and(|wanted| wanted.decodes) {
            return;
        }
        let Some(mut watch) = self.source.take_watch(index) else { return };
        if let Some(decoded) = watch.take_decoded() {
            let bytes = decoded.iter().copied();
            exchange.found = request.check.content(exchange.found, &mut Some(&mut watch), bytes);
        }
        self.source.put_watch(index, Some(watch));
    }

    /// The response of this exchange is complete: keeps what is to be taken from it. Returns what is wrong with that.
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

    /// Follows a redirect to the same origin, if the step says so: the exchange continues with another request, on the next
    /// connection if the response ends this one. The redirect adds to the exchange's latency and is not counted as a response.
    pub(super) fn follow<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, stream: u32, response: Response) -> bool {
        let Response { head, keeps_alive } = response;
        let is_last =
            !keeps_alive && (self.job.reconnect == Reconnect::Never || !self.conns.error(k.index).is_none());
        let Client { job, conns, source, errors, transport, .. } = self;
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
        if let Some(transcriber) = transport.transcriber_of(k.index) {
            transcriber.learn(job.secrets(source, k.index));
            transcriber.enter(source.now, Event::Redirect);
        }
        let exchange = conns.at_mut(stream);
        (exchange.content, exchange.found, exchange.differs) = (0, 0, false);
        exchange.nth = followed + 1;
        if keeps_alive {
            self.transcribe_step(cx.now(), k, stream);
            self.send_request(cx, k, stream);
            // All redirects of a request share one timeout.
            self.conns.at_mut(stream).started = started;
        } else {
            self.move_on(cx, k);
        }
        true
    }
}

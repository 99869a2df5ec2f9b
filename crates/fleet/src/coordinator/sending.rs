//! Sends agents the messages that are due, and repeats those without a reply.

use samples::AgentState;
use units::Nanos;

use super::{AGAIN, Coordinator, OnLost, SAMPLES, SAMPLES_EVERY, Stage, member::Member};
use crate::message::{Body, Down, EVERY, LEASE, Lead, to_agent};

impl Coordinator {
    /// Sends a member what it must know now, if a message is due.
    pub(super) fn send(&mut self, now: Nanos, nth: usize) {
        if now < self.members[nth].due {
            return;
        }
        let rows = self.rows_for(nth);
        let member = &self.members[nth];
        let lead = |lease| Body::Lead(Lead { begin: None, lease, from: 0, orders: Vec::new() });
        let (body, again) = match &self.stage {
            Stage::Failed(_) | Stage::Over => (Body::Release, EVERY),
            Stage::Offering(_) if !member.answer.is_of(&self.stage) => {
                (Body::Offer(Box::new(self.offer.clone())), EVERY)
            }
            Stage::Assigning(_) if !member.answer.is_of(&self.stage) => match member.parts.first() {
                Some(_) if rows.is_some() => return self.send_to(now, nth, rows, AGAIN),
                Some(assign) => (Body::Assign(Box::new(assign.clone())), EVERY),
                None => return,
            },
            Stage::Measuring(_) if member.way.samples() < SAMPLES => (lead(None), SAMPLES_EVERY),
            Stage::Begun if member.state == AgentState::Done => (Body::Release, EVERY),
            // Its parts have been handed over.
            Stage::Begun if member.is_replaced => (Body::Release, EVERY),
            // Lets its lease run out, unless it replies before.
            Stage::Begun if self.lets_go(now, member) => (lead(Some(Nanos::ZERO)), EVERY),
            Stage::Begun => self.lead(now, member),
            _ => (lead(None), EVERY),
        };
        let take = member.next_take().filter(|_| matches!(body, Body::Lead(_)));
        let take = take.map(|take| rows.unwrap_or_else(|| Body::TakeOver(Box::new(take.clone()))));
        self.send_to(now, nth, [Some(body), take].into_iter().flatten(), again);
    }

    /// Whether the lease of a lost agent is no longer renewed: at once if others are to get its part; otherwise once it could not come
    /// back anyway, so that it has certainly ended some time later.
    fn lets_go(&self, now: Nanos, member: &Member) -> bool {
        let is_reassigned = self.terms.on_lost == OnLost::Reassign;
        member.state == AgentState::Lost && (is_reassigned || now.since(member.heard) >= LEASE)
    }

    fn send_to(&mut self, now: Nanos, nth: usize, bodies: impl IntoIterator<Item = Body>, again: Nanos) {
        let member = &mut self.members[nth];
        for body in bodies {
            if body.renews() {
                member.leased = now;
            }
            let down = Down { run: self.run.clone(), term: self.term, sent: now, body };
            self.messages.push_back((to_agent(&member.who.id), down));
        }
        (member.due, member.led) = (now + again, now);
    }

    /// A lead with the orders that a member does not have, and its beginning; and when to repeat it.
    fn lead(&self, now: Nanos, member: &Member) -> (Body, Nanos) {
        let has = member.running.map_or(0, |running| running.orders).min(self.orders.len() as u32);
        let orders = self.orders[has as usize..].to_vec();
        // Without a reply to the last message, a few lost messages in a row would make the agent lose its lease.
        let is_heard = member.heard >= member.led;
        let is_known =
            is_heard && orders.is_empty() && member.running.is_some() && member.next_take().is_none();
        // If the offset of its clock is unknown, the reply will show it; this message renews nothing.
        let is_measured = member.way.error().is_some();
        let begin = self.start.filter(|_| is_measured).map(|start| member.way.there(start));
        let lease = if is_measured { member.way.there(now + LEASE) } else { Nanos::ZERO };
        (
            Body::Lead(Lead { begin, lease: Some(lease), from: has, orders }),
            if is_known { EVERY } else { AGAIN },
        )
    }
}

//! Hands the parts of a lost agent to others (`--on-lost reassign`). A part must never be under load on two agents, so the handover waits
//! until the lost agent's lease has certainly run out.

use samples::AgentState;
use units::Nanos;

use super::{Coordinator, OnLost, PREPARES, Stage, member::Member};
use crate::{
    message::{Assign, Incarnation, LEASE, RAMPS_DOWN, Record},
    split::{self, Heir},
};

/// Time after the end of its lease until an agent has certainly closed all connections.
const ENDS: Nanos = Nanos(RAMPS_DOWN.0 + Nanos::from_secs(1).0);

/// When a lost agent's lease has certainly run out, and its load has ended.
fn ends_by(lost: &Member) -> Nanos {
    let error = lost.way.error().or(lost.error).unwrap_or(LEASE);
    lost.leased + LEASE + error + ENDS
}

impl Coordinator {
    /// Whether an agent is still expected to take over a part of a lost one; a run with a fixed number of requests waits for that.
    /// Bounded: the lease runs out, and a part that is not taken over within [`PREPARES`] afterwards, without any progress, is left.
    pub(crate) fn hands_over(&self, now: Nanos) -> bool {
        let is_awaited = |member: &Member| match member.state {
            AgentState::Lost => !member.is_replaced && !member.is_through && now < ends_by(member) + PREPARES,
            AgentState::Ready => !member.takes.are_settled() && now < member.takes.by,
            AgentState::Done | AgentState::Refused => false,
        };
        let is_led = matches!(self.stage, Stage::Begun) && self.terms.on_lost == OnLost::Reassign;
        let is_there = |member: &Member| member.state == AgentState::Ready;
        is_led && self.members.iter().any(is_there) && self.members.iter().any(is_awaited)
    }

    /// Whether a lost agent may still come back with its connections: until others have its part, or its lease has certainly run out.
    pub(crate) fn may_come_back(&self, now: Nanos) -> bool {
        self.members.iter().any(|member| member.may_come_back() && now < ends_by(member))
    }

    /// Applies a stored decision: the parts of a lost agent go to these agents.
    pub(super) fn reassign(&mut self, now: Nanos, of: &Incarnation, parts: Vec<(Incarnation, Assign)>) {
        let Some(lost) = self.members.iter_mut().find(|member| member.who == *of) else { return };
        if std::mem::replace(&mut lost.is_replaced, true) {
            return;
        }
        for (who, assign) in parts {
            if let Some(member) = self.members.iter_mut().find(|member| member.who == who) {
                member.takes.add(now, of, assign.clone());
                member.parts.push(assign);
                member.due = Nanos::ZERO;
            }
        }
    }

    /// Decides to whom the parts of a lost agent go, once its lease has certainly run out.
    pub(super) fn hand_over(&mut self, now: Nanos) {
        let is_over = |member: &Member| member.log.seal.is_some() || now >= ends_by(member);
        let lost = self.members.iter().position(|member| {
            member.state == AgentState::Lost && !member.is_replaced && !member.is_decided && is_over(member)
        });
        let Some(nth) = lost else { return };
        let lost = &self.members[nth];
        let of = lost.who.clone();
        // As many pieces as it had threads: each agent that takes over a piece starts threads for it.
        let pieces = lost.ready().threads.iter().sum::<u32>().max(1) as usize;
        let mut others: Vec<&Member> =
            self.members.iter().filter(|member| member.state == AgentState::Ready).collect();
        // Prefer agents that have taken over least.
        others.sort_by_key(|member| member.parts.len());
        // Without other agents, it is decided later: some may come back.
        let Some(demand) = self.terms.demand.as_ref().filter(|_| !others.is_empty()) else { return };
        // What it did after its last report is unknown, and will be repeated.
        let parts = demand.left_of(&lost.parts, |population, arrives| lost.begun(population, arrives));
        let needed = parts.iter().map(|part| demand.places_of(part)).fold(0, u64::saturating_add);
        let room = |member: &&Member| member.heir(&[]).room(demand);
        // Use more agents if these have no capacity for it.
        let enough = (pieces.min(others.len())..others.len())
            .find(|n| others[..*n].iter().map(room).fold(0, u64::saturating_add) >= needed);
        others.truncate(enough.unwrap_or(others.len()));
        let mut given: Vec<Vec<Assign>> = vec![Vec::new(); others.len()];
        for part in &parts {
            // The new part's addresses begin elsewhere than those of the agent's original part.
            let salt = part.salt.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let heirs: Vec<Heir> =
                others.iter().zip(&given).map(|(member, given)| member.heir(given)).collect();
            let divided = split::divide(demand, part, &heirs, salt);
            given.iter_mut().zip(divided).for_each(|(given, part)| given.extend(part));
        }
        let handed = others.iter().zip(given).flat_map(|(other, given)| {
            given.into_iter().map(|part| (other.who.clone(), part)).collect::<Vec<_>>()
        });
        let handed = handed.collect();
        self.members[nth].is_decided = true;
        self.records.push_back(Record::Reassigned(of, handed));
    }
}

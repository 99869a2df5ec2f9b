//! What becomes of the part of an agent that is lost.

use samples::AgentState;
use units::Nanos;

use super::{Coordinator, OnLost, PREPARES, Stage, member::Member};
use crate::{
    message::{Assign, Incarnation, LEASE, RAMPS_DOWN, Record, TakeOver},
    split::{self, Heir},
};

/// An agent whose lease has run out has no connection left after this time.
const ENDS: Nanos = Nanos(RAMPS_DOWN.0 + Nanos::from_secs(1).0);

/// Parts of others that an agent is to take over, one after the other.
#[derive(Default)]
pub(super) struct Takes {
    parts: Vec<TakeOver>,
    /// How many it has taken over, or was not able to, by its entries in the log.
    settled: usize,
    /// Until when the next one is waited for.
    by: Nanos,
}

impl Takes {
    fn add(&mut self, now: Nanos, of: &Incarnation, assign: Assign) {
        let number = self.parts.len() as u32;
        self.parts.push(TakeOver { number, of: of.clone(), assign });
        self.go_on(now);
    }

    pub(super) fn get(&self, number: u32) -> Option<&TakeOver> {
        self.parts.get(number as usize)
    }

    /// One more is on its way, or has got further.
    pub(super) fn go_on(&mut self, now: Nanos) {
        self.by = now + PREPARES;
    }

    /// The next one is taken over, or never will be.
    pub(super) fn settle(&mut self) {
        self.settled += 1;
    }

    pub(super) fn are_settled(&self) -> bool {
        self.settled >= self.parts.len()
    }
}

/// When the lease of an agent that is lost has certainly run out, and its load has ended.
fn ends_by(lost: &Member) -> Nanos {
    let error = lost.way.error().or(lost.error).unwrap_or(LEASE);
    lost.leased + LEASE + error + ENDS
}

impl Coordinator {
    /// Whether an agent is still to take over what a lost one did, and is there to do so: a run that is bounded by a number waits for that.
    /// Not for ever: a lease runs out, and what is not taken over within [`PREPARES`] then, without any progress, is left.
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

    /// Whether an agent that is lost may still come back with its connections: until others have its part, or its lease has certainly
    /// run out.
    pub(crate) fn may_come_back(&self, now: Nanos) -> bool {
        self.members.iter().any(|member| member.may_come_back() && now < ends_by(member))
    }

    /// What a lost agent did is for these.
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

    /// Hands what a lost agent did to the others, once its lease has certainly run out.
    pub(super) fn hand_over(&mut self, now: Nanos) {
        let is_over = |member: &Member| member.log.seal.is_some() || now >= ends_by(member);
        let lost = self.members.iter().position(|member| {
            member.state == AgentState::Lost && !member.is_replaced && !member.is_decided && is_over(member)
        });
        let Some(nth) = lost else { return };
        let lost = &self.members[nth];
        let of = lost.who.clone();
        // As many as it had threads: each that takes over begins threads of its own.
        let pieces = lost.ready().threads.iter().sum::<u32>().max(1) as usize;
        let mut others: Vec<&Member> =
            self.members.iter().filter(|member| member.state == AgentState::Ready).collect();
        // To those that have taken over least.
        others.sort_by_key(|member| member.parts.len());
        // Others may come back, and take it over then.
        let Some(demand) = self.terms.demand.as_ref().filter(|_| !others.is_empty()) else { return };
        // What it did after its last report is not known, and will be done again.
        let parts = demand.left_of(&lost.parts, |population, arrives| lost.begun(population, arrives));
        let needed = parts.iter().map(|part| demand.places_of(part)).fold(0, u64::saturating_add);
        let room = |member: &&Member| member.heir(&[]).room(demand);
        // More of them, where those have no room.
        let enough = (pieces.min(others.len())..others.len())
            .find(|n| others[..*n].iter().map(room).fold(0, u64::saturating_add) >= needed);
        others.truncate(enough.unwrap_or(others.len()));
        let mut given: Vec<Vec<Assign>> = vec![Vec::new(); others.len()];
        for part in &parts {
            // Its addresses begin elsewhere than those of the part that is there.
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

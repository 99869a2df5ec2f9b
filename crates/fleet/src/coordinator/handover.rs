//! What becomes of the part of an agent that is lost.

use samples::AgentState;
use units::Nanos;

use super::{Coordinator, member::Member};
use crate::{
    message::{Assign, Incarnation, LEASE, Record, TakeOver},
    share,
};

/// An agent whose lease has run out has ended its load after this time.
const ENDS: Nanos = Nanos::from_secs(1);

impl Coordinator {
    /// What a lost agent did is for these.
    pub(super) fn reassign(&mut self, of: &Incarnation, parts: Vec<(Incarnation, Assign)>) {
        let Some(lost) = self.members.iter_mut().find(|member| member.who == *of) else { return };
        if std::mem::replace(&mut lost.is_replaced, true) {
            return;
        }
        for (who, assign) in parts {
            if let Some(member) = self.members.iter_mut().find(|member| member.who == who) {
                let number = member.takes.len() as u32;
                member.takes.push(TakeOver { number, of: of.clone(), assign: assign.clone() });
                member.parts.push(assign);
                member.due = Nanos::ZERO;
            }
        }
    }

    /// Hands what a lost agent did to the others, once its lease has certainly run out.
    pub(super) fn hand_over(&mut self, now: Nanos) {
        let is_over = |member: &Member| {
            let error = member.way.error().or(member.error).unwrap_or(LEASE);
            member.log.seal.is_some() || now >= member.leased + LEASE + error + ENDS
        };
        let lost = self.members.iter().position(|member| {
            member.state == AgentState::Lost && !member.is_replaced && !member.is_decided && is_over(member)
        });
        let Some(nth) = lost else { return };
        let (of, parts) = (self.members[nth].who.clone(), self.members[nth].parts.clone());
        let mut others: Vec<&Member> =
            self.members.iter().filter(|member| member.state == AgentState::Ready).collect();
        // Others may come back, and take it over then.
        if others.is_empty() {
            return;
        }
        // A part with fewer shards than there are agents goes to those that have taken over least.
        others.sort_by_key(|member| member.parts.len());
        let places: Vec<(u32, u32)> =
            others.iter().map(|member| member.parts.first().map_or((0, 1), |part| part.tuples)).collect();
        let mut handed = Vec::new();
        for part in &parts {
            // Its addresses begin elsewhere than those of the part that is there.
            let salt = part.salt.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let divided = share::divide(part, &places, salt).into_iter().zip(&others);
            handed.extend(divided.filter_map(|(part, other)| Some((other.who.clone(), part?))));
        }
        self.members[nth].is_decided = true;
        self.records.push_back(Record::Reassigned(of, handed));
    }
}

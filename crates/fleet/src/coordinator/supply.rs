//! Values of tables, and files of certificates and keys, for the agents that use them: a message of them at a time, and the next once it
//! has arrived.

use plan::Plan;
use units::Nanos;

use super::{
    Coordinator, PREPARES, Stage,
    member::{Answer, Member},
};
use crate::{
    message::{Body, Rows},
    share,
};

/// Octets of a message around the values in it.
const AROUND: usize = 1_024;
/// No message with values is longer, whatever the server takes: others are not to wait for it.
const LONGEST: usize = 1 << 20;

/// Where the values are.
pub(crate) struct Supply {
    plan: Plan,
    /// Octets of values in a message.
    room: usize,
}

/// What a member is being sent.
pub(super) struct Supplied {
    number: Option<u32>,
    rows: plan::Rows,
}

impl Supply {
    /// Of this plan, where it has tables or such files; `longest`: octets of the longest message that the server takes.
    ///
    /// # Errors
    /// A value does not fit into a message, with the fix.
    pub(crate) fn of(plan: &Plan, longest: usize) -> Result<Option<Supply>, String> {
        let room = longest.min(LONGEST).saturating_sub(AROUND);
        let rows = plan::Rows::of(plan, &plan.parts(|_| 1));
        let columns = rows.columns().map(|(column, values)| {
            (format!("a value of {{csv {column}}}"), values.map(octets).max().unwrap_or(0))
        });
        let files = rows.files().map(|(file, text)| (format!("the file {file:?}"), octets(text)));
        if let Some((what, size)) = columns.chain(files).find(|(_, size)| *size > room) {
            return Err(format!(
                "{what} takes {size} bytes, and a message may have {room}; shorten it, or raise max_payload of the NATS \
                server, up to {LONGEST}: {longest}"
            ));
        }
        Ok((rows.count() > 0).then(|| Supply { plan: plan.clone(), room }))
    }
}

/// A member waits for values, and has this many: it is waited for as long as the number grows.
pub(super) fn note_lack(stage: &mut Stage, member: &mut Member, now: Nanos, has: u64) {
    if let Stage::Assigning(until) = stage
        && member.lack(has)
    {
        *until = now + PREPARES;
    }
}

/// Values of tables for an agent's own part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) values: u64,
    pub(crate) of: u64,
}

impl Coordinator {
    /// How many values have arrived, before the run begins, of those that the agents use; none, where they use none.
    pub(crate) fn arrived(&self) -> Option<Arrived> {
        let all = self.members.iter().map(|member| member.arrived);
        let all = all.reduce(|a, b| Arrived { values: a.values + b.values, of: a.of + b.of });
        all.filter(|all| all.of > 0)
    }

    /// The same with values of tables.
    #[must_use]
    pub(crate) fn with_supply(self, supply: Option<Supply>) -> Coordinator {
        Coordinator { supply, ..self }
    }

    /// The values that a member waits for, if it does.
    pub(super) fn rows_for(&mut self, nth: usize) -> Option<Body> {
        let member = &mut self.members[nth];
        let Some((number, from)) = member.lacks() else {
            member.supplied = None;
            if matches!(member.answer, Answer::Ready(_)) {
                member.arrived.values = member.arrived.of;
            }
            return None;
        };
        let Supply { plan, room } = self.supply.as_ref()?;
        if member.supplied.as_ref().is_none_or(|supplied| supplied.number != number) {
            let assign = match number {
                None => member.parts.first()?,
                Some(number) => &member.takes.get(number)?.assign,
            };
            let rows = share::rows(plan, assign);
            if number.is_none() {
                member.arrived.of = rows.count();
            }
            member.supplied = Some(Supplied { number, rows });
        }
        if number.is_none() {
            member.arrived.values = from;
        }
        let rows = &member.supplied.as_ref()?.rows;
        let mut left = *room;
        let fits = |value: &&str| {
            let size = octets(value);
            let fits = size <= left;
            left = left.saturating_sub(size);
            fits
        };
        let values = rows.values_from(from).take_while(fits).map(str::to_owned).collect();
        Some(Body::Rows(Rows { number, from, values }))
    }
}

/// What a value takes in a message at most: quotes and a comma, and escapes.
fn octets(value: &str) -> usize {
    let octet = |octet: u8| match octet {
        0..0x20 => 6,
        b'"' | b'\\' => 2,
        _ => 1,
    };
    3 + value.bytes().map(octet).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_value_takes_more_than_its_octets(value in "\\PC{0,9}|[\\x00-\\x7f]{0,9}") {
            prop_assert!(serde_json::to_string(&value).unwrap().len() < octets(&value));
        }
    }
}

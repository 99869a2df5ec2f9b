//! Sends the values of tables, and of certificate and key files, to the agents that use them: one message at a time, the next one after
//! the previous has arrived.

use plan::Plan;
use units::Nanos;

use super::{
    Coordinator, PREPARES, Stage,
    member::{Answer, Member},
    pending::{Arrived, Supplied},
};
use crate::{
    error::Error,
    message::{Body, Rows},
    share,
};

/// Bytes of a message besides the values.
const AROUND: usize = 1_024;
/// Maximum length of a message with values, whatever the server accepts, so that other messages are not delayed.
const LONGEST: usize = 1 << 20;

/// The values to send.
pub(crate) struct Supply {
    plan: Plan,
    /// Maximum bytes of values in a message.
    room: usize,
}

impl Supply {
    /// The values of this plan; `None` if it has neither tables nor such files. `longest`: the server's maximum message length, in bytes.
    ///
    /// # Errors
    /// A value does not fit into a message; contains the fix.
    pub(crate) fn of(plan: &Plan, longest: usize) -> Result<Option<Supply>, Error> {
        let room = longest.min(LONGEST).saturating_sub(AROUND);
        let rows = plan::Rows::of(plan, &plan.parts(|_| 1));
        let columns = rows.columns().map(|(column, values)| {
            (format!("a value of {{csv {column}}}"), values.map(octets).max().unwrap_or(0))
        });
        let files = rows.files().map(|(file, text)| (format!("the file {file:?}"), octets(text)));
        if let Some((what, size)) = columns.chain(files).find(|(_, size)| *size > room) {
            return Err(Error::TooLarge(format!(
                "{what} takes {size} bytes, and a message may have {room}; shorten it, or raise max_payload of the NATS \
                server, up to {LONGEST}: {longest}"
            )));
        }
        Ok((rows.count() > 0).then(|| Supply { plan: plan.clone(), room }))
    }
}

/// Notes that a member has this many values. Its deadline is extended as long as the number grows.
pub(super) fn note_lack(stage: &mut Stage, member: &mut Member, now: Nanos, has: u64) {
    if let Stage::Assigning(until) = stage
        && member.lack(has)
    {
        *until = now + PREPARES;
    }
}

impl Coordinator {
    /// Values that have arrived before the run begins, and the total that the agents use; `None` if they use none.
    pub(crate) fn arrived(&self) -> Option<Arrived> {
        let all = self.members.iter().map(|member| member.arrived);
        let all = all.reduce(|a, b| Arrived { values: a.values + b.values, of: a.of + b.of });
        all.filter(|all| all.of > 0)
    }

    /// Adds the values to send.
    #[must_use]
    pub(crate) fn with_supply(self, supply: Option<Supply>) -> Coordinator {
        Coordinator { supply, ..self }
    }

    /// The next values for a member, if it waits for any.
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

/// Maximum bytes of a value in a JSON message: quotes, a comma, and escapes.
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

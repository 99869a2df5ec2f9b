//! The report of what bad responses have in common: a sentence and a table.

use std::net::IpAddr;

use plan::{Plan, Sources};
use samples::{
    Bad, InCommon, InCommonRow,
    breakdown::{Dimension, Outcomes, from_cell},
};
use units::{Bytes, Count, Nanos, percent};

use super::{
    Candidate, NEARLY_ALL, Share, Shares, Trait, is_on_every_connection,
    moment::{self, Episode},
    part,
};
use record::rows;

/// Maximum number of rows of the table; the remaining ones are one more row.
const MOST_ROWS: usize = 16;
/// Maximum number of buckets that are named individually.
const MOST_NAMED: usize = 3;
/// A smaller share of the other responses is not mentioned.
const LITTLE: f64 = 0.005;

/// Wording for one run.
pub(super) struct Words<'a> {
    pub(super) plan: &'a Plan,
    pub(super) shares: &'a Shares,
    pub(super) started: Nanos,
}

impl Words<'_> {
    /// `None` if a sentence cannot express it: the buckets have no order, and are many.
    pub(super) fn say(&self, one: &Candidate) -> Option<InCommon> {
        let Share { bad, count, of, .. } = one.of;
        let predicate = self.predicate(one)?;
        let beside = match one.by {
            Trait::Moment | Trait::Part => String::new(),
            _ if one.beside < LITTLE => String::new(),
            _ if predicate.starts_with("were ") => format!(", as were {} of the others", percent(one.beside)),
            _ => format!(", as did {} of the others", percent(one.beside)),
        };
        let sentence = format!("{} {predicate}{beside}", subject(one));
        Some(InCommon {
            of: bad,
            count,
            share: count as f64 / of as f64,
            dimension: one.by.name().to_owned(),
            p: one.p,
            sentence,
            rows: self.rows(one),
        })
    }

    fn predicate(&self, one: &Candidate) -> Option<String> {
        Some(match one.by {
            Trait::Of(Dimension::Connection) => self.connections(one),
            Trait::Moment => self.moments(one),
            Trait::Part => {
                let first = part::first_byte(&one.of, self.shares).brief();
                format!("had their first byte in time, within {first}, and the rest late")
            }
            Trait::Of(dimension) => self.of(dimension, one)?,
        })
    }

    fn of(&self, dimension: Dimension, one: &Candidate) -> Option<String> {
        let (first, last) = (*one.chosen.first()?, *one.chosen.last()?);
        let (from_first, to_last) = one.reaches();
        Some(match dimension {
            Dimension::Pause if to_last => {
                format!(
                    "were sent after {} of silence on their connection, or longer",
                    from_cell(first).brief()
                )
            }
            Dimension::Pause if from_first => {
                format!(
                    "were sent after less than {} of silence on their connection",
                    from_cell(last + 1).brief()
                )
            }
            Dimension::Pause => {
                format!("were sent after a silence of {} on their connection", self.list(one)?)
            }
            Dimension::Number if first == last && first == 0 => {
                "were the first request on their connection".to_owned()
            }
            Dimension::Number if from_first => {
                format!("were among the first {} requests on their connection", Count(1 << last))
            }
            Dimension::Number if to_last => {
                format!("came after the first {} requests on their connection", Count(up_to(first - 1)))
            }
            Dimension::Number => format!("were request {} on their connection", self.list(one)?),
            Dimension::Size if from_first => format!("had a response of at most {}", bytes(last)),
            Dimension::Size if to_last => format!("had a response of more than {}", bytes(first - 1)),
            Dimension::Size => format!("had a response of {}", self.list(one)?),
            Dimension::Open if from_first => {
                format!("ended with at most {}/8 of the connections open", last + 1)
            }
            Dimension::Open if to_last => format!("ended with more than {first}/8 of the connections open"),
            Dimension::Open => format!("ended with {} of the connections open", self.list(one)?),
            Dimension::Step => format!("were {}", self.list(one)?),
            Dimension::Source => format!("came from {}", self.list(one)?),
            Dimension::Destination | Dimension::Connection | Dimension::Group | Dimension::FirstByte => {
                format!("went to {}", self.list(one)?)
            }
        })
    }

    /// `a`, `a and b`, or `5 of 16: a, b, c and others`.
    fn list(&self, one: &Candidate) -> Option<String> {
        let used = one.buckets.iter().filter(|(bad, others)| bad + others > 0).count();
        let mut names: Vec<String> = one.chosen.iter().map(|at| self.name(one, *at)).collect();
        let all = names.len();
        if all > MOST_NAMED {
            names.truncate(MOST_NAMED);
            return Some(format!("{all} of {used}: {} and others", names.join(", ")));
        }
        let last = names.pop()?;
        Some(if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) })
    }

    /// Name of a bucket.
    fn name(&self, one: &Candidate, at: usize) -> String {
        match one.by {
            Trait::Of(Dimension::Destination) => {
                rows::names(self.plan).into_iter().nth(at).unwrap_or_default()
            }
            Trait::Of(Dimension::Step) => step(self.plan, at),
            Trait::Of(Dimension::Source) => source(&self.plan.sources, at),
            Trait::Of(Dimension::Number) if at < 2 => (at + 1).to_string(),
            Trait::Of(Dimension::Number) => format!("{} to {}", Count(up_to(at - 1) + 1), Count(up_to(at))),
            Trait::Of(Dimension::Size) if at == 0 => format!("up to {}", bytes(0)),
            Trait::Of(Dimension::Size) => format!("{} to {}", bytes(at - 1), bytes(at)),
            Trait::Of(Dimension::Pause) => {
                format!("{} to {}", from_cell(at).brief(), from_cell(at + 1).brief())
            }
            Trait::Of(Dimension::Open) => format!("{at}/8 to {}/8", at + 1),
            Trait::Part => part::NAMES[at].to_owned(),
            Trait::Of(Dimension::Connection | Dimension::Group | Dimension::FirstByte) | Trait::Moment => {
                format!("connection {}", at + 1)
            }
        }
    }

    fn connections(&self, one: &Candidate) -> String {
        let sum = |dimension| self.shares.all.buckets(dimension).iter().map(Outcomes::all).sum::<u64>();
        let seen = one.buckets.iter().filter(|(bad, others)| bad + others > 0).count();
        let are_all = sum(Dimension::Connection) as f64 >= NEARLY_ALL * sum(Dimension::Group) as f64;
        let of =
            if are_all { Count(seen as u64).of("connection") } else { format!("{seen} sampled connections") };
        format!("were on the same {} of {of} each time", one.chosen.len())
    }

    fn moments(&self, one: &Candidate) -> String {
        let episodes = moment::episodes(one, &self.shares.bins);
        let at = |time: Nanos| format!("{:.1}", time.since(self.started).secs_f64());
        let when = match (&episodes[..], moment::period(&episodes, self.shares.bins.width)) {
            ([only], _) => format!("came between {} s and {} s", at(only.from), at(only.until)),
            (all, Some(period)) => {
                format!("came at {} moments, one each {:.1} s", all.len(), period.secs_f64())
            }
            ([first, .., last], None) => {
                format!(
                    "came at {} moments between {} s and {} s",
                    episodes.len(),
                    at(first.from),
                    at(last.until)
                )
            }
            ([], None) => String::new(),
        };
        let is_every = is_on_every_connection(one, self.shares);
        when + if is_every { ", on every connection at once" } else { "" }
    }

    fn rows(&self, one: &Candidate) -> Vec<InCommonRow> {
        if one.by == Trait::Moment {
            return self.rows_of_moments(one);
        }
        let used = one.buckets.iter().enumerate().filter(|(_, (bad, others))| bad + others > 0);
        let row = |(at, (bad, others)): (usize, &(u64, u64))| InCommonRow {
            name: self.name(one, at),
            bad: *bad,
            others: *others,
        };
        let share = |row: &InCommonRow| row.bad as f64 / (row.bad + row.others).max(1) as f64;
        let mut rows: Vec<InCommonRow> = used.map(row).collect();
        rows.sort_by(|a, b| share(b).total_cmp(&share(a)));
        limited(rows)
    }

    /// One row per episode, and one for the time outside of them.
    fn rows_of_moments(&self, one: &Candidate) -> Vec<InCommonRow> {
        let at = |time: Nanos| format!("{:.1} s", time.since(self.started).secs_f64());
        let row = |own: Episode| InCommonRow {
            name: format!("{} to {}", at(own.from), at(own.until)),
            bad: own.bad,
            others: own.others,
        };
        let mut rows: Vec<InCommonRow> =
            moment::episodes(one, &self.shares.bins).into_iter().map(row).collect();
        let all = one.buckets.iter().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
        let inside = rows.iter().fold((0, 0), |sum, own| (sum.0 + own.bad, sum.1 + own.others));
        rows.push(InCommonRow {
            name: "at other times".to_owned(),
            bad: all.0 - inside.0,
            others: all.1 - inside.1,
        });
        limited(rows)
    }
}

/// The first rows, and the sum of the remaining ones.
fn limited(mut rows: Vec<InCommonRow>) -> Vec<InCommonRow> {
    if rows.len() > MOST_ROWS {
        let rest = rows.split_off(MOST_ROWS);
        let sum = |of: fn(&InCommonRow) -> u64| rest.iter().map(of).sum();
        let (bad, others) = (sum(|row| row.bad), sum(|row| row.others));
        rows.push(InCommonRow { name: format!("{} others", rest.len()), bad, others });
    }
    rows
}

/// `all of the 33 % that took 301 ms`.
fn subject(one: &Candidate) -> String {
    let Share { bad, count, of, times, .. } = one.of;
    let part = if one.caught > 0.9995 { "all".to_owned() } else { percent(one.caught) };
    let what = match bad {
        Bad::Slow if times[2].0 > 2 * times[0].0 => {
            format!("took {} to {}", times[0].brief(), times[2].brief())
        }
        Bad::Slow => format!("took {}", times[1].brief()),
        Bad::Wrong => "failed".to_owned(),
        Bad::Missing => "had no response".to_owned(),
    };
    format!("{part} of the {} that {what}", percent(count as f64 / of as f64))
}

/// The largest request number in a bucket.
fn up_to(bucket: usize) -> u64 {
    1 << bucket
}

/// The largest size in a bucket.
fn bytes(bucket: usize) -> String {
    Bytes(64 << bucket).brief().to_string()
}

fn step(plan: &Plan, at: usize) -> String {
    let Some((of, step)) = plan.steps().nth(at) else { return format!("step {}", at + 1) };
    match &plan.populations[..] {
        [_] => format!("step {step}"),
        all => format!("step {}.{step}", all[usize::from(of)].name),
    }
}

/// The only local address whose last four bits are these, or a description of such addresses.
fn source(sources: &Sources, bits: usize) -> String {
    let ends = |address: &IpAddr| match address {
        IpAddr::V4(own) => usize::from(own.octets()[3] & 0xF) == bits,
        IpAddr::V6(own) => usize::from(own.octets()[15] & 0xF) == bits,
    };
    if let Sources::Listed(networks) = sources {
        let few = networks.iter().all(|own| own.count() <= 256);
        let all = networks.iter().filter(|_| few).flat_map(|own| (0..own.count()).map(|at| own.nth(at)));
        let own: Vec<IpAddr> = all.filter(ends).take(2).collect();
        if let [only] = own[..] {
            return only.to_string();
        }
    }
    format!("local addresses whose last byte is {bits} modulo 16")
}

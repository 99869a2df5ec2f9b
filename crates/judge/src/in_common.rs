//! What slow, wrong and missing responses have in common. For each dimension of [`Shares`] a test of homogeneity decides whether they are
//! distributed over it as the other responses are. The statistics are described in `docs/decisions/0058-what-the-slow-have-in-common.md`.

use plan::Plan;
use samples::{
    Bad, InCommon, SlowPart, Summary, Tick,
    breakdown::{self, Breakdown, Dimension, Outcomes},
};
use stats::{Dispersion, Homogeneity};
use units::Nanos;

mod moment;
mod part;
mod words;

use record::{
    shares::Shares,
    tolerances::{NEARLY_ALL, NINE_TENTHS},
};
use words::Words;

/// Family-wise error rate: the probability of any statement about a run in which nothing is in common.
const ERROR: f64 = 0.001;
/// With fewer responses, a common property may be chance in one of the many dimensions.
const ENOUGH: u64 = 20;
/// Minimum difference between the share of bad responses and the share of other responses in the chosen buckets. With two equal
/// destinations, one of which has all bad responses, it is 0.5.
const CLEAR: f64 = 0.45;
/// Differences in clarity below this count as equal: the first trait in the table is reported.
const EQUALLY_CLEAR: f64 = 0.1;
/// A share below this counts as nearly none.
const NEARLY_NONE: f64 = 0.05;

/// A property that is tested. Of equally clear ones the first is reported.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trait {
    Of(Dimension),
    Moment,
    Part,
}

const TRAITS: [Trait; 10] = [
    Trait::Of(Dimension::Destination),
    Trait::Of(Dimension::Step),
    Trait::Of(Dimension::Pause),
    Trait::Of(Dimension::Number),
    Trait::Of(Dimension::Size),
    Trait::Of(Dimension::Source),
    Trait::Of(Dimension::Connection),
    Trait::Of(Dimension::Open),
    Trait::Moment,
    Trait::Part,
];

impl Trait {
    fn name(self) -> &'static str {
        match self {
            Trait::Of(dimension) => dimension.name(),
            Trait::Moment => "moment",
            Trait::Part => "part",
        }
    }
}

/// A share of requests that is bad.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Share {
    bad: Bad,
    /// For slow responses: the octave from which on a response counts as slow.
    edge: usize,
    count: u64,
    of: u64,
    /// Times of the slow responses: minimum, median and maximum.
    times: [Nanos; 3],
}

impl Share {
    /// Number of bad responses among these outcomes, and of the others.
    fn split(&self, outcomes: &Outcomes) -> (u64, u64) {
        let (bad, all) = match self.bad {
            Bad::Slow => (outcomes.from(self.edge), outcomes.timed()),
            Bad::Wrong => (outcomes.wrong(), outcomes.all()),
            Bad::Missing => (outcomes.missing(), outcomes.all()),
        };
        (bad, all - bad)
    }
}

/// A dimension in which the bad responses may differ from the others.
#[derive(Clone, Debug, PartialEq)]
struct Candidate {
    of: Share,
    by: Trait,
    p: f64,
    /// For each bucket: bad responses, and others.
    buckets: Vec<(u64, u64)>,
    /// The fewest buckets that contain nearly all bad responses.
    chosen: Vec<usize>,
    /// The share of all bad responses in these buckets, and the share of all others.
    caught: f64,
    beside: f64,
}

impl Candidate {
    /// Whether the chosen buckets are exactly those in use from the first on, or exactly those up to the last.
    fn reaches(&self) -> (bool, bool) {
        let used = self.buckets.iter().enumerate().filter(|(_, (bad, others))| bad + others > 0);
        let used: Vec<usize> = used.map(|(at, _)| at).collect();
        let (first, last) = (self.chosen.first(), self.chosen.last());
        let inside = used.iter().filter(|at| first <= Some(*at) && Some(*at) <= last);
        let is_run = inside.eq(&self.chosen);
        (is_run && used.first() == first, is_run && used.last() == last)
    }

    /// How much clearer than chance: 0 to 1.
    fn gain(&self) -> f64 {
        self.caught - self.beside
    }
}

/// What the slow, the wrong and the missing responses have in common, for each of these three.
pub(crate) fn in_common(plan: &Plan, shares: &Shares, totals: &Tick, started: Nanos) -> Vec<InCommon> {
    let bad = bad_shares(&shares.all.all(), totals);
    let tested = significant(&bad, shares);
    let words = Words { plan, shares, started };
    let clearest = |of: &Share| {
        let own = tested.iter().filter(|one| one.of == *of && one.gain() >= CLEAR);
        let most = own.clone().map(Candidate::gain).fold(0.0, f64::max);
        let mut own = own.filter(|one| one.gain() > most - EQUALLY_CLEAR);
        own.find_map(|one| words.say(one))
    };
    let all_late = part::all_late(&shares.all, totals).filter(|_| bad.iter().all(|of| of.bad != Bad::Slow));
    bad.iter().filter_map(clearest).chain(all_late).collect()
}

/// The minimum silence of a connection after which requests failed or had no response, while requests after a shorter silence did not.
pub(crate) fn failing_silence(shares: &Shares, totals: &Tick) -> Option<Nanos> {
    let bad = bad_shares(&shares.all.all(), totals);
    let is_it = |one: &&Candidate| {
        let is_pause = one.by == Trait::Of(Dimension::Pause) && one.of.bad != Bad::Slow;
        is_pause && one.gain() >= CLEAR && one.reaches() == (false, true)
    };
    let first = significant(&bad, shares).iter().find(is_it)?.chosen.first().copied();
    first.map(breakdown::from_cell)
}

/// How often slow responses came on all connections at once; `None` if they did not.
pub(crate) fn pauses(shares: &Shares, totals: &Tick) -> Option<u64> {
    let slow: Vec<Share> =
        bad_shares(&shares.all.all(), totals).into_iter().filter(|of| of.bad == Bad::Slow).collect();
    let is_it = |one: &&Candidate| {
        one.by == Trait::Moment && one.gain() >= CLEAR && is_on_every_connection(one, shares)
    };
    let tested = significant(&slow, shares);
    tested.iter().find(is_it).map(|one| moment::episodes(one, &shares.bins).len() as u64)
}

/// Whether nearly all sampled connections have a bad response, if several are sampled.
fn is_on_every_connection(one: &Candidate, shares: &Shares) -> bool {
    let rows = shares.all.buckets(Dimension::Connection).iter().map(|row| one.of.split(row));
    let used = rows.clone().filter(|(bad, others)| bad + others > 0).count();
    let hit = rows.filter(|(bad, _)| *bad > 0).count();
    used > 1 && hit as f64 >= NEARLY_ALL * used as f64
}

/// Advice on where to look for the cause of slow responses: at a share of them, or at all of them.
pub(crate) fn where_to_look(summary: &Summary, are_all: bool) -> Option<String> {
    let is_it = |one: &&InCommon| one.of == Bad::Slow && (one.share > 0.5) == are_all;
    let InCommon { dimension, sentence, .. } = summary.in_common.iter().find(is_it)?;
    let start = match *dimension == Trait::Moment.name() {
        true => "check what the target did at those moments",
        false => "start from what they have in common",
    };
    Some(format!("{start}: {sentence}"))
}

/// The kinds of bad responses that are frequent enough to be tested.
fn bad_shares(all: &Outcomes, totals: &Tick) -> Vec<Share> {
    let none = Share { bad: Bad::Slow, edge: 0, count: 0, of: 0, times: [Nanos::ZERO; 3] };
    let counted = |share: Share| {
        let (count, others) = share.split(all);
        Share { count, of: count + others, ..share }
    };
    let slow = totals.latency.slow_part().and_then(|part| edge(totals, part)).or_else(|| valley(all, totals));
    let slow = slow.map(|(edge, times)| Share { edge, times, ..none });
    let failed = [Bad::Wrong, Bad::Missing].map(|bad| Share { bad, ..none });
    let all = slow.into_iter().chain(failed).map(counted);
    all.filter(|share| share.count >= ENOUGH && share.count < share.of).collect()
}

/// The octave from which on responses are slow, and the times of the slow ones. A factor of four separates them from the others, so a power
/// of two lies in between.
fn edge(totals: &Tick, part: SlowPart) -> Option<(usize, [Nanos; 3])> {
    let latency = &totals.latency;
    let slow = (part.share * latency.count() as f64).round() as u64;
    let from = |cell: &usize| latency.count_within(breakdown::from_cell(*cell), Nanos::NEVER);
    let cells = breakdown::cell(part.usual) + 1..=breakdown::cell(part.slow);
    let edge = cells.rev().find(|cell| from(cell) == slow)?;
    let fastest = latency.quantile(1.0 - (slow as f64 - 0.5) / latency.count() as f64);
    Some((edge, [fastest, part.slow, latency.max()]))
}

/// As `edge`, where the times of the slow responses are spread, or a few others lie in between: the octave before them is nearly empty, and
/// their median is at least four times that of the others.
fn valley(all: &Outcomes, totals: &Tick) -> Option<(usize, [Nanos; 3])> {
    let timed = all.timed() as f64;
    let at = |rank: f64| totals.latency.quantile(rank / timed);
    let is_edge = |cell: &usize| {
        let slow = all.from(*cell) as f64;
        let between = all.from(cell - 1) as f64 - slow;
        let (usual, longer) = (at((timed - slow) / 2.0), at(timed - slow / 2.0));
        let are_apart = between <= NEARLY_NONE * slow && longer.0 >= 4 * usual.0;
        slow >= ENOUGH as f64 && 2.0 * slow <= timed && are_apart
    };
    let edge = (1..=breakdown::cell(totals.latency.max())).rev().find(is_edge)?;
    let slow = all.from(edge) as f64;
    Some((edge, [at(timed - slow + 0.5), at(timed - slow / 2.0), totals.latency.max()]))
}

/// `None` if a test is impossible: there is only one bucket, or few bad responses are in any.
fn candidate(by: Trait, of: Share, shares: &Shares) -> Option<Candidate> {
    let connections = by_connection(&of, &shares.all);
    let moments = by_moment(&of, shares);
    let dispersion = match by {
        Trait::Part => return part::candidate(of, shares, connections.or(moments)),
        Trait::Moment => connections,
        Trait::Of(Dimension::Connection) => moments,
        Trait::Of(_) => connections.or(moments),
    };
    let buckets: Vec<(u64, u64)> = match by {
        Trait::Of(dimension) => shares.all.buckets(dimension).iter().map(|one| of.split(one)).collect(),
        Trait::Moment | Trait::Part => shares.bins.iter().map(|(_, one)| of.split(one)).collect(),
    };
    let p = Homogeneity::of(&buckets)?.p(dispersion);
    let inside: u64 = buckets.iter().map(|(bad, _)| bad).sum();
    let is_sample = matches!(by, Trait::Of(Dimension::Connection | Dimension::Source | Dimension::Number));
    if inside < ENOUGH || !is_sample && (inside as f64) < NINE_TENTHS * of.count as f64 {
        return None;
    }
    let (chosen, caught, beside) = chosen(&buckets);
    let one = Candidate { of, by, p, buckets, chosen, caught, beside };
    Some(if by == Trait::Moment { moment::weighed(one, &shares.bins) } else { one })
}

/// How much more the bad responses vary between connections than by chance. Connections are assigned to groups at random; if there are few
/// connections, each is counted separately.
fn by_connection(of: &Share, all: &Breakdown) -> Dispersion {
    let sum = |dimension| all.buckets(dimension).iter().map(Outcomes::all).sum::<u64>();
    let each_is_seen = sum(Dimension::Connection) as f64 >= NEARLY_ALL * sum(Dimension::Group) as f64;
    let dimension = if each_is_seen { Dimension::Connection } else { Dimension::Group };
    dispersion(&all.buckets(dimension).iter().map(|one| of.split(one)).collect::<Vec<_>>())
}

/// The same between moments.
fn by_moment(of: &Share, shares: &Shares) -> Dispersion {
    dispersion(&shares.bins.iter().map(|(_, one)| of.split(one)).collect::<Vec<_>>())
}

fn dispersion(groups: &[(u64, u64)]) -> Dispersion {
    Homogeneity::of(groups).map_or(Dispersion::INDEPENDENT, |groups| groups.dispersion())
}

/// The fewest buckets that contain nearly all bad responses, by descending share of bad ones; the share of all bad responses in these
/// buckets, and the share of all others.
fn chosen(buckets: &[(u64, u64)]) -> (Vec<usize>, f64, f64) {
    let share = |at: &usize| buckets[*at].0 as f64 / (buckets[*at].0 + buckets[*at].1).max(1) as f64;
    let mut order: Vec<usize> = (0..buckets.len()).filter(|at| buckets[*at].0 > 0).collect();
    order.sort_by(|a, b| share(b).total_cmp(&share(a)));
    let all = buckets.iter().fold((0, 0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    let mut sum = (0, 0);
    let mut chosen = Vec::new();
    for at in order {
        if sum.0 as f64 >= NEARLY_ALL * all.0 as f64 {
            break;
        }
        sum = (sum.0 + buckets[at].0, sum.1 + buckets[at].1);
        chosen.push(at);
    }
    chosen.sort_unstable();
    (chosen, sum.0 as f64 / all.0.max(1) as f64, sum.1 as f64 / all.1.max(1) as f64)
}

/// All traits by which bad responses differ significantly from the others, clearly or not.
fn significant(bad: &[Share], shares: &Shares) -> Vec<Candidate> {
    let each = bad.iter().flat_map(|of| TRAITS.iter().filter_map(|by| candidate(*by, *of, shares)));
    let mut tested = each.collect();
    keep_significant(&mut tested);
    tested
}

/// Holm's correction for multiple tests: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
/// Statistics 6, 1979.
fn keep_significant(tested: &mut Vec<Candidate>) {
    let mut ps: Vec<f64> = tested.iter().map(|one| one.p).collect();
    ps.sort_by(f64::total_cmp);
    let is_significant = |(nth, p): (usize, &f64)| *p <= ERROR / (ps.len() - nth) as f64;
    let many = ps.iter().enumerate().take_while(|one| is_significant(*one)).count();
    let most = many.checked_sub(1).map(|last| ps[last]);
    tested.retain(|one| most.is_some_and(|most| one.p <= most));
}

#[cfg(test)]
mod tests;

//! Thresholds that ask for more than the load gives.

use plan::Threshold;
use samples::{Cause as Name, Certainty, Side, Summary};
use units::{Nanos, Rate, Unit};

use super::Seen;
use crate::case::{Case, Trouble};

/// Figures of which a larger load has more, as long as the target serves it.
const THROUGHPUT: [&str; 3] = ["requests.per_s", "requests.bytes_in_per_s", "requests.bytes_out_per_s"];
/// The share of a rate from which on it was reached: a run ends within a period of its schedule.
const REACHED: f64 = 0.95;
/// What a rate is raised by beyond what its proportion asks for, so that it is met and not just reached.
const MARGIN: f64 = 1.01;

/// How many times the throughput of a run its failed thresholds ask for, and the first of them; none where one asks for
/// something else.
pub(super) fn throughput_wanted(s: &Summary) -> Option<(f64, Threshold)> {
    let failed = s.thresholds.iter().filter(|result| !result.pass);
    let wanted: Option<Vec<(f64, Threshold)>> = failed
        .map(|result| {
            let threshold = Threshold::parse(&result.expr, &[]).ok()?;
            let is_throughput = THROUGHPUT.contains(&threshold.figure.path.as_str());
            let value =
                result.value.filter(|value| threshold.is_lower_bound() && is_throughput && *value > 0.0)?;
            Some((threshold.bound / value, threshold))
        })
        .collect();
    let wanted = wanted?;
    let most = wanted.iter().map(|(times, _)| *times).fold(0.0, f64::max);
    wanted.into_iter().next().map(|(_, first)| (most, first))
}

/// All that was due was answered, and nothing failed but thresholds that ask for more throughput: the rate is too low for them.
pub(crate) fn too_little(case: &Case) -> Option<Seen> {
    let (r, subject) = (case.requests(), &case.evidence.subject);
    let rate = subject.rate.filter(|_| case.trouble == Trouble::None && case.evidence.search.is_none())?;
    let (times, threshold) = throughput_wanted(case.summary)?;
    // Each connection that arrives may send several.
    let is_reached = subject.arrives || r.per_s >= rate.per_s_f64() * REACHED;
    if r.sent == 0 || r.answered < r.sent || r.missed > 0 || !is_reached {
        return None;
    }
    let bytes = match threshold.figure.path.as_str() {
        "requests.bytes_in_per_s" => Some(r.bytes_in),
        "requests.bytes_out_per_s" => Some(r.bytes_out),
        _ => None,
    };
    let each = bytes.map_or(String::new(), |bytes| {
        let each = bytes as f64 / r.answered as f64;
        let is_decimal = threshold.is_decimal();
        let each = if is_decimal { Unit::Bytes.brief_decimal(each) } else { Unit::Bytes.brief(each) };
        format!(", with {each} each")
    });
    let (of, flag) = if subject.arrives { ("of connections ", "--arrive") } else { ("", "--rate") };
    Some(Seen {
        certainty: Certainty::Seen,
        of: (Side::Unknown, Name::Unknown),
        at: case.left(),
        sentence: format!("all requests {of}at {rate} completed{each}"),
        detail: "no limit was reached".to_owned(),
        fix: format!("raise {flag} to {}", up_to_two_digits(rate.per_s_f64() * times * MARGIN)),
    })
}

/// Where more throughput may come from. A smaller load has less: no load is to be searched.
pub(super) fn more_throughput(case: &Case) -> String {
    let subject = &case.evidence.subject;
    let pause = subject.pause_flag.as_deref().filter(|_| subject.longest_pause > Nanos::ZERO);
    match pause {
        _ if subject.rate.is_some() => "profile the target".to_owned(),
        _ if subject.is_scenario => "use a larger load, or profile the target".to_owned(),
        Some(flag) => {
            format!("use shorter pauses ({flag}) or more connections (-c), or profile the target")
        }
        None => "use more connections (-c), or profile the target".to_owned(),
    }
}

/// A number per second that is above 0, rounded up: 530 for 526.
fn up_to_two_digits(per_s: f64) -> Rate {
    let unit = 10f64.powi(per_s.log10().floor() as i32 - 1);
    Rate::from_per_s_f64((per_s / unit).ceil() * unit)
}

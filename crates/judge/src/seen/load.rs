//! Thresholds that require more than the load offers.

use samples::{Cause as Name, Certainty, Side};
use units::{Nanos, Rate, Unit};

use super::Seen;
use crate::{case::Case, throughput};

/// Factor by which the advised rate exceeds the proportional one, so that the threshold is clearly met.
const MARGIN: f64 = 1.01;

/// The rate is too low for the thresholds.
pub(super) fn too_little(case: &Case) -> Option<Seen> {
    let (times, threshold) = throughput::too_little(case)?;
    let (r, subject) = (case.requests(), &case.evidence.subject);
    let rate = subject.rate?;
    let bytes = match threshold.figure.key.as_str() {
        "requests.bytes_in_per_s" => Some(r.bytes_in),
        "requests.bytes_out_per_s" => Some(r.bytes_out),
        _ => None,
    };
    let each = bytes.map_or(String::new(), |bytes| {
        let each = bytes as f64 / r.answered as f64;
        let is_decimal = threshold.is_decimal;
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

/// Advice for more throughput. A smaller load has less, so no search is advised.
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

/// A positive number per second, rounded up to two digits: 530 for 526.
fn up_to_two_digits(per_s: f64) -> Rate {
    let unit = 10f64.powi(per_s.log10().floor() as i32 - 1);
    Rate::from_per_s_f64((per_s / unit).ceil() * unit)
}

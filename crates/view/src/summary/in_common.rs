//! What slow, wrong and missing responses have in common: a sentence, and a table of the buckets on which it is based.

use samples::{InCommon, InCommonRow, Summary};
use units::{Count, percent};

use super::row;
use crate::table::aligned;

/// Maximum number of buckets shown; the first ones have the largest shares of bad requests.
const MOST: usize = 5;

pub(super) fn rows(s: &Summary, out: &mut String) {
    for one in &s.in_common {
        row(out, "in common", one.sentence.clone());
        table(one).into_iter().for_each(|line| row(out, "", line));
    }
}

fn table(one: &InCommon) -> Vec<String> {
    let head = [one.dimension.as_str(), one.of.name(), "others", "share"].map(str::to_owned);
    let line = |own: &InCommonRow| {
        let share = own.bad as f64 / (own.bad + own.others).max(1) as f64;
        [own.name.clone(), Count(own.bad).to_string(), Count(own.others).to_string(), percent(share)]
    };
    let (shown, rest) = one.rows.split_at(one.rows.len().min(MOST));
    let sum = |of: fn(&InCommonRow) -> u64| rest.iter().map(of).sum();
    let name = format!("and {}", Count(rest.len() as u64).of("other"));
    let rest = InCommonRow { name, bad: sum(|own| own.bad), others: sum(|own| own.others) };
    let others = (one.rows.len() > MOST).then_some(&rest);
    aligned(&[head].into_iter().chain(shown.iter().chain(others).map(line)).collect::<Vec<_>>(), &[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use samples::Bad;

    #[test]
    fn the_sentence_is_followed_by_its_buckets() {
        let bucket = |name: &str, bad, others| InCommonRow { name: name.to_owned(), bad, others };
        let mut one = InCommon {
            of: Bad::Slow,
            dimension: "destination".to_owned(),
            sentence: "all of the 33 % that took 301 ms went to 127.0.0.3:80".to_owned(),
            rows: vec![bucket("127.0.0.3:80", 1_000, 0), bucket("127.0.0.1:80", 0, 20_000)],
            ..InCommon::default()
        };
        let shown = |one: &InCommon| {
            let mut out = String::new();
            rows(&Summary { in_common: vec![one.clone()], ..Summary::default() }, &mut out);
            out
        };
        let expected = "  in common     all of the 33 % that took 301 ms went to 127.0.0.3:80
                destination    slow  others  share
                127.0.0.3:80  1,000       0  100 %
                127.0.0.1:80      0  20,000    0 %
";
        assert_eq!(shown(&one), expected);
        one.rows.extend((0..5).map(|n| bucket(&format!("127.0.1.{n}:80"), n, 10)));
        let text = shown(&one);
        let last = text.lines().last().unwrap();
        assert_eq!(text.lines().count(), 8);
        assert_eq!(last.split_whitespace().collect::<Vec<_>>(), ["and", "2", "others", "7", "20", "26", "%"]);
    }
}

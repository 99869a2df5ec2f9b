//! Whether servers allowed as many HTTP/2 streams per connection as wanted.

use plan::Population;
use samples::{StreamLimit, Summary, Tick};

/// The limit of streams on each connection of a population; `None` if there was none.
pub(super) fn limit(population: &Population, totals: &Tick) -> Option<StreamLimit> {
    let (wanted, allowed) = (population.streams?.into(), totals.streams_allowed?);
    Some(StreamLimit { wanted, allowed })
}

/// A note for each population with fewer streams than wanted.
pub(super) fn notes(s: &Summary) -> Vec<String> {
    let is_alone = s.populations.len() == 1;
    let of = |(name, sentence): (&String, String)| match is_alone {
        true => format!("note: {sentence}"),
        false => format!("note: {name}: {sentence}"),
    };
    let limited = s.populations.iter().filter_map(|(name, own)| Some((name, own.streams?.sentence())));
    limited.map(of).collect()
}

#[cfg(test)]
mod tests {
    use samples::{Figures, PopulationSummary};

    use super::*;

    #[test]
    fn each_population_with_fewer_has_a_note() {
        let check = |all: &[(&str, Option<(u64, u64)>)], expected: &[&str]| {
            let of = |streams: Option<(u64, u64)>| {
                let streams = streams.map(|(wanted, allowed)| StreamLimit { wanted, allowed });
                let figures = Figures { streams, ..Figures::default() };
                PopulationSummary { figures, ..PopulationSummary::default() }
            };
            let populations = all.iter().map(|(name, streams)| ((*name).to_owned(), of(*streams))).collect();
            assert_eq!(notes(&Summary { populations, ..Summary::default() }), expected);
        };
        check(&[("all", None)], &[]);
        let sentence =
            "note: the server allows 128 streams on a connection; --streams 250 was reduced to 128";
        check(&[("all", Some((250, 128)))], &[sentence]);
        let of_shop = "note: shop: the server allows 8 streams on a connection; --streams 9 was reduced to 8";
        check(&[("api", None), ("shop", Some((9, 8)))], &[of_shop]);
    }
}

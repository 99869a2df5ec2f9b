//! HTTP/2 streams: those wanted per connection, and those that the server allowed.

use serde::{Deserialize, Serialize};
use units::Count;

/// A server that allowed fewer concurrent streams on a connection than wanted (RFC 9113 section 6.5.2,
/// SETTINGS_MAX_CONCURRENT_STREAMS).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(default)]
pub struct StreamLimit {
    /// `--streams`.
    pub wanted: u64,
    /// The fewest that it allowed, of all connections.
    pub allowed: u64,
}

impl StreamLimit {
    /// The limit with the fewest streams.
    pub fn fewest(all: impl Iterator<Item = StreamLimit>) -> Option<StreamLimit> {
        all.min_by_key(|limit| (limit.allowed, limit.wanted))
    }

    /// What happened, in one sentence.
    pub fn sentence(&self) -> String {
        let StreamLimit { wanted, allowed } = *self;
        let (streams, wanted, allowed) = (Count(allowed).of("stream"), Count(wanted), Count(allowed));
        format!("the server allows {streams} on a connection; --streams {wanted} was reduced to {allowed}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Figures;

    #[test]
    fn what_was_wanted_and_what_was_allowed_are_said() {
        let check = |wanted, allowed, expected: &str| {
            assert_eq!(StreamLimit { wanted, allowed }.sentence(), expected);
        };
        check(250, 128, "the server allows 128 streams on a connection; --streams 250 was reduced to 128");
        check(8, 1, "the server allows 1 stream on a connection; --streams 8 was reduced to 1");
    }

    #[test]
    fn of_several_the_one_with_the_fewest_is_kept() {
        let of = |streams: Option<(u64, u64)>| Figures {
            streams: streams.map(|(wanted, allowed)| StreamLimit { wanted, allowed }),
            ..Figures::default()
        };
        let check = |all: &[Option<(u64, u64)>], expected| {
            let mut sum = of(all[0]);
            all[1..].iter().for_each(|other| sum.merge(&of(*other)));
            assert_eq!(sum.streams, of(expected).streams, "{all:?}");
        };
        check(&[None, None], None);
        check(&[None, Some((250, 128))], Some((250, 128)));
        check(&[Some((250, 128)), None], Some((250, 128)));
        check(&[Some((250, 128)), Some((20, 8)), Some((100, 16))], Some((20, 8)));
    }

    #[test]
    fn a_summary_has_it_only_where_there_was_one() {
        let mut figures = Figures::default();
        let written = |figures: &Figures| serde_json::to_value(figures).unwrap();
        assert_eq!(written(&figures).get("streams"), None);
        figures.streams = Some(StreamLimit { wanted: 250, allowed: 128 });
        let json = written(&figures);
        assert_eq!(json["streams"], serde_json::json!({ "wanted": 250, "allowed": 128 }));
        assert_eq!(serde_json::from_value::<Figures>(json).unwrap(), figures);
    }
}

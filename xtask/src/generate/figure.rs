//! What a line of a panel shows, and how each database is asked for it.

/// The database that a dashboard reads from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    /// Version 1, in InfluxQL.
    Influx,
    Prometheus,
}

impl Source {
    pub(super) const ALL: [Source; 2] = [Source::Influx, Source::Prometheus];

    /// Grafana's name of the data source's kind.
    pub(super) const fn kind(self) -> &'static str {
        match self {
            Source::Influx => "influxdb",
            Source::Prometheus => "prometheus",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Source::Influx => "InfluxDB",
            Source::Prometheus => "Prometheus",
        }
    }

    /// The dashboard's path from the root.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Source::Influx => "deploy/grafana/dashboards/throng-influxdb.json",
            Source::Prometheus => "deploy/grafana/dashboards/throng-prometheus.json",
        }
    }
}

/// A metric, or a measurement of Telegraf.
#[derive(Clone, Copy)]
pub(super) struct Of {
    name: &'static str,
    /// A label, and the regular expression that it matches.
    only: Option<(&'static str, &'static str)>,
    /// The labels that make a line each; over all others it is summed.
    by: &'static [&'static str],
}

pub(super) const fn of(name: &'static str) -> Of {
    Of { name, only: None, by: &[] }
}

impl Of {
    pub(super) const fn only(self, label: &'static str, is: &'static str) -> Of {
        Of { only: Some((label, is)), ..self }
    }

    pub(super) const fn by(self, by: &'static [&'static str]) -> Of {
        Of { by, ..self }
    }
}

/// What is shown of it.
#[derive(Clone, Copy)]
pub(super) enum Figure {
    /// A gauge as it stands, or what a counter has counted since the run began.
    Now(Of),
    /// A counter's growth a second.
    Rate(Of),
    /// A quantile of a histogram, of what happened meanwhile; 1 is the longest.
    Quantile(Of, Quantile),
    /// A quantile since the run began; where only seconds have quantiles, those.
    Whole(Of, Quantile),
    /// A field of a measurement of Telegraf, which InfluxDB alone has: its mean.
    Field(Of, &'static str),
    /// The same: its growth a second.
    FieldRate(Of, &'static str),
}

#[derive(Clone, Copy)]
pub(super) enum Quantile {
    P50,
    P99,
    Max,
}

impl Quantile {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Quantile::P50 => "p50",
            Quantile::P99 => "p99",
            Quantile::Max => "max",
        }
    }

    const fn share(self) -> &'static str {
        match self {
            Quantile::P50 => "0.5",
            Quantile::P99 => "0.99",
            Quantile::Max => "1",
        }
    }
}

/// The interval's seconds, of all series that the variables choose.
const INFLUX_RUN: &str = r#""target" =~ /^${target:regex}$/ AND "seed" =~ /^${seed:regex}$/ AND $timeFilter"#;
const INFLUX_HOST: &str = r#""host" =~ /^${host:regex}$/ AND $timeFilter"#;

/// In Prometheus one series says which run an endpoint serves; the others get its labels by this join.
const PROMETHEUS_RUN: &str =
    r#"on (job, instance) group_left (target, seed) throng_run_info{target=~"$target", seed=~"$seed"}"#;

impl Figure {
    /// The query; none where this source does not have it.
    pub(super) fn query(self, source: Source) -> Option<String> {
        match source {
            Source::Influx => Some(self.influx()),
            Source::Prometheus => self.prometheus(),
        }
    }

    const fn of(self) -> Of {
        match self {
            Figure::Now(of) | Figure::Rate(of) => of,
            Figure::Quantile(of, _) | Figure::Whole(of, _) => of,
            Figure::Field(of, _) | Figure::FieldRate(of, _) => of,
        }
    }

    const fn is_telegrafs(self) -> bool {
        matches!(self, Figure::Field(..) | Figure::FieldRate(..))
    }

    /// A line's name, with what makes it different from others of its panel.
    pub(super) fn legend(self, name: &str, source: Source) -> String {
        let by = self.of().by.iter();
        let whose = if self.is_telegrafs() { "host" } else { "seed" };
        let by: Vec<String> = by
            .chain([&whose])
            .map(|label| match source {
                Source::Influx => format!("$tag_{label}"),
                Source::Prometheus => format!("{{{{{label}}}}}"),
            })
            .collect();
        let words = [name].into_iter().filter(|name| !name.is_empty()).chain(by.iter().map(String::as_str));
        words.collect::<Vec<_>>().join(" · ")
    }

    /// Points of one second have one time, whatever their tags: sums over tags are sums of what was at once.
    fn influx(self) -> String {
        let Of { name, only, by } = self.of();
        let mut wanted = String::from(if self.is_telegrafs() { INFLUX_HOST } else { INFLUX_RUN });
        if let Some((label, is)) = only {
            wanted = format!(r#""{label}" =~ /^({is})$/ AND {wanted}"#);
        }
        let whose: &[&str] = if self.is_telegrafs() { &["host"] } else { &["target", "seed"] };
        let tags: String = whose.iter().chain(by).map(|tag| format!(r#", "{tag}""#)).collect();
        let each = |what: &str| {
            format!(
                r#"SELECT {what} FROM "{name}" WHERE {wanted} GROUP BY time($__interval){tags} fill(none)"#
            )
        };
        let sum = |inner: &str| {
            format!(
                r#"SELECT sum("each") FROM ({inner}) WHERE $timeFilter GROUP BY time($__interval){tags} fill(none)"#
            )
        };
        match self {
            Figure::Now(_) => sum(&format!(
                r#"SELECT max("value") AS "each" FROM "{name}" WHERE {wanted} GROUP BY time($__interval), * fill(none)"#
            )),
            // From point to point, and then the mean: a second's point may come a little before or after its second.
            Figure::Rate(_) => sum(&format!(
                r#"SELECT mean("a_second") AS "each" FROM (SELECT non_negative_derivative("value", 1s) AS "a_second" FROM "{name}" WHERE {wanted} GROUP BY *) WHERE $timeFilter GROUP BY time($__interval), * fill(none)"#
            )),
            Figure::Quantile(_, Quantile::P50) => each(r#"mean("p50")"#),
            Figure::Quantile(_, q) | Figure::Whole(_, q) => each(&format!(r#"max("{}")"#, q.name())),
            Figure::Field(_, field) => each(&format!(r#"mean("{field}")"#)),
            Figure::FieldRate(_, field) => each(&format!(r#"non_negative_derivative(max("{field}"), 1s)"#)),
        }
    }

    fn prometheus(self) -> Option<String> {
        let Of { name, only, by } = self.of();
        let only = only.map_or(String::new(), |(label, is)| format!(r#"{{{label}=~"{is}"}}"#));
        let labels: String = by.iter().map(|label| format!(", {label}")).collect();
        let sum = |what: &str| format!("sum by (target, seed{labels}) ({what} * {PROMETHEUS_RUN})");
        let quantile = |q: Quantile, buckets: &str| {
            let q = q.share();
            format!(
                "histogram_quantile({q}, sum by (le, target, seed{labels}) ({buckets} * {PROMETHEUS_RUN}))"
            )
        };
        match self {
            Figure::Now(_) => Some(sum(&format!("{name}{only}"))),
            Figure::Rate(_) => Some(sum(&format!("rate({name}{only}[$__rate_interval])"))),
            Figure::Quantile(_, q) => {
                Some(quantile(q, &format!("rate({name}_bucket{only}[$__rate_interval])")))
            }
            Figure::Whole(_, q) => Some(quantile(q, &format!("{name}_bucket{only}"))),
            Figure::Field(..) | Figure::FieldRate(..) => None,
        }
    }
}

//! The figures that panels show, as queries in InfluxQL and PromQL.

/// The database that a dashboard reads from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Source {
    /// Version 1, in InfluxQL.
    Influx,
    Prometheus,
}

impl Source {
    pub(super) const ALL: [Source; 2] = [Source::Influx, Source::Prometheus];

    /// Grafana's identifier of the data source type.
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

    /// Path of the dashboard file, from the root.
    pub(super) const fn file(self) -> &'static str {
        match self {
            Source::Influx => "deploy/grafana/dashboards/throng-influxdb.json",
            Source::Prometheus => "deploy/grafana/dashboards/throng-prometheus.json",
        }
    }
}

/// A metric of throng, or a measurement of Telegraf.
#[derive(Clone, Copy)]
pub(super) struct Of {
    name: &'static str,
    /// Filter: a label, and the regular expression that it must match.
    only: Option<(&'static str, &'static str)>,
    /// Labels by which series are distinguished; values are summed over all other labels.
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

/// The function applied to a metric.
#[derive(Clone, Copy)]
pub(super) enum Figure {
    /// The current value of a gauge, or of a counter.
    Now(Of),
    /// The increase of a counter per second.
    Rate(Of),
    /// A quantile of a histogram over the interval shown; quantile 1 is the maximum.
    Quantile(Of, Quantile),
    /// A quantile since the start of the run; InfluxDB has quantiles per second only, and shows the largest of these.
    Whole(Of, Quantile),
    /// The mean of a field of a Telegraf measurement; InfluxDB only.
    Field(Of, &'static str),
    /// The increase per second of a field of a Telegraf measurement; InfluxDB only.
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

/// Filter of InfluxQL queries: the time range and the runs that the variables select.
const INFLUX_RUN: &str = r#""target" =~ /^${target:regex}$/ AND "seed" =~ /^${seed:regex}$/ AND $timeFilter"#;
const INFLUX_HOST: &str = r#""host" =~ /^${host:regex}$/ AND $timeFilter"#;

/// Only `throng_run_info` has the labels that identify a run; this join adds them to the other series of the same endpoint.
const PROMETHEUS_RUN: &str =
    r#"on (job, instance) group_left (target, seed) throng_run_info{target=~"$target", seed=~"$seed"}"#;

impl Figure {
    /// The query; `None` if this source does not have the figure.
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

    /// A line's name, followed by the labels that distinguish it from other lines of the panel.
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

    /// Points of the same second have the same timestamp whatever their tags, so sums over tags add simultaneous values.
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
            // Derivative per series first, then the mean: a point may be written a little before or after its second.
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

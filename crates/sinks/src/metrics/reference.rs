//! The page of the documentation that lists the metrics, made of the table: `UPDATE_GOLDEN=1` writes it.

use std::{fs, path::Path};

use super::{BOUNDS, TABLE};

const HEAD: &str = "# Metrics

What `--csv`, `--jsonl` and the exporters give away of a run, once a second: one list, the same names in all of them. Made by the tests.

- A counter counts since the run began, where it does not say otherwise; a gauge is as it was at the end of the second.
- A histogram has buckets (`_bucket`), `_count` and `_sum` since the run began where there are buckets (Prometheus). Elsewhere it has `_count` and
  `_sum` since the run began, and `_p50`, `_p90`, `_p99`, `_p999` and `_max` of the second alone, exact to three digits; these are
  empty, or not there, where the second had nothing of it.
- `population` is there where a plan has several; the sum over it is the whole. The probe lane is in none of them but `throng_lag_seconds`.
- `destination` is an address and port, or a range of neighbouring ones where there are more than 64; its series are there where a plan has several.
- What nobody could see is empty, or not there: never zero.

| name | kind | labels | what |
|---|---|---|---|
";

const TAIL: &str = "
## Files

`--csv FILE` has a line a second behind a head (RFC 4180): `time` (UTC), `elapsed_s` since the run began, 0.12 s before the first dial, and a column for each series of the table,
written as Prometheus does: `throng_generator_cpu_seconds_total{mode=\"user\"}`. The columns are known before the run; what only the run can tell has
one column with the sum of all: `throng_statuses_total`, `throng_faults_total`.

`--jsonl FILE` has an object a second with the same names, and each status and fault by itself.

`--parquet FILE` has the columns of `--csv`, `time` in milliseconds (UTC) and the others as doubles, a row a second; its index comes with the end of the run, so that
one that was killed leaves nothing to read (`throng replay RUN --parquet FILE` writes it). It is there where throng was built with `--features parquet`.

Each is written by a thread of its own. A file that cannot be made stops throng before the run (exit 3); one that cannot be written any more
costs nothing but itself, is told at the end, and the exit status is 3. Where a file takes nothing for a minute, lines are missing in it; how many is
told.

## Prometheus

`--prometheus ADDR` answers `GET http://ADDR/metrics` in Prometheus' text format 0.0.4 with classic histograms, from before the first dial until the
run is over. A port alone (`--prometheus 9464`) is on loopback; anything else must be asked for by its address (`0.0.0.0:9464`), and then whoever
reaches it can read. Port 0 takes a free one; which, is told. A port in use stops throng before the run (exit 3). What is scraped is at most a second
old; what happens between the last scrape and the end of a run is not in Prometheus, so that scraping every second or two is wise:

```
scrape_configs:
  - job_name: throng
    scrape_interval: 1s
    static_configs: [{targets: [\"127.0.0.1:9464\"]}]
```

## InfluxDB

`--influx URL` posts the points of each second in line protocol: to version 1 at `http://HOST:8086/write?db=DB` (`&u=…&p=…` where it wants that), to version
2 at `http://HOST:8086/api/v2/write?org=O&bucket=B` with a token, from `--influx-token-file FILE` (which only its owner may read) or `INFLUX_TOKEN`. The
command line is kept in the run store, so that a password is better not written in it. Over http only: across a network that is not trusted, let `ssh -L`
carry it.

Each metric is a measurement. Its field is `value`; a histogram's are `count`, `sum`, `p50`, `p90`, `p99`, `p999` and `max`. Tags are its labels,
and with each point the run's `target` and `seed`. The time is the date at which the run began plus the run's own time since: points that are sent again
are the same points.

A run never waits for InfluxDB. Where it cannot be reached, or does not take the points, that is told once and tried again each second with all that has
come meanwhile, up to a minute of it. What is older, or still not taken when the run is over, is sent from the run store at the end, for 20 s at most;
what then is still missing is told, and the exit status is the run's.

## OpenTelemetry

`--otlp URL` posts the metrics of each second to a collector: OTLP over HTTP as JSON, to `http://HOST:4318/v1/metrics` where the URL has no path of its own.
Names, labels and meaning are those of the table; counters are cumulative sums, histograms cumulative with the buckets above. The resource has
`service.name` (throng), `target` and `seed`. The collector's receiver is `otlp` with protocol `http`. What it does not take is made up for as with InfluxDB.
Over http only.
";

fn page() -> String {
    let mut page = HEAD.to_owned();
    for metric in TABLE {
        let labels = metric.labels.join(", ");
        page += &format!("| `{}` | {} | {labels} | {} |\n", metric.name, metric.kind.name(), metric.help);
    }
    let bounds: Vec<String> = BOUNDS.iter().map(|bound| bound.secs_f64().to_string()).collect();
    page + &format!("\nBuckets of the histograms, in seconds: {}.\n{TAIL}", bounds.join(", "))
}

#[test]
fn the_page_lists_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/metrics.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, page()).unwrap();
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(page(), written, "UPDATE_GOLDEN=1 writes it");
}

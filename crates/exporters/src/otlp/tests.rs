//! Decodes the output with the types generated from the protocol's definition.

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{KeyValue, any_value::Value as Any},
    metrics::v1::{Metric as Read, metric::Data, number_data_point},
};

use super::*;
use crate::metrics::made_up::two_seconds;
use fixtures::header;

/// These types have counts of histograms as numbers, while the specification and the collector use strings.
fn with_counts_as_numbers(json: &mut Json) {
    match json {
        Json::Array(all) => all.iter_mut().for_each(with_counts_as_numbers),
        Json::Object(fields) => {
            for (name, field) in fields {
                let number = |text: &Json| {
                    text.as_str().and_then(|text| text.parse::<u64>().ok()).expect("a count").into()
                };
                match (name.as_str(), &mut *field) {
                    ("count", text) => *text = number(text),
                    ("bucketCounts", Json::Array(all)) => {
                        all.iter_mut().for_each(|text| *text = number(text))
                    }
                    (_, field) => with_counts_as_numbers(field),
                }
            }
        }
        _ => {}
    }
}

fn read() -> (Vec<KeyValue>, Vec<Read>) {
    let (_, seconds) = two_seconds();
    let mut json = serde_json::from_str(&body(&header(), &seconds.map(Arc::new))).expect("JSON");
    with_counts_as_numbers(&mut json);
    let request: ExportMetricsServiceRequest = serde_json::from_value(json).expect("a request of OTLP");
    let [resource] = <[_; 1]>::try_from(request.resource_metrics).expect("one resource");
    let [scope] = <[_; 1]>::try_from(resource.scope_metrics).expect("one scope");
    (resource.resource.expect("attributes").attributes, scope.metrics)
}

fn says(attributes: &[KeyValue], name: &str) -> Option<String> {
    let value = attributes.iter().find(|attribute| attribute.key == name)?.value.clone()?;
    match value.value? {
        Any::StringValue(text) => Some(text),
        _ => None,
    }
}

/// Value and times of each point of this population.
fn numbers(metric: &Read, population: &str) -> Vec<(f64, u64, u64)> {
    numbers_of(metric, "population", population)
}

/// As [`numbers`], for another label.
fn numbers_of(metric: &Read, label: &str, is: &str) -> Vec<(f64, u64, u64)> {
    let points = match metric.data.as_ref().expect("data") {
        Data::Gauge(gauge) => &gauge.data_points,
        Data::Sum(sum) => {
            assert!(sum.is_monotonic && sum.aggregation_temporality == 2, "{}", metric.name);
            &sum.data_points
        }
        other => panic!("{}: {other:?}", metric.name),
    };
    let own = points.iter().filter(|point| says(&point.attributes, label).is_none_or(|name| name == is));
    own.map(|point| match point.value {
        Some(number_data_point::Value::AsDouble(n)) => (n, point.time_unix_nano, point.start_time_unix_nano),
        ref other => panic!("{}: {other:?}", metric.name),
    })
    .collect()
}

#[test]
fn the_protocols_own_types_read_it() {
    let (resource, metrics) = read();
    let found = ["service.name", "target", "seed"].map(|name| says(&resource, name).expect("it is there"));
    assert_eq!(found, ["throng", "http://t/ü?a=\"1\"", "7"]);
    let metric =
        |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap_or_else(|| panic!("{name}"));
    let (began, first, last) =
        (1_700_000_000_250_000_000, 1_700_000_001_250_000_000, 1_700_000_002_250_000_000);
    assert_eq!(numbers(metric("throng_connections_open"), "idle"), [(10.0, first, 0), (20.0, last, 0)]);
    assert_eq!(
        numbers(metric("throng_requests_total"), "idle"),
        [(1_000.0, first, began), (3_000.0, last, began)]
    );
    let of_agent = |name: &str, agent: &str| numbers_of(metric(name), "agent", agent);
    assert_eq!(of_agent("throng_agent_up", "a"), [(1.0, first, 0), (0.0, last, 0)]);
    assert_eq!(of_agent("throng_agent_up", "b"), [(1.0, first, 0), (1.0, last, 0)]);
    assert_eq!(of_agent("throng_agent_cpu_seconds_total", "a"), [(0.5, first, began), (1.5, last, began)]);
    assert_eq!(of_agent("throng_agent_requests_total", "b"), [(999.0, first, began), (2_997.0, last, began)]);
    // The start of counters of other programs is not known.
    let drops = metric("throng_host_tcp_events_total");
    let drops = numbers(drops, "");
    assert!(!drops.is_empty() && drops.iter().all(|(_, _, start)| *start == 0));
    assert_eq!(metric("throng_generator_resident_bytes").unit, "By");
    assert_eq!(
        (metric("throng_latency_seconds").unit.as_str(), metric("throng_requests_total").unit.as_str()),
        ("s", "1")
    );
    assert!(metrics.iter().all(|metric| metric.name != "throng_target_jvm_gc_total"), "nobody saw one");
}

#[test]
fn buckets_count_each_time_once() {
    let (_, metrics) = read();
    let latency = metrics.iter().find(|metric| metric.name == "throng_latency_seconds").expect("latency");
    let Some(Data::Histogram(histogram)) = &latency.data else { panic!("{latency:?}") };
    assert_eq!(histogram.aggregation_temporality, 2);
    let own = |point: &&opentelemetry_proto::tonic::metrics::v1::HistogramDataPoint| {
        says(&point.attributes, "population").as_deref() == Some("idle")
    };
    let point = histogram.data_points.iter().rfind(own).expect("a point");
    // Values from 1 to 1,000 ms in the first second, and every second millisecond up to 2 s in the second.
    assert_eq!((point.count, point.bucket_counts.iter().sum()), (2_000, 2_000_u64));
    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
    assert_eq!(point.sum, Some(500.5 * 3.0));
    let within = |low: f64, high: f64| {
        let bounds = [&[0.0][..], &point.explicit_bounds, &[f64::INFINITY]].concat();
        let at = bounds.windows(2).position(|pair| pair == [low, high]).expect("a bucket");
        point.bucket_counts[at]
    };
    assert_eq!((within(0.1, 0.25), within(0.5, 1.0), within(2.5, 5.0)), (150 + 75, 500 + 250, 0));
}

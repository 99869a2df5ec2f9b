//! Converts the panels to Grafana's dashboard model (schema 38, Grafana 10.0: later versions migrate it).

use super::figure::{Figure, Source};
use super::panels::{Panel, ROWS, Row, Shape};
use serde_json::{Value, json};

/// Width of Grafana's grid, in grid units.
const WIDTH: usize = 24;

/// The dashboard as JSON text.
pub(super) fn text(source: Source) -> String {
    let dashboard = json!({
        "__requires": [
            { "type": "grafana", "id": "grafana", "name": "Grafana", "version": "10.0.0" },
            { "type": "datasource", "id": source.kind(), "name": source.name(), "version": "1.0.0" },
            { "type": "panel", "id": "stat", "name": "Stat", "version": "" },
            { "type": "panel", "id": "timeseries", "name": "Time series", "version": "" },
        ],
        "annotations": { "list": [] },
        "description": "What throng sees of a load and of its target. Made by `cargo xtask gen`.",
        "editable": true,
        // The crosshair is shared by all panels, so that events at the same time are easy to match.
        "graphTooltip": 1,
        "id": null,
        "links": [],
        "panels": panels(source),
        "refresh": "5s",
        "schemaVersion": 38,
        "tags": ["throng"],
        "templating": { "list": variables(source) },
        "time": { "from": "now-15m", "to": "now" },
        "timepicker": { "refresh_intervals": ["1s", "5s", "10s", "30s", "1m"] },
        "timezone": "",
        "title": format!("throng ({})", source.name()),
        "uid": format!("throng-{}", source.kind()),
        "version": 1,
    });
    serde_json::to_string_pretty(&dashboard).expect("it is plain JSON") + "\n"
}

/// The data source that the user chooses, so that the same file can be imported or provisioned.
fn data_source(source: Source) -> Value {
    json!({ "type": source.kind(), "uid": "${datasource}" })
}

fn variables(source: Source) -> Vec<Value> {
    let chosen = json!({
        "name": "datasource", "label": "Data source", "type": "datasource", "query": source.kind(),
        "hide": 0, "includeAll": false, "multi": false, "options": [], "refresh": 1, "regex": "",
    });
    let questions: &[(&str, &str, &str)] = match source {
        Source::Influx => &[
            ("target", "Target", r#"SHOW TAG VALUES FROM "throng_run_info" WITH KEY = "target""#),
            (
                "seed",
                "Run (its seed)",
                r#"SHOW TAG VALUES FROM "throng_run_info" WITH KEY = "seed" WHERE "target" =~ /^${target:regex}$/"#,
            ),
            ("host", "Host (Telegraf)", r#"SHOW TAG VALUES FROM "cpu" WITH KEY = "host""#),
        ],
        Source::Prometheus => &[
            ("target", "Target", "label_values(throng_run_info, target)"),
            ("seed", "Run (its seed)", r#"label_values(throng_run_info{target=~"$target"}, seed)"#),
        ],
    };
    let asked = |(name, label, query): &(&str, &str, &str)| {
        let form = match source {
            Source::Influx => json!(query),
            Source::Prometheus => json!({ "query": query, "refId": format!("variable-{name}") }),
        };
        json!({
            "name": name, "label": label, "type": "query", "datasource": data_source(source),
            "definition": query, "query": form,
            // Refreshed whenever the time range changes, so that a newly started run is included.
            "refresh": 2, "sort": 0, "regex": "", "hide": 0, "options": [], "multi": true,
            "includeAll": true, "allValue": ".*",
            "current": { "selected": true, "text": ["All"], "value": ["$__all"] },
        })
    };
    [chosen].into_iter().chain(questions.iter().map(asked)).collect()
}

/// All panels; those of a row follow the row's title.
fn panels(source: Source) -> Vec<Value> {
    let (mut panels, mut y) = (Vec::new(), 0);
    for Row { title, panels: of_row } in ROWS {
        let shown: Vec<&Panel> = of_row.iter().filter(|panel| !targets(panel, source).is_empty()).collect();
        if shown.is_empty() {
            continue;
        }
        panels.push(json!({
            "type": "row", "title": title, "collapsed": false, "panels": [], "id": panels.len() + 1,
            "gridPos": { "x": 0, "y": y, "w": WIDTH, "h": 1 },
        }));
        y += 1;
        let height = if shown[0].shape == Shape::Lines { 8 } else { 4 };
        // Numbers share one line; graphs are placed two or three to a line.
        let a_line = match shown.len() {
            n if shown[0].shape != Shape::Lines || n == 3 => n,
            _ => 2,
        };
        for (i, panel) in shown.iter().enumerate() {
            let (x, w) = (WIDTH / a_line * (i % a_line), WIDTH / a_line);
            let place = json!({ "x": x, "y": y + i / a_line * height, "w": w, "h": height });
            panels.push(one(panel, source, panels.len() + 1, &place));
        }
        y += shown.len().div_ceil(a_line) * height;
    }
    panels
}

fn one(panel: &Panel, source: Source, id: usize, place: &Value) -> Value {
    let Panel { title, says, unit, shape, none, .. } = panel;
    let (kind, options, custom) = match shape {
        Shape::Lines => {
            ("timeseries", graph(), json!({ "lineWidth": 1, "fillOpacity": 0, "showPoints": "auto" }))
        }
        Shape::Most | Shape::Last => ("stat", stat(panel, source), json!({})),
    };
    let mut model = json!({
        "id": id, "type": kind, "title": title, "description": says, "gridPos": place,
        "datasource": data_source(source),
        "fieldConfig": { "defaults": { "unit": unit, "min": 0, "custom": custom }, "overrides": [] },
        "options": options,
        "targets": targets(panel, source),
    });
    if let Some(none) = none {
        model["fieldConfig"]["defaults"]["noValue"] = json!(none);
    }
    if source == Source::Influx {
        // throng writes once a second, so a finer interval would have empty buckets. Prometheus' data source has its own scrape
        // interval.
        model["interval"] = json!("1s");
    }
    model
}

fn graph() -> Value {
    json!({
        "legend": { "displayMode": "table", "placement": "bottom", "showLegend": true, "calcs": ["lastNotNull", "max"] },
        "tooltip": { "mode": "multi", "sort": "desc" },
    })
}

/// Options of a panel that shows one number per run.
fn stat(panel: &Panel, source: Source) -> Value {
    let by_second =
        source == Source::Influx && panel.lines.iter().any(|(_, f)| matches!(f, Figure::Whole(..)));
    let most = panel.shape == Shape::Most || by_second;
    json!({
        "reduceOptions": { "calcs": [if most { "max" } else { "lastNotNull" }], "fields": "", "values": false },
        "colorMode": "none", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "textMode": "auto",
    })
}

/// The queries of a panel; empty if this source has no data for it.
fn targets(panel: &Panel, source: Source) -> Vec<Value> {
    let lines = panel.lines.iter().zip('A'..='Z');
    let targets = lines.filter_map(|((name, figure), id)| {
        let (query, legend) = (figure.query(source)?, figure.legend(name, source));
        Some(match source {
            Source::Influx => json!({
                "refId": id, "datasource": data_source(source), "rawQuery": true, "query": query,
                "resultFormat": "time_series", "alias": legend,
            }),
            Source::Prometheus => json!({
                "refId": id, "datasource": data_source(source), "editorMode": "code", "expr": query,
                "range": true, "instant": false, "legendFormat": legend,
            }),
        })
    });
    targets.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_lie_beside_and_below_each_other() {
        for source in Source::ALL {
            let places: Vec<[u64; 4]> = panels(source)
                .iter()
                .map(|panel| ["x", "y", "w", "h"].map(|key| panel["gridPos"][key].as_u64().unwrap()))
                .collect();
            for (i, [x, y, w, h]) in places.iter().enumerate() {
                assert!(x + w <= WIDTH as u64 && *w > 0, "{x} + {w}");
                for [other_x, other_y, other_w, other_h] in &places[..i] {
                    let apart = x >= &(other_x + other_w)
                        || other_x >= &(x + w)
                        || y >= &(other_y + other_h)
                        || other_y >= &(y + h);
                    assert!(apart, "{x} {y}");
                }
            }
        }
    }

    #[test]
    fn each_panel_has_a_name_of_its_own_and_all_lines_of_influxdb() {
        let panels = panels(Source::Influx);
        let ids: std::collections::BTreeSet<u64> = panels.iter().map(|p| p["id"].as_u64().unwrap()).collect();
        let titles: std::collections::BTreeSet<&str> =
            panels.iter().map(|p| p["title"].as_str().unwrap()).collect();
        assert_eq!((ids.len(), titles.len()), (panels.len(), panels.len()));
        let lines: usize = ROWS.iter().flat_map(|row| row.panels).map(|panel| panel.lines.len()).sum();
        let targets: usize = panels.iter().filter_map(|p| p["targets"].as_array()).map(Vec::len).sum();
        assert_eq!(targets, lines);
    }

    /// A series of faults exists only after the first fault, so these panels need a text for "no data".
    #[test]
    fn panels_of_faults_say_that_there_are_none() {
        for source in Source::ALL {
            let panels = panels(source);
            let said: Vec<(&str, &str)> = panels
                .iter()
                .filter_map(|p| {
                    Some((p["title"].as_str()?, p["fieldConfig"]["defaults"]["noValue"].as_str()?))
                })
                .collect();
            let expected =
                [("Faults", "0"), ("Faults by kind", "no faults"), ("Faults of each agent", "no faults")];
            assert_eq!(said, expected);
        }
    }

    #[test]
    fn telegrafs_panels_are_in_influxdb_alone() {
        let text = text(Source::Prometheus);
        assert!(!text.contains("Telegraf") && !text.contains("procstat") && text.contains("JVM heap"));
    }
}

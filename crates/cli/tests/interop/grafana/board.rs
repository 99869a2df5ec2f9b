//! A dashboard's queries, sent as Grafana sends them.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;

use crate::{
    influxdb::run_query,
    program::Program,
    server::{Server, program},
};

/// A line of a panel.
#[derive(Debug)]
pub(crate) struct Line {
    title: String,
    query: String,
    legend: String,
    /// How a panel of one number reduces many to it.
    calc: Option<String>,
}

/// A dashboard's file.
pub(crate) struct Board {
    pub(crate) is_influx: bool,
    lines: Vec<Line>,
    variables: BTreeMap<String, String>,
}

impl Board {
    pub(crate) fn read(name: &str) -> Board {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana/dashboards");
        let text = fs::read_to_string(folder.join(name).with_extension("json")).unwrap();
        let board: Value = serde_json::from_str(&text).unwrap();
        let string = |value: &Value| value.as_str().unwrap_or_else(|| panic!("a string: {value}")).to_owned();
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut lines = Vec::new();
        for panel in list(&board["panels"]) {
            for target in list(&panel["targets"]) {
                let first = |keys: [&str; 2]| {
                    string(keys.iter().map(|key| &target[key]).find(|v| v.is_string()).unwrap())
                };
                let (query, legend) = (first(["query", "expr"]), first(["alias", "legendFormat"]));
                let calc = panel["options"]["reduceOptions"]["calcs"][0].as_str().map(str::to_owned);
                lines.push(Line { title: string(&panel["title"]), query, legend, calc });
            }
        }
        let variables = list(&board["templating"]["list"]);
        let variables = variables.iter().filter(|variable| variable["type"] == "query");
        let variables = variables.map(|v| (string(&v["name"]), string(&v["definition"]))).collect();
        assert!(lines.len() > 40, "{lines:?}");
        Board { is_influx: name.ends_with("influxdb"), lines, variables }
    }

    pub(crate) fn queries(&self) -> &[Line] {
        &self.lines
    }

    /// The nth line of a panel.
    pub(crate) fn query(&self, title: &str, n: usize) -> &Line {
        self.lines
            .iter()
            .filter(|line| line.title == title)
            .nth(n)
            .unwrap_or_else(|| panic!("no panel: {title}"))
    }

    pub(crate) fn variable(&self, name: &str) -> &str {
        &self.variables[name]
    }
}

/// The values of the variables, and the time range.
pub(crate) struct Chosen {
    /// None: all.
    run: Option<(String, String)>,
    /// Milliseconds since 1970.
    time: (u64, u64),
}

impl Chosen {
    pub(crate) fn all(time: (u64, u64)) -> Chosen {
        Chosen { run: None, time }
    }

    pub(crate) fn run(&self, target: &str, seed: &str) -> Chosen {
        Chosen { run: Some((target.to_owned(), seed.to_owned())), ..*self }
    }

    /// Grafana's documentation, "Global variables" and "Variable syntax": `:regex` escapes what has a meaning in a regular
    /// expression, and the slash. A custom value for "all", here `.*`, is inserted as it is.
    fn influx(&self, query: &str) -> String {
        let escaped = |text: &str| escape(text, r"\^$*+?.()|[]{}/", r"\");
        let (target, seed) = match &self.run {
            Some((target, seed)) => (escaped(target), escaped(seed)),
            None => (".*".to_owned(), ".*".to_owned()),
        };
        let (from, to) = self.time;
        let query = query
            .replace("$timeFilter", &format!("time >= {from}ms and time <= {to}ms"))
            .replace("$__interval", "1s")
            .replace("${target:regex}", &target)
            .replace("${seed:regex}", &seed)
            .replace("${host:regex}", ".*");
        assert!(!query.contains("${") && !query.contains("$__"), "{query}");
        query
    }

    /// For a variable with several values the data source escapes for a regular expression in a PromQL string.
    fn prometheus(&self, query: &str) -> String {
        let escaped = |text: &str| escape(&text.replace('\\', r"\\\\"), "$^*{}[]'+?.()|", r"\\");
        let (target, seed) = match &self.run {
            Some((target, seed)) => (escaped(target), escaped(seed)),
            None => (".*".to_owned(), ".*".to_owned()),
        };
        // Scraped every 200 ms, shown by the second; four scrapes at least.
        let query =
            query.replace("$__rate_interval", "1200ms").replace("$target", &target).replace("$seed", &seed);
        assert!(!query.contains("$_"), "{query}");
        query
    }
}

fn escape(text: &str, special: &str, by: &str) -> String {
    let one = |c: char| if special.contains(c) { format!("{by}{c}") } else { c.to_string() };
    text.chars().map(one).collect()
}

/// The labels that distinguish a series from the others, and its numbers in order of time.
type Series = (BTreeMap<String, String>, Vec<f64>);

#[derive(Debug)]
pub(crate) struct Found(pub(crate) Vec<Series>);

impl Found {
    fn numbers(&self) -> impl Iterator<Item = f64> {
        self.0.iter().flat_map(|(_, numbers)| numbers).copied()
    }

    pub(crate) fn most(&self) -> f64 {
        self.numbers().reduce(f64::max).expect("numbers")
    }

    /// The last number of the only series.
    pub(crate) fn last(&self) -> f64 {
        assert_eq!(self.0.len(), 1, "{self:?}");
        self.numbers().last().expect("numbers")
    }

    /// What a panel of one number shows.
    pub(crate) fn shown(&self, line: &Line) -> f64 {
        match line.calc.as_deref() {
            Some("max") => self.most(),
            Some("lastNotNull") => self.last(),
            other => panic!("{other:?}: {line:?}"),
        }
    }

    /// There are points, and each series has the labels of the legend.
    pub(crate) fn assert_some(&self, line: &Line) {
        assert!(self.numbers().next().is_some(), "no data: {line:#?}");
        let parts = line.legend.split(" · ");
        let label = |part: &str| {
            let of_prometheus = part.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
            part.strip_prefix("$tag_").or(of_prometheus).map(str::to_owned)
        };
        for label in parts.filter_map(label) {
            let named = |(labels, _): &Series| labels.get(&label).is_some_and(|value| !value.is_empty());
            assert!(self.0.iter().all(named), "{label}: {line:#?} {:#?}", self.0);
        }
    }
}

fn strings(labels: &Value) -> BTreeMap<String, String> {
    let labels = labels.as_object().cloned().unwrap_or_default();
    labels.into_iter().map(|(name, value)| (name, value.as_str().unwrap_or_default().to_owned())).collect()
}

pub(crate) fn influx(server: &Server, line: &Line, chosen: &Chosen) -> Found {
    let query = chosen.influx(&line.query);
    let response = run_query(server, &query);
    let result = &response["results"][0];
    assert!(result.get("error").is_none() && response.get("error").is_none(), "{query}: {response}");
    let series = result["series"].as_array().cloned().unwrap_or_default();
    let numbers = |series: &Value| {
        let points = series["values"].as_array().cloned().unwrap_or_default();
        points.iter().filter_map(|point| point[1].as_f64()).collect()
    };
    Found(series.iter().map(|series| (strings(&series["tags"]), numbers(series))).collect())
}

/// What the variable offers, in order.
pub(crate) fn influx_variable(server: &Server, query: &str, chosen: &Chosen) -> Vec<String> {
    let response = run_query(server, &chosen.influx(query));
    let values = response["results"][0]["series"][0]["values"].as_array().cloned().unwrap_or_default();
    let mut values: Vec<String> =
        values.iter().filter_map(|pair| Some(pair[1].as_str()?.to_owned())).collect();
    values.sort();
    values
}

/// The response of Prometheus' API.
fn get(server: &Server, path: &str, fields: &[(&str, &str)]) -> Value {
    let url = server.url(path);
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let mut args = vec!["-sS", "--max-time", "10", "-G", &url];
    args.extend(fields.iter().flat_map(|field| ["--data-urlencode", field]));
    let text = Program::from(program("curl", &args)).end().stdout;
    let response: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert_eq!(response["status"], "success", "{fields:?}: {response}");
    response["data"].clone()
}

pub(crate) fn prometheus(server: &Server, line: &Line, chosen: &Chosen) -> Found {
    let (from, to) = (chosen.time.0 as f64 / 1e3, chosen.time.1 as f64 / 1e3);
    let (query, from, to) = (chosen.prometheus(&line.query), from.to_string(), to.to_string());
    let fields = [("query", &*query), ("start", &from), ("end", &to), ("step", "1")];
    let response = get(server, "/api/v1/query_range", &fields);
    let numbers = |series: &Value| {
        let points = series["values"].as_array().cloned().unwrap_or_default();
        let numbers = points.iter().filter_map(|point| point[1].as_str()?.parse().ok());
        // A quantile of nothing is NaN; Grafana shows a gap.
        numbers.filter(|n: &f64| n.is_finite()).collect()
    };
    let series = response["result"].as_array().cloned().unwrap_or_default();
    Found(series.iter().map(|series| (strings(&series["metric"]), numbers(series))).collect())
}

/// The values of a variable: `label_values(SERIES, LABEL)` is a request to the label's own address.
pub(crate) fn prometheus_variable(server: &Server, query: &str, chosen: &Chosen) -> Vec<String> {
    let query = chosen.prometheus(query);
    let inner =
        query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).expect("label_values(…)");
    let (series, label) = inner.rsplit_once(", ").expect("two parts");
    let values = get(server, &format!("/api/v1/label/{label}/values"), &[("match[]", series)]);
    values.as_array().unwrap().iter().map(|value| value.as_str().unwrap().to_owned()).collect()
}

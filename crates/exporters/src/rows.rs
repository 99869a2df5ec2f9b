//! Writes metrics to files, one line per second, as CSV or JSON.

#[cfg(feature = "parquet")]
pub(crate) mod parquet;

use std::io::{self, Write};
use std::sync::{Arc, mpsc::Receiver};

use crate::metrics::{Sample, Snapshot, plain, series};

/// Writes CSV (RFC 4180) until the channel is closed. The columns are the series of `blank`, and one sum for each open metric.
pub(crate) fn csv(out: &mut dyn Write, blank: &Snapshot, rows: &Receiver<Arc<Snapshot>>) -> io::Result<()> {
    let mut head = vec!["time".to_owned(), "elapsed_s".to_owned()];
    head.extend(columns(blank).into_iter().map(|(name, _)| name));
    line(out, &head)?;
    for row in rows {
        let mut cells = vec![row.at.with_millis(), plain(row.elapsed.secs_f64()).to_string()];
        cells.extend(
            columns(&row).into_iter().map(|(_, n)| n.map_or(String::new(), |n| plain(n).to_string())),
        );
        line(out, &cells)?;
    }
    Ok(())
}

/// Writes JSON lines until the channel is closed.
pub(crate) fn jsonl(out: &mut dyn Write, rows: &Receiver<Arc<Snapshot>>) -> io::Result<()> {
    for row in rows {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut text = format!(
            "{{\"time\":\"{}\",\"elapsed_s\":{}",
            row.at.with_millis(),
            plain(row.elapsed.secs_f64())
        );
        for (name, n) in row.samples.iter().flat_map(parts) {
            if let Some(n) = n {
                text += &format!(",{}:{}", quoted(&name), plain(n));
            }
        }
        text += "}\n";
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// The numbers of a sample, with their names.
fn parts(sample: &Sample) -> Vec<(String, Option<f64>)> {
    let parts = sample.value.parts(sample.metric().kind).into_iter();
    parts.map(|(ending, n)| (sample.series(ending), n)).collect()
}

/// The columns and their values, in a fixed order.
fn columns(snapshot: &Snapshot) -> Vec<(String, Option<f64>)> {
    let (open, closed): (Vec<&Sample>, Vec<&Sample>) =
        snapshot.samples.iter().partition(|sample| sample.metric().is_open);
    let mut columns: Vec<_> = closed.into_iter().flat_map(parts).collect();
    for (row, metric) in crate::metrics::TABLE.iter().enumerate().filter(|(_, metric)| metric.is_open) {
        let own = open.iter().filter(|sample| sample.row == row);
        let parts = own.flat_map(|sample| sample.value.parts(metric.kind)).filter_map(|(_, n)| n);
        // The sum of an empty iterator of floats is -0.
        let sum = 0.0 + parts.sum::<f64>();
        columns.push((series(metric.name, "", [].into_iter()), Some(sum)));
    }
    columns
}

/// Writes a line in one call, so that a file ends with a complete second.
fn line(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    let quoted = |cell: &String| match cell.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    let cells: Vec<String> = cells.iter().map(quoted).collect();
    out.write_all((cells.join(",") + "\r\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::made_up::two_seconds;
    use std::sync::mpsc::channel;

    fn rows() -> (Snapshot, Receiver<Arc<Snapshot>>) {
        let (blank, seconds) = two_seconds();
        let (give, rows) = channel();
        seconds.into_iter().for_each(|second| give.send(Arc::new(second)).unwrap());
        (blank, rows)
    }

    /// Splits a line of CSV (RFC 4180, section 2).
    fn cells(line: &str) -> Vec<String> {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        let mut rest = line.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '"' if quoted && rest.peek() == Some(&'"') => {
                    cells.last_mut().unwrap().push(rest.next().unwrap())
                }
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    }

    #[test]
    fn csv_has_a_column_for_each_series_and_a_line_a_second() {
        let (mut out, (blank, rows)) = (Vec::new(), rows());
        csv(&mut out, &blank, &rows).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<Vec<String>> = text.split_terminator("\r\n").map(cells).collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        let check = |column: &str, expected: [&str; 2]| {
            let at = lines[0].iter().position(|name| name == column).unwrap_or_else(|| panic!("no {column}"));
            assert_eq!([&lines[1][at], &lines[2][at]], expected, "{column}");
        };
        check("time", ["2023-11-14T22:13:21.250Z", "2023-11-14T22:13:22.250Z"]);
        check("elapsed_s", ["1", "2"]);
        check("throng_connections_open{population=\"idle\"}", ["10", "20"]);
        check("throng_requests_total{population=\"idle\"}", ["1000", "3000"]);
        check("throng_generator_cpu_seconds_total{mode=\"user\"}", ["0.2", "0.5"]);
        check("throng_connect_seconds_max{population=\"a,\\\"b\\\" =c\\\\\"}", ["0.0001", "0.0001"]);
        check("throng_connect_seconds_max{population=\"idle\"}", ["", ""]);
        check("throng_target_accept_queue", ["", ""]);
        check("throng_agent_up{agent=\"a\"}", ["1", "0"]);
        check("throng_agent_cpu_seconds_total{agent=\"a\"}", ["0.5", "1.5"]);
        check("throng_agent_cpu_seconds_total{agent=\"b\"}", ["0.25", "0.75"]);
        check("throng_agent_lag_p99_seconds{agent=\"a\"}", ["", ""]);
        check("throng_faults_total", ["1", "2"]);
        check("throng_statuses_total", ["1000", "2999"]);
    }

    #[test]
    fn the_sum_of_no_faults_is_not_negative() {
        let faults = columns(&two_seconds().0).into_iter().find(|(name, _)| name == "throng_faults_total");
        let sum = faults.and_then(|(_, sum)| sum).expect("it has a sum");
        assert_eq!(sum.to_string(), "0");
    }

    #[test]
    fn json_lines_have_the_same_and_each_status() {
        let (mut out, (_, rows)) = (Vec::new(), rows());
        jsonl(&mut out, &rows).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let check = |name: &str, expected: [serde_json::Value; 2]| {
            assert_eq!([&lines[0][name], &lines[1][name]], [&expected[0], &expected[1]], "{name}");
        };
        assert_eq!(lines.len(), 2);
        check("time", ["2023-11-14T22:13:21.250Z".into(), "2023-11-14T22:13:22.250Z".into()]);
        check("elapsed_s", [1.into(), 2.into()]);
        check(
            "throng_received_bytes_total{population=\"idle\"}",
            [5_000_000_000_u64.into(), 15_000_000_000_u64.into()],
        );
        check("throng_statuses_total{population=\"idle\",status=\"200\"}", [999.into(), 2997.into()]);
        check("throng_latency_seconds_count{population=\"idle\"}", [1000.into(), 2000.into()]);
        check("throng_agent_requests_total{agent=\"b\"}", [999.into(), 2997.into()]);
        check("throng_target_accept_queue", [serde_json::Value::Null, serde_json::Value::Null]);
    }
}

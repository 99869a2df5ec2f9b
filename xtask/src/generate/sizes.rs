//! The table of `docs/guide/machines.md`: machines, addresses and money needed for a number of connections, calculated from
//! `bench/hold-1m` and the price of one machine type.

use anyhow::{Context, Result};
use serde_json::Value;

/// The markers before and after the table.
const FROM: &str = "<!-- sizes: written by cargo xtask gen -->\n";
const TO: &str = "<!-- end of sizes -->";

/// Usable source ports per address and port of the target: 1024 to 65535, without the 2,000 that throng leaves to other programs
/// (`plan::usable_ports`).
const PORTS: u64 = 62_512;
/// Maximum share of a machine's memory and processors for the load; the rest is for the system and for bursts.
const USED: f64 = 0.5;

/// A rentable machine type.
struct Machine {
    name: &'static str,
    cores: f64,
    memory_gib: f64,
    /// US dollars per hour, on demand.
    price: f64,
    source: &'static str,
}

const MACHINE: Machine = Machine {
    name: "m7g.large",
    cores: 2.0,
    memory_gib: 8.0,
    price: 0.0816,
    source: "AWS, us-east-1, Linux, on demand, as of [2026-06-17](https://www.factualminds.com/blog/amazon-ec2-on-demand-pricing-instance-families-2026/)",
};

/// Measured resources per connection, on the client's side.
struct Measured {
    commit: String,
    /// Memory of kernel and process, in bytes.
    bytes: f64,
    /// Cores, with one request per 25 s.
    cores: f64,
    requests_per_s: f64,
}

/// The document with the table between its markers.
pub(super) fn with_sizes(text: &str, bench: &Value) -> Result<String> {
    let (head, rest) = text.split_once(FROM).with_context(|| format!("no line {}", FROM.trim()))?;
    let (_, tail) = rest.split_once(TO).with_context(|| format!("no line {TO}"))?;
    Ok(format!("{head}{FROM}\n{}\n{TO}{tail}", table(&measured(bench)?)))
}

fn measured(bench: &Value) -> Result<Measured> {
    let round = &bench["rounds"][0];
    let judged = |what: &str| {
        let rows = bench["judged"].as_array().into_iter().flatten();
        let value = rows.clone().find(|row| row["what"] == what).and_then(|row| row["value"].as_f64());
        value.with_context(|| format!("the result has no {what}"))
    };
    let held = judged("connections held, by throng")?;
    let both_ends = round["summary"]["kernel_bytes_per_connection"]["value"].as_f64();
    let kernel = both_ends.context("the result has no kernel_bytes_per_connection")? / 2.0;
    let requests =
        round["summary"]["requests"]["per_s"].as_f64().context("the result has no requests.per_s")?;
    let commit = bench["commit"].as_str().context("the result has no commit")?;
    Ok(Measured {
        commit: commit[..7].to_owned(),
        bytes: kernel + judged("user bytes a connection, run: all of its memory")?,
        cores: judged("cores while held, run")? / held,
        requests_per_s: requests / held,
    })
}

fn table(one: &Measured) -> String {
    let Machine { name, cores, memory_gib, price, source } = MACHINE;
    let mut text = format!(
        "Measured at {commit} (`bench/hold-1m`: a million connections, think time 5 s to 45 s, {rate:.0} requests/s, AMD EPYC): \
        {bytes:.0} bytes for each connection on the client's side, of which half of what the kernel takes for both ends, and \
        {cores:.2} cores for the million. A machine is {name} ({cores_of} processors, {memory_gib} GiB, ${price} an hour: {source}); \
        half of its processors and memory are used. Other machines will differ: `throng calibrate` on one of them.\n\n\
        | connections | requests/s | cores | memory | addresses and ports of the target | source addresses | machines, each with one \
        address | machines, each with enough addresses | an hour costs |\n|---|---|---|---|---|---|---|---|---|\n",
        commit = one.commit,
        rate = one.requests_per_s * 1e6,
        bytes = one.bytes,
        cores = one.cores * 1e6,
        cores_of = cores,
    );
    for connections in [1_000_000_u64, 10_000_000, 100_000_000] {
        for destinations in [1_u64, 16] {
            let n = connections as f64;
            let by_cores = (n * one.cores / (cores * USED)).ceil();
            let by_memory = (n * one.bytes / (memory_gib * f64::from(1 << 30) * USED)).ceil();
            let sources = connections.div_ceil(PORTS * destinations);
            let enough = by_cores.max(by_memory);
            let with_one = enough.max(sources as f64);
            text.push_str(&format!(
                "| {} m | {} | {:.1} | {:.1} GiB | {destinations} | {} | {} | {} | ${:.2} to ${:.2} |\n",
                connections / 1_000_000,
                grouped((n * one.requests_per_s).round() as u64),
                n * one.cores,
                n * one.bytes / f64::from(1 << 30),
                grouped(sources),
                grouped(with_one as u64),
                grouped(enough as u64),
                enough * price,
                with_one * price,
            ));
        }
    }
    text
}

/// Formats with thousands separators: `1,600`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn machines_are_as_many_as_the_scarcest_of_cores_memory_and_addresses() {
        // One core per million connections, and 4,294.967296 bytes each: 4 GiB per million.
        let one =
            Measured { commit: "c".to_owned(), bytes: 4_294.967_296, cores: 1e-6, requests_per_s: 0.04 };
        let text = table(&one);
        let rows: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(rows[0], "| 1 m | 40,000 | 1.0 | 4.0 GiB | 1 | 16 | 16 | 1 | $0.08 to $1.31 |");
        assert_eq!(rows[1], "| 1 m | 40,000 | 1.0 | 4.0 GiB | 16 | 1 | 1 | 1 | $0.08 to $0.08 |");
        assert_eq!(
            rows[4],
            "| 100 m | 4,000,000 | 100.0 | 400.0 GiB | 1 | 1,600 | 1,600 | 100 | $8.16 to $130.56 |"
        );
        assert_eq!(rows.len(), 6);
    }

    #[test]
    fn what_was_measured_is_read_from_the_result() {
        let row = |what: &str, value: f64| json!({ "what": what, "value": value });
        let mut bench = json!({
            "commit": "0123456789",
            "judged": [
                row("connections held, by throng", 1_000.0),
                row("user bytes a connection, run: all of its memory", 50.0),
                row("cores while held, run", 0.5),
            ],
            "rounds": [{ "summary": { "kernel_bytes_per_connection": { "value": 8_000.0 }, "requests": { "per_s": 40.0 } } }],
        });
        let one = measured(&bench).unwrap();
        assert_eq!((one.bytes, one.cores, one.requests_per_s), (4_050.0, 0.0005, 0.04));
        assert_eq!(one.commit, "0123456");
        bench["judged"][1]["what"] = json!("other");
        assert!(measured(&bench).is_err());
    }

    #[test]
    fn a_document_keeps_what_is_around_the_table() {
        let bench: Value = serde_json::from_str(include_str!("../../../bench/results/hold-1m.json")).unwrap();
        let text = format!("a\n{FROM}old\n{TO}\nb\n");
        let made = with_sizes(&text, &bench).unwrap();
        assert!(
            made.starts_with(&format!("a\n{FROM}\nMeasured at ")) && made.ends_with(&format!("\n{TO}\nb\n"))
        );
        assert_eq!(with_sizes(&made, &bench).unwrap(), made);
        assert!(with_sizes("a\n", &bench).is_err());
    }
}

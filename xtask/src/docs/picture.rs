//! The README's picture: the curves of a `throng demo` run on this machine, as SVG.

use crate::command::{command, finish, output, root, target, throng};
use anyhow::{Context, Result};
use serde_json::Value;
use std::fmt::Write;
use std::fs;

const PICTURE: &str = "docs/demo.svg";
/// Width and height of a panel, in pixels.
const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 130.0;
/// Left edge of the panels, top of the first one, and vertical distance between panels, in pixels.
const LEFT: f64 = 70.0;
const TOP: f64 = 70.0;
const STEP: f64 = 190.0;

/// Runs the demo and draws its stored run.
///
/// # Errors
/// The demo does not pass.
pub(super) fn draw() -> Result<()> {
    let folder = target()?.join("picture");
    fs::create_dir_all(&folder)?;
    let [seconds, summary] = ["seconds.jsonl", "summary.json"].map(|name| folder.join(name));
    let throng = throng()?;
    let mut demo = command(&throng, &["demo"])?;
    demo.env("XDG_DATA_HOME", &folder);
    finish(demo)?;
    let mut replay = command(&throng, &["replay", "latest", "--live", "off", "--jsonl"])?;
    replay.arg(&seconds).arg("--json").arg(&summary).env("XDG_DATA_HOME", &folder);
    output(replay)?;
    let seconds: Vec<Value> =
        fs::read_to_string(seconds)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let summary = serde_json::from_str(&fs::read_to_string(summary)?)?;
    fs::write(root()?.join(PICTURE), picture(&seconds, &summary)?)?;
    println!("{PICTURE}");
    Ok(())
}

/// A curve of a panel.
struct Curve {
    name: &'static str,
    colour: &'static str,
    /// Time in seconds since the start of the run, and value.
    points: Vec<(f64, f64)>,
}

fn picture(seconds: &[Value], summary: &Value) -> Result<String> {
    let until = seconds.last().and_then(|second| second["elapsed_s"].as_f64()).context("no second")?;
    let of = |names: &[&str], factor: f64| -> Vec<(f64, f64)> {
        let value = |second: &Value| names.iter().find_map(|name| second[*name].as_f64());
        let point = |second: &Value| Some((second["elapsed_s"].as_f64()?, value(second)? * factor));
        seconds.iter().filter_map(point).collect()
    };
    let open =
        Curve { name: "connections open", colour: "#58a6ff", points: of(&["throng_connections_open"], 1.0) };
    let quantile = |name: &'static str, colour, full: &str, ramp: &str| Curve {
        name,
        colour,
        points: of(&[full, ramp], 1e3),
    };
    let p99 = quantile(
        "latency p99, ms",
        "#ff9f43",
        "throng_latency_seconds_p99",
        "throng_ramp_latency_seconds_p99",
    );
    let p50 = quantile("p50, ms", "#3fb950", "throng_latency_seconds_p50", "throng_ramp_latency_seconds_p50");
    let headline = summary["headline"].as_str().context("no headline")?;
    let held = summary["connections"]["held"].as_u64().context("no connections")?;
    let memory = summary["generator"]["rss_bytes"].as_f64().context("no memory")? / f64::from(1 << 20);
    let rate = summary["requests"]["per_s"].as_f64().context("no rate")?;
    let (width, height) = (LEFT + WIDTH + 30.0, TOP + 2.0 * STEP + 40.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"ui-monospace,monospace\" font-size=\"13\">\n\
        <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    text(&mut svg, (24.0, 32.0), "#e6edf3", "$ throng demo");
    panel(&mut svg, TOP, until, &[open]);
    panel(&mut svg, TOP + STEP, until, &[p99, p50]);
    let figures = format!(
        "{} connections held by one process in {memory:.0} MiB, {} requests/s",
        grouped(held),
        grouped(rate.round() as u64)
    );
    text(&mut svg, (24.0, height - 42.0), "#8b949e", &figures);
    text(&mut svg, (24.0, height - 20.0), "#3fb950", headline);
    svg.push_str("</svg>\n");
    Ok(svg)
}

/// Draws curves over time; the y axis ends at the largest value, rounded up.
fn panel(svg: &mut String, top: f64, until: f64, curves: &[Curve]) {
    let largest = curves.iter().flat_map(|curve| &curve.points).map(|(_, value)| *value).fold(0.0, f64::max);
    let largest = rounded_up(largest);
    for share in [0.0, 0.5, 1.0] {
        let y = top + HEIGHT * (1.0 - share);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}h{WIDTH}\" stroke=\"#30363d\"/>");
        let value = largest * share;
        let label = if largest < 10.0 { format!("{value:.1}") } else { grouped(value as u64) };
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" fill=\"#8b949e\" text-anchor=\"end\">{label}</text>",
            LEFT - 8.0,
            y + 4.0
        );
    }
    let mut x = LEFT;
    for Curve { name, colour, points } in curves {
        let place = |(at, value): &(f64, f64)| {
            format!("{:.1},{:.1}", LEFT + WIDTH * at / until, top + HEIGHT * (1.0 - value / largest))
        };
        let points: Vec<String> = points.iter().map(place).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        text(svg, (x, top - 12.0), colour, name);
        x += 9.0 * name.len() as f64 + 20.0;
    }
    let seconds = format!("{until:.0} s");
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" fill=\"#8b949e\" text-anchor=\"end\">{seconds}</text>",
        LEFT + WIDTH,
        top + HEIGHT + 18.0
    );
}

fn text(svg: &mut String, (x, y): (f64, f64), colour: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{text}</text>");
}

/// The value rounded up to 1, 2, 5, 10, … times a power of ten.
fn rounded_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.max(1e-3).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= value).unwrap_or(value)
}

fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let group = |(at, digit): (usize, char)| {
        let comma = if at > 0 && (digits.len() - at).is_multiple_of(3) { "," } else { "" };
        format!("{comma}{digit}")
    };
    digits.char_indices().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_curve_is_where_its_seconds_are() {
        let seconds = [
            json!({"elapsed_s": 1.0, "throng_connections_open": 50_000, "throng_ramp_latency_seconds_p99": 0.001}),
            json!({"elapsed_s": 2.0, "throng_connections_open": 100_000, "throng_latency_seconds_p99": 0.002, "throng_latency_seconds_p50": 0.0005}),
        ];
        let summary = json!({
            "headline": "pass: all <held>", "connections": {"held": 100_000}, "generator": {"rss_bytes": 12 << 20},
            "requests": {"per_s": 9_543.4},
        });
        let svg = picture(&seconds, &summary).unwrap();
        // The middle point is at half of the width and height, the last one at the top right.
        assert!(svg.contains("points=\"480.0,135.0 890.0,70.0\""), "{svg}");
        assert!(svg.contains("points=\"480.0,325.0 890.0,260.0\""), "{svg}");
        assert!(svg.contains("points=\"890.0,357.5\""), "a second without a time has no point: {svg}");
        for part in
            [">100,000<", ">pass: all &lt;held><", "held by one process in 12 MiB, 9,543 requests/s", ">2 s<"]
        {
            assert!(svg.contains(part), "{part}: {svg}");
        }
    }

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, expected) in [(0.7, 1.0), (1.0, 1.0), (1.2, 2.0), (99_999.0, 100_000.0), (3.1, 5.0)] {
            assert!((rounded_up(value) / expected - 1.0).abs() < 1e-9, "{value}: {}", rounded_up(value));
        }
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}

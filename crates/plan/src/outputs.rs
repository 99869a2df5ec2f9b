//! Where the results of a run go, and what displays it while it lasts.

use std::net::{Ipv4Addr, SocketAddr};

use units::ParseError;

use crate::flag::{self, Flag};
use crate::flags::FlagReader;
use crate::target::Resolve;
use crate::{Flags, Mistake, Population};

mod format;
mod influx;
mod otlp;
mod post;

pub use format::{Format, Tool};
pub use influx::Influx;
pub use post::PostUrl;

/// What a run writes and shows. Not part of the [`crate::Plan`]: the load is the same without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// Progress on standard error.
    pub live: Live,
    /// Format of the printed summary, and the population that it covers.
    pub format: Format,
    /// The summary as JSON; `-` is standard output.
    pub json: Option<String>,
    /// Verdict and thresholds as JUnit test cases.
    pub junit: Option<String>,
    /// The file to which a short summary in Markdown is appended.
    pub markdown: Option<String>,
    /// Folder for all outputs.
    pub out: Option<String>,
    /// A file for the report.
    pub report: Option<String>,
    /// A file for the histograms of each second.
    pub hlog: Option<String>,
    /// A file for the metrics of each second, as CSV.
    pub csv: Option<String>,
    /// The same, as JSON.
    pub jsonl: Option<String>,
    /// The same, as Parquet.
    pub parquet: Option<String>,
    /// Address of the Prometheus endpoint.
    pub prometheus: Option<SocketAddr>,
    /// The live page.
    pub dashboard: Option<Dashboard>,
    /// The InfluxDB to which metrics are pushed.
    pub influx: Option<Influx>,
    /// OpenTelemetry collector to which metrics are pushed.
    pub otlp: Option<PostUrl>,
    /// Tags of the stored run, each once.
    pub tags: Vec<String>,
}

/// Progress on standard error while a run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// Chosen by whether there is a terminal.
    Auto,
    /// Full-screen view, with keys.
    Tui,
    /// One line a second.
    Line,
    /// The http-kit client's line.
    Classic,
    /// Nothing.
    Off,
}

/// A live page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// Where it listens.
    pub at: SocketAddr,
    /// File with the token that the page requires; `None` only on loopback.
    pub token_file: Option<String>,
}

impl Outputs {
    /// Reads the flags and reports all mistakes at once. `populations` are those of the plan; empty if the plan has mistakes.
    ///
    /// # Errors
    /// All mistakes.
    pub fn from_flags(
        flags: &Flags,
        populations: &[Population],
        resolve: Resolve,
    ) -> Result<Outputs, Vec<Mistake>> {
        let mut reader = FlagReader::new(flags);
        let r = &mut reader;
        let text = |flag: &Flag| flags.get(flag).map(str::to_owned);
        let outputs = Outputs {
            live: r.read(&flag::LIVE, Live::Auto, live),
            format: r.read(&flag::FORMAT, Format::OWN, |text| Format::parse(text, populations)),
            json: text(&flag::JSON),
            junit: text(&flag::JUNIT),
            markdown: text(&flag::MARKDOWN),
            out: text(&flag::OUT),
            report: text(&flag::REPORT),
            hlog: text(&flag::HLOG),
            csv: text(&flag::CSV),
            jsonl: text(&flag::JSONL),
            parquet: text(&flag::PARQUET),
            prometheus: r.given(&flag::PROMETHEUS, endpoint),
            dashboard: r.dashboard(),
            influx: r.influx(resolve),
            otlp: r.given(&flag::OTLP, |url| otlp::parse(url, resolve)),
            tags: r.tags(),
        };
        if reader.mistakes.is_empty() { Ok(outputs) } else { Err(reader.mistakes) }
    }
}

impl FlagReader<'_> {
    fn dashboard(&mut self) -> Option<Dashboard> {
        let token_file = self.get(&flag::DASHBOARD_TOKEN_FILE).map(str::to_owned);
        if token_file.is_some() && self.get(&flag::DASHBOARD).is_none() {
            self.add(&flag::DASHBOARD_TOKEN_FILE, "requires --dashboard");
        }
        self.given(&flag::DASHBOARD, |text| match endpoint(text)? {
            at if token_file.is_some() || at.ip().is_loopback() => Ok(Dashboard { at, token_file }),
            at => Err(format!(
                "without --dashboard-token-file only loopback is allowed; use 127.0.0.1:{}: {at}",
                at.port()
            )),
        })
    }

    fn influx(&mut self, resolve: Resolve) -> Option<Influx> {
        let token_file = self.get(&flag::INFLUX_TOKEN_FILE).map(str::to_owned);
        if self.get(&flag::INFLUX).is_none() {
            let why = "requires --influx http://HOST:8086/api/v2/write?org=O&bucket=B";
            self.refuse(&flag::INFLUX_TOKEN_FILE, why);
        }
        self.given(&flag::INFLUX, |url| Influx::parse(url, token_file, resolve))
    }

    fn tags(&mut self) -> Vec<String> {
        let mut tags: Vec<String> = Vec::new();
        for tag in self.all(&flag::TAG, tag) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        tags
    }
}

/// The tags of a stored run, each once.
///
/// # Errors
/// All invalid tags.
pub fn tags(flags: &Flags) -> Result<Vec<String>, Vec<Mistake>> {
    let mut reader = FlagReader::new(flags);
    let tags = reader.tags();
    if reader.mistakes.is_empty() { Ok(tags) } else { Err(reader.mistakes) }
}

/// Parses a tag of a stored run.
///
/// # Errors
/// It contains a character that a tag may not have.
pub fn tag(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "-_.".contains(c)) {
        true => Ok(text.to_owned()),
        false => Err(format!("may have letters, digits, -, _ and . only: {text:?}")),
    }
}

/// Parses a listening address; a port alone is on loopback.
fn endpoint(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse().map(|port: u16| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let wrong = |_| format!("{text:?} is not an address and port; use 127.0.0.1:9464, or 9464 for the same");
    port.or_else(|_| text.parse()).map_err(wrong)
}

fn live(text: &str) -> Result<Live, ParseError> {
    match text {
        "auto" => Ok(Live::Auto),
        "tui" => Ok(Live::Tui),
        "line" => Ok(Live::Line),
        "classic" => Ok(Live::Classic),
        "off" => Ok(Live::Off),
        _ => Err(ParseError::new(text, "a live view", "auto, tui, line, classic or off")),
    }
}

#[cfg(test)]
mod tests;

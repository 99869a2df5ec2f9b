//! The formats of a report.

use std::slice;

use super::{Report, report_html, report_json};

/// What the report of a run is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// One page that needs no network.
    Html,
    /// For a ticket, or a pull request.
    Markdown,
    /// `throng.report/1`.
    Json,
}

impl ReportFormat {
    /// By its name, which is the extension of its files: `html`, `md` or `json`.
    ///
    /// # Errors
    /// It is none of them; with the fix.
    pub fn parse(text: &str) -> Result<ReportFormat, String> {
        match text {
            "html" => Ok(ReportFormat::Html),
            "md" => Ok(ReportFormat::Markdown),
            "json" => Ok(ReportFormat::Json),
            _ => Err(format!("{text:?} is not a format; use html, md or json")),
        }
    }

    /// The media type.
    pub const fn media_type(self) -> &'static str {
        match self {
            ReportFormat::Html => "text/html; charset=utf-8",
            ReportFormat::Markdown => "text/markdown; charset=utf-8",
            ReportFormat::Json => "application/json",
        }
    }

    /// The report of one run.
    pub fn text(self, report: &Report) -> String {
        let one = slice::from_ref(report);
        match self {
            ReportFormat::Html => report_html(one, None),
            ReportFormat::Markdown => report.markdown(),
            ReportFormat::Json => report_json(one, None),
        }
    }
}

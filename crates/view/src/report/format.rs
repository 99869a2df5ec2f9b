//! The formats of a report.

use std::slice;

use super::{Report, report_html, report_json};

/// The format of a report on a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportFormat {
    /// A page in one file that needs no network.
    Html,
    /// Markdown, for a ticket or a pull request.
    Markdown,
    /// JSON of schema `throng.report/1`.
    Json,
}

impl ReportFormat {
    /// The format with this name, which is also the extension of its files: `html`, `md` or `json`.
    ///
    /// # Errors
    /// Another name; the message contains the fix.
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

    /// The report of one run in this format.
    pub fn text(self, report: &Report) -> String {
        let one = slice::from_ref(report);
        match self {
            ReportFormat::Html => report_html(one, None),
            ReportFormat::Markdown => report.markdown(),
            ReportFormat::Json => report_json(one, None),
        }
    }
}

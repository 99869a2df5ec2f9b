//! The table of panels in the guide, between two markers.

use super::panels::ROWS;
use anyhow::{Context, Result};
use std::fmt::Write;

const BEGIN: &str = "<!-- panels: `cargo xtask gen` -->\n";
const END: &str = "<!-- end of panels -->\n";

/// The guide with a current table.
///
/// # Errors
/// The guide has no markers for the table.
pub(super) fn with_panels(guide: &str) -> Result<String> {
    let (before, rest) = guide.split_once(BEGIN).context("no mark where the panels begin")?;
    let (_, after) = rest.split_once(END).context("no mark where the panels end")?;
    Ok(format!("{before}{BEGIN}{}{END}{after}", table()))
}

fn table() -> String {
    let mut text = String::new();
    for row in ROWS {
        write!(text, "\n**{}**\n\n| panel | what it says |\n|---|---|\n", row.title)
            .expect("a String takes it");
        for panel in row.panels {
            writeln!(text, "| {} | {} |", panel.title, panel.says).expect("a String takes it");
        }
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_the_table_stays() {
        let made = with_panels(&format!("a\n{BEGIN}old\n{END}b\n")).unwrap();
        assert!(made.starts_with(&format!("a\n{BEGIN}\n**")) && made.ends_with(&format!("|\n\n{END}b\n")));
        assert_eq!(with_panels(&made).unwrap(), made);
        assert!(with_panels("a\n").is_err());
    }
}

//! Tables for the terminal and for Markdown. The first row contains the headings.

/// The cells of a row. All rows of a table have the same number of cells.
pub(crate) type Row = Vec<String>;

/// A table as aligned text: the first column is left-aligned, the others are right-aligned.
pub(crate) fn aligned(rows: &[Row]) -> String {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let cell = |(at, text): (usize, &String)| match at {
        0 => format!("{text:<width$}", width = widths[at]),
        _ => format!("{text:>width$}", width = widths[at]),
    };
    let line = |row: &Row| {
        let cells: Vec<String> = row.iter().enumerate().map(cell).collect();
        format!("  {}\n", cells.join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

/// A table in Markdown.
pub(crate) fn markdown(rows: &[Row]) -> String {
    let line = |row: &Row| {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("| ---{} |\n", " | ---:".repeat(rows[0].len() - 1));
    let [head, rest] = [&rows[..1], &rows[1..]].map(|rows| rows.iter().map(line).collect::<String>());
    head + &rule + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_or_separated() {
        let rows = [["", "then", "now"], ["connections", "–", "400"], ["a|b", "32,047", "19,400"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let text =
            "                 then     now\n  connections       –     400\n  a|b          32,047  19,400\n";
        assert_eq!(aligned(&rows), text);
        let text = "|  | then | now |\n| --- | ---: | ---: |\n| connections | – | 400 |\n| a\\|b | 32,047 | 19,400 |\n";
        assert_eq!(markdown(&rows), text);
    }
}

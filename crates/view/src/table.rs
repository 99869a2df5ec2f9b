//! Tables for a terminal. If there are headings, they are the first row.

/// Lines with aligned columns: those in `left` are aligned to the left, the others, which contain figures, to the right.
pub fn aligned<const N: usize>(rows: &[[String; N]], left: &[usize]) -> Vec<String> {
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let cell = |(at, text): (usize, &String)| match left.contains(&at) {
        true => format!("{text:<0$}", widths[at]),
        false => format!("{text:>0$}", widths[at]),
    };
    let line = |row: &[String; N]| row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ");
    rows.iter().map(|row| line(row).trim_end().to_owned()).collect()
}

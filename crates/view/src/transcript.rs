//! A transcript on a terminal: its lines in colours, by their first character.

/// The lines of a transcript in the colours of a terminal.
pub fn coloured(lines: &str) -> String {
    let of = |line: &str| {
        let colour = match line.as_bytes().first() {
            Some(b'#') => 1,
            Some(b'>') => 36,
            Some(b'<') => 34,
            Some(b'*') => 90,
            Some(b'=') => 32,
            Some(b'!') => 31,
            _ => return format!("{line}\n"),
        };
        format!("\x1b[{colour}m{line}\x1b[0m\n")
    };
    lines.lines().map(of).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_kind_of_line_has_its_colour() {
        assert_eq!(super::coloured("\n# 1 a\n> x\n"), "\n\x1b[1m# 1 a\x1b[0m\n\x1b[36m> x\x1b[0m\n");
    }
}

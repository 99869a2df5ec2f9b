//! Rust source with all that is no code blanked out: comments, and what strings and characters contain.

/// The same text with blanks in place of comments and literals, so that a word found in it is code, on the
/// same line as before (Rust reference, chapters "Comments" and "Tokens").
pub(crate) fn code_only(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    while code.len() < bytes.len() {
        let at = code.len();
        let rest = &bytes[at..];
        let length = opaque(rest, at.checked_sub(1).map(|before| bytes[before]));
        match length {
            0 => code.push(rest[0]),
            _ => code.extend(rest[..length].iter().map(|&b| if b == b'\n' { b } else { b' ' })),
        }
    }
    // Only whole characters are blanked, each byte by a blank.
    String::from_utf8(code).expect("literals and comments begin and end between characters")
}

/// Length of the comment or literal in front; 0 where there is code.
fn opaque(rest: &[u8], before: Option<u8>) -> usize {
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest),
        // An `r` that ends a name begins nothing; `br` and `cr` do.
        [b'r', b'"' | b'#', ..] if !before.is_some_and(|b| is_name(b) && b != b'b' && b != b'c') => raw(rest),
        [b'\'', ..] => character(rest),
        _ => 0,
    }
}

pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Whether `word` stands in `line` as a whole: `unsafe`, not `unsafe_code`.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].bytes().last();
        let after = line[at + word.len()..].bytes().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"…"`, `r##"…"##`; but `r#name` is a name.
fn raw(rest: &[u8]) -> usize {
    let marks = rest[1..].iter().take_while(|&&b| b == b'#').count();
    if rest.get(1 + marks) != Some(&b'"') {
        return 0;
    }
    let end = [b"\"".as_slice(), &rest[1..1 + marks]].concat();
    let body = 2 + marks;
    let closing = rest[body..].windows(end.len()).position(|window| window == end);
    closing.map_or(rest.len(), |at| body + at + end.len())
}

/// `'x'` and `'\n'`; but `'a` alone is a lifetime.
fn character(rest: &[u8]) -> usize {
    let quote_from = |from: usize| rest.iter().skip(from).position(|&b| b == b'\'').map(|at| from + at + 1);
    match rest.get(1) {
        Some(b'\\') => quote_from(3).unwrap_or(rest.len()),
        Some(first) => {
            let width = match first {
                0..0x80 => 1,
                0x80..0xE0 => 2,
                0xE0..0xF0 => 3,
                _ => 4,
            };
            if rest.get(1 + width) == Some(&b'\'') { width + 2 } else { 0 }
        }
        None => 0,
    }
}

/// The code without a test module at its end, where other rules hold.
pub(crate) fn without_tests(code: &str) -> &str {
    let tests = code.match_indices("#[cfg(test)]").find(|(at, mark)| {
        let next = code[at + mark.len()..].trim_start();
        next.starts_with("mod ") && next.find(['{', ';']).is_some_and(|end| next.as_bytes()[end] == b'{')
    });
    tests.map_or(code, |(at, _)| &code[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let code = code_only(text);
        assert_eq!(code.len(), text.len(), "{text}");
        assert_eq!(code.lines().count(), text.lines().count(), "{text}");
        // How many blanks stand in between does not matter.
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), expected, "{text}");
    }

    #[test]
    fn comments_and_literals_are_no_code() {
        check("a // b\nc", "a c");
        check("a /* b /* c */ d */ e", "a e");
        check("a /* never closed", "a");
        check("a(\"b\", c)", "a( , c)");
        check(r#"a("\"b\\", c)"#, "a( , c)");
        check("a(\"b\nc\", d)", "a( , d)");
        check("a(\"never closed", "a(");
        check("a(r\"b\\\", c)", "a( , c)");
        check("a(r#\"b\"c\"#, d)", "a( , d)");
        check("a(br##\"b\"# c\"##, d)", "a(b , d)");
        check("r#unsafe + r#type", "r#unsafe + r#type");
        check("'\"' + '\\'' + 'ü' + '\\u{1F600}' + b'x' c", "+ + + + b c");
        check("fn f<'a>(x: &'a str) {} // '", "fn f<'a>(x: &'a str) {}");
        check("let url = \"http://x\"; y", "let url = ; y");
        check("größe /* ü */ // ü", "größe");
    }

    #[test]
    fn tests_at_the_end_are_cut_off() {
        for (code, expected) in [
            ("a\n#[cfg(test)]\nmod tests {\nb\n}\n", "a\n"),
            ("a\n", "a\n"),
            ("#[cfg(test)]\nmod fake;\na\n", "#[cfg(test)]\nmod fake;\na\n"),
            ("#[cfg(test)]\nuse x;\na\n#[cfg(test)]\nmod tests { b }", "#[cfg(test)]\nuse x;\na\n"),
        ] {
            assert_eq!(without_tests(code), expected);
        }
    }
}

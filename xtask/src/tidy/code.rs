//! Reduces Rust source to its code: blanks out comments, and the contents of strings and characters.

/// The text with comments and literals replaced by blanks, so that a word found in it is code, in the same line as in the source
/// (Rust reference, chapters "Comments" and "Tokens").
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
    // Only whole characters are blanked, one blank per byte.
    String::from_utf8(code).expect("literals and comments begin and end between characters")
}

/// Length of the comment or literal at the start of `rest`; 0 if it starts with code. `before`: the preceding byte.
fn opaque(rest: &[u8], before: Option<u8>) -> usize {
    match rest {
        [b'/', b'/', ..] => rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()),
        [b'/', b'*', ..] => block_comment(rest),
        [b'"', ..] => quoted(rest),
        // An `r` at the end of a name does not begin a raw string; `br` and `cr` do.
        [b'r', b'"' | b'#', ..] if !before.is_some_and(|b| is_name(b) && b != b'b' && b != b'c') => raw(rest),
        [b'\'', ..] => character(rest),
        _ => 0,
    }
}

pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Whether `line` contains `word` as a whole word: `unsafe`, not `unsafe_code`.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].bytes().last();
        let after = line[at + word.len()..].bytes().next();
        !before.is_some_and(is_name) && !after.is_some_and(is_name)
    })
}

/// The length of a block comment; block comments nest.
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

/// The length of a raw string, `r"…"` or `r##"…"##`; 0 for `r#name`, which is an identifier.
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

/// The length of `'x'` or `'\n'`; 0 for `'a`, which is a lifetime.
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

/// The code without the test module at its end, to which other rules apply.
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
        // The number of blanks does not matter.
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

//! The words of commands as a POSIX shell reads them: quotes, backslashes, comments and redirections; and `$'…'`.

use std::{iter::Peekable, str::Chars};

/// The commands that have been read.
#[derive(Default)]
struct Commands {
    all: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// Whether the next word is the file of a redirection.
    is_file: bool,
}

impl Commands {
    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.is_file)
        {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_file = false;
        if !self.words.is_empty() {
            self.all.push(std::mem::take(&mut self.words));
        }
    }
}

/// The words of each command.
pub(super) fn commands(text: &str) -> Result<Vec<Vec<String>>, String> {
    let mut read = Commands::default();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                // A line that is continued.
                Some('\n') | None => {}
                Some('\r') => drop(chars.next_if_eq(&'\n')),
                Some(other) => read.word.get_or_insert_default().push(other),
            },
            '\'' | '"' => quoted(c, &mut chars, read.word.get_or_insert_default())?,
            '$' if chars.next_if_eq(&'\'').is_some() => {
                quoted('$', &mut chars, read.word.get_or_insert_default())?;
            }
            '#' if read.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            '>' | '<' => {
                // The number of a file descriptor may precede it.
                read.word.take_if(|word| word.bytes().all(|b| b.is_ascii_digit()));
                read.end_word();
                while chars.next_if(|c| matches!(c, '>' | '<' | '&')).is_some() {}
                read.is_file = true;
            }
            '\n' | ';' | '|' | '&' => read.end_command(),
            c if c.is_whitespace() => read.end_word(),
            c => read.word.get_or_insert_default().push(c),
        }
    }
    read.end_command();
    Ok(read.all)
}

/// Reads up to the closing quote; `$` stands for `$'…'`.
fn quoted(quote: char, chars: &mut Peekable<Chars>, word: &mut String) -> Result<(), String> {
    loop {
        match (quote, chars.next().ok_or("a quote is not closed")?) {
            ('\'' | '$', '\'') | ('"', '"') => return Ok(()),
            ('"', '\\') if chars.peek().is_some_and(|next| "\"\\$`\n".contains(*next)) => {
                word.extend(chars.next().filter(|next| *next != '\n'));
            }
            ('$', '\\') => word.extend(ansi_c(chars)),
            (_, other) => word.push(other),
        }
    }
}

/// An escape in `$'…'`, as browsers write them: `\n`, `\'`, `\u0021`.
fn ansi_c(chars: &mut Peekable<Chars>) -> Option<char> {
    match chars.next()? {
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' => {
            let digits: String =
                std::iter::from_fn(|| chars.next_if(char::is_ascii_hexdigit)).take(4).collect();
            u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
        }
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&[&str]]) {
        assert_eq!(commands(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn words_are_those_of_a_shell() {
        check("a  b\tc; d | e & f\n\ng", &[&["a", "b", "c"], &["d"], &["e"], &["f"], &["g"]]);
        check("a 'b c'\"d\"e '' \"\\\"\\x\" \\'", &[&["a", "b cde", "", "\"\\x", "'"]]);
        check("a \\\n b \\\r\n c", &[&["a", "b", "c"]]);
        check("a # b 'c\nd #\n e#f", &[&["a"], &["d"], &["e#f"]]);
        check("$'a\\n\\u0021\\'' $b", &[&["a\n!'", "$b"]]);
        check("a >out b 2>/dev/null 2>&1 >> c <in; d", &[&["a", "b"], &["d"]]);
        for open in ["'a", "\"a", "$'a\\'"] {
            assert!(commands(open).is_err(), "{open}");
        }
    }
}

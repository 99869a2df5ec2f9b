//! Hides the secrets in a scenario file, so that it can be stored and shown.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::{flag, secrets::is_public};

/// The text of a scenario file with `***` for header values, except for public headers such as `Content-Type`, and for the values of
/// secret flags. Everything else stays the same, including comments and line breaks.
pub fn without_secrets(text: &str) -> String {
    let (root, _) = DeTable::parse_recoverable(text);
    let mut spans = Vec::new();
    find(root.get_ref(), &mut spans);
    spans.sort_by_key(|span: &Range<usize>| std::cmp::Reverse(span.start));
    let mut text = text.to_owned();
    for span in spans {
        text.replace_range(span, "\"***\"");
    }
    text
}

/// Collects the places of secrets in a table.
fn find(table: &DeTable, spans: &mut Vec<Range<usize>>) {
    for (name, value) in table.iter() {
        match value.get_ref() {
            DeValue::Table(headers) if name.get_ref() == "headers" => {
                let secret = headers.iter().filter(|(name, _)| !is_public(name.get_ref()));
                spans.extend(secret.map(|(_, value)| value.span()));
            }
            DeValue::Table(inner) => find(inner, spans),
            _ if flag::is_secret(name.get_ref()) => spans.push(value.span()),
            DeValue::Array(items) => {
                let tables = items.iter().filter_map(|item| item.get_ref().as_table());
                tables.for_each(|inner| find(inner, spans));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(without_secrets(text), expected);
    }

    #[test]
    fn the_values_of_headers_are_left_out() {
        let same = "# a comment\ntarget = \"http://h/\"\nbody = \"{}\"\n";
        check(same, same);
        check(
            "[[population]]\n[[population.step]]\nheaders = { Authorization = \"Bearer é\", Content-Type = 'a/b', x = '''1''' } # so\n",
            "[[population]]\n[[population.step]]\nheaders = { Authorization = \"***\", Content-Type = 'a/b', x = \"***\" } # so\n",
        );
        check(
            "[[population]]\nstep = [{ headers = { Cookie = \"a=b\" }, request = \"GET /\" }]\n",
            "[[population]]\nstep = [{ headers = { Cookie = \"***\" }, request = \"GET /\" }]\n",
        );
        check("user = \"me:s\"\n[csv.user]\na = \"b\"\n", "user = \"***\"\n[csv.user]\na = \"b\"\n");
        check(
            "headers.X-Key = \"s\"\n[headers]\ny = \"\"\"\nt\"\"\"\n",
            "headers.X-Key = \"***\"\n[headers]\ny = \"***\"\n",
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in "(\\[?headers\\]?|[a-z.=\"'{}\\[\\]\n# é]){0,30}") {
            without_secrets(&text);
        }
    }
}

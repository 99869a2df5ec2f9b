//! GraphQL over HTTP: a step with a document becomes a POST whose content is JSON, and a response with errors is wrong.

use serde_json::json;

use super::Reader;
use super::document::Section;
use crate::text::Place;
use crate::{Body, Text};

/// The keys of a step that belong to a document.
pub(super) const KEYS: [&str; 3] = ["graphql", "operation", "variables"];

impl Reader<'_, '_> {
    /// The content of a step with a GraphQL document.
    pub(super) fn graphql(&mut self, section: &Section) -> Option<Body> {
        section.refuse(
            self.notes,
            &["body", "body-file"],
            "cannot be used with graphql; remove one of the two",
        );
        let document = &section.scalar("graphql")?.text;
        let all = operations(document);
        let wanted = section.scalar("operation").map(|scalar| scalar.text.as_str());
        let name = match wanted {
            Some(name) if !all.iter().any(|own| own == name) => {
                let why = format!("no such operation; use one of {}: {name:?}", all.join(", "));
                section.note(self.notes, "operation", why);
                return None;
            }
            None if all.len() > 1 => {
                let why = format!("several operations; add operation = {:?}: {}", all[0], all.join(", "));
                section.note(self.notes, "graphql", why);
                return None;
            }
            wanted => wanted.or(all.first().map(String::as_str)),
        };
        let tables = self.tables;
        let variables =
            section.read(self.notes, "variables", |text| match text.trim_start().starts_with('{') {
                true => Text::parse(text, Place::Content, tables),
                false => Err(format!("variables are a JSON object; use '{{\"id\": {{seq}}}}': {text:?}")),
            });
        // The document is sent as it is: its braces begin no variables.
        let mut body = Text::fixed(&format!("{{\"query\":{}", json!(document)));
        name.into_iter().for_each(|name| body.push(&format!(",\"operationName\":{}", json!(name))));
        if let Some(variables) = variables {
            body.push(",\"variables\":");
            body.extend(&variables);
        }
        body.push("}");
        Some(Body::Text(body))
    }
}

/// The name of the operation that a step sends: the given one, or that of its document.
pub(super) fn operation(section: &Section) -> Option<String> {
    let given = section.scalar("operation").map(|scalar| scalar.text.clone());
    given.or_else(|| operations(&section.scalar("graphql")?.text).into_iter().next())
}

/// The names of the operations of a document (GraphQL, October 2021, section 2.3).
fn operations(document: &str) -> Vec<String> {
    // The words of a definition outside of braces: its kind, and then its name.
    let (mut names, mut depth, mut words) = (Vec::new(), 0_u32, Vec::new());
    let mut rest = document;
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = match c {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '"' => string(rest),
            c if is_name(c) => rest.find(|c| !is_name(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        match c {
            '{' | '(' => depth += 1,
            '}' | ')' => {
                depth = depth.saturating_sub(1);
                if c == '}' && depth == 0 {
                    words.clear();
                }
            }
            c if is_name(c) && depth == 0 => {
                words.push(token);
                if let ["query" | "mutation" | "subscription", name] = words[..] {
                    names.push(name.to_owned());
                }
            }
            _ => {}
        }
        rest = after;
    }
    names
}

/// The length of the string at the beginning of a text.
fn string(text: &str) -> usize {
    let quote = if text.starts_with("\"\"\"") { "\"\"\"" } else { "\"" };
    let mut at = quote.len();
    while at < text.len() {
        if text[at..].starts_with(quote) {
            return at + quote.len();
        }
        let escaped = usize::from(text[at..].starts_with('\\'));
        let next = |at: usize| text.get(at..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8);
        at += if escaped == 1 { 1 + next(at + 1) } else { next(at) };
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_found_outside_of_selections() {
        let check =
            |document: &str, expected: &[&str]| assert_eq!(operations(document), expected, "{document}");
        check("{ user { name } }", &[]);
        check("query { user }", &[]);
        check("query User($id: ID! = \"query A\") @live { query B { c } }", &["User"]);
        check(
            "# query No\nquery\n  Yes { a }\nfragment query on T { b }\nmutation Save{c}",
            &["Yes", "Save"],
        );
        check("\"\"\"query No\"\"\" subscription S { a(b: \"}\\\"\") }", &["S"]);
        check("query \u{e9} \"open", &[]);
    }
}

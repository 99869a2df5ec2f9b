//! Parses the filter of a list from a query string.

use store::{RunFilter, VERDICTS};

/// Maximum length of a query string, in bytes.
const MAX_QUERY: usize = 2_000;

/// Parses `target=&verdict=&tag=&before=`; empty values are ignored.
///
/// # Errors
/// An unknown parameter or value; the message contains the fix.
pub(super) fn filter(query: &str) -> Result<RunFilter, String> {
    if query.len() > MAX_QUERY {
        return Err(format!("the query is too long, at most {MAX_QUERY} bytes"));
    }
    let mut filter = RunFilter::default();
    for (name, value) in webserver::parameters(query) {
        let field = match name {
            "target" => &mut filter.target,
            "verdict" => &mut filter.verdict,
            "tag" => &mut filter.tag,
            "before" => &mut filter.before,
            _ => return Err(format!("{name}: use target, verdict, tag or before")),
        };
        *field = Some(decoded(value)?).filter(|value| !value.is_empty());
    }
    match &filter.verdict {
        Some(verdict) if !VERDICTS.contains(&verdict.as_str()) => {
            Err(format!("verdict: use {}: {verdict:?}", VERDICTS.join(", ")))
        }
        _ => Ok(filter),
    }
}

/// Decodes `application/x-www-form-urlencoded` (URL, 5.1), in which `+` is a space.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || format!("not percent-encoded UTF-8: {text:?}");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                (high.ok_or_else(wrong)? * 16 + low.ok_or_else(wrong)?) as u8
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: &str, expected: Result<[Option<&str>; 4], &str>) {
        let read = filter(query);
        match (&read, expected) {
            (Ok(filter), Ok(expected)) => {
                let RunFilter { target, verdict, tag, before } = filter;
                let own = [target, verdict, tag, before].map(|field| field.as_deref());
                assert_eq!(own, expected, "{query}");
            }
            (Err(why), Err(part)) => assert!(why.contains(part), "{query}: {why}"),
            _ => panic!("{query}: {read:?}"),
        }
    }

    #[test]
    fn conditions_are_read_and_others_are_refused() {
        check("", Ok([None; 4]));
        check("target=&verdict=&tag=", Ok([None; 4]));
        check("target=%2Fa%26b+c&tag=%C3%BC", Ok([Some("/a&b c"), None, Some("ü"), None]));
        check("verdict=unfinished&before=0abc", Ok([None, Some("unfinished"), None, Some("0abc")]));
        check("verdict=good", Err("use pass, fail, invalid, interrupted, unfinished"));
        check("limit=1000000", Err("limit: use target"));
        for wrong in ["tag=%", "tag=%4", "tag=%zz", "tag=%ff"] {
            check(wrong, Err("not percent-encoded"));
        }
        check(&format!("tag={}", "a".repeat(2_000)), Err("too long"));
    }
}

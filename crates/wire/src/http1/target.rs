//! Request targets (RFC 9112, section 3.2; RFC 3986, section 3.4).

/// The value of the query parameter `name` in a request target, as sent (not percent-decoded): the first if there are several, empty if
/// it has no value, `None` if there is no such parameter.
pub fn query<'a>(target: &'a str, name: &str) -> Option<&'a str> {
    let (_, query) = target.split_once('?')?;
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    query.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::query;

    fn check((target, name): (&str, &str), expected: Option<&str>) {
        assert_eq!(query(target, name), expected, "{name} in {target}");
    }

    #[test]
    fn values_by_name() {
        check(("/?length=5", "length"), Some("5"));
        check(("/delay?for=5s&length=12", "for"), Some("5s"));
        check(("/delay?for=5s&length=12", "length"), Some("12"));
        check(("http://host/?a=1", "a"), Some("1"));
        check(("/?a=1&a=2", "a"), Some("1"));
        check(("/?a=b=c", "a"), Some("b=c"));
        check(("/?x=?a=1&a=2", "a"), Some("2"));
        check(("/?a=%20", "a"), Some("%20"));
        check(("/?a", "a"), Some(""));
        check(("/?a=", "a"), Some(""));
        check(("/?a=1#a=2", "a"), Some("1"));
    }

    #[test]
    fn values_that_are_not_there() {
        check(("/", "a"), None);
        check(("*", "a"), None);
        check(("/a=1", "a"), None);
        check(("/?", "a"), None);
        check(("/?ba=1&ab=2", "a"), None);
        check(("/?A=1", "a"), None);
        check(("/?b#a=1", "a"), None);
    }
}

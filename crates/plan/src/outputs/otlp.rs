//! The metrics endpoint of an OpenTelemetry collector, JSON over HTTP: `http://10.0.0.7:4318`.

use super::post::PostUrl;
use crate::target::Resolve;

const FIX: &str = "use http://HOST:4318, or with its path http://HOST:4318/v1/metrics";
/// Default path of OTLP/HTTP.
const PATH: &str = "/v1/metrics";

/// Parses the URL; uses the first address of a name. The error has the fix.
pub(super) fn parse(text: &str, resolve: Resolve) -> Result<PostUrl, String> {
    let url = PostUrl::parse(text, FIX, resolve)?;
    let path = if ["", "/"].contains(&&*url.path) { PATH.to_owned() } else { url.path };
    Ok(PostUrl { path, ..url })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&str, &str), &str>) {
        let resolve = |_: &str| Err("no such host".to_owned());
        match (parse(text, &resolve), expected) {
            (Ok(otlp), Ok((at, path))) => {
                assert_eq!((&*otlp.at.to_string(), &*otlp.path), (at, path), "{text}")
            }
            (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
            (other, _) => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_destination_of_metrics_is_printed() {
        check("http://10.0.0.7:4318", Ok(("10.0.0.7:4318", PATH)));
        check("http://[::1]:4318/", Ok(("[::1]:4318", PATH)));
        check("http://10.0.0.7:4318/otlp/v1/metrics?a=b", Ok(("10.0.0.7:4318", "/otlp/v1/metrics?a=b")));
        check("https://10.0.0.7:4318", Err("does not start with http://; use http://HOST:4318"));
        check("http://near:4318", Err("no such host"));
        check("http://1.1.1.1,1.1.1.2:4318", Err("not a host and port"));
        check("http://10.0.0.7:4318/a b", Err("not allowed in a URL"));
    }
}

//! The write endpoint of an InfluxDB: `http://10.0.0.7:8086/write?db=throng`.

use super::post::PostUrl;
use crate::target::Resolve;

/// An InfluxDB, version 1 or 2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Influx {
    /// Its write endpoint.
    pub url: PostUrl,
    /// The file with its token.
    pub token_file: Option<String>,
}

const FIX: &str =
    "use http://HOST:8086/write?db=throng, or for version 2 http://HOST:8086/api/v2/write?org=O&bucket=B";

impl Influx {
    /// Parses the URL; uses the first address of a name. The error has the fix.
    ///
    /// # Errors
    /// The URL is not a write endpoint, or the name has no address.
    pub fn parse(text: &str, token_file: Option<String>, resolve: Resolve) -> Result<Influx, String> {
        let url = PostUrl::parse(text, FIX, resolve)?;
        let wrong = |why: &str| format!("{why}; {FIX}: {text:?}");
        let (name, query) = url.path.split_once('?').unwrap_or((&url.path, ""));
        let has =
            |key: &str| query.split('&').any(|pair| pair.strip_prefix(key).is_some_and(|v| v.len() > 1));
        let key = if name.ends_with("/api/v2/write") { "bucket" } else { "db" };
        if !name.ends_with("/write") || !has(key) {
            return Err(wrong("not a write endpoint"));
        }
        if has("precision") {
            return Err(wrong("times are in nanoseconds; remove precision"));
        }
        Ok(Influx { url, token_file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(&str, &str), &str>) {
        let resolve = |name: &str| match name {
            "far" => Ok(["10.0.0.7", "10.0.0.8"].map(|address| address.parse().unwrap()).to_vec()),
            _ => Err("no such host".to_owned()),
        };
        match (Influx::parse(text, None, &resolve), expected) {
            (Ok(influx), Ok((at, path))) => {
                assert_eq!((&*influx.url.at.to_string(), &*influx.url.path), (at, path), "{text}");
            }
            (Err(why), Err(part)) => assert!(why.contains(part), "{text}: {why}"),
            (other, _) => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn the_destination_of_points_is_printed() {
        check("http://10.0.0.7:8086/write?db=throng", Ok(("10.0.0.7:8086", "/write?db=throng")));
        check("http://[::1]:8086/a/write?u=x&p=y&db=t", Ok(("[::1]:8086", "/a/write?u=x&p=y&db=t")));
        let two = "/api/v2/write?org=o&bucket=b%2F1";
        check(&format!("http://far:8086{two}"), Ok(("10.0.0.7:8086", two)));
        check("http://far/write?db=t", Ok(("10.0.0.7:80", "/write?db=t")));
        check("http://near:8086/write?db=t", Err("no such host"));
        for wrong in
            ["http://far:8086", "http://far:8086/write", "http://far:8086/write?db=", "http://far:8086/?db=t"]
        {
            check(wrong, Err("not a write endpoint; use http://HOST:8086/write?db=throng"));
        }
        check("http://far:8086/api/v2/write?db=t", Err("not a write endpoint"));
        check("https://far:8086/write?db=t", Err("does not start with http://"));
        check("http://far:8086/write?db=t&precision=s", Err("remove precision"));
        check("http://{1..2}:8086/write?db=t", Err("not a host and port"));
        check("http://far:8086/write?db=t HTTP/1.1\r\nX: y", Err("not allowed in a URL"));
    }
}

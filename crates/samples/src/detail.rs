//! Details of faults, with names: the kernel's error numbers, HTTP/2 error codes, status codes of WebSocket closes, TLS alerts, and rules
//! that a response broke. All share one number space of 16 bits.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::rule::Rule;

/// The detail of a fault: a kernel error number, the code of a GOAWAY, RST_STREAM or WebSocket close, a TLS alert, or the rule that a
/// response broke; 0 without a detail. Socket errors are below 200; codes of closes from 3000 on have their own value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Detail(u16);

/// Offset of HTTP/2 error codes.
const HTTP2: u16 = 200;
/// Codes with a name (RFC 9113 section 7) are below this one, which represents all others.
const NO_CODE: u16 = 14;
/// Offset of WebSocket close codes from 1000 on.
const CLOSE: u16 = 220;
/// Offset of broken rules.
const RULE: u16 = 300;
/// Offset of TLS alert descriptions.
const ALERT: u16 = 600;
const OF_TLS: &str = "alert ";
/// Suffix of a close code that a library, framework or application defines (RFC 6455, section 7.4.2).
const OF_APPLICATION: &str = " of the application";

impl Detail {
    /// No detail.
    pub const NONE: Detail = Detail(0);

    /// No error: the peer announced the close, and closed instead of responding each time that a request was sent.
    pub const ANNOUNCED: Detail = Detail(240);

    /// Timeout: the request could not be sent completely, because the peer's HTTP/2 windows stayed closed (RFC 9113, section 5.2).
    pub const WINDOW: Detail = Detail(241);

    /// Timeout: the HTTP/2 peer allowed no streams (SETTINGS_MAX_CONCURRENT_STREAMS 0).
    pub const NO_STREAMS: Detail = Detail(242);

    /// A redirect to be followed leads to another scheme, host or port.
    pub const OTHER_ORIGIN: Detail = Detail(243);

    /// A redirect exceeds the maximum number to follow.
    pub const TOO_MANY_REDIRECTS: Detail = Detail(244);

    /// The Location of a redirect is missing or invalid.
    pub const NO_LOCATION: Detail = Detail(245);

    /// A redirect comes in the last response of its connection.
    pub const LAST_RESPONSE: Detail = Detail(246);

    /// The detail for a rule that a response broke.
    pub const fn of_rule(rule: Rule) -> Detail {
        Detail(RULE + rule as u16)
    }

    /// The broken rule; `None` for other details.
    pub fn rule(&self) -> Option<Rule> {
        Rule::ALL.get(usize::from(self.0).checked_sub(RULE.into())?).copied()
    }

    /// Whether it is the reason why a redirect was not followed.
    pub const fn is_of_redirect(&self) -> bool {
        self.0 >= Detail::OTHER_ORIGIN.0 && self.0 <= Detail::LAST_RESPONSE.0
    }

    /// From the description of a TLS alert (RFC 8446, section 6).
    pub const fn of_alert(description: u8) -> Detail {
        Detail(ALERT + description as u16)
    }

    /// From a positive errno; [`Detail::NONE`] if it is out of range.
    pub const fn new(errno: i32) -> Detail {
        Detail(if errno > 0 && errno < 256 { errno as u16 } else { 0 })
    }

    /// From the code of a GOAWAY or RST_STREAM; [`Detail::NONE`] for NO_ERROR.
    pub const fn of_goaway(code: u32) -> Detail {
        match code {
            0 => Detail::NONE,
            code if code < NO_CODE as u32 => Detail(HTTP2 + code as u16),
            _ => Detail(HTTP2 + NO_CODE),
        }
    }

    /// Whether it is the code of a GOAWAY or RST_STREAM.
    pub const fn is_of_goaway(&self) -> bool {
        self.0 > HTTP2 && self.0 <= HTTP2 + NO_CODE
    }

    /// From the status code of a WebSocket close; [`Detail::NONE`] for codes that are no error: normal closure, and a server that goes away
    /// or restarts (RFC 6455, section 7.4.1; IANA's WebSocket Close Code Number Registry). Applications define codes of their own, such as
    /// 4401.
    pub const fn of_close(code: Option<u16>) -> Detail {
        match code {
            Some(code @ (1002 | 1003 | 1007..=1011 | 1013 | 1014)) => Detail(CLOSE + code - 1000),
            Some(code @ 3000..=4999) => Detail(code),
            _ => Detail::NONE,
        }
    }

    /// The status code of a WebSocket close; `None` for other details.
    pub const fn close_code(&self) -> Option<u16> {
        match self.0 {
            code @ 3000..=4999 => Some(code),
            number if number > CLOSE && number < Detail::ANNOUNCED.0 => Some(1000 + number - CLOSE),
            _ => None,
        }
    }

    /// The detail of an announced close: [`Detail::ANNOUNCED`] unless there is an error.
    #[must_use]
    pub const fn announced(self) -> Detail {
        if self.is_none() { Detail::ANNOUNCED } else { self }
    }

    /// Whether there is no detail.
    pub const fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// `EADDRNOTAVAIL`; `errno 77` if the number has no name here.
    pub fn name(self) -> String {
        if let Some(rule) = self.rule() {
            return rule.name().to_owned();
        }
        let known = NAMES.iter().find(|(number, _)| *number == self.0);
        let other = || match self.0 {
            code @ 3000.. => format!("{code}{OF_APPLICATION}"),
            number @ ALERT.. => format!("{OF_TLS}{}", number - ALERT),
            number => format!("errno {number}"),
        };
        known.map_or_else(other, |(_, name)| (*name).to_owned())
    }

    /// ` (EADDRNOTAVAIL)`, to be appended to a fault; empty without a detail.
    pub fn suffix(self) -> String {
        if self.is_none() { String::new() } else { format!(" ({})", self.name()) }
    }

    fn parse(name: &str) -> Option<Detail> {
        // The name in runs stored before streams had codes, too.
        let name = if name == "unknown GOAWAY code" { UNKNOWN } else { name };
        if let Some(rule) = Rule::ALL.iter().find(|rule| rule.name() == name) {
            return Some(Detail::of_rule(*rule));
        }
        let known = NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
        if let Some(known) = known {
            return Some(Detail(known));
        }
        if let Some(description) = name.strip_prefix(OF_TLS) {
            return description.parse().ok().map(Detail::of_alert);
        }
        let number = name.strip_prefix("errno ").or_else(|| name.strip_suffix(OF_APPLICATION));
        number?.parse().ok().map(Detail)
    }
}

impl Serialize for Detail {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Detail, D::Error> {
        // A later version knows more details: the fault is read without it.
        Ok(Detail::parse(&String::deserialize(d)?).unwrap_or(Detail::NONE))
    }
}

/// Name of an unknown HTTP/2 code.
const UNKNOWN: &str = "unknown code of HTTP/2";
/// Errors that a socket may return (include/uapi/asm-generic/errno-base.h, errno.h), and the codes of other layers.
const NAMES: &[(u16, &str)] = &[
    (1, "EPERM"),
    (2, "ENOENT"),
    (4, "EINTR"),
    (5, "EIO"),
    (6, "ENXIO"),
    (9, "EBADF"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (13, "EACCES"),
    (14, "EFAULT"),
    (16, "EBUSY"),
    (19, "ENODEV"),
    (22, "EINVAL"),
    (23, "ENFILE"),
    (24, "EMFILE"),
    (28, "ENOSPC"),
    (32, "EPIPE"),
    (38, "ENOSYS"),
    (61, "ENODATA"),
    (71, "EPROTO"),
    (75, "EOVERFLOW"),
    (88, "ENOTSOCK"),
    (89, "EDESTADDRREQ"),
    (90, "EMSGSIZE"),
    (91, "EPROTOTYPE"),
    (92, "ENOPROTOOPT"),
    (93, "EPROTONOSUPPORT"),
    (94, "ESOCKTNOSUPPORT"),
    (95, "EOPNOTSUPP"),
    (97, "EAFNOSUPPORT"),
    (98, "EADDRINUSE"),
    (99, "EADDRNOTAVAIL"),
    (100, "ENETDOWN"),
    (101, "ENETUNREACH"),
    (102, "ENETRESET"),
    (103, "ECONNABORTED"),
    (104, "ECONNRESET"),
    (105, "ENOBUFS"),
    (106, "EISCONN"),
    (107, "ENOTCONN"),
    (108, "ESHUTDOWN"),
    (110, "ETIMEDOUT"),
    (111, "ECONNREFUSED"),
    (112, "EHOSTDOWN"),
    (113, "EHOSTUNREACH"),
    (114, "EALREADY"),
    (115, "EINPROGRESS"),
    (125, "ECANCELED"),
    (129, "EKEYREJECTED"),
    (HTTP2 + 1, "PROTOCOL_ERROR"),
    (HTTP2 + 2, "INTERNAL_ERROR"),
    (HTTP2 + 3, "FLOW_CONTROL_ERROR"),
    (HTTP2 + 4, "SETTINGS_TIMEOUT"),
    (HTTP2 + 5, "STREAM_CLOSED"),
    (HTTP2 + 6, "FRAME_SIZE_ERROR"),
    (HTTP2 + 7, "REFUSED_STREAM"),
    (HTTP2 + 8, "CANCEL"),
    (HTTP2 + 9, "COMPRESSION_ERROR"),
    (HTTP2 + 10, "CONNECT_ERROR"),
    (HTTP2 + 11, "ENHANCE_YOUR_CALM"),
    (HTTP2 + 12, "INADEQUATE_SECURITY"),
    (HTTP2 + 13, "HTTP_1_1_REQUIRED"),
    (HTTP2 + NO_CODE, UNKNOWN),
    (CLOSE + 2, "1002 protocol error"),
    (CLOSE + 3, "1003 unsupported data"),
    (CLOSE + 7, "1007 invalid data"),
    (CLOSE + 8, "1008 policy violation"),
    (CLOSE + 9, "1009 message too big"),
    (CLOSE + 10, "1010 extension required"),
    (CLOSE + 11, "1011 internal error"),
    (CLOSE + 13, "1013 try again later"),
    (CLOSE + 14, "1014 bad gateway"),
    (Detail::ANNOUNCED.0, "announced"),
    (Detail::WINDOW.0, "HTTP/2 window closed"),
    (Detail::NO_STREAMS.0, "no streams allowed"),
    (Detail::OTHER_ORIGIN.0, "redirect to another scheme, host or port"),
    (Detail::TOO_MANY_REDIRECTS.0, "more redirects than are followed"),
    (Detail::NO_LOCATION.0, "redirect without a Location that can be read"),
    (Detail::LAST_RESPONSE.0, "redirect in the last response of a connection"),
    (ALERT + 10, "alert unexpected_message"),
    (ALERT + 20, "alert bad_record_mac"),
    (ALERT + 22, "alert record_overflow"),
    (ALERT + 40, "alert handshake_failure"),
    (ALERT + 42, "alert bad_certificate"),
    (ALERT + 43, "alert unsupported_certificate"),
    (ALERT + 44, "alert certificate_revoked"),
    (ALERT + 45, "alert certificate_expired"),
    (ALERT + 46, "alert certificate_unknown"),
    (ALERT + 47, "alert illegal_parameter"),
    (ALERT + 48, "alert unknown_ca"),
    (ALERT + 49, "alert access_denied"),
    (ALERT + 50, "alert decode_error"),
    (ALERT + 51, "alert decrypt_error"),
    (ALERT + 70, "alert protocol_version"),
    (ALERT + 71, "alert insufficient_security"),
    (ALERT + 80, "alert internal_error"),
    (ALERT + 86, "alert inappropriate_fallback"),
    (ALERT + 90, "alert user_canceled"),
    (ALERT + 109, "alert missing_extension"),
    (ALERT + 110, "alert unsupported_extension"),
    (ALERT + 112, "alert unrecognized_name"),
    (ALERT + 116, "alert certificate_required"),
    (ALERT + 120, "alert no_application_protocol"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_name() {
        for number in 1..=255u8 {
            let errno = Detail::new(number.into());
            assert_eq!(Detail::parse(&errno.name()), Some(errno), "{}", errno.name());
        }
        assert_eq!(
            (Detail::new(99).name(), Detail::new(77).name()),
            ("EADDRNOTAVAIL".into(), "errno 77".into())
        );
        assert!([0, -1, 256].into_iter().all(|errno| Detail::new(errno).is_none()));
        assert_eq!(Detail::parse("EWEATHER"), None);
        assert_eq!(serde_json::from_str::<Detail>("\"EWEATHER\"").unwrap(), Detail::NONE);
        let names = [1, 11, 13, 14, u32::MAX].map(|code| Detail::of_goaway(code).name());
        let unknown = "unknown code of HTTP/2";
        assert_eq!(names, ["PROTOCOL_ERROR", "ENHANCE_YOUR_CALM", "HTTP_1_1_REQUIRED", unknown, unknown]);
        assert!(Detail::of_goaway(0).is_none());
        assert_eq!(
            Detail::parse("unknown GOAWAY code"),
            Some(Detail::of_goaway(14)),
            "as it was stored before"
        );
        assert_eq!([Detail::of_goaway(1), Detail::new(104)].map(|one| one.is_of_goaway()), [true, false]);
        let failed = Detail::of_close(Some(1011));
        assert_eq!((failed.name().as_str(), failed.close_code()), ("1011 internal error", Some(1011)));
        assert!(!failed.is_of_goaway() && Detail::of_goaway(u32::MAX).close_code().is_none());
        let known = (0..3000).filter(|code| !Detail::of_close(Some(*code)).is_none());
        assert_eq!(known.collect::<Vec<_>>(), [1002, 1003, 1007, 1008, 1009, 1010, 1011, 1013, 1014]);
        for code in [3000, 4401, 4999] {
            let own = Detail::of_close(Some(code));
            assert_eq!((own.close_code(), Detail::parse(&own.name())), (Some(code), Some(own)));
        }
        assert_eq!(Detail::of_close(Some(4401)).name(), "4401 of the application");
        assert!(Detail::of_close(Some(5000)).is_none());
        assert!(Detail::of_close(None).is_none());
    }

    #[test]
    fn alerts_have_their_descriptions() {
        for description in 0..=255 {
            let detail = Detail::of_alert(description);
            assert_eq!(Detail::parse(&detail.name()), Some(detail), "{}", detail.name());
            assert_eq!((detail.rule(), detail.close_code(), detail.is_of_goaway()), (None, None, false));
        }
        let names = [40, 70, 3].map(|description| Detail::of_alert(description).name());
        assert_eq!(names, ["alert handshake_failure", "alert protocol_version", "alert 3"]);
        assert_eq!(Detail::parse("alert 300"), None);
    }

    #[test]
    fn each_rule_has_a_name_of_its_own() {
        for rule in Rule::ALL {
            let detail = Detail::of_rule(*rule);
            assert_eq!((detail.rule(), Detail::parse(rule.name())), (Some(*rule), Some(detail)), "{rule:?}");
            assert_eq!((detail.close_code(), detail.is_of_goaway()), (None, false));
        }
        let others =
            [Detail::NONE, Detail::new(22), Detail::of_close(Some(1011)), Detail::of_close(Some(3000))];
        assert!(others.iter().all(|other| other.rule().is_none()));
    }
}

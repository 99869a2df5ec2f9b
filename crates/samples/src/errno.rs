//! The kernel's error numbers, the error codes of HTTP/2 and the status codes of WebSocket closes, by name.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// An error number of the kernel as a fault carries it, or the code of a GOAWAY or of a WebSocket close; 0 where it has none. Errors of
/// sockets are below 200; codes of closes from 3000 on stand for themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Errno(u16);

/// What the codes of HTTP/2 follow.
const HTTP2: u16 = 200;
/// Codes with a name (RFC 9113 section 7) are below this one, which stands for all others.
const NO_CODE: u16 = 14;
/// What the codes of WebSocket closes from 1000 on follow.
const CLOSE: u16 = 220;
/// What follows the code of a close that a library, a framework or an application defines (RFC 6455, section 7.4.2).
const OF_APPLICATION: &str = " of the application";

impl Errno {
    /// No error number.
    pub const NONE: Errno = Errno(0);

    /// No error: the peer has announced the close, and closed instead of responding, each time that a request was sent.
    pub const ANNOUNCED: Errno = Errno(240);

    /// From a positive errno; [`Errno::NONE`] where it is out of range.
    pub const fn new(errno: i32) -> Errno {
        Errno(if errno > 0 && errno < 256 { errno as u16 } else { 0 })
    }

    /// From the code of a GOAWAY, or of RST_STREAM; [`Errno::NONE`] for NO_ERROR.
    pub const fn of_goaway(code: u32) -> Errno {
        match code {
            0 => Errno::NONE,
            code if code < NO_CODE as u32 => Errno(HTTP2 + code as u16),
            _ => Errno(HTTP2 + NO_CODE),
        }
    }

    /// Whether it is the code of a GOAWAY.
    pub const fn is_of_goaway(&self) -> bool {
        self.0 > HTTP2 && self.0 <= HTTP2 + NO_CODE
    }

    /// From the status code of a WebSocket close; [`Errno::NONE`] for one that is no error: what has been done, or a server that goes
    /// away or restarts (RFC 6455, section 7.4.1; IANA's WebSocket Close Code Number Registry). Applications define codes of their own for
    /// what is none of these, such as 4401.
    pub const fn of_close(code: Option<u16>) -> Errno {
        match code {
            Some(code @ (1002 | 1003 | 1007..=1011 | 1013 | 1014)) => Errno(CLOSE + code - 1000),
            Some(code @ 3000..=4999) => Errno(code),
            _ => Errno::NONE,
        }
    }

    /// The status code of a WebSocket close, if it is one.
    pub const fn close_code(&self) -> Option<u16> {
        match self.0 {
            code @ 3000..=4999 => Some(code),
            number if number > CLOSE && number < Errno::ANNOUNCED.0 => Some(1000 + number - CLOSE),
            _ => None,
        }
    }

    /// The same of a close that was announced: without an error, that.
    #[must_use]
    pub const fn announced(self) -> Errno {
        if self.is_none() { Errno::ANNOUNCED } else { self }
    }

    /// Whether there is none.
    pub const fn is_none(&self) -> bool {
        self.0 == 0
    }

    /// `EADDRNOTAVAIL`; `errno 77` where it has no name here.
    pub fn name(self) -> String {
        let known = NAMES.iter().find(|(number, _)| *number == self.0);
        let other = || match self.0 {
            code @ 3000.. => format!("{code}{OF_APPLICATION}"),
            number => format!("errno {number}"),
        };
        known.map_or_else(other, |(_, name)| (*name).to_owned())
    }

    fn parse(name: &str) -> Option<Errno> {
        // Its name in runs that were stored before streams had codes, too.
        let name = if name == "unknown GOAWAY code" { UNKNOWN } else { name };
        let known = NAMES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number);
        let number = name.strip_prefix("errno ").or_else(|| name.strip_suffix(OF_APPLICATION));
        known.or_else(|| number?.parse().ok()).map(Errno)
    }
}

impl Serialize for Errno {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&self.name())
    }
}

impl<'de> Deserialize<'de> for Errno {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Errno, D::Error> {
        let name = String::deserialize(d)?;
        Errno::parse(&name).ok_or_else(|| D::Error::custom(format!("no such errno: {name}")))
    }
}

/// A code of HTTP/2 that has no name.
const UNKNOWN: &str = "unknown code of HTTP/2";
/// Those that a socket may return (include/uapi/asm-generic/errno-base.h, errno.h), and the codes of HTTP/2.
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
    (Errno::ANNOUNCED.0, "announced"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_name() {
        for number in 1..=255u8 {
            let errno = Errno::new(number.into());
            assert_eq!(Errno::parse(&errno.name()), Some(errno), "{}", errno.name());
        }
        assert_eq!(
            (Errno::new(99).name(), Errno::new(77).name()),
            ("EADDRNOTAVAIL".into(), "errno 77".into())
        );
        assert!([0, -1, 256].into_iter().all(|errno| Errno::new(errno).is_none()));
        assert_eq!(Errno::parse("EWEATHER"), None);
        let names = [1, 11, 13, 14, u32::MAX].map(|code| Errno::of_goaway(code).name());
        let unknown = "unknown code of HTTP/2";
        assert_eq!(names, ["PROTOCOL_ERROR", "ENHANCE_YOUR_CALM", "HTTP_1_1_REQUIRED", unknown, unknown]);
        assert!(Errno::of_goaway(0).is_none());
        assert_eq!(
            Errno::parse("unknown GOAWAY code"),
            Some(Errno::of_goaway(14)),
            "as it was stored before"
        );
        assert_eq!([Errno::of_goaway(1), Errno::new(104)].map(|one| one.is_of_goaway()), [true, false]);
        let failed = Errno::of_close(Some(1011));
        assert_eq!((failed.name().as_str(), failed.close_code()), ("1011 internal error", Some(1011)));
        assert!(!failed.is_of_goaway() && Errno::of_goaway(u32::MAX).close_code().is_none());
        let known = (0..3000).filter(|code| !Errno::of_close(Some(*code)).is_none());
        assert_eq!(known.collect::<Vec<_>>(), [1002, 1003, 1007, 1008, 1009, 1010, 1011, 1013, 1014]);
        for code in [3000, 4401, 4999] {
            let own = Errno::of_close(Some(code));
            assert_eq!((own.close_code(), Errno::parse(&own.name())), (Some(code), Some(own)));
        }
        assert_eq!(Errno::of_close(Some(4401)).name(), "4401 of the application");
        assert!(Errno::of_close(Some(5000)).is_none());
        assert!(Errno::of_close(None).is_none());
    }
}

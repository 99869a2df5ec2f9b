//! What connections keep from one step to the next: captured values and cookies. By index of the connection, and only in populations that
//! capture: no other has a table.
//!
//! They are those of a user: they persist when the connection is dialled again, and end when another connection takes its place.

use plan::{Captured, Population, Values};
use units::Nanos;

use crate::{
    cookies::{self, Jar},
    drawn::Drawn,
    location::{Elsewhere, path_of},
    watch::{Wanted, Watch},
};

/// What connections of a population keep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeps {
    /// Variables of the population.
    variables: usize,
    has_cookies: bool,
    /// Whether Secure cookies are sent: over TLS, and to loopback as browsers do.
    is_secure: bool,
}

impl Keeps {
    pub(crate) fn of(population: &Population) -> Keeps {
        let target = &population.target;
        Keeps {
            variables: population.variables.len(),
            has_cookies: population.cookies,
            is_secure: target.secure || target.is_loopback(),
        }
    }
}

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotFollowed {
    /// As many were followed as are to be.
    TooMany,
    /// It ends its connection, which no other follows.
    Last,
    Elsewhere(Elsewhere),
}

impl NotFollowed {
    /// As the detail of its status.
    pub(crate) fn detail(self) -> samples::Detail {
        match self {
            NotFollowed::TooMany => samples::Detail::TOO_MANY_REDIRECTS,
            NotFollowed::Last => samples::Detail::LAST_RESPONSE,
            NotFollowed::Elsewhere(Elsewhere::Origin) => samples::Detail::OTHER_ORIGIN,
            NotFollowed::Elsewhere(Elsewhere::Unreadable) => samples::Detail::NO_LOCATION,
        }
    }
}

/// Of a shard.
#[derive(Debug)]
pub(crate) struct Captures {
    keeps: Keeps,
    users: Vec<User>,
    /// Watches that are not in use.
    #[expect(clippy::vec_box, reason = "they go from user to user, each of which has a pointer")]
    spare: Vec<Box<Watch>>,
}

/// What a connection keeps.
#[derive(Debug, Default)]
struct User {
    values: Captured,
    jar: Jar,
    watch: Option<Box<Watch>>,
}

/// Octets of a connection's place in the table.
pub(crate) const PLACE: usize = size_of::<User>();

const _: () = assert!(PLACE <= 56, "each connection of a population that captures has one");

impl Captures {
    /// None, where connections keep nothing, and nothing of their responses is watched.
    pub(crate) fn new(keeps: Keeps, watches: bool, places: u32) -> Option<Box<Captures>> {
        let is_used = keeps.variables > 0 || keeps.has_cookies || watches;
        let (users, spare) = (Vec::with_capacity(if is_used { places as usize } else { 0 }), Vec::new());
        is_used.then(|| Box::new(Captures { keeps, users, spare }))
    }

    fn user(&mut self, index: u32) -> &mut User {
        let at = index as usize;
        if at >= self.users.len() {
            self.users.resize_with(at + 1, User::default);
        }
        &mut self.users[at]
    }

    /// A new connection takes this index: it has nothing yet.
    pub(crate) fn comes(&mut self, index: u32) {
        let user = self.user(index);
        user.values = Captured::default();
        user.jar = Jar::default();
    }

    /// With what the connection keeps.
    pub(crate) fn fill<'r>(&'r mut self, values: Values<'r>, index: u32, now: Nanos) -> Values<'r> {
        let Keeps { variables, has_cookies, .. } = self.keeps;
        let User { values: captured, jar, .. } = self.user(index);
        let values = values.with_captured(captured, variables);
        if has_cookies { values.with_cookies(jar, now) } else { values }
    }

    pub(crate) fn has_cookies(&self) -> bool {
        self.keeps.has_cookies
    }

    /// A response is awaited from which this is taken; `path`: of the request, with its query.
    pub(crate) fn begin(&mut self, index: u32, wanted: &Wanted, path: &[u8]) {
        let spare = self.spare.pop();
        let watch = self.user(index).watch.get_or_insert_with(|| spare.unwrap_or_default());
        watch.begin(wanted, path);
    }

    /// Takes the watch of a connection, to read with; [`Captures::put`] puts it back.
    pub(crate) fn take(&mut self, index: u32) -> Option<Box<Watch>> {
        self.users.get_mut(index as usize)?.watch.take()
    }

    pub(crate) fn put(&mut self, index: u32, watch: Box<Watch>) {
        self.user(index).watch = Some(watch);
    }

    /// The response is complete: keeps its cookies; and its values, if it `is_right` and has them all. What is wrong with it. `origin`: scheme
    /// and host of the request, where it was one.
    pub(crate) fn end(
        &mut self,
        index: u32,
        wanted: &Wanted,
        (is_right, origin, followed): (bool, Option<(&str, &str)>, bool),
        now: Nanos,
    ) -> Option<samples::Kind> {
        let Keeps { variables, is_secure, .. } = self.keeps;
        let user = self.user(index);
        let mut watch = user.watch.take()?;
        watch.end(wanted);
        origin.into_iter().for_each(|origin| watch.resolve_links(wanted, origin));
        let context = cookies::Context { now, path: watch.path(), date: watch.date(), is_secure };
        let is_full = watch.cookies().any(|field| user.jar.set(field, &context).is_err());
        let is_full = is_full || watch.has_too_many(followed);
        let wrong = watch.wrong(wanted).or(is_full.then_some(samples::Kind::ValueTooLong));
        if is_right && wrong.is_none() {
            watch.keep(wanted, &mut user.values, variables);
        }
        self.spare.push(watch);
        wrong
    }

    /// Where a redirect leads, from a request to this scheme and host, becomes the path of the [next request](Captures::next); what was taken
    /// so far is kept if it is a cookie. Or why it is not followed, if it was to be. `followed`: redirects of the same exchange that were;
    /// `becomes_get`: whatever the method was; `is_last`: nothing follows on this connection, nor on another.
    pub(crate) fn redirect(
        &mut self,
        index: u32,
        wanted: &Wanted,
        (followed, origin, becomes_get): (u32, (&str, &str), bool),
        is_last: bool,
        now: Nanos,
    ) -> Option<Result<(), NotFollowed>> {
        let is_secure = self.keeps.is_secure;
        let User { watch, jar, .. } = self.user(index);
        let watch = watch.as_mut()?;
        if wanted.redirects == 0 {
            return None;
        }
        if followed >= wanted.redirects.into() {
            return Some(Err(NotFollowed::TooMany));
        }
        if is_last {
            return Some(Err(NotFollowed::Last));
        }
        let path = match path_of(watch.location(), watch.path(), origin) {
            Ok(path) => path,
            Err(elsewhere) => return Some(Err(NotFollowed::Elsewhere(elsewhere))),
        };
        let context = cookies::Context { now, path: watch.path(), date: watch.date(), is_secure };
        let mut loses = watch.has_too_many(false);
        for field in watch.cookies() {
            // That is noticed with the last response.
            loses |= jar.set(field, &context).is_err();
        }
        watch.redirect(&path, (becomes_get, followed == 0, loses));
        Some(Ok(()))
    }

    /// The path to which the last redirect has led, whether a GET goes there, and where the values of the request begin.
    pub(crate) fn next(&self, index: u32) -> Option<(&[u8], bool, &Drawn)> {
        let watch = self.users.get(index as usize)?.watch.as_ref()?;
        Some((watch.path(), watch.is_get, watch.drawn.as_ref()?))
    }

    /// A request whose redirects are followed was sent, with values that begin there.
    pub(crate) fn keep_drawn(&mut self, index: u32, drawn: Drawn) {
        self.user(index).watch.iter_mut().for_each(|watch| watch.drawn = Some(drawn.clone()));
    }

    /// The values of a connection, and of its cookies.
    pub(crate) fn kept_by(&self, index: u32) -> impl Iterator<Item = &[u8]> {
        let variables = self.keeps.variables;
        self.users.get(index as usize).into_iter().flat_map(move |user| {
            let value = move |nth| user.values.value(nth, variables).as_bytes();
            (0..variables as u16).map(value).chain(user.jar.values())
        })
    }

    /// Bytes that are allocated, beside those of the tables.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.users.iter().map(|user| (user.values.capacity() + user.jar.capacity()) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Capture, Expectation, From};

    fn keeps(variables: usize) -> Keeps {
        Keeps { variables, has_cookies: true, is_secure: false }
    }

    #[test]
    fn who_captures_nothing_has_no_table() {
        let nothing = Keeps { has_cookies: false, ..keeps(0) };
        assert!(Captures::new(nothing, false, 1_000).is_none());
        assert!(Captures::new(nothing, true, 1_000).is_some() && Captures::new(keeps(0), false, 1).is_some());
    }

    #[test]
    fn a_user_costs_what_is_captured_and_no_more_the_second_time() {
        let from = From::Json("/t".to_owned());
        let capture = Capture { name: "token".to_owned(), nth: 0, from, is_link: false };
        let expected = Expectation { captures: vec![capture], ..Expectation::default() };
        let wanted = Wanted::new(&expected, 0, true).unwrap();
        let mut captures = Captures::new(keeps(1), true, 100).unwrap();
        let mut log_in = |index: u32, token: usize| {
            captures.begin(index, &wanted, b"/login");
            let mut watch = captures.take(index).unwrap();
            watch.field(&wanted, b"Set-Cookie", b"sid=12345678; Path=/");
            watch.content(&wanted, format!("{{\"t\": \"{}\"}}", "x".repeat(token)).bytes());
            captures.put(index, watch);
            assert_eq!(captures.end(index, &wanted, (true, None, false), Nanos::ZERO), None);
            captures.bytes()
        };
        // Two octets of length and the value; 14 of a cookie, its name, its value and its path.
        let one = (2 + 1_000) + (14 + 3 + 8 + 1);
        assert_eq!((log_in(0, 1_000), log_in(7, 1_000)), (one, 2 * one));
        for token in [1_000, 999, 1, 1_000] {
            assert_eq!(log_in(7, token), 2 * one);
        }
        captures.comes(7);
        assert_eq!(captures.bytes(), one, "another user has nothing of it");
    }
}

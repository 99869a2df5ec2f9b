//! Requests that follow a redirect: the original with another path, or a GET.

use plan::Text;

use super::{Request, ValueSource, http2_name};
use crate::drawn::Drawn;

impl ValueSource {
    /// Where the random values of the next request begin.
    pub(crate) fn drawn(&self) -> Drawn {
        Drawn { random: self.random.clone(), written: self.written }
    }

    /// The request that follows the last redirect of `request` on the connection at `index`; it will draw the same values again.
    pub(crate) fn redirected(&mut self, index: u32, request: &Request) -> Option<Request> {
        let (path, is_get, drawn) = self.captures.as_ref()?.next(index)?;
        let redirected = request.redirected(str::from_utf8(path).ok()?, is_get);
        let Drawn { random, written } = drawn.clone();
        (self.random, self.written) = (random, written);
        // The values of its path come first; this consumes them.
        let mut path = std::mem::take(&mut self.scratch);
        path.resize(path.len().max(request.template.path.max_len()), 0);
        request.template.path.write(&mut self.values(index), &mut path);
        (self.scratch, self.written) = (path, written);
        Some(redirected)
    }

    /// A request that may be redirected was sent; `drawn`: where its values began. After a redirect, drawing continues where it
    /// was before; otherwise the beginning is kept for redirects.
    pub(crate) fn go_on_after(&mut self, index: u32, drawn: Drawn, is_redirected: bool) {
        if is_redirected {
            (self.random, self.written) = (drawn.random, drawn.written);
        } else {
            self.captures.iter_mut().for_each(|captures| captures.keep_drawn(index, drawn.clone()));
        }
    }
}

impl Request {
    /// The request after a redirect to this path: the same request, or a GET without content.
    fn redirected(&self, path: &str, is_get: bool) -> Request {
        let mut request = Request { fixed: Vec::new(), ..self.clone() };
        request.template.path = Text::fixed(path);
        // The expected length depended on the values of the original path.
        request.check.expected.length = None;
        if is_get {
            request.template.method = "GET".to_owned();
            (request.template.body, request.content) = (None, None);
            let is_of_content = |name: &str| name.to_ascii_lowercase().starts_with("content-");
            request.template.headers.retain(|(name, _)| !is_of_content(name));
            request.names = request.template.headers.iter().map(|(name, _)| http2_name(name)).collect();
        }
        request
    }
}

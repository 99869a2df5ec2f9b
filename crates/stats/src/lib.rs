//! What measurements say, and how sure that is.

pub mod compare;

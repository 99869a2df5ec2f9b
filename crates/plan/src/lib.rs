//! What shall happen: from flags as typed to a [`Plan`] without open questions, its split into [`Part`]s, and
//! the addresses to dial from. No clock, no socket, no file: what the machine knows comes in as an argument.

mod addresses;
mod expect;
mod flags;
mod load;
mod observe;
mod part;
mod plan;
mod ports;
mod random;
pub mod scenario;
mod sources;
mod target;
mod template;
mod threshold;

pub use addresses::{SourcePool, Tuple, Tuples};
pub use expect::{Expect, ExpectedLength};
pub use flags::{Flags, Mistake, Surroundings, from_flags};
pub use load::{Load, PROBES_KEPT};
pub use observe::Observe;
pub use part::Part;
pub use plan::{Format, Hold, IoChoice, Live, Message, Plan, Ramp, Reconnect, Think};
pub use ports::{PortFacts, Ports, capacity, usable_ports};
pub use random::Random;
pub use sources::{Network, Sources};
pub use target::{Scheme, Target};
pub use template::{Piece, Template};
pub use threshold::{Comparison, Figure, Threshold};

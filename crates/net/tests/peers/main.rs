//! One suite of scripted peers over every fill of `Io`: the same scenes must show the same events, connection by
//! connection, over one ring, over several, dialling by hand, over epoll, and in the simulator.

mod alone;
mod churn;
mod fair;
mod kernel;
mod ours;
mod player;
mod scenes;
mod script;
mod stage;
mod threads;

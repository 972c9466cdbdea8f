//! The server as a client meets it: real sockets, and a small model that is trained on the spot.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

mod admission;
mod answers;
mod client;
mod connections;
mod description;
mod home;
mod refusals;
mod visits;

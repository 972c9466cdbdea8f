//! Both paths of the models against golden files, and against each other.
#![allow(clippy::unwrap_used)]

mod both_paths;
mod devices;
mod golden;

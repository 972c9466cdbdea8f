//! Both paths of the models against golden files, and against each other, alone and in training.
#![allow(clippy::unwrap_used)]

mod both_paths;
mod devices;
mod golden;
mod learner;

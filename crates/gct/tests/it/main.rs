//! Tests of the library from outside, in one program: linking once is faster than linking four times.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

mod attribution;
mod belonging;
mod context;
mod dataset;
mod explainer;
mod fixture;
mod history;
mod init;
mod memory;
mod model;
mod next_diagnoses;
mod past;
mod prior;
mod run;
mod synthetic;
mod weights;

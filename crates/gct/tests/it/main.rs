//! Tests of the library from outside, in one program: linking once is faster than linking four times.

mod dataset;
mod fixture;
mod prior;
mod synthetic;

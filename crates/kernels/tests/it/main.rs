//! Tests of the kernels from outside, in one program.

mod finite_differences;
mod gradients;
mod tape;

//! Readers of source data: each turns what a hospital, a claims file or a generator has into
//! [`Encounter`](crate::record::Encounter)s and a [`Vocabulary`](crate::record::Vocabulary).

pub mod synthetic;

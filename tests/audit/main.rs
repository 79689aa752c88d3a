//! Attacks on the promise of docs/privacy.md, from outside: what an adversary would do who
//! sees what is released and knows everything but one record.
//!
//! Each test states its false-alarm rate and its power. Seeds are fixed, so a test that
//! passes goes on passing until the program changes. What takes minutes is ignored by
//! default: `cargo test --release --test audit -- --ignored`.
//!
//! That the attacks find what is wrong is tested by `src/planted_tests.rs`, on builds with
//! planted errors.

mod attack;
mod charges;
mod record_play;
mod single_releases;
mod whole_play;
mod whole_samplers;

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dpm_fuzz::editor(bytes));

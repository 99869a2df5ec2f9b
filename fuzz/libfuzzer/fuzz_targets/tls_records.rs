#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::tls_records(data));

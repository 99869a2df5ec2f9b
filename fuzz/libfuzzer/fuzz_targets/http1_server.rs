#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::http1_server(data));

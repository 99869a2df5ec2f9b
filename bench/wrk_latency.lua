-- What wrk measured, microseconds, in one line for bench/open-loop: its own text stops at p99.
function done(summary, latency)
    local at = { 50, 99, 99.9 }
    for n, share in ipairs(at) do
        at[n] = string.format("%d", latency:percentile(share))
    end
    print(string.format("latency_us %s %d", table.concat(at, " "), latency.max))
end

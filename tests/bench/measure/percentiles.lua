-- SPDX-License-Identifier: MIT
-- wrk's own summary as one line: requests, µs, errors, and latencies in µs.
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("figures %d %d %d %.1f %.1f %.1f\n", summary.requests, summary.duration,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout,
        latency:percentile(50), latency:percentile(95), latency:percentile(99)))
end

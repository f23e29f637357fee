// Prometheus' text format as exporters write it, and the rate of a counter across pauses and restarts.
import assert from "node:assert/strict";
import test from "node:test";

import {parseMetrics, Rate, readGauges} from "../../../src/server/page/metrics.js";

const kText = `# HELP transept:num_requests_running How many run
# TYPE transept:num_requests_running gauge
transept:num_requests_running{model_name="a"} 2
transept:num_requests_running{model_name="b, \\"quoted\\" } \\\\ \\n",x="1"} 3.0 1700000000000
transept:kv_cache_usage_perc 2.5e-1
transept:generation_tokens_total 1.2e3
transept:num_requests_waiting NaN
time_bucket{le="+Inf"} +Inf
low -Inf
this is no sample at all
`;

test("samples with and without labels, exponents, time stamps, infinities, escapes", () => {
  const families = parseMetrics(kText);
  assert.deepEqual(families.get("transept:num_requests_running"), [
    {labels: {model_name: "a"}, value: 2},
    {labels: {model_name: 'b, "quoted" } \\ \n', x: "1"}, value: 3},
  ]);
  assert.deepEqual(families.get("time_bucket"), [{labels: {le: "+Inf"}, value: Infinity}]);
  assert.equal(families.get("low")[0].value, -Infinity);
  assert.equal(families.size, 6);
});

test("gauges add models up; what is absent or no number is null", () => {
  const gauges = readGauges(parseMetrics(kText));
  assert.deepEqual(gauges, {running: 5, waiting: null, cacheUse: 0.25, tokens: 1200});
  assert.deepEqual(readGauges(parseMetrics("")), {running: null, waiting: null, cacheUse: null, tokens: null});
});

test("a zero is a zero and not an absent value", () => {
  assert.equal(readGauges(parseMetrics("transept:num_requests_waiting 0\n")).waiting, 0);
});

test("the rate is over the last readings only", () => {
  const rate = new Rate(3);
  assert.equal(rate.add(100, 1), null);
  assert.equal(rate.add(150, 2), 50);
  assert.equal(rate.add(250, 3), 75);
  assert.equal(rate.add(250, 4), 50);
  assert.equal(rate.add(250, 5), 0);
});

test("a restarted server, a missing counter or a pause begin anew", () => {
  const rate = new Rate();
  rate.add(100, 1);
  assert.equal(rate.add(10, 2), null);
  assert.equal(rate.add(30, 3), 20);
  assert.equal(rate.add(null, 4), null);
  assert.equal(rate.add(100, 5), null);
  rate.reset();
  assert.equal(rate.add(200, 6), null);
  assert.equal(rate.add(200, 6), null);  // no time has passed: nothing to divide by
});

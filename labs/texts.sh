#!/bin/sh
# texts.sh THRONG [TIMES]: runs the experiments of both texts, http-kit's and cl-async's, with the real servers from LAB_SOURCE; adds the results to
# labs/results.jsonl, and makes docs/experiments.md anew. Wants a release build and a machine that does nothing else; about an hour with three repetitions.
# MORE: more arguments of `throng lab run`, as --scale 0.02.
set -u
cd "$(dirname "$0")/.." || exit 2
throng=${1:?texts.sh THRONG [TIMES]}
times=${2:-3}
results=${RESULTS:-labs/results.jsonl}
: "${LAB_SOURCE:?a folder with the checkouts, or git}"

# run LAB SERVER EXPERIMENT [ARGUMENT…]
run() {
    lab=$1 server=$2 experiment=$3
    shift 3
    # shellcheck disable=SC2086
    "$throng" lab run "$lab" --variant "$experiment" --variant "$server" --times "$times" --results "$results" "$@" ${MORE:-}
    # 1: something was not as expected, which is a result too.
    [ $? -le 1 ] || echo "texts.sh: $lab $experiment $server: not run" >&2
}

for experiment in 400k 400k-code; do run http-kit http-kit $experiment --for 1m40s; done
for experiment in 600k 600k-code; do run http-kit http-kit $experiment --for 50s; done
run http-kit http-kit-2.0-rc1 600k --for 50s
for server in http-kit http-kit-2.0-rc1; do
    run http-kit $server 600k-ab --for 10s
    run http-kit $server heap --for 30s
done
for server in cl-async stand-in; do
    for experiment in httperf 40k 512mb moment rate-6000 rate-8000 rate-12000 client-or-server; do run cl-async $server $experiment; done
done
"$throng" lab compare --results "$results" --markdown "${PAGE:-docs/experiments.md}" > /dev/null

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds the fuzz targets and runs each on its seeds and on what grows out of them. README.md says
# what to do with a finding.
# usage: test/fuzz/run.sh [SECONDS_PER_TARGET] [TARGET...]
#   without seconds: a fixed number of inputs from a fixed seed, in half a minute at most
#   TARGET: driver, nic, pcap, name, frame; all if none is named
# Exits with 77 where there is no clang with libFuzzer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
usage='usage: test/fuzz/run.sh [SECONDS_PER_TARGET] [TARGET...]'
declare -A runs=([driver]=5000 [nic]=2000 [pcap]=10000 [name]=10000 [frame]=1000)
findings=$PWD/build-fuzz/findings

seconds=0
if [[ ${1:-} =~ ^[1-9][0-9]*$ ]]; then
	seconds=$1
	shift
fi
targets=("$@")
if (($# == 0)); then
	targets=(driver nic pcap name frame)
fi
for target in "${targets[@]}"; do
	if [[ -z ${runs[$target]:-} ]]; then
		echo "$target: no such target; $usage" >&2
		exit 2
	fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if ! command -v clang >/dev/null; then
	echo "skipped: no clang, which has libFuzzer (Debian: clang, libclang-rt-14-dev)"
	exit 77
fi
echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' \
	>"$scratch/probe.c"
if ! clang -fsanitize=fuzzer,address,undefined -o "$scratch/probe" "$scratch/probe.c" 2>/dev/null; then
	echo "skipped: clang has no libFuzzer (Debian: libclang-rt-14-dev)"
	exit 77
fi

if ! { cmake --preset fuzz && cmake --build --preset fuzz; } >"$scratch/build" 2>&1; then
	tail -n 30 "$scratch/build"
	echo "the fuzz targets do not build"
	exit 1
fi
mkdir -p "$findings"

# fuzz TARGET: one line of verdict; of a failure what was found before.
fuzz() {
	local corpus=$scratch/$1 log=$scratch/$1.log
	local options=(-artifact_prefix="$findings/$1-" -rss_limit_mb=1024 -timeout=60 -print_final_stats=1)
	if ((seconds > 0)); then
		options+=(-max_total_time="$seconds")
	else
		options+=(-runs="${runs[$1]}" -seed=1)
	fi
	if [[ -f test/fuzz/$1.dict ]]; then
		options+=(-dict="test/fuzz/$1.dict")
	fi
	mkdir "$corpus"
	if ! ASAN_OPTIONS=quarantine_size_mb=32 "build-fuzz/test/fuzz/fuzz_$1" "${options[@]}" "$corpus" \
		"test/fuzz/seeds/$1" >"$log" 2>&1 </dev/null; then
		grep -vP '^(INFO: |#\d+\t|\s*(=>)?0x[0-9a-f]+: |Shadow byte|  [A-Z].*: +[0-9a-f]{2} )' "$log" | head -n 80
		echo "failed $1: the input is in $findings"
		return 1
	fi
	echo "passed $1: $(awk '/number_of_executed_units/ { n = $2 } /\t(INITED|DONE) / { cov = $4 }
		END { print n " inputs, " cov " edges of code" }' "$log")"
}

passed=0 failed=0
for target in "${targets[@]}"; do
	if fuzz "$target"; then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
((failed == 0))

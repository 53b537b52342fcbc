#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Instructions that the driver takes per packet, by valgrind: exact and repeatable, so that a change
# can be judged by them. The difference of two runs is taken: start-up cancels out.
# usage: test/bench/callgrind.sh [BUILD]
#   BUILD: a build folder; without it one is made in a temporary folder with -O3 -march=native
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
few=2048
many=18432

if ! command -v valgrind >/dev/null; then
	echo "valgrind is missing; as root: apt-get install --no-install-recommends valgrind" >&2
	exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
if (($# > 0)); then
	build=$(realpath "$1")
else
	build=$scratch/build
	cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DIXDP_TESTS=ON \
		-DCMAKE_C_FLAGS=-march=native >&2
	cmake --build "$build" --target lockstep >&2
fi

# count MODE BATCH PACKETS: instructions inside the driver calls, and what they call, in all.
count() {
	valgrind --tool=callgrind --toggle-collect="calls_*" --callgrind-out-file=/dev/null \
		"$build/test/bench/lockstep" --count-mode "$1" --batch "$2" --packets "$3" \
		2>"$scratch/valgrind" || {
		cat "$scratch/valgrind" >&2
		return 1
	}
	sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$scratch/valgrind"
}

"$build/test/bench/lockstep" --rounds 1 | head -n 1
echo "instructions per packet"
echo "mode     batch  instructions"
for mode in forward tx rx+drop rx+hash rx+flags fwd+sums; do
	for batch in 1 8 32 64 256; do
		a=$(count "$mode" "$batch" "$few")
		b=$(count "$mode" "$batch" "$many")
		awk -v m="$mode" -v n="$batch" -v i=$((b - a)) -v p=$((many - few)) \
			'BEGIN { printf "%-8s %5d %13.1f\n", m, n, i / p }'
	done
done

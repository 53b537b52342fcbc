#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What sharing XDP TX queues costs: the three measurements, in about 5 minutes. ../README.md explains
# them. Needs a machine that does nothing else.
# usage: test/bench/xdp-sharing/run.sh [--quick] [--out DIR] [BUILD]
#   --quick  seconds instead of minutes: whether all runs, not what it costs
#   --out    where tables, xdp-sharing.json (an object a line), and xdp-sharing.svg go (.)
#   BUILD    a build folder; without it one is made in a temporary folder with -O3 -march=native
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
root=$(realpath "$here/../../..")
table=() threads=() lockstep=()
out=.
build=
while (($# > 0)); do
	case $1 in
	--quick)
		table=(--rounds 1 --ms 5) threads=(--rounds 1 --ms 2 --max-threads 8)
		lockstep=(--rounds 5)
		;;
	--out) out=${2:?--out needs a folder} && shift ;;
	-*) sed -n 's/^# //; /^usage/,/^ *BUILD/p' "$0" >&2 && exit 2 ;;
	*) build=$(realpath "$1") ;;
	esac
	shift
done
for program in valgrind gnuplot; do
	if ! command -v "$program" >/dev/null; then
		echo "$program is missing; as root:" \
			"apt-get install --no-install-recommends valgrind gnuplot-nox" >&2
		exit 1
	fi
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$out"
if [[ -z $build ]]; then
	build=$scratch/build
	cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DIXDP_TESTS=ON \
		-DCMAKE_C_FLAGS=-march=native >&2
	cmake --build "$build" --target xdp-lockstep xdp-lockstep-unchecked xdp-table xdp-threads >&2
fi
bin=$build/test/bench

machine() {
	local load
	read -r load _ </proc/loadavg
	echo "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1), $(nproc) CPUs," \
		"Linux $(uname -r), $(date -u +%F), load $load"
}

# count PROGRAM MODE THREADS BATCH: instructions inside the driver calls, for $windows * 256 packets.
windows=16
count() {
	valgrind --tool=callgrind --toggle-collect="calls_*" --callgrind-out-file=/dev/null \
		"$bin/$1" --count "$2" --threads "$3" --batch "$4" --windows "$windows" \
		2>"$scratch/valgrind" || {
		cat "$scratch/valgrind" >&2
		return 1
	}
	sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$scratch/valgrind"
}

instructions() {
	local mode batch unchecked off on
	echo "instructions per packet, and how many more per batch (callgrind)"
	echo "mode     batch  unchecked      off       on   off-unchecked  on-off"
	for mode in xmit poll+tx; do
		for batch in 1 8 32; do
			unchecked=$(count xdp-lockstep-unchecked "$mode" 2 "$batch")
			off=$(count xdp-lockstep "$mode" 2 "$batch")
			on=$(count xdp-lockstep "$mode" 4 "$batch")
			awk -v m="$mode" -v b="$batch" -v u="$unchecked" -v f="$off" -v o="$on" \
				-v n=$((windows * 256)) -v json="$scratch/instructions.json" 'BEGIN {
				printf "%-8s %5d %10.2f %8.2f %8.2f %15.1f %7.1f\n",
					m, b, u / n, f / n, o / n, (f - u) * b / n, (o - f) * b / n
				printf "{\"measurement\": \"instructions\", \"mode\": \"%s\", " \
					"\"batch\": %d, \"unchecked\": %.3f, \"off\": %.3f, " \
					"\"on\": %.3f, \"off_per_batch\": %.2f, " \
					"\"on_per_batch\": %.2f}\n", m, b, u / n, f / n, o / n,
					(f - u) * b / n, (o - f) * b / n >>json
			}'
		done
	done
}

{
	machine
	"$bin/xdp-lockstep" "${lockstep[@]}" --json "$scratch/lockstep.json"
	instructions
} | tee "$out/lockstep.txt"
{
	machine
	"$bin/xdp-table" "${table[@]}" --json "$scratch/table.json"
} | tee "$out/table.txt"
{
	echo "# $(machine)"
	"$bin/xdp-threads" "${threads[@]}" --json "$scratch/threads.json"
} | tee "$out/threads.txt"
cat "$scratch"/{lockstep,instructions,table,threads}.json >"$out/xdp-sharing.json"
gnuplot -e "table='$out/threads.txt'; svg='$out/xdp-sharing.svg'" "$here/plot.gp"
machine
echo "see $out/{lockstep,table,threads}.txt, xdp-sharing.json, xdp-sharing.svg"

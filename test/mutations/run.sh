#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Breaks ixdp in a copy, one patch at a time, and expects tests to notice. README.md has the format.
# usage: test/mutations/run.sh [NAME...]   patches without folder and .patch; all without names
# MUTATIONS: another folder of patches.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
patches=$(realpath "${MUTATIONS:-$root/test/mutations}")
build_limit=600 # seconds; so long a build may take on a busy machine
tests_limit=300 # the tests of one mutation in all, a test alone:
test_limit=60

names=("$@")
if (($# == 0)); then
	mapfile -t names < <(find "$patches" -maxdepth 1 -name '*.patch' -printf '%f\n' |
		sed 's/\.patch$//' | sort)
fi
for name in "${names[@]}"; do
	if [[ ! -f $patches/$name.patch ]]; then
		echo "$patches/$name.patch: no such mutation" >&2
		exit 2
	fi
done
if ! command -v patch >/dev/null; then
	echo "patch is missing; as root: apt-get install --no-install-recommends patch" >&2
	exit 1
fi

# GCC 12's TSan does not start where the kernel randomises addresses by more than 28 bits.
launcher=()
if setarch --addr-no-randomize true 2>/dev/null; then
	launcher=(setarch --addr-no-randomize)
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
(cd "$root" && tar -cf - --exclude=./.git --exclude='./build*' .) |
	(mkdir "$scratch/clean" && tar -xf - -C "$scratch/clean")

# header NAME KEY: what a patch says in a line "KEY: value" above its diff.
header() {
	sed -n "/^--- /q; s/^$2: *//p" "$patches/$1.patch" | head -n 1
}

# compile TREE PRESET REGEX LOG: what these tests need, as linking all takes most of the time.
compile() {
	local targets
	mapfile -t targets < <(cd "$1" && ctest --preset "$2" -R "$3" -N |
		sed -n 's/^ *Test *#[0-9]*: .*\.\([^.]*\)$/test_\1/p')
	mapfile -t -O "${#targets[@]}" targets < <(cd "$1/examples" && basename -s .c ixdp-*.c)
	(cd "$1" && timeout "$build_limit" cmake --build --preset "$2" -t "${targets[@]}") >"$4" 2>&1
}

# try TREE PRESET REGEX LOG: 0 when all tests pass, 1 when some fail, else there is no verdict.
try() {
	local status=0
	(cd "$1" && timeout -k 10 "$tests_limit" "${launcher[@]}" ctest --preset "$2" -R "$3" -j "$(nproc)" \
		--timeout "$test_limit" --no-tests=error) </dev/null >"$4" 2>&1 || status=$?
	if ((status != 0)) && grep -q '^The following tests FAILED:' "$4"; then
		return 1
	fi
	return "$status"
}

# prepare PRESET: a copy of the tree with a build of it, and a proof that its tests pass as it is.
prepare() {
	local tree=$scratch/$1 log=$scratch/$1.log name regex
	cp -a "$scratch/clean" "$tree"
	regex=$(for name in "${mine[@]}"; do tests_of "$name"; done | sort -u | paste -sd '|')
	if ! (cd "$tree" && cmake --preset "$1" -DIXDP_TESTS=ON) >"$log" 2>&1 ||
		! compile "$tree" "$1" "$regex" "$log"; then
		tail -n 30 "$log"
		echo "the unbroken tree does not build ($1)"
		return 1
	fi
	if ! try "$tree" "$1" "$regex" "$log"; then
		tail -n 30 "$log"
		echo "the unbroken tree does not pass its tests ($1)"
		return 1
	fi
}

preset_of() {
	local preset
	preset=$(header "$1" Build)
	echo "${preset:-asan}"
}

tests_of() {
	local tests
	tests=$(header "$1" Tests)
	echo "${tests:-.}"
}

# mutate NAME: prints a line of verdict. 0 caught, 1 survived, 2 neither.
mutate() {
	local preset tree log=$scratch/$1.log file by status=0
	preset=$(preset_of "$1")
	tree=$scratch/$preset
	if ! patch -d "$tree" -p1 -F0 -s -N --no-backup-if-mismatch -r - \
		<"$patches/$1.patch" >"$log" 2>&1; then
		status=2
		echo "ERROR $1: the patch does not apply: $(head -n 1 "$log")"
	elif ! compile "$tree" "$preset" "$(tests_of "$1")" "$log"; then
		status=2
		echo "ERROR $1: does not build: $(grep -m 1 'error: ' "$log")"
	else
		try "$tree" "$preset" "$(tests_of "$1")" "$log" || status=$?
		case $status in
		0)
			echo "SURVIVED $1"
			status=1
			;;
		1)
			mapfile -t by < <(sed -n '/^The following tests FAILED:/,$ s/^\t *[0-9]* - \([^ ]*\) .*/\1/p' "$log")
			echo "caught $1 by ${by[*]}"
			status=0
			;;
		*)
			echo "ERROR $1: ctest ended with $status: $(tail -n 1 "$log")"
			status=2
			;;
		esac
	fi
	# Mend what the patch names, with new times, so that it is built again.
	while IFS= read -r file; do
		cp "$scratch/clean/$file" "$tree/$file"
	done < <(sed -n 's|^+++ b/\([^[:space:]]*\).*|\1|p' "$patches/$1.patch")
	return "$status"
}

caught=0 survived=0
for preset in release debug asan tsan; do
	mine=()
	for name in "${names[@]}"; do
		if [[ $(preset_of "$name") == "$preset" ]]; then
			mine+=("$name")
		fi
	done
	if ((${#mine[@]} == 0)); then
		continue
	fi
	prepare "$preset" || continue
	for name in "${mine[@]}"; do
		status=0
		mutate "$name" || status=$?
		case $status in
		0) caught=$((caught + 1)) ;;
		1) survived=$((survived + 1)) ;;
		esac
	done
done
if ((caught + survived < ${#names[@]})); then
	echo "$((${#names[@]} - caught - survived)) of ${#names[@]} mutations could not be tried"
fi
echo "$caught caught, $survived survived"
((caught == ${#names[@]} && caught > 0))

#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Builds ixdp three times (release; ASan and UBSan; TSan) and runs lint, all tests, and a short run of
# the fuzz targets (which need clang) in one ctest.
# As root it first installs what is missing and sets up huge pages; nobody else needs either.
# usage: test/run.sh [ctest options], such as -R REGEX
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source .ci/packages.sh

presets=(release asan tsan)
packages_need "${build_packages[@]}" "${test_packages[@]}"

# Tests that want huge pages skip without them; software ports take ordinary pages.
if ((EUID == 0)); then
	./setup-hugetlbfs.sh --pages 64 || echo "going on without huge pages"
fi

for preset in "${presets[@]}"; do
	cmake --preset "$preset" -DIXDP_TESTS=ON
	cmake --build --preset "$preset"
done

# One ctest over all of them; their tests bear the preset's name in front.
all=build/all
mkdir -p "$all"
{
	echo "add_test([=[lint]=] [=[$PWD/test/lint.sh]=] [=[$PWD/build]=])"
	echo 'set_tests_properties(lint PROPERTIES TIMEOUT 600)'
	echo "add_test([=[fuzz]=] [=[$PWD/test/fuzz/run.sh]=])"
	echo 'set_tests_properties(fuzz PROPERTIES TIMEOUT 600 SKIP_RETURN_CODE 77)'
	for folder in build build-asan build-tsan; do
		echo "subdirs([=[$PWD/$folder]=])"
	done
} >"$all/CTestTestfile.cmake"

# GCC 12's TSan does not start where the kernel randomises addresses by more than 28 bits.
launcher=()
if setarch --addr-no-randomize true 2>/dev/null; then
	launcher=(setarch --addr-no-randomize)
fi
exec "${launcher[@]}" ctest --test-dir "$all" -j "$(nproc)" --output-on-failure \
	--no-label-summary --no-tests=error "$@"

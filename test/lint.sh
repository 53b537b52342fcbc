#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What can be said about the tree without running it: format, clang-tidy, shellcheck, and the rules
# of the house (sizes, who may include whom, what may lie where). Says all that is wrong, not the
# first thing alone.
# usage: test/lint.sh [BUILD]   a configured build folder, for clang-tidy (build)
set -euo pipefail
build=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../build}")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bad=0
# complain WHAT: reads lines; each of them is something wrong.
complain() {
	local line
	while IFS= read -r line; do
		echo "$1: $line"
		bad=1
	done
}

# Every text file of ours, without what builds make.
mapfile -t files < <(find . -path ./.git -prune -o -path './build*' -prune -o -type f -printf '%P\n' |
	sort)
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep '\.[ch]$')
mapfile -t scripts < <(grep -lIE '^#!/.*\b(ba)?sh\b|^# shellcheck shell' "${files[@]}")

complain "does not belong at the top (see README.md)" < <(find . -mindepth 1 -maxdepth 1 -printf '%P\n' |
	grep -vxE '\.ci|\.clang-format|\.clang-tidy|\.git|\.gitignore|CMakeLists\.txt|CMakePresets\.json|LICENSE|README\.md|setup-hugetlbfs\.sh|build|build-.*|include|src|examples|test')
complain "a path of somebody's machine" < <(grep -nIE '(^|[^[:alnum:]_.}*])/(work|home|root)/' "${files[@]}")
complain "unfinished" < <(grep -nIwE 'TODO|FIXME|HACK' "${files[@]}" | grep -v '^test/lint.sh:')
complain "no SPDX line" < <(grep -LF 'SPDX-License-Identifier: BSD-3-Clause' "${sources[@]}" "${scripts[@]}")

# Readers come for the driver; it stays short, and so does each file.
complain "more than 500 lines" < <(wc -l "${sources[@]}" | awk '$2 != "total" && $1 > 500')
complain "src without softnic and regs.h has more than 3,900 lines" < <(
	find src -name '*.[ch]' ! -name regs.h ! -path '*/softnic/*' -exec cat {} + | wc -l |
		awk '$1 > 3900')

# Arrows run one way: examples -> include; driver -> mem, bus; bus -> softnic.
complain "an example sees the public API only" < <(
	grep -rnE '#include .*(driver|mem|bus|softnic|base)/' examples)
complain "the driver knows no software NIC" < <(grep -rnE '#include .*softnic' src/driver src/mem src/xdp)
complain "the software NIC knows regs.h of the driver, nothing else" < <(
	grep -rnE '#include .*(driver|mem|bus)/' src/softnic | grep -v 'driver/regs\.h')
complain "memory knows neither driver nor bus" < <(grep -rnE '#include .*(driver|bus)/' src/mem)

complain "clang-format -i would change" < <(clang-format --dry-run -Werror "${sources[@]}" 2>&1 |
	sed -n 's/:.* error: .*//p' | sort -u)
complain shellcheck < <(shellcheck -x -f gcc "${scripts[@]}")
complain clang-tidy < <(run-clang-tidy -quiet -j "$(nproc)" -p "$build" 2>/dev/null |
	sed 's/\x1b\[[0-9;]*m//g' | grep -E '(error|warning):' | sort -u)

if ((bad == 0)); then
	echo "lint: ${#sources[@]} sources and ${#scripts[@]} scripts, nothing to complain of"
fi
exit "$bad"

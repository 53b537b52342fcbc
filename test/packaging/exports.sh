#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Both libraries offer exactly what include/ixdp declares IXDP_API: all of it, and no name of the
# inside, which might be an application's as well.
# usage: exports.sh BUILD
set -euo pipefail
build=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../../include/ixdp"

text=$(cat ./*.h | sed '/^#/d' | tr '\n\t' '  ')
declared=$(grep -oP 'IXDP_API [^;(]*?\K\w+(?=\()' <<<"$text" | sort)
if (($(wc -l <<<"$declared") != $(grep -o 'IXDP_API ' <<<"$text" | wc -l))); then
	echo "cannot tell what some IXDP_API declares; found: $declared"
	exit 1
fi

# compare LIBRARY [nm options]
compare() {
	local defined
	defined=$(nm --format=posix --defined-only --extern-only "${@:2}" "$1" |
		awk 'NF > 1 { print $1 }' | sort)
	diff -U 0 --label "IXDP_API in include/ixdp" --label "$1" <(echo "$declared") <(echo "$defined")
}
status=0
compare "$build/libixdp.so" --dynamic || status=1
compare "$build/libixdp.a" || status=1
exit "$status"

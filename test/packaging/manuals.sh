#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Manual pages are well-formed, and name what the programs have: every option, every fault; no other.
# usage: manuals.sh BUILD
set -euo pipefail
shopt -s lastpipe # the end of a pipeline is to change status
build=$1
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
cd "$root/examples/man"

# show PAGE: its text, without bold and underlined.
show() {
	mandoc -T ascii "$1" | sed 's/.\x08//g'
}

# options: what options the text of --help or of a page lists, at the beginning of a line.
options() {
	sed -nE 's/^ {2,6}(-.*)/\1/p' | sed -E 's/ {2,}.*//' | tr -s ', ' '\n' | grep '^-' | sort -u
}

status=0
# compare WHAT FILE PAGE: complains when what is there and what is described differ.
compare() {
	diff -U 0 --label "$1" --label "$3" "$2" - || status=1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mandoc -T lint -W warning ./* || status=1

for source in ../ixdp-*.c; do
	name=$(basename "$source" .c)
	"$build/examples/$name" --help | options >"$scratch/help"
	if [[ -e $name.1 ]]; then
		compare "$name --help" "$scratch/help" "$name.1" < <(show "$name.1" | options)
	else
		echo "examples/man/$name.1 is missing"
		status=1
	fi
done
for page in *.1; do
	if [[ ! -e ../${page%.1}.c ]]; then
		echo "$page: there is no such program"
		status=1
	fi
done
"$root/setup-hugetlbfs.sh" --help | options >"$scratch/help"
compare "setup-hugetlbfs.sh --help" "$scratch/help" ixdp-setup-hugetlbfs.8 < <(
	show ixdp-setup-hugetlbfs.8 | options)

{ "$build/examples/ixdp-fwd" soft:a,fault=? 2>&1 || true; } |
	sed 's/.*there are: //; s/, /\n/g' | sort >"$scratch/faults"
compare "faults of the software NIC" "$scratch/faults" ixdp.7 < <(
	show ixdp.7 | awk '/^[A-Z]/ { on = /^FAULTS/ } on && /^       [a-z]/ { print $1 }' | sort)
exit "$status"

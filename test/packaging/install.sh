#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Installs a build, moves the tree elsewhere, and uses it as others would: the programs, the headers
# in C and C++, and an application that finds the library by pkg-config and by CMake, shared and static.
# usage: install.sh BUILD   CC, CXX: compilers to use (cc, g++)
set -euo pipefail
build=$1
cc=${CC:-cc}
export CC=$cc CXX=${CXX:-g++}
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
app=$root/test/packaging/app

fail() {
	echo "$*"
	exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
DESTDIR=$scratch/stage cmake --install "$build" --prefix /opt/ixdp >"$scratch/log" ||
	fail "cmake --install: $(<"$scratch/log")"
prefix=$scratch/moved
mv "$scratch/stage/opt/ixdp" "$prefix"
[[ -z $(find "$scratch/stage" -type f) ]] || fail "outside of the prefix: $(find "$scratch/stage" -type f)"

pc=$(find "$prefix" -name ixdp.pc)
export PKG_CONFIG_PATH=${pc%/*}
libdir=${pc%/*/*}
version=$(pkg-config --modversion ixdp)
read -ra cflags <<<"$(pkg-config --cflags ixdp)"
read -ra libs <<<"$(pkg-config --libs ixdp)"
read -ra static_libs <<<"$(pkg-config --libs ixdp-static)"
[[ " $(pkg-config --static --libs ixdp) " == *" -lpci "*" -lpcap "* ]] ||
	fail "ixdp.pc does not say what a static link needs"

# All there is, and what it says of itself.
(cd "$root/include/ixdp" && ls ./*.h) | diff - <(cd "$prefix/include/ixdp" && ls ./*) ||
	fail "these headers should be installed"
for source in "$root"/examples/ixdp-*.c; do
	name=$(basename "$source" .c)
	[[ $("$prefix/bin/$name" --version) == "$name $version" ]] || fail "bin/$name: not $version"
done
[[ $("$prefix/sbin/ixdp-setup-hugetlbfs" --help) == "usage: ixdp-setup-hugetlbfs "* ]] ||
	fail "sbin/ixdp-setup-hugetlbfs does not know its name"
for page in "$root"/examples/man/*; do
	cmp "$page" "$prefix/share/man/man${page##*.}/${page##*/}"
done
for file in README.md LICENSE; do
	cmp "$root/$file" "$prefix/share/doc/ixdp/$file"
done

# Each header by itself.
for header in "$prefix"/include/ixdp/*.h; do
	printf '#include <ixdp/%s>\n' "${header##*/}" "${header##*/}" >"$scratch/header.c"
	"$CC" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "${cflags[@]}" \
		"$scratch/header.c" || fail "${header##*/}: cannot be included alone in C"
	"$CXX" -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "${cflags[@]}" -x c++ \
		"$scratch/header.c" || fail "${header##*/}: cannot be included alone in C++"
done

# try WHAT shared|static PROGRAM
try() {
	local said
	said=$("$3") || fail "$1: exit status $?: $said"
	[[ $said == "$version: 64 of 64 frames came back" ]] || fail "$1: $said"
	if readelf -d "$3" | grep -q 'NEEDED.*\[libixdp\.so'; then
		[[ $2 == shared ]] || fail "$1: needs libixdp.so"
	else
		[[ $2 == static ]] || fail "$1: does not need libixdp.so"
	fi
}

"$CC" -o "$scratch/shared" "$app/app.c" "${cflags[@]}" "${libs[@]}"
LD_LIBRARY_PATH=$libdir try "pkg-config, shared" shared "$scratch/shared"
"$CC" -o "$scratch/static" "$app/app.c" "${cflags[@]}" "${static_libs[@]}"
try "pkg-config, static" static "$scratch/static"

{
	cmake -G Ninja -S "$app" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$prefix" &&
		cmake --build "$scratch/build"
} >"$scratch/log" 2>&1 || fail "find_package: $(<"$scratch/log")"
try "find_package, shared" shared "$scratch/build/app_shared"
try "find_package, static" static "$scratch/build/app_static"
try "find_package, C++" static "$scratch/build/app_cxx"

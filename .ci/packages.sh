# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034
# The Debian packages that ixdp needs, and how to get them. To be sourced.

build_packages=(gcc libc6-dev cmake ninja-build pkgconf libpci-dev libpcap-dev libjson-c-dev)
test_packages=(libcmocka-dev g++ mandoc clang clang-format clang-tidy libclang-rt-14-dev shellcheck
	patch)

# Makes sure that all packages named are here: as root installs what is missing, and needs no network
# if nothing is; as anybody else names it.
packages_need() {
	local package missing=()
	if ! command -v dpkg-query >/dev/null; then
		echo "no Debian packages on this system; ixdp needs what these have: $*" >&2
		return 0
	fi
	for package in "$@"; do
		if [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
			missing+=("$package")
		fi
	done
	if ((${#missing[@]} == 0)); then
		return 0
	fi
	if ((EUID != 0)); then
		echo "packages are missing; as root: apt-get install --no-install-recommends" \
			"${missing[*]}" >&2
		return 1
	fi
	echo "installing ${missing[*]}"
	export DEBIAN_FRONTEND=noninteractive
	apt-get -q -o DPkg::Lock::Timeout=300 update &&
		apt-get -q -y -o DPkg::Lock::Timeout=300 install --no-install-recommends "${missing[@]}"
}

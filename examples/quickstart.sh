#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# From a fresh clone to packets that flow: installs what the build needs (as root; otherwise says
# what is missing), builds, and forwards between two software ports for five seconds.
# usage: examples/quickstart.sh [ixdp-fwd options and devices instead of --duration 5]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source .ci/packages.sh

if (($# == 0)); then
	set -- --duration 5
fi
packages_need "${build_packages[@]}"
cmake --preset release
cmake --build --preset release --target examples/all
echo "build/examples/ixdp-fwd $*"
exec build/examples/ixdp-fwd "$@"

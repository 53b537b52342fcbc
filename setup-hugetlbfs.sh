#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Huge pages for ixdp: reserves them on every NUMA node and mounts a hugetlbfs. What is already so
# stays; pages are never taken away.
set -euo pipefail

usage() {
	cat <<END
usage: ${0##*/} [--pages N] [--user NAME]
  --pages N    huge pages of 2 MiB on every NUMA node (256: 512 MiB), but never more than half of
               the node's memory
  --user NAME  hand the mount to this user, so that programs need not run as root
  --help       this text
Exit status: 0 done, 1 a step failed, 2 wrong usage.
END
}

# die STATUS WHAT: says what went wrong and what to do, ends.
die() {
	echo "${0##*/}: $2" >&2
	exit "$1"
}

pages=256
user=
while (($#)); do
	case $1 in
	--pages)
		[[ ${2-} =~ ^[1-9][0-9]{0,6}$ ]] || die 2 "--pages: needs a number from 1, not \"${2-}\""
		pages=$2
		shift 2
		;;
	--user)
		id -u -- "${2-}" >/dev/null 2>&1 || die 2 "--user: no such user: \"${2-}\""
		user=$2
		shift 2
		;;
	--help)
		usage
		exit 0
		;;
	*)
		die 2 "$1: unknown option; see --help"
		;;
	esac
done
((EUID == 0)) || die 1 "only root may reserve memory and mount: run it with sudo"

# reserve NAME DIR MEMINFO: sees to it that DIR has $pages huge pages.
reserve() {
	local name=$1 file=$2/hugepages/hugepages-2048kB/nr_hugepages had want=$pages most got
	[[ -e $file ]] || die 1 "$file: missing: this kernel has no huge pages of 2 MiB (CONFIG_HUGETLBFS)"
	most=$(awk '/MemTotal:/ { print int($(NF - 1) / 4096) }' "$3")
	if ((want > most)); then
		want=$most
		echo "$name: $pages huge pages are more than half of its memory; taking $want for it"
	fi
	had=$(<"$file")
	if ((had >= want)); then
		echo "$name: has $had huge pages already"
		return
	fi
	# A bad write shows when the number is read back, and when it cannot even be opened.
	{ echo "$want" >"$file"; } 2>/dev/null ||
		die 1 "$file: cannot be written: in a container, run this on the host"
	if (($(<"$file") < want)); then
		{ echo 1 >/proc/sys/vm/compact_memory && echo "$want" >"$file"; } 2>/dev/null || true
	fi
	got=$(<"$file")
	((got >= want)) ||
		die 1 "$name: got $got of $want huge pages, memory is too fragmented: try again after a reboot, or boot with hugepages=$want"
	echo "$name: $got huge pages, $had before"
}

nodes=(/sys/devices/system/node/node[0-9]*)
if [[ -d ${nodes[0]} ]]; then
	for node in "${nodes[@]}"; do
		# Nodes without memory (CPUs or devices alone) have nothing to reserve.
		grep -q 'MemTotal: *0 kB' "$node/meminfo" ||
			reserve "NUMA ${node##*/}" "$node" "$node/meminfo"
	done
else
	reserve "this machine" /sys/kernel/mm /proc/meminfo
fi

find_mount() {
	awk '$3 == "hugetlbfs" && ("," $4 ",") ~ /,pagesize=2M,/ { print $2; exit }' /proc/mounts
}

mount=$(find_mount)
if [[ $mount ]]; then
	echo "$mount: hugetlbfs is mounted already"
else
	mount=/dev/hugepages
	if mountpoint -q "$mount"; then # by something else: pages of 1 GiB, perhaps
		mount=/mnt/huge
	fi
	mkdir -p "$mount" || die 1 "$mount: cannot make this folder"
	why=$(mount -t hugetlbfs -o pagesize=2M,mode=0755 hugetlbfs "$mount" 2>&1) ||
		die 1 "$mount: cannot mount hugetlbfs (${why#mount: }): in a container, run this on the host"
	echo "$mount: mounted hugetlbfs"
fi

if [[ $user ]]; then
	if [[ $(stat -c %u "$mount") == "$(id -u -- "$user")" ]]; then
		echo "$mount: belongs to $user already"
	else
		chown -- "$user" "$mount" || die 1 "$mount: cannot be given to $user"
		echo "$mount: belongs to $user now"
	fi
fi

#!/bin/sh
# The first process of a node's own namespaces: lays out the node's file system, and then waits to be killed. Nothing of it is
# seen outside, and nothing of it outlives this process: neither mounts nor programs.
#
#   space.sh DIRECTORY [UNITS]        under unshare --mount --pid --fork --mount-proc --propagation private
#
# With UNITS, systemd is that first process, and knows the units in this directory alone; then under --cgroup, too. DIRECTORY/disk holds what the node keeps. The rest of the machine's file system shows through, and is not written to.
set -eu
directory=$1

# As on a node that systemd started: what is mounted later reaches the containers that ask for it.
mount --make-rshared /
mount -t tmpfs -o mode=0755 tmpfs /run
mkdir -m 1777 /run/lock
for each in etc opt var/lib var/log; do
  mkdir -p "$directory/overlay/$each" "$directory/work/$each"
  mount -t overlay -o "lowerdir=/$each,upperdir=$directory/overlay/$each,workdir=$directory/work/$each" overlay "/$each"
done
# kubelet starts no pod without it, and a machine without a resolver has none.
[ -e /etc/resolv.conf ] || : >/etc/resolv.conf
# What a node's programs keep is on the disk itself: an overlay can do neither all that containerd nor all that holdfast needs.
for each in etc/kubernetes etc/holdfast var/lib/kubelet var/lib/containerd var/lib/holdfast var/log/pods; do
  mkdir -p "$directory/disk/$each" "/$each"
  mount --bind "$directory/disk/$each" "/$each"
done
: >"$directory/laid-out"

if [ -n "${2:-}" ]; then
  # systemd mounts the other hierarchies itself. In a namespace of control groups it sees the node's groups, and not the machine's.
  if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
  else
    umount -R /sys/fs/cgroup
    mount -t tmpfs -o mode=0755 tmpfs /sys/fs/cgroup
    mkdir /sys/fs/cgroup/systemd /sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified
  fi
  exec env -i container=holdfast-test SYSTEMD_UNIT_PATH="$2" PATH="$PATH" \
    /lib/systemd/systemd --log-target=journal --show-status=0 --unit=default.target
fi

# The first process is the parent of every orphan: it has to wait for them, or they would stay as zombies.
while :; do
  sleep 3600 &
  wait "$!" || :
done

#!/bin/sh
# Copies Node, and of a Debian what Node loads, from ROOT into DIRECTORY: `scripts/image/libraries.sh ROOT DIRECTORY`.
#
# ROOT may be of another platform: nothing of it runs. What dpkg says of each library goes along, so that scanners of images know its version.
set -eu

root=${1:?usage: scripts/image/libraries.sh ROOT DIRECTORY}
out=${2:?usage: scripts/image/libraries.sh ROOT DIRECTORY}
mkdir -p "$out/usr/local/bin" "$out/etc" "$out/var/lib/dpkg/status.d" "$out/tmp"
chmod 1777 "$out/tmp"
cp "$root/usr/local/bin/node" "$out/usr/local/bin/"
for file in etc/os-release etc/nsswitch.conf etc/passwd etc/group; do
  [ ! -e "$root/$file" ] || cp -L "$root/$file" "$out/$file"
done

# Debian's /lib is a link to usr/lib: the names that Node and its loader use are kept.
library() {
  found=$(cd "$root" && find usr/lib -name "$1" | head -n 1)
  [ -n "$found" ] || { echo "scripts/image/libraries.sh: $root has no $1" >&2; exit 1; }
  mkdir -p "$out/${2:-$(dirname "$found")}"
  cp -L "$root/$found" "$out/${2:-$(dirname "$found")}/$1"
}
ln -s usr/lib "$out/lib"
for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 libresolv.so.2 libstdc++.so.6 libgcc_s.so.1; do
  library "$name"
done
case $(find "$root/usr/lib" -name 'ld-linux-*' | head -n 1) in
  *x86-64*) library ld-linux-x86-64.so.2 lib64 ;;
  *aarch64*) library ld-linux-aarch64.so.1 usr/lib ;;
  *) echo "scripts/image/libraries.sh: $root is of no platform that is known" >&2 && exit 1 ;;
esac
for package in base-files libc6 libgcc-s1 libstdc++6; do
  awk -v RS= -v ORS='\n\n' -v name="Package: $package\n" 'index($0, name) == 1' "$root/var/lib/dpkg/status" >"$out/var/lib/dpkg/status.d/$package"
  [ -s "$out/var/lib/dpkg/status.d/$package" ] || { echo "scripts/image/libraries.sh: dpkg does not know $package" >&2; exit 1; }
  licence=usr/share/doc/$package/copyright
  [ ! -e "$root/$licence" ] || { mkdir -p "$out/$(dirname "$licence")" && cp -L "$root/$licence" "$out/$licence"; }
done

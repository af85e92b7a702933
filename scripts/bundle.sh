#!/bin/sh
# Puts the program into DIRECTORY as an image carries it: `scripts/bundle.sh DIRECTORY [MODULES [with-node]]`.
#
#   bin/, package.json             as in the package
#   dist/src/cli/                   all of src/, native/, torture/ and what they import, one file for what is always loaded and for `replace`
#                                   and `write`, and one for each other part that a command or a thread loads when it runs
#   node_modules/koffi, @koromix/*  koffi, whose binary cannot be bundled: those of MODULES (default: this project's
#                                   node_modules), of the one platform that is installed there, for glibc
#   licenses/                       of everything that is in it, and holdfast.cdx.json, which names it (CycloneDX); `with-node`: with the Node that runs here, and its parts
#   seccomp/                        the profile of deploy/seccomp
#
# The sources are what is bundled: nothing has to be built before.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: scripts/bundle.sh DIRECTORY [MODULES [with-node]]}
modules=$(cd "${2:-$here/node_modules}" && pwd)
mkdir -p "$out"
if [ -n "$(ls -A "$out")" ]; then
  echo "scripts/bundle.sh: $out is not empty" >&2
  exit 2
fi
out=$(cd "$out" && pwd)
cd "$here"

mkdir "$out/bin"
cp bin/holdfast.js bin/prepare.js bin/package.json "$out/bin/"
chmod 755 "$out/bin/holdfast.js"
cp package.json "$out/"
cp -R deploy/seccomp "$out/"

node scripts/program.mjs "$out" "$modules" ${3:+"$3"}

mkdir -p "$out/node_modules/koffi/src/koffi"
for file in package.json index.cjs src/koffi/index.cjs src/koffi/src/static.cjs; do
  mkdir -p "$(dirname "$out/node_modules/koffi/$file")"
  cp "$modules/koffi/$file" "$out/node_modules/koffi/$file"
done
cp "$modules/koffi/LICENSE.txt" "$out/licenses/koffi"
platforms=0
for platform in "$modules"/@koromix/koffi-linux-*; do
  name=$(basename "$platform")
  mkdir -p "$out/node_modules/@koromix/$name"
  # linux_x64/koffi.node is glibc's, musl_x64/koffi.node is musl's.
  cp -R "$platform/package.json" "$platform/index.js" "$platform"/linux_* "$out/node_modules/@koromix/$name/"
  platforms=$((platforms + 1))
done
if [ "$platforms" -ne 1 ]; then
  echo "scripts/bundle.sh: $modules holds koffi for $platforms platforms, and should for one" >&2
  exit 1
fi
# As the sources give them, whatever umask made the copy of the sources or runs here.
find "$out" -type d -exec chmod 755 {} +
find "$out" -type f ! -path "$out/bin/holdfast.js" -exec chmod 644 {} +

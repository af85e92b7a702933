#!/bin/sh
# Puts the program into DIRECTORY as an image carries it: `scripts/bundle.sh DIRECTORY [MODULES]`.
#
#   bin/, package.json             as in the package
#   dist/src/cli/                   all of src/, native/ and what they import, one file for what is always loaded and one for
#                                   each part that a command or a thread loads when it runs
#   node_modules/koffi, @koromix/*  koffi, whose binary cannot be bundled: those of MODULES (default: this project's
#                                   node_modules), of the one platform that is installed there, for glibc
#   node_modules/pino               one file: it is loaded by name, when the first line is logged
#   licenses/                       of everything that is in it
#
# The sources are what is bundled: nothing has to be built before.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
out=${1:?usage: scripts/bundle.sh DIRECTORY [MODULES]}
modules=$(cd "${2:-$here/node_modules}" && pwd)
mkdir -p "$out"
if [ -n "$(ls -A "$out")" ]; then
  echo "scripts/bundle.sh: $out is not empty" >&2
  exit 2
fi
out=$(cd "$out" && pwd)
cd "$here"
esbuild=${ESBUILD:-node_modules/.bin/esbuild}

mkdir "$out/bin" "$out/licenses"
cp bin/holdfast.js bin/package.json "$out/bin/"
chmod 755 "$out/bin/holdfast.js"
cp package.json "$out/"
cp LICENSE "$out/licenses/holdfast"

# CommonJS packages in an ES module find `require` only where somebody makes it. yaml is taken from its ES modules, which its
# package offers to browsers alone: of a CommonJS package that is loaded by import(), esbuild exports no names.
"$esbuild" main=src/cli/main.ts content-check-thread=src/directories/content-check-thread.ts --bundle --splitting --platform=node --format=esm --target=node20 --log-level=warning \
  --external:koffi --external:pino --alias:yaml=./node_modules/yaml/browser/index.js --legal-comments=none \
  --outdir="$out/dist/src/cli" --metafile="$out/program.json" \
  --banner:js="import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);"

mkdir -p "$out/node_modules/pino"
"$esbuild" node_modules/pino/pino.js --bundle --platform=node --format=cjs --target=node20 --log-level=warning \
  --legal-comments=none --outfile="$out/node_modules/pino/pino.js" --metafile="$out/pino.json"
cp node_modules/pino/package.json "$out/node_modules/pino/"

mkdir -p "$out/node_modules/koffi/src/koffi"
for file in package.json index.js src/koffi/index.js src/koffi/src/static.js; do
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

# Each package that a file of the bundle came from.
for package in $(grep -oh '"node_modules/[^"]*"' "$out/program.json" "$out/pino.json" |
  sed -E 's|"node_modules/((@[^/]*/)?[^/]*)/.*|\1|' | sort -u); do
  for license in "node_modules/$package"/LICEN[CS]E* "node_modules/$package"/license*; do
    if [ -f "$license" ]; then cp "$license" "$out/licenses/$(echo "$package" | tr / _)"; fi
  done
  if ! [ -f "$out/licenses/$(echo "$package" | tr / _)" ]; then
    echo "scripts/bundle.sh: no licence found in node_modules/$package" >&2
    exit 1
  fi
done
rm "$out/program.json" "$out/pino.json"

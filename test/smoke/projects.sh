#!/usr/bin/env bash
# The package as projects of its users have it: each installs it by itself, and makes one publication, in the way of its tool.
#   test/smoke/projects.sh TARBALL PROJECT...
# node16, bundler and esbuild need what this project has; jest, vitest and bun install their tool, in the version below.
set -euo pipefail
tarball=$(realpath "$1")
shift
cd "$(dirname "$0")/../.."
project=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $(uname -m) in x86_64) arch=x64 ;; *) arch=aarch64 ;; esac

# begin NAME PACKAGE...: an empty project with these packages.
begin() {
  mkdir "$work/$1" && cd "$work/$1"
  shift
  echo '{ "private": true, "type": "module" }' >package.json
  npm install --loglevel=error --no-audit --no-fund --prefer-offline "$tarball" "$@"
  cp "$project"/test/smoke/projects/* .
}

# publishes COMMAND...: the command, with a target, prints what the first publication there is.
publishes() {
  local said
  said=$("$@" "$PWD/target")
  [ "$said" = created ] && [ "$(cat target/sub/tls.key)" = key ] || { echo "$*: $said" && exit 1; }
  rm -r target
}

# compile MODULE RESOLUTION
compile() {
  "$project/node_modules/.bin/tsc" --strict --target es2022 --module "$1" --moduleResolution "$2" --outDir out \
    --typeRoots "$project/node_modules/@types" --types node program.ts publication.ts
}

# bundle FORMAT OUT ENTRY: with koffi outside, whose binary no bundler takes in.
bundle() {
  "$project/node_modules/.bin/esbuild" "$3" --bundle --platform=node "--format=$1" --external:koffi "--outfile=$2" --log-level=warning
}

for name in "$@"; do
  case $name in
    node16) begin node16 && compile node16 node16 && publishes node out/program.js ;;
    bundler) begin bundler && compile esnext bundler && bundle esm bundled.mjs out/program.js && publishes node bundled.mjs ;;
    esbuild)
      begin esbuild
      bundle esm bundled.mjs program.ts && publishes node bundled.mjs
      bundle cjs bundled.cjs publication.cjs && publishes node bundled.cjs
      ;;
    jest)
      begin jest jest@30.5.2
      TARGET=$PWD/target NODE_OPTIONS=--experimental-vm-modules npx jest --testMatch '**/jest.test.js' 2>jest.log || { cat jest.log && exit 1; }
      ;;
    vitest)
      begin vitest vitest@5.1.1
      TARGET=$PWD/target npx vitest run --dir . vitest.test.js >vitest.log 2>&1 || { cat vitest.log && exit 1; }
      ;;
    bun) begin bun "@oven/bun-linux-$arch@1.4.5" && publishes "node_modules/@oven/bun-linux-$arch/bin/bun" program.ts ;;
    *) echo "no project is called $name" && exit 2 ;;
  esac
  echo "a project with $name: publishes"
done

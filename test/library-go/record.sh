#!/bin/sh
# Records what library-go's commands do: `record.sh CHECKOUT`, a checkout of github.com/openshift/library-go at the commit below.
#
# The checkout brings its own dependencies (vendor/), and stays unchanged: the build lays commands/main.go over it. The module proxy has no
# library-go that builds (some of its dependencies are missing), and this repository has none of its code.
set -eu

commit=93ac9206ae34e602d6acf346826e3e99c22b1787
here=$(cd "$(dirname "$0")" && pwd)
checkout=$(cd "${1:?usage: record.sh CHECKOUT}" && pwd)
actual=$(git -C "$checkout" rev-parse HEAD)
[ "$actual" = "$commit" ] || { echo "$checkout is at $actual; what is recorded is $commit" >&2 && exit 1; }

built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
printf '{"Replace":{"%s/cmd/static-pods/main.go":"%s/commands/main.go"}}' "$checkout" "$here" >"$built/overlay.json"
(cd "$checkout" && nice go build -mod=vendor -overlay "$built/overlay.json" -o "$built/library-go" ./cmd/static-pods)
cd "$here/../.."
npm run --silent compile
node dist/test/library-go/record.js "$built/library-go" "$commit"
npx prettier --log-level warn --write test/library-go/recorded.json

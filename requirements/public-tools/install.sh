#!/bin/sh
# Install the public MCP inspector and conformance suite, as locked beside this file, into a directory:
#
#     sh requirements/public-tools/install.sh DIRECTORY
#
# They need a newer Node than many systems have; where it is too old, one from the npm registry is put beside them.
# A machine without npm, or without a way to its registry, is no failure: DIRECTORY/why-not then says what is missing,
# the run of the tests prints it, and everything else is tested. The next run tries again.
set -u
here=$(cd "$(dirname "$0")" && pwd)
target=$1
needed='22.19'
node_version='22.23.3'

give_up() {
	echo "$1" >"$target/why-not"
	echo "note: the public MCP tools are not run: $1" >&2
	exit 0
}

new_enough() {
	"$1" -e "const [a, b] = process.versions.node.split('.').map(Number), [c, d] = '$needed'.split('.').map(Number);
		process.exit(a > c || (a === c && b >= d) ? 0 : 1)" 2>/dev/null
}

# A registry that does not answer must not hold up the tests.
install() {
	if command -v timeout >/dev/null 2>&1; then set -- timeout 240 npm install "$@"; else set -- npm install "$@"; fi
	"$@" --loglevel=error --no-audit --no-fund --fetch-timeout=20000 --fetch-retries=3 \
		--fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000
}

mkdir -p "$target" || exit 0
rm -f "$target/ready"
command -v npm >/dev/null 2>&1 || give_up 'npm was not found'
if new_enough node; then
	rm -rf "$target/runtime"
elif ! new_enough "$target/runtime/node_modules/node/bin/node"; then
	mkdir -p "$target/runtime"
	# The package for this system alone: the one for every system fetches it by a script, which npm may not run.
	system=$(node -p 'process.platform + "-" + process.arch')
	install --no-save --prefix "$target/runtime" "node@npm:node-$system@$node_version" >"$target/log" 2>&1 ||
		give_up "Node $(node --version) is older than $needed, and a newer one could not be installed (see $target/log)"
	new_enough "$target/runtime/node_modules/node/bin/node" ||
		give_up "Node $(node --version) is older than $needed, and the one that was installed does not run"
fi
[ -d "$target/runtime" ] && PATH="$target/runtime/node_modules/node/bin:$PATH" && export PATH
cp "$here/package.json" "$here/package-lock.json" "$target/" || give_up 'their lock could not be copied'
(cd "$target" && install) >"$target/log" 2>&1 ||
	give_up "npm could not install them (see $target/log)"
rm -f "$target/why-not"
touch "$target/ready"

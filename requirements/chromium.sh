#!/bin/sh
# Install Chromium for the tests of the web page, with the system's package manager. Only root may do that:
# elsewhere, and where it fails, a note says what to run, and the tests say that the page was not tried in a browser.
set -u
for name in chromium-headless-shell chromium chromium-browser google-chrome; do
	command -v "$name" >/dev/null 2>&1 && exit 0
done

note() {
	echo "note: no Chromium for the tests of the web page: $1" >&2
	exit 0
}

command -v apt-get >/dev/null 2>&1 || note 'install it with the package manager of this system'
[ "$(id -u)" = 0 ] || note 'run: sudo apt-get install chromium'
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
install() { timeout 400 apt-get install --yes --no-install-recommends "$1"; }
{ timeout 120 apt-get update && { install chromium-headless-shell || install chromium; }; } >"$log" 2>&1 ||
	note "apt-get failed (see $log)"
rm -f "$log"

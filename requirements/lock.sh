#!/bin/sh
# Resolves pyproject.toml into the three locks: every version with its hashes, no index address.
# usage: lock.sh UV [--upgrade | --upgrade-package NAME ...]
set -eu
uv=$1
shift
cd "$(dirname "$0")/.."

compile() { # compile LOCK ARGUMENTS...
    lock=$1
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
        --no-emit-index-url --no-emit-find-links --output-file "$lock" "$@"
}

compile requirements/setup.lock --group setup "$@"
compile requirements/dev.lock --constraints requirements/setup.lock pyproject.toml --extra web --group dev "$@"
compile requirements/site.lock --group site "$@"

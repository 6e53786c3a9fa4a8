#!/usr/bin/env bash
# Prints the folder that holds an npm package, which is installed there once: .ci/npm_package.sh NAME VERSION
# Ends with 3 where it cannot be had: without npm, or without a registry in reach.
set -euo pipefail

name=$1 version=$2
folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/.venv/npm/${name//\//_}-$version
if [[ ! -d $folder/node_modules/$name ]]; then
    command -v npm >/dev/null && command -v node >/dev/null || exit 3
    mkdir -p "$folder"
    timeout 300 npm install --silent --no-save --prefix "$folder" "$name@$version" >&2 || exit 3
fi
printf '%s\n' "$folder"

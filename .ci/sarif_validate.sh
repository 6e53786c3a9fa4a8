#!/usr/bin/env bash
# Validates a SARIF file with Microsoft's own rules for the format and for GitHub code scanning.
# Usage: .ci/sarif_validate.sh FILE.sarif     Fails on any error or warning; says so and passes without npm.
set -euo pipefail

file=$(realpath "${1:?a SARIF file}")
package=@microsoft/sarif-multitool-linux
status=0
folder=$("$(dirname "${BASH_SOURCE[0]}")"/npm_package.sh "$package" 5.7.0) || status=$?
if [[ $status -eq 3 || $(uname -sm) != "Linux x86_64" ]]; then
    echo "sarif: not validated, $package cannot be had here"
    exit 0
fi
[[ $status -eq 0 ]] || exit "$status"
tool=$folder/node_modules/$package/Sarif.Multitool
chmod u+x "$tool"

# It leaves files where it runs. Larger files are skipped in silence unless the limit (in KB) is raised.
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
status=0
output=$(cd "$temporary" && DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 "$tool" validate --rule-kind "Sarif;Ghas" \
    --max-file-size-in-kb 200000 "$file" 2>&1) || status=$?
if [[ $status -ne 0 ]] || grep -Eq ': (error|warning) [A-Z]+[0-9]+' <<<"$output" \
    || ! grep -q 'Done. 1 files scanned' <<<"$output"; then
    printf '%s\n' "$output"
    echo "sarif: not valid" >&2
    exit 1
fi
echo "sarif: valid, no error and no warning"

#!/usr/bin/env bash
# Validates a SARIF file with Microsoft's own rules for the format and for GitHub code scanning.
# Usage: .ci/sarif_validate.sh FILE.sarif     Fails on any error or warning.
set -euo pipefail

file=$(realpath "${1:?a SARIF file}")
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

npm install --silent --no-save --prefix "$temporary" @microsoft/sarif-multitool-linux@5.7.0 >/dev/null
tool=$temporary/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
chmod u+x "$tool"

# Larger files are skipped in silence unless the limit (in KB) is raised.
status=0
output=$(cd "$temporary" && DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 "$tool" validate --rule-kind "Sarif;Ghas" \
    --max-file-size-in-kb 200000 "$file" 2>&1) || status=$?
printf '%s\n' "$output"
if [[ $status -ne 0 ]] || grep -Eq ': (error|warning) [A-Z]+[0-9]+' <<<"$output" \
    || ! grep -q 'Done. 1 files scanned' <<<"$output"; then
    echo "sarif: not valid" >&2
    exit 1
fi
echo "sarif: valid, no error and no warning"

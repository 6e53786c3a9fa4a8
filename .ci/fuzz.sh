#!/usr/bin/env bash
# Fuzzes what reads input for some seconds (.ci/fuzz.sh 40), each time from another seed; says so and passes where
# there is no build of atheris for this Python and platform.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-.venv/bin/python}
if ! timeout 300 "$python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
    -c .ci/constraints.txt atheris 2>/dev/null; then
    echo "fuzz: not run, atheris cannot be had here"
    exit 0
fi
exec timeout $(("$1" + 300)) "$python" tests/robustness/fuzz.py --seconds "$1" --seed "${RANDOM}"

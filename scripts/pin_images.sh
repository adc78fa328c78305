#!/usr/bin/env bash
# Write what each image installs, with the hashes of its files, to deploy/images/: after each change of an extra or of constraints.txt.
#   scripts/pin_images.sh [UV]   UV: the program, for which `pip install uv` is enough
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

uv=${1:-uv}

pin() {
    local image=$1 extra
    local -a extras=()
    shift
    for extra in "$@"; do
        extras+=(--extra "$extra")
    done
    {
        echo "# Made by scripts/pin_images.sh from pyproject.toml and constraints.txt: $*"
        "$uv" pip compile -q pyproject.toml "${extras[@]}" --constraints constraints.txt --generate-hashes \
            --python-version 3.11.14 --python-platform linux --no-annotate --no-header
    } >"deploy/images/$image.txt"
}

pin operator operator postgresql mongodb
pin server server sts postgresql mongodb
pin worker workers lake spark postgresql mongodb

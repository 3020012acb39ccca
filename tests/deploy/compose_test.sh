#!/usr/bin/env bash
# Runs docker-compose.yml on a real engine: compose_test.sh [BIN_FOLDER], by default the programs of
# the newest build here. Starts an engine and makes the base image where none is (engine.sh), stops
# what it started, and leaves no container, volume or network. Exit status 3, with the reason, where
# no engine can be had; 77 where there is no build.
#
# Environment: TETRION_COMPOSE (the compose command), TETRION_COMPILED=1 (compile in the image), and
# what engine.sh reads.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.."
engine=tests/deploy/engine.sh

trap '"$engine" stop' EXIT
trap 'exit 143' TERM  # after the program that runs, which is told as well
"$engine" start
PATH=$("$engine" path)
export PATH
"$engine" base
if [[ -z ${TETRION_COMPILED:-} ]]; then
  deploy/docker/prebuilt.sh "$@" || exit 77
fi
python3 -B tests/deploy/compose_test.py

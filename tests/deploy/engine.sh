#!/usr/bin/env bash
# A container engine for tests where none runs, and a base image where none can be pulled.
#
#   engine.sh start   starts dockerd unless an engine answers; needs root and Debian's docker.io
#   engine.sh base    makes debian:bookworm-slim by debootstrap unless it is there or can be pulled
#   engine.sh stop    stops the engine that `start` started, and no other
#   engine.sh path    prints the PATH with which `docker` can build (see below)
#
# Exit status 3 when that cannot be had, with the reason on stderr.
# Environment: TETRION_ENGINE_DATA, the engine's folder (/var/lib/docker);
# TETRION_DEBIAN_MIRROR (http://deb.debian.org).
set -euo pipefail

base_image=debian:bookworm-slim
state=/run/tetrion-engine
start_s=60

cannot() {
  echo "engine.sh: $*" >&2
  exit 3
}

# A docker command without its build plug-in refuses BuildKit; Debian's own has it built in.
build_path() {
  if ! docker buildx version >/dev/null 2>&1 && [[ -x /usr/bin/docker ]]; then
    echo "/usr/bin:$PATH"
  else
    echo "$PATH"
  fi
}

answers() { timeout 10 docker info >/dev/null 2>&1; }

start() {
  if answers; then return 0; fi
  command -v dockerd >/dev/null ||
    cannot "no engine answers and there is no dockerd: apt-get install docker.io iptables"
  ((EUID == 0)) || cannot "no engine answers and only root can start one: sudo service docker start"
  mkdir -p "$state"
  setsid dockerd --data-root "${TETRION_ENGINE_DATA:-/var/lib/docker}" \
    >"$state/dockerd.log" 2>&1 </dev/null &
  local pid=$! deadline=$((SECONDS + start_s))
  echo "$pid" >"$state/pid"
  until answers; do
    if ! kill -0 "$pid" 2>/dev/null; then
      rm -f "$state/pid"
      cannot "dockerd ended: $(grep -v level=info "$state/dockerd.log" | tail -n 2 | cut -c1-300)"
    fi
    ((SECONDS < deadline)) || cannot "dockerd does not answer after $start_s s: $state/dockerd.log"
    sleep 0.5
  done
}

stop() {
  local pid
  pid=$(cat "$state/pid" 2>/dev/null) || return 0
  rm -f "$state/pid"
  kill "$pid" 2>/dev/null || return 0
  local deadline=$((SECONDS + start_s))
  while kill -0 "$pid" 2>/dev/null && ((SECONDS < deadline)); do sleep 0.2; done
}

# What the published image holds: the minimal system without documentation.
bootstrap() {
  local root=$1 mirror=${TETRION_DEBIAN_MIRROR:-http://deb.debian.org}
  debootstrap --variant=minbase bookworm "$root" "$mirror/debian" >"$root.log" 2>&1 ||
    cannot "debootstrap failed: $(tail -n 1 "$root.log")"
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* \
    "$root"/usr/share/{doc,man,info,locale}/*
  printf 'deb %s bookworm main\n' "$mirror/debian" >"$root/etc/apt/sources.list"
  printf 'deb %s bookworm-updates main\n' "$mirror/debian" >>"$root/etc/apt/sources.list"
  printf 'deb %s bookworm-security main\n' "$mirror/debian-security" >>"$root/etc/apt/sources.list"
}

base() {
  if docker image inspect "$base_image" >/dev/null 2>&1; then return 0; fi
  if timeout 60 docker pull -q "$base_image" >/dev/null 2>&1; then return 0; fi
  command -v debootstrap >/dev/null ||
    cannot "$base_image cannot be pulled and there is no debootstrap: apt-get install debootstrap"
  ((EUID == 0)) || cannot "$base_image cannot be pulled here and only root can use debootstrap"
  scratch=$(mktemp -d) # not local: the trap reads it when the function has returned
  trap 'rm -rf "$scratch"' EXIT
  bootstrap "$scratch/root"
  tar -C "$scratch/root" -c . | docker import - "$base_image" >/dev/null
}

case ${1:-} in
  start | stop | base) "$1" ;;
  path) build_path ;;
  *)
    sed -n '2,/^set/{/^#/p}' "$0" >&2
    exit 2
    ;;
esac

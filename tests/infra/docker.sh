#!/bin/bash
# A real Docker engine and a real registry for tests, as root, without systemd: all under one folder, loopback only.
#
#   docker.sh BASE install            the Debian packages that are missing
#   docker.sh BASE start              registry and daemon (does nothing when they run); prints what `env` prints
#   docker.sh BASE push NAME:TAG MARK a small engine image whose /engine/mark says MARK, into the registry
#   docker.sh BASE env | status | stop
#
# The registry is the daemon's mirror, so `docker pull NAME:TAG` works under the production name and gives a real
# RepoDigest; no other registry is asked. The image is a busybox root whose `vllm` runs `$INFX_TEST_PYTHON -m infx.simulator`: mount the host's
# /usr, the interpreter's prefix and the repository read-only, and the simulator is the engine inside.
# Containers have no network of their own there: run them with `--network host`.
# Environment: REGISTRY_PORT (5055).
set -euo pipefail
BASE=$(mkdir -p "$1" && cd "$1" && pwd) VERB=${2:-start}
. "$(dirname "${BASH_SOURCE[0]}")/daemons.sh"
mkdir -p "$BASE"/{data,exec,run,log,registry}
[ -s "$BASE/run/registry.port" ] || echo "${REGISTRY_PORT:-5055}" >"$BASE/run/registry.port"
PORT=$(cat "$BASE/run/registry.port")
export DOCKER_HOST=unix://$BASE/run/docker.sock

start_registry() {
  running "$BASE/run/registry.pid" && return 0
  cat >"$BASE/registry.yml" <<CONFIG
version: 0.1
log: {level: warn}
storage:
  filesystem: {rootdirectory: $BASE/registry}
  delete: {enabled: true}
http: {addr: "127.0.0.1:$PORT"}
CONFIG
  setsid docker-registry serve "$BASE/registry.yml" </dev/null >"$BASE/log/registry.log" 2>&1 &
  echo $! >"$BASE/run/registry.pid"
  wait_for 10 curl -sf "http://127.0.0.1:$PORT/v2/" || { tail -n 20 "$BASE/log/registry.log" >&2; return 1; }
}

start_daemon() {
  running "$BASE/run/docker.pid" && return 0
  local driver
  for driver in overlay2 vfs; do # vfs where the folder lies on an overlay itself
    rm -f "$BASE/run/docker.pid"
    # Neither iptables nor a bridge: the machine's own network stays as it is. After the mirror the daemon asks the
    # public registry: the proxy that nobody serves keeps it on this machine.
    HTTPS_PROXY=http://127.0.0.1:9 NO_PROXY=127.0.0.1 setsid dockerd --iptables=false --ip6tables=false --ip-forward=false --bridge=none --storage-driver="$driver" \
      --registry-mirror "http://127.0.0.1:$PORT" --data-root "$BASE/data" --exec-root "$BASE/exec" --group root \
      --pidfile "$BASE/run/docker.pid" --host "$DOCKER_HOST" </dev/null >"$BASE/log/dockerd.log" 2>&1 &
    wait_for 20 docker version && return 0
    stop_by_file "$BASE/run/docker.pid"
  done
  tail -n 20 "$BASE/log/dockerd.log" >&2
  return 1
}

push_image() { # push_image NAME:TAG MARK
  local root=$BASE/root name=127.0.0.1:$PORT/$1 busybox applet
  busybox=$(readlink -f "$(command -v busybox)")
  rm -rf "$root"
  mkdir -p "$root"/{busybox,engine/bin,usr/bin,usr/sbin,usr/lib,usr/lib64,etc,proc,sys,dev,tmp,run,var/tmp,workspace}
  chmod 1777 "$root/tmp" "$root/var/tmp"
  for applet in bin sbin lib lib64; do ln -s "usr/$applet" "$root/$applet"; done
  cp "$busybox" "$root/busybox/busybox"
  for applet in $("$busybox" --list); do [ "$applet" = busybox ] || ln -s busybox "$root/busybox/$applet"; done
  ln -s ../../busybox/busybox "$root/usr/bin/sh"
  printf 'root:x:0:0:root:/:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nvideo:x:44:\nrender:x:105:\n' >"$root/etc/group"
  printf '%s\n' "$2" >"$root/engine/mark"
  printf '#!/bin/sh\nexec "${INFX_TEST_PYTHON:-python3}" -m infx.simulator "$@"\n' >"$root/engine/bin/vllm"
  chmod 755 "$root/engine/bin/vllm"
  tar -C "$root" --sort=name --mtime=@0 --owner=0 --group=0 -cf - . | docker import \
    -c 'ENV PATH=/engine/bin:/usr/local/bin:/usr/bin:/bin:/busybox' -c 'ENV VLLM_USAGE_SOURCE=production-docker-image' \
    -c 'WORKDIR /workspace' -c 'ENTRYPOINT ["vllm", "serve"]' - "$name" >/dev/null
  docker push -q "$name" >/dev/null
  docker rmi -f "$name" >/dev/null
  rm -rf "$root"
}

stop_all() {
  local running_ids mount
  if running "$BASE/run/docker.pid"; then
    running_ids=$(docker ps -q)
    # shellcheck disable=SC2086 # a list of ids
    [ -z "$running_ids" ] || docker kill $running_ids >/dev/null || true
  fi
  stop_by_file "$BASE/run/docker.pid"
  stop_by_file "$BASE/run/registry.pid"
  for mount in $(awk -v base="$BASE/" 'index($5, base) == 1 {print $5}' /proc/self/mountinfo | sort -r); do
    umount "$mount" 2>/dev/null || true
  done
}

case $VERB in
  install) install_missing "$BASE/log/apt.log" dockerd=docker.io containerd=containerd runc=runc docker=docker.io \
    docker-registry=docker-registry busybox=busybox-static curl=curl ;;
  start)
    start_registry
    start_daemon
    echo "export DOCKER_HOST=$DOCKER_HOST" ;;
  push) push_image "$3" "$4" ;;
  env) echo "export DOCKER_HOST=$DOCKER_HOST" ;;
  status) for name in registry docker; do
    if running "$BASE/run/$name.pid"; then echo "up   $name"; else echo "down $name"; fi
  done ;;
  stop) stop_all ;;
  *) sed -n '2,13p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac

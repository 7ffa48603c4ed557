# Sourced by the scripts of this folder: daemons by pid file, and Debian packages. Nothing is ended by name.

running() { # running PIDFILE: its process lives (a zombie does not)
  local stat
  [ -s "$1" ] && stat=$(sed 's/.*) //' "/proc/$(cat "$1")/stat" 2>/dev/null) && [ -n "$stat" ] && [ "${stat:0:1}" != Z ]
}

stop_by_file() { # stop_by_file PIDFILE [SIGNAL]: ends that process and waits, at last with KILL
  local pid
  if running "$1"; then
    pid=$(cat "$1")
    kill "-${2:-TERM}" "$pid" 2>/dev/null || true
    for _ in $(seq 150); do running "$1" || break; sleep 0.1; done
    if running "$1"; then kill -KILL "$pid" 2>/dev/null || true; fi
  fi
  rm -f "$1"
}

wait_for() { # wait_for SECONDS COMMAND…: until it succeeds
  local tenths=$(($1 * 10))
  shift
  for _ in $(seq "$tenths"); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
  return 1
}

install_missing() { # install_missing LOG COMMAND=PACKAGE…: the packages of the commands that are missing
  local log=$1 pair missing=()
  shift
  for pair in "$@"; do command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}"); done
  [ ${#missing[@]} -eq 0 ] && return 0
  if ! { DEBIAN_FRONTEND=noninteractive apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1 </dev/null; then
    tail -n 20 "$log" >&2
    return 1
  fi
}

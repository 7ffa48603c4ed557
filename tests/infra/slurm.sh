#!/bin/bash
# A real Slurm cluster on one machine for tests, as root, without systemd: all under one folder.
#
#   slurm.sh BASE install       the Debian packages that are missing
#   slurm.sh BASE start         munge, controller and nodes (does nothing when they run); prints what `env` prints
#   slurm.sh BASE env           shell lines that put the client commands (sbatch, srun, squeue, …) first on PATH
#   slurm.sh BASE power-off N   a power cut of node N: all that runs on it is gone at once
#   slurm.sh BASE kill-slurmd N ends node N's daemon alone; its jobs' processes live on
#   slurm.sh BASE start-node N  brings the node, or its daemon alone, back
#   slurm.sh BASE kill-controller | start-controller   its daemon alone; state and nodes stay
#   slurm.sh BASE status | stop
#
# Each node is a network, process, mount and host-name namespace with fake GPUs of its own; files are shared, as on a
# cluster's shared storage. The controller has a namespace too, and the bridge between them lives in it: the machine's
# own network gets neither an address nor a link. BASE/small is a file system of 4 MiB, to be filled. A stand-in for pyxis (spank/pyxis_standin.c) takes container flags.
# Environment (at start): SLURM_NODES (3), SLURM_CPUS (16), SLURM_GPUS (8), SLURM_GPU_TYPE (mi355x),
# SLURMD_TIMEOUT (10, seconds until a silent node counts as down).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
BASE=$(mkdir -p "$1" && cd "$1" && pwd) VERB=${2:-start} NODE=${3:-}
. "$HERE/daemons.sh"
NODES=${SLURM_NODES:-3} CPUS=${SLURM_CPUS:-16} GPUS=${SLURM_GPUS:-8} TYPE=${SLURM_GPU_TYPE:-mi355x}
SPACE=infx-$(printf %s "$BASE" | cksum | cut -d' ' -f1) # of the network namespaces, one set a folder
CLIENTS="sbatch srun salloc squeue scancel sinfo scontrol sprio"
export SLURM_CONF=$BASE/etc/slurm.conf
mkdir -p "$BASE"/{bin,etc,run,log,state,dev,spool}
chmod 711 "$BASE" "$BASE/run" # munge wants its socket within reach

write_configuration() {
  local n gpu
  for gpu in $(seq 0 $((GPUS - 1))); do
    # slurmd insists on a device node a GPU: a twin of /dev/null
    [ -c "$BASE/dev/gpu$gpu" ] || mknod -m 666 "$BASE/dev/gpu$gpu" c 1 3
  done
  {
    cat <<CONFIG
ClusterName=test
SlurmctldHost=ctl(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$BASE/run/munge.socket
CredType=cred/munge
StateSaveLocation=$BASE/state
SlurmdSpoolDir=$BASE/spool/%n
SlurmctldPidFile=$BASE/run/slurmctld.own
SlurmdPidFile=$BASE/run/slurmd.%n.own
SlurmctldLogFile=$BASE/log/slurmctld.log
SlurmdLogFile=$BASE/log/slurmd.%n.log
PlugStackConfig=$BASE/etc/plugstack.conf
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=${SLURMD_TIMEOUT:-10}
InactiveLimit=0
MinJobAge=3600
KillWait=5
Waittime=0
BatchStartTimeout=10
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=100000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$BASE/log/jobcomp.txt
CONFIG
    for n in $(seq "$NODES"); do
      echo "NodeName=n$n NodeHostname=n$n NodeAddr=10.77.0.$((10 + n)) CPUs=$CPUS Boards=1 SocketsPerBoard=1" \
        "CoresPerSocket=$CPUS ThreadsPerCore=1 RealMemory=4096 Gres=gpu:$TYPE:$GPUS State=UNKNOWN"
    done
    echo "PartitionName=main Nodes=n[1-$NODES] Default=YES MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF"
    echo "PartitionName=low Nodes=n[1-$NODES] MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE"
  } >"$BASE/etc/slurm.conf"
  # With this flag ROCR_VISIBLE_DEVICES alone is set; without any, CUDA's and others' variables are too.
  echo "NodeName=n[1-$NODES] Name=gpu Type=$TYPE File=$BASE/dev/gpu[0-$((GPUS - 1))] Flags=amd_gpu_env" >"$BASE/etc/gres.conf"
  printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n' >"$BASE/etc/cgroup.conf"
  gcc -shared -fPIC -O2 -Wall -o "$BASE/etc/pyxis_standin.so" "$HERE/spank/pyxis_standin.c"
  echo "required $BASE/etc/pyxis_standin.so" >"$BASE/etc/plugstack.conf"
  [ -s "$BASE/etc/munge.key" ] || (umask 077; head -c 128 /dev/urandom >"$BASE/etc/munge.key")
  {
    echo "127.0.0.1 localhost"
    echo "10.77.0.1 ctl"
    for n in $(seq "$NODES"); do echo "10.77.0.$((10 + n)) n$n"; done
  } >"$BASE/etc/hosts"
}

make_network() {
  local n
  ip netns add "$SPACE-ctl"
  ip -n "$SPACE-ctl" link set lo up
  ip -n "$SPACE-ctl" link add br0 type bridge
  ip -n "$SPACE-ctl" addr add 10.77.0.1/24 dev br0
  ip -n "$SPACE-ctl" link set br0 up
  for n in $(seq "$NODES"); do
    ip netns add "$SPACE-n$n"
    ip -n "$SPACE-n$n" link set lo up
    ip -n "$SPACE-ctl" link add "v$n" type veth peer name eth0 netns "$SPACE-n$n"
    ip -n "$SPACE-ctl" link set "v$n" master br0 up
    ip -n "$SPACE-n$n" addr add "10.77.0.$((10 + n))/24" dev eth0
    ip -n "$SPACE-n$n" link set eth0 up
  done
}

start_controller() {
  local name
  # Holds the controller's mount and host-name namespaces; mounts made outside are seen inside.
  setsid nsenter --net="/run/netns/$SPACE-ctl" unshare --mount --uts --propagation slave bash -c \
    'hostname ctl; mount --bind "$0/etc/hosts" /etc/hosts; : >"$0/run/ctl.up"; exec sleep infinity' "$BASE" \
    </dev/null >/dev/null 2>&1 &
  echo $! >"$BASE/run/ctl.pid"
  wait_for 10 test -e "$BASE/run/ctl.up"
  for name in $CLIENTS; do
    # Inside a node the command runs as it is; elsewhere it first goes where the controller is.
    cat >"$BASE/bin/$name" <<CLIENT
#!/bin/sh
export SLURM_CONF=$SLURM_CONF
grep -qx '10.77.0.1 ctl' /etc/hosts && exec /usr/bin/$name "\$@"
exec nsenter --target "\$(cat $BASE/run/ctl.pid)" --mount --root --uts --net --wdns="\$PWD" -- /usr/bin/$name "\$@"
CLIENT
    chmod 755 "$BASE/bin/$name"
  done
  start_slurmctld
}

start_slurmctld() {
  setsid nsenter --target "$(cat "$BASE/run/ctl.pid")" --mount --root --uts --net slurmctld -D </dev/null \
    >>"$BASE/log/slurmctld.out" 2>&1 &
  echo $! >"$BASE/run/slurmctld.pid"
}

controller_answers() { "$BASE/bin/scontrol" ping | grep -q 'is UP'; }

start_munge() {
  rm -f "$BASE"/run/munge.socket*
  setsid munged --foreground --key-file="$BASE/etc/munge.key" --socket="$BASE/run/munge.socket" \
    --pid-file="$BASE/run/munged.own" --log-file="$BASE/log/munged.log" --seed-file="$BASE/run/munged.seed" \
    </dev/null >"$BASE/log/munged.out" 2>&1 &
  echo $! >"$BASE/run/munged.pid"
  wait_for 10 test -S "$BASE/run/munge.socket"
}

slurmd_of() { # slurmd_of N: the process id of node N's daemon
  local first child
  first=$(cat "$BASE/run/node.$1.pid")
  for child in $(cat "/proc/$first/task/$first/children"); do
    [ "$(cat "/proc/$child/comm")" != slurmd ] || echo "$child"
  done
}

start_node() { # start_node N: bash is the node's first process; its end is the end of all that runs there
  local node=$1 outer first=
  if running "$BASE/run/node.$node.pid"; then
    [ -n "$(slurmd_of "$node")" ] || nsenter --target "$(cat "$BASE/run/node.$node.pid")" --mount --root --pid --uts --net \
      slurmd -N "$node" </dev/null >>"$BASE/log/slurmd.$node.out" 2>&1
    return 0
  fi
  mkdir -p "$BASE/spool/$node"
  setsid nsenter --net="/run/netns/$SPACE-$node" unshare --mount --pid --uts --fork --kill-child --mount-proc bash -c '
    hostname "$1"; mount --bind "$0/etc/hosts" /etc/hosts
    slurmd -D -N "$1" >>"$0/log/slurmd.$1.out" 2>&1 &
    while :; do wait; sleep 1; done' "$BASE" "$node" </dev/null >/dev/null 2>&1 &
  outer=$!
  for _ in $(seq 100); do
    read -r first _ <"/proc/$outer/task/$outer/children" || true
    [ -n "$first" ] && break
    sleep 0.05
  done
  echo "$first" >"$BASE/run/node.$node.pid"
}

all_up() { [ "$("$BASE/bin/sinfo" -h -N -p main -t idle,alloc,mix -o %N | sort -u | wc -l)" -ge "$NODES" ]; }

start_all() {
  local n
  if ! running "$BASE/run/slurmctld.pid"; then
    stop_all
    write_configuration
    mkdir -p "$BASE/small"
    mount -t tmpfs -o size=4m infx-small "$BASE/small"
    make_network
    start_munge
    start_controller
    for n in $(seq "$NODES"); do start_node "n$n"; done
  fi
  wait_for 60 all_up && return 0
  echo "the cluster did not become ready" >&2
  tail -n 5 "$BASE"/log/* >&2
  return 1
}

stop_all() {
  local file space
  if running "$BASE/run/slurmctld.pid"; then timeout 10 "$BASE/bin/scancel" --user=root || true; fi
  for file in "$BASE"/run/node.*.pid; do [ -e "$file" ] && stop_by_file "$file" KILL; done
  for file in slurmctld munged; do stop_by_file "$BASE/run/$file.pid"; done
  stop_by_file "$BASE/run/ctl.pid" KILL
  rm -f "$BASE/run/ctl.up"
  if mountpoint -q "$BASE/small"; then umount -l "$BASE/small"; fi
  for space in $(ip netns list | awk -v own="$SPACE-" 'index($1, own) == 1 {print $1}'); do ip netns del "$space"; done
}

show_env() { echo "export PATH=$BASE/bin:\$PATH SLURM_CONF=$SLURM_CONF"; }

show_status() {
  local file
  for file in "$BASE"/run/{munged,slurmctld,ctl,node.*}.pid; do
    [ -e "$file" ] && { if running "$file"; then echo "up   $(basename "$file" .pid)"; else echo "down $(basename "$file" .pid)"; fi; }
  done
  return 0
}

case $VERB in
  install) install_missing "$BASE/log/apt.log" slurmctld=slurmctld slurmd=slurmd srun=slurm-client munged=munge ip=iproute2 gcc=gcc
    # headers are no commands: a name that is never one brings the package
    [ -e /usr/include/slurm/spank.h ] || install_missing "$BASE/log/apt.log" spank.h=libslurm-dev
    [ -e /usr/include/stdio.h ] || install_missing "$BASE/log/apt.log" stdio.h=libc6-dev ;;
  start) start_all; show_env ;;
  env) show_env ;;
  start-node) start_node "$NODE" ;;
  power-off) kill -KILL "$(cat "$BASE/run/node.$NODE.pid")" && rm "$BASE/run/node.$NODE.pid" ;;
  kill-controller) stop_by_file "$BASE/run/slurmctld.pid" KILL ;;
  start-controller) start_slurmctld; wait_for 30 controller_answers ;;
  kill-slurmd) kill -KILL "$(slurmd_of "$NODE")" ;;
  status) show_status ;;
  stop) stop_all ;;
  *) sed -n '2,19p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac

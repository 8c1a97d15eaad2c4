#!/usr/bin/env bash
# Several isolated hosts on one Linux machine, joined by links of a given rate: to try what crosses a network.
#
#   bash jobs/cluster/local_cluster.sh up 4 1gbit     hosts node1 … node4, each link capped (RATE none: uncapped)
#   bash jobs/cluster/local_cluster.sh on node2 CMD…  run CMD on node2
#   bash jobs/cluster/local_cluster.sh bytes          bytes that each host has sent over its link so far
#   bash jobs/cluster/local_cluster.sh down           end every process on the hosts, and remove them
#
# MPICH's mpirun over the hosts; rsh lies beside this script:
#   mpirun -launcher ssh -launcher-exec jobs/cluster/rsh -iface glpbr0 -bind-to none -hosts node1,node2 -np 2 CMD…
#
# A host is a network, mount, UTS and IPC namespace with its own /dev/shm, so that MPI sees separate machines; files
# are shared. The cap is a token-bucket queue on both ends of a host's link. Needs root, iproute2 and util-linux.
set -euo pipefail

state=/run/glpilot-cluster # the process that holds a host's namespaces, by host
subnet=10.77.0
bridge=glpbr0

fail() {
    printf 'local_cluster: %s\n' "$*" >&2
    exit 1
}

require_means() {
    [ "$(id -u)" = 0 ] || fail "needs root, to make network namespaces"
    local program
    for program in ip tc nsenter unshare; do
        command -v "$program" >/dev/null || fail "needs $program (Debian: apt install iproute2 util-linux)"
    done
}

is_up() { [ -s "$state/$1.pid" ] && kill -0 "$(cat "$state/$1.pid")" 2>/dev/null; }

cap_link() {
    local index=$1 rate=$2
    tc qdisc del dev "glpv$index" root 2>/dev/null || true
    ip netns exec "node$index" tc qdisc del dev eth0 root 2>/dev/null || true
    [ "$rate" = none ] && return
    tc qdisc add dev "glpv$index" root tbf rate "$rate" burst 512kb latency 200ms
    ip netns exec "node$index" tc qdisc add dev eth0 root tbf rate "$rate" burst 512kb latency 200ms
}

add_host() {
    local index=$1 host=node$1
    if ! ip netns list | grep -qw "$host"; then
        ip netns add "$host"
        ip link add "glpv$index" type veth peer name eth0 netns "$host"
        ip link set "glpv$index" master "$bridge" up
        ip -n "$host" addr add "$subnet.$index/24" dev eth0
        ip -n "$host" link set eth0 up
        ip -n "$host" link set lo up
    fi
    grep -qw "$host" /etc/hosts || echo "$subnet.$index $host" >>/etc/hosts
    is_up "$host" && return
    # One sleeping process holds the namespaces open.
    rm -f "$state/$host.pid"
    setsid ip netns exec "$host" unshare --mount --uts --ipc bash -c \
        "hostname $host; mount -t tmpfs -o size=50% tmpfs /dev/shm; echo \$\$ >$state/$host.pid; exec sleep infinity" \
        >/dev/null 2>&1 </dev/null &
    for _ in $(seq 100); do is_up "$host" && return; sleep 0.1; done
    fail "$host did not come up; does this system allow namespaces (unshare --mount --uts --ipc)?"
}

up() {
    local num_hosts=$1 rate=$2 index
    require_means
    mkdir -p "$state"
    if ! ip link show "$bridge" >/dev/null 2>&1; then
        ip link add "$bridge" type bridge
        ip addr add "$subnet.254/24" dev "$bridge"
    fi
    ip link set "$bridge" up
    for index in $(seq "$num_hosts"); do
        add_host "$index"
        cap_link "$index" "$rate"
    done
}

on() {
    local host=$1
    shift
    is_up "$host" || fail "$host is not up; run: bash jobs/cluster/local_cluster.sh up NUM_HOSTS RATE"
    exec nsenter -t "$(cat "$state/$host.pid")" -m -u -i -n -- env HOSTNAME="$host" bash -c "$*"
}

hosts() {
    local file
    for file in "$state"/*.pid; do [ -e "$file" ] && basename "$file" .pid; done
    return 0
}

bytes() {
    local host
    for host in $(hosts); do
        echo "$host $(ip netns exec "$host" cat /sys/class/net/eth0/statistics/tx_bytes)"
    done
}

down() {
    local host
    require_means
    for host in $(hosts); do
        # shellcheck disable=SC2046 # the ids are words
        kill $(ip netns pids "$host") 2>/dev/null || true
        ip netns del "$host" 2>/dev/null || true
        ip link del "glpv${host#node}" 2>/dev/null || true
        sed -i "/^$subnet\.[0-9]* $host\$/d" /etc/hosts 2>/dev/null || true # a bind mount cannot be replaced
        rm -f "$state/$host.pid"
    done
    ip link del "$bridge" 2>/dev/null || true
}

usage() {
    sed -n '2,8p' "$0" | sed 's/^# \{0,1\}//' >&2
    exit 2
}

case ${1:-} in
    up) [ $# = 3 ] || usage; up "$2" "$3" ;;
    on) [ $# -ge 3 ] || usage; shift; on "$@" ;;
    bytes) bytes ;;
    down) down ;;
    *) usage ;;
esac

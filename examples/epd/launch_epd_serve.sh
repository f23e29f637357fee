#!/usr/bin/env bash
# A fleet of separated encoders on this machine, as several machines have it: redis-server, an encode instance, a decode instance and a proxy,
# each a process of its own.
#
#   bash examples/epd/launch_epd_serve.sh [MODEL]       MODEL: a folder, a name on the hub, or the bundled g2p (the default)
#
# Ends with Ctrl-C, in order. TRANSEPT names the binary; PORT_ENCODE, PORT_PREFILL_DECODE, PORT_PROXY and PORT_REDIS other ports, START_SECONDS how
# long it may take. (On one machine `transept serve MODEL --epd 1E1D` does the same without Redis.)
set -euo pipefail

model=${1:-g2p}
port_encode=${PORT_ENCODE:-19534} port_decode=${PORT_PREFILL_DECODE:-19535}
port_proxy=${PORT_PROXY:-19536} port_redis=${PORT_REDIS:-19533}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder="" names=() pids=()

fail() {
  echo "launch_epd_serve.sh: $*" >&2
  exit 1
}

find_transept() {
  local built=$here/../../build/release/transept
  if [[ -n ${TRANSEPT:-} ]]; then echo "$TRANSEPT"
  elif [[ -x $built ]]; then echo "$built"
  else command -v transept || true
  fi
}

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# NAME COMMAND..: in a session of its own, so that Ctrl-C reaches this script alone, which ends them in order.
start() {
  local name=$1
  shift
  setsid "$@" >"$folder/$name.log" 2>&1 </dev/null &
  names+=("$name") pids+=($!)
}

# What it was started after goes first: proxy, decode, encode, redis. What a decode instance has taken is answered.
clean_up() {
  local i
  trap '' INT TERM
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do
    kill -TERM "${pids[i]}" 2>/dev/null || true
    wait "${pids[i]}" 2>/dev/null || true
  done
  if [[ -n $folder ]]; then rm -rf "$folder"; fi
}

# NAME PORT: until it is ready. Says what its log says if it ends instead.
await() {
  local name=$1 port=$2 status end=$((SECONDS + ${START_SECONDS:-600}))
  while true; do
    check_all
    status=$(ask "$port" /health/ready) || status=""
    if [[ $status == *" 200 "* ]]; then return; fi
    if ((SECONDS > end)); then fail "$name is not ready: $(tail -n 3 "$folder/$name.log")"; fi
    sleep 0.1
  done
}

# PORT PATH: the first line of the answer.
ask() {
  (
    exec 3<>"/dev/tcp/127.0.0.1/$1"
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&3
    read -r -t 5 line <&3
    echo "$line"
  ) 2>/dev/null
}

check_all() {
  local i
  for i in "${!pids[@]}"; do
    if ! kill -0 "${pids[i]}" 2>/dev/null; then fail "${names[i]} has ended: $(tail -n 5 "$folder/${names[i]}.log")"; fi
  done
}

transept=$(find_transept)
[[ -n $transept ]] || fail "no transept: ./dev build makes build/release/transept; or TRANSEPT names one"
[[ -x $transept ]] || fail "$transept: no such program"
command -v redis-server >/dev/null || fail "no redis-server (Debian: apt install redis-server)"
for port in "$port_redis" "$port_encode" "$port_decode" "$port_proxy"; do
  [[ $port =~ ^[0-9]{1,5}$ ]] || fail "$port: no port"
  ! is_taken "$port" || fail "port $port is taken"
done

trap clean_up EXIT
trap 'exit 0' INT TERM
folder=$(mktemp -d "${TMPDIR:-/tmp}/epd.XXXXXX")
broker=redis://127.0.0.1:$port_redis/0

start redis redis-server --bind 127.0.0.1 --port "$port_redis" --dir "$folder" --save "" --appendonly no
while ! is_taken "$port_redis"; do
  check_all
  sleep 0.05
done
start encode "$transept" serve "$model" --role encode --broker "$broker" --port "$port_encode"
start decode "$transept" serve "$model" --role decode --broker "$broker" --port "$port_decode"
start proxy "$transept" proxy --broker "$broker" --port "$port_proxy"
await encode "$port_encode"
await decode "$port_decode"
await proxy "$port_proxy"

echo "ready: $model"
echo "  encode instance   http://127.0.0.1:$port_encode"
echo "  decode instance   http://127.0.0.1:$port_decode"
echo "  proxy             http://127.0.0.1:$port_proxy   for clients"
echo "  broker            $broker"
echo "  logs              $folder/*.log"
while true; do
  check_all
  sleep 1 &
  wait $! || true
done

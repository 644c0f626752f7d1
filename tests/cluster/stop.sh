#!/bin/bash
# Ends the cluster that start.sh started in FOLDER, the jobs that it runs, and the networks of its nodes.
set -euo pipefail
folder=$(realpath -m "${1:?usage: stop.sh FOLDER}")
export SLURM_CONF=$folder/slurm.conf
timeout 10 scancel --state=PENDING,RUNNING --user=root 2> /dev/null || true
for file in "$folder"/slurmd-*.pid "$folder/slurmctld.pid" "$folder/munge/munged.pid"; do
  [ -s "$file" ] || continue
  pid=$(cat "$file")
  kill "$pid" 2> /dev/null || true
  for _ in $(seq 60); do
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.5
  done
done
bridge=$(cat "$folder/network")
for space in $(ip netns list 2> /dev/null | cut -d ' ' -f 1 | grep "^$bridge-" || true); do
  ip netns pids "$space" | xargs -r kill -9
  ip netns delete "$space"
done
ip link delete "$bridge" 2> /dev/null || true

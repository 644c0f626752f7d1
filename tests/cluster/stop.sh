#!/bin/bash
# Ends the cluster that start.sh started in FOLDER, and the jobs that it runs.
set -euo pipefail
folder=$(realpath -m "${1:?usage: stop.sh FOLDER}")
export SLURM_CONF=$folder/slurm.conf
timeout 10 scancel --state=PENDING,RUNNING --user=root 2> /dev/null || true
for name in slurmd slurmctld munge/munged; do
  [ -s "$folder/$name.pid" ] || continue
  pid=$(cat "$folder/$name.pid")
  kill "$pid" 2> /dev/null || true
  for _ in $(seq 60); do
    kill -0 "$pid" 2> /dev/null || break
    sleep 0.5
  done
done

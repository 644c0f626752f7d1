#!/bin/bash
# Starts a node of a cluster of several, at first or after lose.sh: node.sh FOLDER NODE.
# Its names of hosts are those of the cluster.
set -euo pipefail
folder=$(realpath -m "${1:?usage: node.sh FOLDER NODE}")
node=${2:?usage: node.sh FOLDER NODE}
export SLURM_CONF=$folder/slurm.conf
nsenter --net="/run/netns/$(cat "$folder/network")-$node" unshare --uts --mount \
  sh -c 'mount --bind "$0/hosts" /etc/hosts && hostname "$1" && exec slurmd -N "$1"' "$folder" "$node"

#!/bin/bash
# Kills all that runs on a node of a cluster of several, as a loss of power would: lose.sh FOLDER NODE.
set -euo pipefail
folder=$(realpath -m "${1:?usage: lose.sh FOLDER NODE}")
node=${2:?usage: lose.sh FOLDER NODE}
ip netns pids "$(cat "$folder/network")-$node" | xargs -r kill -9

#!/bin/bash
# A Slurm cluster on this machine, for the tests: start.sh FOLDER [CPUS [NODES]]; stop.sh FOLDER ends it.
# Debian's packages, no systemd; all that it writes lies in FOLDER. Clients need SLURM_CONF=FOLDER/slurm.conf PATH=FOLDER/bin:$PATH.
# Of several nodes each has a network, an address and a host name of its own; lose.sh FOLDER NODE kills all that runs on one, node.sh starts it.
set -euo pipefail
folder=$(realpath -m "${1:?usage: start.sh FOLDER [CPUS [NODES]]}")
cpus=${2:-4} # of a node, whatever the machine has
nodes=${3:-1}
port=$((20000 + $$ % 10000)) # and the one above: two clusters on a machine do not meet
name=$(hostname -s)
address=127.0.0.1
export SLURM_CONF=$folder/slurm.conf

fail() {
  echo "start.sh: $1" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || fail "slurmctld and slurmd need root"
[ "$nodes" = 1 ] || command -v ip > /dev/null || fail "several nodes need iproute2: apt-get install -y --no-install-recommends iproute2"
for program in slurmctld slurmd sinfo munged mungekey; do
  command -v "$program" > /dev/null || fail "no $program: apt-get install -y --no-install-recommends slurm-wlm munge"
done
if [ -e "$SLURM_CONF" ] && timeout 10 scontrol ping 2> /dev/null | grep -q UP; then
  echo "already running: SLURM_CONF=$SLURM_CONF"
  exit
fi

# The folder of the socket must be open to whoever asks, that of the key to nobody.
mkdir -p "$folder"/{bin,state,spool,log,munge}
chmod 755 "$folder" "$folder/munge"
[ -e "$folder/munge.key" ] || mungekey --create --keyfile "$folder/munge.key"
munged --force --key-file "$folder/munge.key" --socket "$folder/munge/socket" --pid-file "$folder/munge/munged.pid" \
  --log-file "$folder/log/munged.log" --seed-file "$folder/munge/seed" || fail "munged: see $folder/log/munged.log"

# A bridge joins the networks of several nodes with that of the machine: 10.X.Y.1 is this end of it, 10.X.Y.2 the first node.
list=("$name")
subnet=10.$((port / 256)).$((port % 256))
bridge=slurm$port
if [ "$nodes" != 1 ]; then
  address=$subnet.1
  ip link add "$bridge" type bridge
  ip address add "$address/24" dev "$bridge"
  ip link set "$bridge" up
  mapfile -t list < <(seq -f 'n%g' "$nodes")
  for number in $(seq "$nodes"); do
    space=$bridge-n$number
    ip netns add "$space"
    ip link add "s${port}n$number" type veth peer name eth0 netns "$space"
    ip link set "s${port}n$number" master "$bridge" up
    ip -n "$space" address add "$subnet.$((number + 1))/24" dev eth0
    ip -n "$space" link set eth0 up
    ip -n "$space" link set lo up
  done
fi
echo "$bridge" > "$folder/network"

# Memory is watched by polling, without cgroups: a job that outgrows what it asked for is killed within seconds.
cat > "$SLURM_CONF" << CONF
ClusterName=one
SlurmctldHost=$name($address)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd-%n.log
SlurmdTimeout=15
SlurmdParameters=config_overrides
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/jobs.txt
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
ReturnToService=2
MinJobAge=600
PartitionName=main Nodes=$(IFS=,; echo "${list[*]}") Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=500
CONF
echo "127.0.0.1 localhost" > "$folder/hosts"
for number in "${!list[@]}"; do
  place=127.0.0.1
  [ "$nodes" = 1 ] || place=$subnet.$((number + 2))
  echo "$place ${list[number]}" >> "$folder/hosts"
  echo "NodeName=${list[number]} NodeAddr=$place CPUs=$cpus RealMemory=64000 State=UNKNOWN" >> "$SLURM_CONF"
done
# Snakemake's job steps lose SLURM_CONF on the way to srun.
printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$SLURM_CONF" "$(command -v srun)" > "$folder/bin/srun"
chmod +x "$folder/bin/srun"

slurmctld
if [ "$nodes" = 1 ]; then
  slurmd
else
  for node in "${list[@]}"; do
    "$(dirname "$0")/node.sh" "$folder" "$node"
  done
fi
for _ in $(seq 60); do
  [ "$(sinfo -h -N -o %T 2> /dev/null | grep -c idle)" = "$nodes" ] && exec echo "SLURM_CONF=$SLURM_CONF"
  sleep 0.5
done
fail "nodes are not idle after 30 s: see $folder/log"

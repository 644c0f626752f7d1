#!/bin/bash
# A Slurm cluster of one node on this machine, for the tests: start.sh FOLDER [CPUS]; stop.sh FOLDER ends it.
# Debian's packages, no systemd; all that it writes lies in FOLDER. Clients need SLURM_CONF=FOLDER/slurm.conf PATH=FOLDER/bin:$PATH.
set -euo pipefail
folder=$(realpath -m "${1:?usage: start.sh FOLDER [CPUS]}")
cpus=${2:-4} # of the node, whatever the machine has
port=$((20000 + $$ % 10000)) # and the one above: two clusters on a machine do not meet
name=$(hostname -s)
export SLURM_CONF=$folder/slurm.conf

fail() {
  echo "start.sh: $1" >&2
  exit 1
}

[ "$(id -u)" = 0 ] || fail "slurmctld and slurmd need root"
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

# Memory is watched by polling, without cgroups: a job that outgrows what it asked for is killed within seconds.
cat > "$SLURM_CONF" << CONF
ClusterName=one
SlurmctldHost=$name(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
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
NodeName=$name NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=64000 State=UNKNOWN
PartitionName=main Nodes=$name Default=YES MaxTime=INFINITE State=UP DefMemPerCPU=500
CONF
# Snakemake's job steps lose SLURM_CONF on the way to srun.
printf '#!/bin/sh\nSLURM_CONF=%s exec %s "$@"\n' "$SLURM_CONF" "$(command -v srun)" > "$folder/bin/srun"
chmod +x "$folder/bin/srun"

slurmctld
slurmd
for _ in $(seq 60); do
  sinfo -h -o %T 2> /dev/null | grep -q idle && exec echo "SLURM_CONF=$SLURM_CONF"
  sleep 0.5
done
fail "no idle node after 30 s: see $folder/log"

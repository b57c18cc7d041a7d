#!/usr/bin/env bash

#SBATCH -J dask-worker
#SBATCH -p long
#SBATCH -n 1
#SBATCH --cpus-per-task=1
#SBATCH --mem=0
#SBATCH -t 24:00:00
#SBATCH --exclusive
cd /shared
/opt/python -m harness.fleet.worker tls://SCHEDULER --name dummy-name --nthreads 1 --memory-limit 4.00GiB --death-timeout 300 --protocol tls:// --tls-ca-file /shared/.dask-jobqueue.worker.ca_file.X --tls-cert /shared/.dask-jobqueue.worker.cert.X --tls-key /shared/.dask-jobqueue.worker.key.X

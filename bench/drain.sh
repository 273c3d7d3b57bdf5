# drain.sh: how fast a full queue of jobs that do nothing becomes empty.
#
# With synchronous_commit on and batch 1 each job waits for its own fsync, so
# there are fewer jobs: the time would be the disk's.  Also measured with as
# many executors as there are cores.

# drain_once BATCH SYNCHRONOUS_COMMIT JOBS WORKERS
drain_once()
{
	local values

	settings ujobs.synchronous_commit "$2"
	psql -c "call bench.fill('batch_$1', $3)"
	psql -c "checkpoint"
	values=$(psql -c "call bench.drain('batch_$1')")
	# shellcheck disable=SC2086
	note "drain-$1-$2-$4" $values
	psql -c "truncate ujobs_internal.job_history"
}

drain_with()
{
	local round workers=$1

	[ "$workers" -eq "$max_workers" ] || restart_with ujobs.max_workers "$workers"
	for ((round = 0; round < rounds; round++)); do
		drain_once 1 off "$jobs" "$workers"
		drain_once 64 off "$jobs" "$workers"
		drain_once 64 on "$jobs" "$workers"
		drain_once 1 on "$jobs_synchronous" "$workers"
	done

	heading "Drain of $jobs queued jobs that do nothing, ujobs.max_workers = $workers"
	drain_report "drain-1-off-$workers" "batch 1, synchronous_commit off"
	drain_report "drain-64-off-$workers" "batch 64, synchronous_commit off"
	drain_report "drain-64-on-$workers" "batch 64, synchronous_commit on"
	drain_report "drain-1-on-$workers" "batch 1, synchronous_commit on ($jobs_synchronous jobs)"
}

drain_report()
{
	report "$1" 1 %d jobs/s "$2"
	report "$1" 2 %d jobs/s "  from resume_queue until no job is live"
	report "$1" 3 %.1f ms "  from resume_queue to the first start"
}

# Which number of executors was the better one for a variant.
drain_best()
{
	local workers value best=0 best_workers

	for workers in $(drain_workers); do
		value=$(median "drain-$1-$2-$workers" 1)
		if [ "$value" -gt "$best" ]; then
			best=$value
			best_workers=$workers
		fi
	done
	remark "Best median of batch $1, synchronous_commit $2: $best jobs/s, with ujobs.max_workers = $best_workers."
}

drain_workers()
{
	echo "$max_workers"
	[ "$cores" -eq "$max_workers" ] || echo "$cores"
}

figure_drain()
{
	local workers jobs jobs_synchronous

	jobs=$(scaled 100000)
	jobs_synchronous=$(scaled 5000)
	for workers in $(drain_workers); do
		drain_with "$workers"
	done
	drain_best 1 off
	drain_best 64 off
	drain_best 64 on
	drain_best 1 on
	psql -c "alter system reset ujobs.synchronous_commit"
	[ "$workers" -eq "$max_workers" ] || restart_with ujobs.max_workers "$max_workers"
}

# steps.sh: durable jobs: three steps that do nothing, and how soon a waiting job goes on.
#
# With synchronous_commit on each of a job's four commits waits for an fsync;
# executors share them, so that is measured with many executors too.

steps_with()
{
	local round workers=$1 commit values

	[ "$workers" -eq "$max_workers" ] || restart_with ujobs.max_workers "$workers"
	for ((round = 0; round < rounds; round++)); do
		for commit in off on; do
			settings ujobs.synchronous_commit "$commit"
			psql -c "call bench.fill('three_steps', $jobs)"
			psql -c "checkpoint"
			values=$(psql -c "call bench.drain('three_steps')")
			# shellcheck disable=SC2086
			note "steps-$commit-$workers" $values
			psql -c "truncate ujobs_internal.job_history"
		done
	done
	for commit in off on; do
		report "steps-$commit-$workers" 1 %d jobs/s "synchronous_commit $commit, ujobs.max_workers = $workers"
	done
}

figure_steps()
{
	local jobs waits round values workers=16

	jobs=$(scaled 10000)
	waits=$(scaled 500)
	heading "Durable jobs of three steps that do nothing, $jobs queued"
	steps_with "$max_workers"
	steps_with "$workers"
	[ "$workers" -eq "$max_workers" ] || restart_with ujobs.max_workers "$max_workers"
	psql -c "alter system reset ujobs.synchronous_commit"
	psql -c "select pg_reload_conf()" >/dev/null

	for ((round = 0; round < rounds; round++)); do
		values=$(psql -c "call bench.resume($waits)")
		# shellcheck disable=SC2086
		note resume $values
		psql -c "truncate ujobs_internal.job_history"
	done
	heading "Commit of an event to the commit of the step that waited for it, idle server, $waits waiting jobs"
	report resume 1 %.3f ms "p50"
	report resume 2 %.3f ms "  p95"
	report resume 3 %.3f ms "  p99"
}

# wal.sh: bytes of WAL a job, its history kept.
#
# Of the whole server, so autovacuum is in it if it comes along.  No checkpoint
# happens while measuring, so pages are not written in full again; the rows
# with full_page_writes off are the proof of that.

# wal_rounds BATCH FULL_PAGE_WRITES JOBS
wal_rounds()
{
	local round values

	settings full_page_writes "$2"
	psql -c "checkpoint"
	psql -c "call bench.wal('batch_$1', $3)" >/dev/null	# after this the pages are known since the checkpoint
	for ((round = 0; round < rounds; round++)); do
		values=$(psql -c "call bench.wal('batch_$1', $3)")
		# shellcheck disable=SC2086
		note "wal-$1-$2" $values
	done
	psql -c "truncate ujobs_internal.job_history"
}

figure_wal()
{
	local batch pages jobs

	jobs=$(scaled 20000)
	settings ujobs.synchronous_commit off synchronous_commit off
	for pages in on off; do
		for batch in 1 64; do
			wal_rounds "$batch" "$pages" "$jobs"
		done
	done
	psql -c "alter system reset full_page_writes" -c "alter system reset synchronous_commit" \
		-c "alter system reset ujobs.synchronous_commit" -c "do 'begin perform pg_reload_conf(); end'"

	heading "WAL, $jobs jobs with an input of 20 bytes, history kept"
	for batch in 1 64; do
		for pages in on off; do
			report "wal-$batch-$pages" 3 %d bytes/job "batch $batch, full_page_writes $pages: enqueue and run"
			report "wal-$batch-$pages" 1 %d bytes/job "  the enqueue, one a transaction"
			report "wal-$batch-$pages" 2 %d bytes/job "  the run"
		done
	done
}

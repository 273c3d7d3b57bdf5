# enqueue.sh: the rate of ujobs.enqueue beside a plain INSERT.
#
# The plain table has the same columns and indexes and the same domains, and
# its INSERT computes the same values, so the difference is what enqueueing
# does beyond writing a row: find the definition, check the grant, render and
# dedupe the key, tell the engine.  Both run as prepared statements in
# transactions of their own.  Rounds alternate between the two, and the ratio
# is taken pair by pair, so that a change of the machine's mood meets both.
#
# The engine is stopped but for the last row: there it runs, and takes note of
# jobs of a kind that only programs outside may claim.

# enqueue_pairs SERIES SYNCHRONOUS_COMMIT CLIENTS
enqueue_pairs()
{
	local round plain enqueue

	psql -c "truncate bench.plain, ujobs_internal.job" -c "checkpoint"
	for ((round = 0; round < rounds; round++)); do
		plain=$(rate plain "$2" "$3")
		enqueue=$(rate enqueue "$2" "$3")
		# shellcheck disable=SC2046
		note "$1" $(awk -v a="$plain" -v b="$enqueue" 'BEGIN { print a, b, b / a }')
	done
}

enqueue_report()
{
	report "$1" 1 %d rows/s "INSERT, $2"
	report "$1" 2 %d jobs/s "enqueue, $2"
	report "$1" 3 %.2f "" "  enqueue / INSERT"
}

# Rows a second of one statement that writes many.
enqueue_many_pairs()
{
	local round values rows=$1

	for ((round = 0; round < rounds; round++)); do
		values=$(psql <<-SQL
			truncate bench.plain, ujobs_internal.job;
			create temp table at as select clock_timestamp() as t;
			insert into bench.plain (due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id, queue, tenant_id, idempotency_key, input)
			select now(), now(), now(), 1, 10, 0, 3, gen_random_uuid(), 'default', '', 'bench:' || n, jsonb_build_object('id', n)
			  from generate_series(1, $rows) n;
			insert into at select clock_timestamp();
			select from (select count(*) from ujobs.enqueue_many('outside',
			             (select array_agg(jsonb_build_object('id', n)) from generate_series(1, $rows) n))) x \g /dev/null
			insert into at select clock_timestamp();
			select concat_ws(' ', round($rows / a), round($rows / b), round(a / b, 3))
			  from (select extract(epoch from t - lag(t) over (order by t)) as a,
			               extract(epoch from lead(t) over (order by t) - t) as b from at) x
			 where a is not null and b is not null;
		SQL
		)
		# shellcheck disable=SC2086
		note enqueue-many $values
	done
}

figure_enqueue()
{
	local commit clients many

	many=$(scaled 100000)
	psql -c "do 'begin perform ujobs.stop_workers(); perform ujobs.define_external_job(''outside'', ''outside:{id}''); end'"
	for commit in off on; do
		for clients in 1 8; do
			enqueue_pairs "enqueue-$commit-$clients" "$commit" "$clients"
		done
	done
	enqueue_many_pairs "$many"
	psql -c "do 'begin perform ujobs.start_workers(); end'"
	enqueue_pairs enqueue-running off 1
	psql -c "truncate bench.plain, ujobs_internal.job"

	heading "Enqueue beside a plain INSERT, one a transaction"
	for commit in off on; do
		for clients in 1 8; do
			enqueue_report "enqueue-$commit-$clients" "synchronous_commit $commit, $clients client$([ "$clients" = 1 ] || echo s)"
		done
	done
	enqueue_report enqueue-running "synchronous_commit off, 1 client, engine running"
	enqueue_report enqueue-many "$many in one statement (enqueue_many)"
}

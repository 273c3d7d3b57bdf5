#!/bin/bash
# enqueue.sh: the rate of ujobs.enqueue beside a plain INSERT.
#
#     bench/enqueue.sh                   PG_CONFIG selects the server
#     UJOBS_BENCH_SECONDS=2 UJOBS_BENCH_ROUNDS=5
#
# The plain table has the same columns and indexes and no constraints, and its
# INSERT computes the same values, so the difference is what enqueueing does
# beyond writing a row: find the definition, check the grant, render and
# dedupe the key, tell the engine.  Both run as prepared statements in
# transactions of their own.  Rounds alternate between the two, so that a
# change of the machine's mood meets both; the figures are medians.
#
# The engine is stopped but for the last line: there it runs, and takes note
# of jobs of a kind that only programs outside may claim.
set -euo pipefail
"$(dirname "$0")/../scripts/setup"
. "$(dirname "$0")/../scripts/place.sh"

seconds=${UJOBS_BENCH_SECONDS:-2}
rounds=${UJOBS_BENCH_ROUNDS:-5}

psql()
{
	as_tester "$SCRATCH/server/ujobs-bin/psql" -XqAt -v ON_ERROR_STOP=1 -h "$SCRATCH/work/bench" -U postgres "$@"
}

prepare()
{
	"$ROOT/scripts/server"
	"$ROOT/scripts/cluster" start bench "fsync = on" "max_wal_size = 4GB" "shared_buffers = 256MB"
	psql -d postgres -c "create database bench"
	psql -d bench <<-'SQL'
		create extension ujobs;
		do 'begin perform ujobs.stop_workers(); end';
		do $$ begin perform ujobs.define_external_job('bench', 'bench:{id}'); end $$;
		create table plain (like ujobs_internal.job including defaults including identity);
		alter table plain add primary key (id);
		create unique index on plain (definition_id, tenant, key);
		create index on plain (definition_id, queue, priority, due_at, id);
	SQL
	cat >"$SCRATCH/plain.pgbench" <<-'SQL'
		\set k random(1, 1000000000000)
		insert into plain (due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id, queue, tenant, key, input) values (now(), now(), now(), 1, 10, 0, 3, gen_random_uuid(), 'default', '', 'bench:' || :k::bigint, jsonb_build_object('id', :k::bigint)) returning id;
	SQL
	cat >"$SCRATCH/enqueue.pgbench" <<-'SQL'
		\set k random(1, 1000000000000)
		select id from ujobs.enqueue('bench', jsonb_build_object('id', :k::bigint));
	SQL
}

# Transactions a second of one script.
rate()
{
	PGOPTIONS="-c synchronous_commit=$2" as_tester "$SCRATCH/server/ujobs-bin/pgbench" -n -M prepared \
		-h "$SCRATCH/work/bench" -U postgres -c "$3" -j 2 -T "$seconds" -f "$SCRATCH/$1.pgbench" bench 2>/dev/null |
		awk '/^tps/ { print $3 }'
}

median()
{
	sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# measure SYNCHRONOUS_COMMIT CLIENTS ENGINE
measure()
{
	local round plain enqueue result=$SCRATCH/rates

	psql -d bench -c "truncate plain, ujobs_internal.job" -c "checkpoint"
	: >"$result"
	for ((round = 0; round < rounds; round++)); do
		plain=$(rate plain "$1" "$2")
		enqueue=$(rate enqueue "$1" "$2")
		echo "$plain $enqueue" | awk '{ print $1, $2, $2 / $1 }' >>"$result"
	done
	printf '%-20s %7s %8s %12.0f %12.0f %7.2f\n' "$1" "$2" "$3" \
		"$(cut -d' ' -f1 "$result" | median)" "$(cut -d' ' -f2 "$result" | median)" "$(cut -d' ' -f3 "$result" | median)"
}

# Rows a second of one statement that writes a million.
measure_many()
{
	local rows=1000000
	local inputs="select array_agg(jsonb_build_object('id', n)) from generate_series(1, $rows) n"

	psql -d bench -c "truncate plain, ujobs_internal.job" -c "checkpoint"
	psql -d bench <<-SQL
		create temp table at as select clock_timestamp() as t;
		insert into plain (due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id, queue, tenant, key, input)
		select now(), now(), now(), 1, 10, 0, 3, gen_random_uuid(), 'default', '', 'bench:' || n, jsonb_build_object('id', n)
		  from generate_series(1, $rows) n;
		insert into at select clock_timestamp();
		select from (select count(*) from ujobs.enqueue_many('bench', ($inputs))) x;
		insert into at select clock_timestamp();
		select format(E'\nA million rows by one statement: insert ... select %s rows/s, enqueue_many %s rows/s, ratio %s',
		              round($rows / a), round($rows / b), round(a / b, 2))
		  from (select extract(epoch from t - lag(t) over (order by t)) as a,
		               extract(epoch from lead(t) over (order by t) - t) as b from at) x
		 where a is not null and b is not null;
	SQL
}

scratch_make
prepare
echo "$(psql -d postgres -c "select 'PostgreSQL ' || current_setting('server_version')"), $(nproc) cores, $rounds rounds of $seconds s"
printf '%-20s %7s %8s %12s %12s %7s\n' synchronous_commit clients engine 'INSERT/s' 'enqueue/s' ratio
for commit in off on; do
	for clients in 1 8; do
		measure "$commit" "$clients" stopped
	done
done
measure_many
psql -d bench -c "do 'begin perform ujobs.start_workers(); end'"
printf '\n'
measure off 1 running

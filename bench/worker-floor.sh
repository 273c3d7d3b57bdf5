# worker-floor.sh: ujobs beside what a background worker in C can do at best
# (floor/floor_worker.c), on the same server: the rate of the engine against
# the rate of two loops that do nothing else.
#
# Ratios pair by pair: batch 64 against 100 deletes and calls in a transaction,
# batch 1 against one transaction a job.  The better of one and two workers is
# what ujobs is held against.

. "$ROOT/bench/peers.sh"

floor_make()
{
	make -s -C "$SCRATCH/src/bench/floor" PG_CONFIG="$SCRATCH/server/ujobs-bin/pg_config" with_llvm=no install >/dev/null
	psql -f "$SCRATCH/src/bench/floor/floor.sql"
}

# floor_worker TOGETHER HANDLER WORKERS JOBS: prints jobs a second
floor_worker()
{
	psql -c "call bench.floor_fill($4)" -c "checkpoint"
	psql -c "call bench.floor_run($1, 'bench.$2(jsonb)', $3, $4)"
}

# floor_round SERIES TOGETHER UJOBS-JOB HANDLER JOBS: one and two workers, then ujobs
floor_round()
{
	local one two ours

	one=$(floor_worker "$2" "$4" 1 "$5")
	two=$(floor_worker "$2" "$4" 2 "$5")
	ours=$(ujobs_drain "$3" "$5")
	# shellcheck disable=SC2046
	note "$1" "$one" "$two" "$ours" $(awk -v a="$one" -v b="$two" -v u="$ours" 'BEGIN { print u / (a > b ? a : b) }')
}

floor_rows()
{
	report "$1" 1 %d jobs/s "floor, $2, 1 worker"
	report "$1" 2 %d jobs/s "floor, $2, 2 workers"
	report "$1" 3 %d jobs/s "ujobs, $3"
	report "$1" 4 %.2f times "  ujobs / floor's better"
}

figure_worker-floor()
{
	local round commit jobs few

	work_make
	floor_make
	jobs=$(peers_scaled "$(is_full && echo 100000 || echo 40000)")
	few=$(peers_scaled 5000)
	for ((round = 0; round < rounds; round++)); do
		for commit in off on; do
			# The floor's workers read it as any session does.
			settings ujobs.synchronous_commit "$commit" synchronous_commit "$commit"
			floor_round "wf-many-noop-$commit" true batch_64 noop "$jobs"
			floor_round "wf-many-account-$commit" true account_64 account_add "$jobs"
			floor_round "wf-one-noop-$commit" false batch_1 noop "$([ "$commit" = on ] && echo "$few" || echo "$jobs")"
			floor_round "wf-one-account-$commit" false account_1 account_add "$([ "$commit" = on ] && echo "$few" || echo "$jobs")"
		done
	done
	psql -c "alter system reset ujobs.synchronous_commit" -c "alter system reset synchronous_commit" \
		-c "do 'begin perform pg_reload_conf(); end'"

	for commit in off on; do
		heading "Workers in C: $jobs jobs ($few one by one with synchronous_commit on), synchronous_commit $commit"
		floor_rows "wf-many-noop-$commit" "delete 100 and call a no-op for each" "batch 64, no-op"
		floor_rows "wf-many-account-$commit" "delete 100 and call a one-row UPDATE for each" "batch 64, one-row UPDATE"
		floor_rows "wf-one-noop-$commit" "one transaction a job, no-op" "batch 1, no-op"
		floor_rows "wf-one-account-$commit" "one transaction a job, one-row UPDATE" "batch 1, one-row UPDATE"
	done
}

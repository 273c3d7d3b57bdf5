# peers-enqueue.sh: the rate at which one job a transaction is enqueued, by each
# peer's own statement, prepared, from pgbench.
#
# No worker runs meanwhile.  Afterwards each side's table must have as many
# jobs as there were transactions.

. "$ROOT/bench/peers.sh"

# How many jobs a side has.
jobs_in()
{
	case $1 in
		ujobs) psql -c "select count(*) from ujobs_internal.job" ;;
		skip_locked) psql -c "select count(*) from bench.queue" ;;
		graphile) psql -c "select count(*) from graphile_worker._private_jobs" ;;
		pgboss) psql -c "select count(*) from pgboss.job" ;;
		absurd) psql -c "select count(*) from absurd.t_bench" ;;
	esac
}

empty_side()
{
	case $1 in
		ujobs) psql -c "truncate ujobs_internal.job" ;;
		skip_locked) psql -c "truncate bench.queue" ;;
		*) peer "$1" reset ;;
	esac
}

# enqueue_side SIDE CLIENTS: prints jobs a second
enqueue_side()
{
	local sent found

	empty_side "$1"
	psql -c "checkpoint"
	as_tester "$SCRATCH/server/ujobs-bin/pgbench" -n -M prepared -h "$ground" -U postgres -c "$2" \
		-j "$(($2 < 2 ? 1 : 2))" -T "${UJOBS_BENCH_SECONDS:-1}" -f "$SCRATCH/enqueue-$1.pgbench" bench \
		>"$SCRATCH/pgbench.out" 2>"$SCRATCH/pgbench.log" || { cat "$SCRATCH/pgbench.log" >&2; return 1; }
	sent=$(awk '/^number of transactions actually processed/ { print $6 + 0 }' "$SCRATCH/pgbench.out")
	found=$(jobs_in "$1")
	if [ "$sent" != "$found" ]; then
		echo "bench: $1 has $found jobs after $sent transactions" >&2
		return 1
	fi
	awk '/^tps/ { print $3 }' "$SCRATCH/pgbench.out"
}

# enqueue_round COMMIT CLIENTS
enqueue_round()
{
	local side value ours

	for side in $sides; do
		value=$(enqueue_side "$side" "$2")
		[ "$side" != ujobs ] || ours=$value
		note "peers-enqueue-$1-$2-$side" "$value" "$(ratio "$ours" "$value")"
	done
}

figure_peers-enqueue()
{
	local side round commit clients counts="1 8" sides="ujobs skip_locked graphile pgboss"

	peers_make
	! is_full || counts="1 2 8 16"
	! has_absurd || sides="$sides absurd"
	for side in $sides; do
		{ echo "\\set k random(1, 1000000000000)"; enqueue_statement "$side" | sed 's/\$1/:k/'; echo ";"; } >"$SCRATCH/enqueue-$side.pgbench"
	done
	psql -c "do 'begin perform ujobs.stop_workers(); end'"
	for ((round = 0; round < rounds; round++)); do
		for commit in $(peers_commits); do
			peers_commit "$commit"
			for clients in $counts; do
				enqueue_round "$commit" "$clients"
			done
		done
	done
	peers_commit_reset
	for side in $sides; do
		empty_side "$side"
	done
	psql -c "do 'begin perform ujobs.start_workers(); end'"

	for commit in $(peers_commits); do
		for clients in $counts; do
			heading "Peers: enqueue, one a transaction, $clients client$([ "$clients" = 1 ] || echo s), synchronous_commit $commit"
			for side in $sides; do
				report "peers-enqueue-$commit-$clients-$side" 1 %d jobs/s "$(title "$side")"
				[ "$side" = ujobs ] || report "peers-enqueue-$commit-$clients-$side" 2 %.2f times "  ujobs / this"
			done
		done
	done
	peers_versions
}

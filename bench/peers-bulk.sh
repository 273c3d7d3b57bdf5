# peers-bulk.sh: many jobs enqueued by one statement, each side's own way for
# that, with the time of the commit.  No worker runs meanwhile.
#
# Below the queues two plain tables: the least that can be written, a primary
# key and no other index, and one with the indexes and domains of ujobs.

. "$ROOT/bench/peers-enqueue.sh"

bulk_statement()
{
	case $1 in
		ujobs) echo "select count(*) from ujobs.enqueue_many('peers', (select array_agg(bench.input(n)) from generate_series(1, \$1) n))" ;;
		skip_locked) echo "insert into bench.queue (payload) select bench.input(n) from generate_series(1, \$1) n" ;;
		plain) echo "insert into bench.plain (due_at, run_at, created_at, definition_id, enqueued_role, priority, max_attempts, run_id, queue, tenant_id, idempotency_key, input)
			select now(), now(), now(), 1, 10, 0, 3, gen_random_uuid(), 'default', '', 'bench:' || n, bench.input(n) from generate_series(1, \$1) n" ;;
		bare) echo "insert into bench.bare (run_at, payload) select now(), bench.input(n) from generate_series(1, \$1) n" ;;
		*) peer "$1" bulk noop ;;
	esac
}

bulk_title()
{
	case $1 in
		ujobs) echo "ujobs.enqueue_many" ;;
		plain) echo "INSERT ... SELECT, columns and indexes of ujobs" ;;
		bare) echo "INSERT ... SELECT, a primary key" ;;
		*) title "$1" ;;
	esac
}

# bulk_side SIDE JOBS: prints jobs a second
bulk_side()
{
	local value found

	case $1 in
		bare | plain) psql -c "truncate bench.$1" ;;
		*) empty_side "$1" ;;
	esac
	psql -c "checkpoint"
	value=$(psql -c "call bench.bulk(\$statement\$$(bulk_statement "$1")\$statement\$, $2)")
	case $1 in
		bare | plain) found=$2 ;;
		*) found=$(jobs_in "$1") ;;
	esac
	if [ "$found" != "$2" ]; then
		echo "bench: $1 has $found jobs instead of $2" >&2
		return 1
	fi
	echo "$value"
}

bulk_round()
{
	local side value ours

	for side in $sides; do
		value=$(bulk_side "$side" "$jobs")
		[ "$side" != ujobs ] || ours=$value
		note "peers-bulk-$side" "$value" "$(ratio "$ours" "$value")"
	done
}

figure_peers-bulk()
{
	local side round jobs sides="ujobs bare plain skip_locked graphile pgboss"

	peers_make
	jobs=$(scaled "$(is_full && echo 1000000 || echo 100000)")
	psql -c "do 'begin perform ujobs.stop_workers(); end'"
	for ((round = 0; round < rounds; round++)); do
		bulk_round
	done
	for side in $sides; do
		[[ $side == bare || $side == plain ]] || empty_side "$side"
	done
	psql -c "truncate bench.bare, bench.plain"
	psql -c "do 'begin perform ujobs.start_workers(); end'"

	heading "Peers: $jobs jobs enqueued by one statement, synchronous_commit on"
	for side in $sides; do
		report "peers-bulk-$side" 1 %d jobs/s "$(bulk_title "$side")"
		[ "$side" = ujobs ] || report "peers-bulk-$side" 2 %.2f times "  ujobs / this"
	done
	peers_versions
}

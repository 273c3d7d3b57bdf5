# peers-backlog.sh: does a job cost more where many others wait?
#
# A queue is filled with so many ready jobs.  At that depth: one more job a
# transaction; the wait of jobs of another kind until their start, on an
# otherwise idle server; and the rate at which 20 000 of them are run, or all
# where there are fewer.  Then 100 000 ready ones beside many that sleep.

. "$ROOT/bench/peers-enqueue.sh"

backlog_part=20000

backlog_make()
{
	[ -n "$(psql -c "select to_regprocedure('bench.sleeper(jsonb)')")" ] || psql -f "$SCRATCH/src/bench/backlog.sql"
	for side in $sides; do
		{ echo "\\set k random(1000000000, 1000000000000)"; deep_statement "$side" | sed 's/\$1/:k/'; echo ";"; } >"$SCRATCH/deep-$side.pgbench"
	done
}

deep_statement()
{
	case $1 in
		ujobs) echo "select id from ujobs.enqueue('batch_64', jsonb_build_object('userId', \$1::bigint))" ;;
		*) enqueue_statement "$1" ;;
	esac
}

# No jobs at all.  What the engine remembers of them goes with its dispatcher.
deep_empty()
{
	if [ "$1" = ujobs ]; then
		psql -c "do 'begin perform ujobs.stop_workers(); end'" \
			-c "truncate ujobs_internal.job, ujobs_internal.job_step, ujobs_internal.job_history" \
			-c "do 'begin perform ujobs.start_workers(); end'"
	else
		empty_side "$1"
	fi
}

# deep_fill SIDE JOBS
deep_fill()
{
	local jobs=$2 n

	if [ "$1" = ujobs ]; then
		psql -c "call bench.fill_deep('batch_64', $jobs)"
		return
	fi
	while [ "$jobs" -gt 0 ]; do
		n=$((jobs < 1000000 ? jobs : 1000000))
		if [ "$1" = skip_locked ]; then
			psql -c "insert into bench.queue (payload) select bench.input(n) from generate_series(1, $n) n"
		else
			psql -c "call bench.bulk(\$statement\$$(peer "$1" bulk noop)\$statement\$, $n)" >/dev/null
		fi
		jobs=$((jobs - n))
	done
}

# deep_enqueue SIDE: prints jobs a second
deep_enqueue()
{
	as_tester "$SCRATCH/server/ujobs-bin/pgbench" -n -M prepared -h "$ground" -U postgres -c 1 \
		-T "${UJOBS_BENCH_SECONDS:-1}" -f "$SCRATCH/deep-$1.pgbench" bench 2>"$SCRATCH/pgbench.log" | awk '/^tps/ { printf "%d\n", $3 }'
}

# deep_latency SIDE: prints p50 p95 p99, of jobs of another kind
deep_latency()
{
	if [ "$1" = skip_locked ]; then
		echo "0 0 0"
	elif [ "$1" = ujobs ]; then
		psql -c "call bench.latency_as_peers(100, 0)"
		psql -c "truncate ujobs_internal.job_history"
	else
		BENCH_BACKLOG=1 peer "$1" latency 100 0
	fi
}

# deep_drain SIDE DEPTH: prints jobs a second
deep_drain()
{
	local n=$(($2 < backlog_part ? $2 : backlog_part)) handler=$SCRATCH/deep-hand.pgbench

	case $1 in
		ujobs) deep_drain_ujobs "$n" "$2" ;;
		skip_locked)
			sed "s/HANDLER/noop/" "$ROOT/bench/peers/skip_locked_hundred.pgbench" >"$handler"
			as_tester "$SCRATCH/server/ujobs-bin/pgbench" -n -M prepared -h "$ground" -U postgres -c 2 -j 2 \
				-t $((n / 200)) -f "$handler" bench 2>"$SCRATCH/pgbench.log" | awk '/^tps/ { printf "%d\n", $3 * 100 }'
			deep_fill "$1" "$n"
			;;
		*)
			peer "$1" part "$n" noop best
			[ "$2" -gt $((5 * n)) ] || { empty_side "$1"; deep_fill "$1" "$2"; }
			;;
	esac
}

# deep_drain_ujobs JOBS DEPTH: small parts several times, a single one would be its own beginning and end
deep_drain_ujobs()
{
	local times=$((backlog_part / $1)) i values sum=0

	for ((i = 0; i < times; i++)); do
		values=$(psql -c "call bench.drain_part('batch_64', $1)")
		sum=$(awk -v a="$sum" -v b="${values% *}" 'BEGIN { print a + b }')
		[ "$2" -le $((5 * $1)) ] || continue
		deep_fill ujobs $(($2 - $(psql -c "select count(*) from (select from ujobs_internal.job j join ujobs_internal.definition d
			on d.id = j.definition_id where d.name = 'batch_64' limit $2) x")))
	done
	awk -v jobs=$(($1 * times)) -v s="$sum" 'BEGIN { printf "%d\n", jobs / s }'
}

# deep_measure SERIES SIDE DEPTH
deep_measure()
{
	local round

	for ((round = 0; round < rounds; round++)); do
		# shellcheck disable=SC2046
		note "$1" $(deep_enqueue "$2") $(deep_latency "$2")
	done
	for ((round = 0; round < rounds; round++)); do
		note "$1-drain" "$(deep_drain "$2" "$3")"
	done
}

# deep_side SIDE DEPTH
deep_side()
{
	deep_empty "$1"
	deep_fill "$1" "$2"
	psql -c "vacuum analyze" -c "checkpoint"
	deep_measure "peers-backlog-$1-$2" "$1" "$2"
	deep_empty "$1"
}

# Which depths a side can be filled to in the time there is.
depths_of()
{
	local depth most

	case $1-$(is_full && echo full) in
		pgboss-full | graphile-full) most=1000000 ;;
		*-full) most=10000000 ;;
		*) most=1000000 ;;
	esac
	for depth in 1000 10000 100000 1000000 10000000; do
		[ "$depth" -gt "$(awk -v n="$most" -v scale="$scale" 'BEGIN { print int(n * scale) }')" ] || echo "$depth"
	done
}

backlog_asleep()
{
	deep_empty ujobs
	psql -c "call bench.put_to_sleep($asleep)"
	deep_fill ujobs 100000
	psql -c "vacuum analyze" -c "checkpoint"
	deep_measure peers-backlog-asleep ujobs 100000
	deep_empty ujobs
}

# backlog_curves FILE-SUFFIX COLUMN TITLE: medians by depth, one line a side
backlog_curves()
{
	local side depth titles=()

	for side in $4; do
		titles+=("$(title "$side")")
	done
	series "$3" "ready jobs (log)" "${titles[@]}"
	for depth in $(depths_of ujobs); do
		echo "$depth$(for side in $4; do
			[ -e "$figures_now/peers-backlog-$side-$depth$1" ] && echo " $(median "peers-backlog-$side-$depth$1" "$2")" || echo " -"
		done | tr -d '\n')"
	done | series_rows
}

backlog_rows()
{
	local side depth

	heading "Backlog: drain of no-op jobs at each depth"
	for side in $sides; do
		for depth in $(depths_of "$side"); do
			report "peers-backlog-$side-$depth-drain" 1 %d jobs/s "$(title "$side"), $depth ready"
		done
	done
	[ "$asleep" = 0 ] || report peers-backlog-asleep-drain 1 %d jobs/s "ujobs, 100000 ready, $asleep asleep"
	heading "Backlog: one job a transaction and the wait for its start, ujobs, at each depth"
	for depth in $(depths_of ujobs) asleep; do
		[ "$depth$asleep" != asleep0 ] || continue
		report "peers-backlog-$([ "$depth" = asleep ] || echo ujobs-)$depth" 1 %d jobs/s "enqueue, $depth"
		report "peers-backlog-$([ "$depth" = asleep ] || echo ujobs-)$depth" 2 %.3f ms "  wait of another kind of job, p50"
		report "peers-backlog-$([ "$depth" = asleep ] || echo ujobs-)$depth" 4 %.3f ms "  p99"
	done
}

figure_peers-backlog()
{
	local side depth asleep sides="ujobs skip_locked"

	peers_make
	! is_full || sides="$sides graphile pgboss"
	asleep=$(scaled "$(is_full && echo 1000000 || echo 100000)")
	backlog_make
	settings ujobs.synchronous_commit off synchronous_commit off
	for side in $sides; do
		for depth in $(depths_of "$side"); do
			deep_side "$side" "$depth"
		done
	done
	backlog_asleep
	psql -c "alter system reset ujobs.synchronous_commit" -c "alter system reset synchronous_commit" \
		-c "do 'begin perform pg_reload_conf(); perform ujobs.resume_queue(''batch_64''); end'"

	backlog_rows
	backlog_curves -drain 1 "Backlog: no-op jobs a second, by the number of ready jobs" "$sides"
	backlog_curves "" 1 "Backlog: enqueues a second of one client, by the number of ready jobs" "$sides"
	backlog_curves "" 2 "Backlog: ms until the start of another kind of job (p50), by the number of ready jobs" "${sides/skip_locked/}"
	peers_versions
}

# peers-mixed.sh: some time of mixed load: jobs that do nothing, that update a
# row, that succeed at their second attempt, that are to run in a second, and
# durable ones of three steps; from eight clients at a fixed rate.
#
# A side has the kinds that it offers: the home-made queue has none but the
# first, and is left out.  The second attempt comes a second after the first
# with ujobs and pg-boss, after 2.7 with graphile-worker, which has no setting
# for it.

. "$ROOT/bench/load.sh"

mixed_tasks()
{
	case $1 in
		ujobs) echo "noop@40 account@40 retry@8 later@8 steps@4" ;;
		*) echo "noop@42 account@42 retry@8 later@8" ;;
	esac
}

# mixed_side SIDE: one line a kind in $figures_now/mixed-SIDE-KIND
mixed_side()
{
	local sent tasks task done

	tasks=$(mixed_tasks "$1")
	psql -c "call bench.reset_accounts()" -c "checkpoint"
	# shellcheck disable=SC2086
	load_workers "$1" $(sed 's/@[0-9]*//g' <<<"$tasks")
	# shellcheck disable=SC2086
	sent=$(load_send "$1" "$rate_now" 8 "$seconds" $tasks)
	load_end "$1"
	done=$(psql -c "select count(*) from bench.ran")
	# A number that comes twice while the first is live is one job.
	if ! awk -v a="$sent" -v b="$done" 'BEGIN { exit !(b <= a && b >= a - 5 - a / 1000) }'; then
		echo "bench: $1 did $done of $sent jobs" >&2
		return 1
	fi
	for task in $tasks; do
		task=${task%@*}
		# shellcheck disable=SC2046
		note "mixed-$1-$task" $(psql -c "
			select round(jobs / $seconds::numeric, 1), p[1]::numeric(12, 2), p[2]::numeric(12, 2), p[3]::numeric(12, 2)
			  from (select count(*) as jobs, percentile_disc(array[0.5, 0.95, 0.99]) within group
			               (order by 1000 * extract(epoch from ended_at - sent_at - (task in ('later', 'retry'))::int * interval '1 second')) as p
			          from bench.ran where task = '$task') x" | tr '|' ' ')
	done
}

mixed_rows()
{
	local side task what

	for task in noop account later retry steps; do
		case $task in
			noop) what="does nothing" ;;
			account) what="updates one row" ;;
			later) what="in a second" ;;
			retry) what="second attempt" ;;
			steps) what="three steps" ;;
		esac
		for side in $sides; do
			[[ " $(mixed_tasks "$side")" == *" $task@"* ]] || continue
			report "mixed-$side-$task" 1 %.1f jobs/s "$(title "$side"), $what: done"
			report "mixed-$side-$task" 2 %.2f ms "  from due to the end, p50"
			report "mixed-$side-$task" 3 %.2f ms "  p95"
			report "mixed-$side-$task" 4 %.2f ms "  p99"
		done
	done
}

figure_peers-mixed()
{
	local side seconds rate_now=${UJOBS_BENCH_MIXED_RATE:-400} sides="ujobs graphile pgboss" round times=1

	peers_make
	load_make
	seconds=$(is_full && echo 60 || echo 20)
	seconds=$(awk -v s="$seconds" -v scale="$scale" 'BEGIN { s = int(s * scale); print (s < 5 ? 5 : s) }')
	! is_full || times=$(((rounds + 2) / 3))
	peers_commit on
	for ((round = 0; round < times; round++)); do
		for side in $sides; do
			mixed_side "$side"
		done
	done
	peers_commit_reset
	heading "Mixed load: $rate_now jobs a second from 8 clients for $seconds s, $times times, synchronous_commit on"
	mixed_rows
	peers_versions
}

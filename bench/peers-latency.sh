# peers-latency.sh: from the end of the commit of an enqueue to the start of the
# job, ujobs and its peers, on an idle server and at 500 jobs a second.
#
# The sender is one procedure in the server, the same for all.  A start within
# 10 us of the clock after the commit, or before it, counts as 10 us in a ratio.
# All waits of all rounds make the histograms.

. "$ROOT/bench/peers.sh"

# The file of a side's waits; the tester adds to it.
waits_of()
{
	echo "$WORK/waits-$1-$2"
}

# latency_side SIDE JOBS PER_SECOND: prints p50 p95 p99
latency_side()
{
	if [ "$1" = ujobs ]; then
		psql -c "call bench.latency_as_peers($2, $3)"
		psql -c "select wait from bench.ujobs_wait" >>"$(waits_of ujobs "$3")"
		psql -c "truncate ujobs_internal.job_history"
	else
		peer "$1" reset
		BENCH_WAITS=$(waits_of "$1" "$3") peer "$1" latency "$2" "$3"
	fi
}

# Percent of the waits between two marks, six marks to a power of ten.
histogram()
{
	local side files=() titles=()

	for side in $sides; do
		files+=("$(waits_of "$side" "$1")")
		titles+=("$(title "$side")")
	done
	series "$2" "ms (log)" "${titles[@]}"
	awk '
		FNR == 1 { file++ }
		{
			mark = $1 <= 0.01 ? 0 : int(6 * (log($1) / log(10) + 2)) + 1
			mark = mark > 30 ? 30 : mark
			n[mark, file]++
			all[file]++
		}
		END {
			for (mark = 0; mark <= 30; mark++) {
				printf "%.4g", 10 ^ (mark / 6 - 2)
				for (i = 1; i <= file; i++)
					printf " %.2f", 100 * n[mark, i] / all[i]
				print ""
			}
		}' "${files[@]}" | series_rows
}

# latency_round JOBS PER_SECOND
latency_round()
{
	local side value ours

	for side in $sides; do
		value=$(latency_side "$side" "$1" "$2")
		[ "$side" != ujobs ] || ours=$value
		# shellcheck disable=SC2086
		note "peers-latency-$2-$side" $value $(awk -v a="$value" -v b="$ours" \
			'BEGIN { n = split(a, p, " "); split(b, q, " "); for (i = 1; i <= n; i++) printf "%.3f ", p[i] / (q[i] < 0.01 ? 0.01 : q[i]) }')
	done
}

figure_peers-latency()
{
	local side round per_second idle busy rates="0 500" sides="ujobs graphile pgboss"

	peers_make
	! has_absurd || sides="$sides absurd"
	idle=$(scaled "$(is_full && echo 1000 || echo 300)")
	busy=$(scaled "$(is_full && echo 5000 || echo 1500)")
	psql -c "call bench.latency_as_peers(100, 0)" >/dev/null		# the executor is there
	for ((round = 0; round < rounds; round++)); do
		latency_round "$idle" 0
		latency_round "$busy" 500
	done

	for per_second in $rates; do
		if [ "$per_second" = 0 ]; then
			heading "Peers: end of the commit to start of the job, idle server, $idle jobs a round"
		else
			heading "Peers: end of the commit to start of the job, $per_second jobs a second, $busy jobs a round"
		fi
		for side in $sides; do
			latency_rows "$per_second" "$side"
		done
	done
	histogram 0 "Histogram: percent of the jobs by their wait until the start, idle server"
	histogram 500 "Histogram: percent of the jobs by their wait until the start, 500 jobs a second"
	peers_versions
}

latency_rows()
{
	local column=1 part

	for part in p50 p95 p99; do
		report "peers-latency-$1-$2" "$column" %.3f ms "$(title "$2"), $part"
		[ "$2" = ujobs ] || report "peers-latency-$1-$2" $((column + 3)) %.2f times "  this / ujobs"
		column=$((column + 1))
	done
}

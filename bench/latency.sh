# latency.sh: from the commit of an enqueue to the start of its handler, on an idle server.

figure_latency()
{
	local round jobs values

	jobs=$(scaled 1200)
	psql -c "call bench.latency(100)" >/dev/null		# the executor is there
	for ((round = 0; round < rounds; round++)); do
		values=$(psql -c "call bench.latency($jobs)")
		# shellcheck disable=SC2086
		note latency $values
		psql -c "truncate ujobs_internal.job_history"
	done

	heading "Commit of the enqueue to start of the handler, idle server, 2 to 20 ms apart, $jobs jobs a round"
	latency_report 1 "from the end of the commit, synchronous"
	latency_report 4 "from the end of the commit, asynchronous"
	latency_report 7 "from before the commit, asynchronous"
}

# The three columns of one way to look at it.
latency_report()
{
	report latency "$1" %.3f ms "$2: p50"
	report latency "$(($1 + 1))" %.3f ms "  p95"
	report latency "$(($1 + 2))" %.3f ms "  p99"
}

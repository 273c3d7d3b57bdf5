# memory.sh: does memory of the engine's processes grow with the jobs they ran, a million of them?
#
# Resident memory without the shared segment: VmRSS minus RssShmem, which
# leaves the process' own pages and the program text that it touched.

# kB of the largest process of a kind.
own_memory()
{
	local pid

	for pid in $(engine_pids "$1"); do
		awk '/^VmRSS:/ { rss = $2 } /^RssShmem:/ { shared = $2 } END { print rss - shared }' "/proc/$pid/status"
	done | sort -g | tail -n 1
}

figure_memory()
{
	local round jobs

	jobs=$(awk -v n="$(scaled 1000000)" -v rounds="$rounds" 'BEGIN { print int(n / rounds) }')
	settings ujobs.worker_idle_timeout 1h ujobs.synchronous_commit off
	psql -c "call bench.fill('batch_1', 5000)" -c "call bench.drain('batch_1')" -c "truncate ujobs_internal.job_history" >/dev/null
	note memory-before "$(own_memory dispatcher)" "$(own_memory executor)"
	for ((round = 0; round < rounds; round++)); do
		psql -c "call bench.fill('batch_1', $jobs)" -c "call bench.drain('batch_1')" -c "truncate ujobs_internal.job_history" >/dev/null
		note memory-after "$(own_memory dispatcher)" "$(own_memory executor)"
	done
	tail -n 1 "$figures_now/memory-after" >"$figures_now/memory-end"
	psql -c "alter system reset ujobs.worker_idle_timeout" -c "alter system reset ujobs.synchronous_commit" \
		-c "do 'begin perform pg_reload_conf(); end'"

	heading "Memory of a process without the shared segment"
	report memory-before 1 %d kB "dispatcher, after 5000 jobs"
	report memory-end 1 %d kB "dispatcher, after $((rounds * jobs)) more"
	report memory-before 2 %d kB "largest executor, after 5000 jobs"
	report memory-end 2 %d kB "largest executor, after $((rounds * jobs)) more"
}

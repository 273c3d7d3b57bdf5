# idle.sh: processor time of all engine processes while nothing happens.
#
# From /proc/PID/schedstat, in nanoseconds: utime and stime of /proc/PID/stat,
# which say the same, have a grain of 10 ms, more than an idle process uses.
# Where there is no schedstat they must do.

# Nanoseconds that the processes have run.
cpu_ns()
{
	local pid sum=0 ran

	for pid in "$@"; do
		if [ -r "/proc/$pid/schedstat" ]; then
			read -r ran _ <"/proc/$pid/schedstat"
		else
			ran=$(awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%d", ($12 + $13) * 1e9 / tick }' "/proc/$pid/stat")
		fi
		sum=$((sum + ran))
	done
	echo "$sum"
}

figure_idle()
{
	local round seconds pids before after

	seconds=$(awk -v scale="$scale" 'BEGIN { print (scale < 1 ? 2 : 6) }')
	settings ujobs.worker_idle_timeout 1h				# the executor stays, so it is counted
	psql -c "call bench.latency(20)" >/dev/null
	sleep 1
	pids=$(engine_pids)
	for ((round = 0; round < rounds; round++)); do
		# shellcheck disable=SC2086
		before=$(cpu_ns $pids)
		sleep "$seconds"
		# shellcheck disable=SC2086
		after=$(cpu_ns $pids)
		note idle "$(awk -v ns=$((after - before)) -v s="$seconds" 'BEGIN { print ns / s / 1e7 }')"
	done
	psql -c "alter system reset ujobs.worker_idle_timeout" -c "do 'begin perform pg_reload_conf(); end'"
	psql -c "truncate ujobs_internal.job_history"

	heading "Processor time of an idle engine ($rounds times $seconds s)"
	report idle 1 %.4f "% of a core" "$(wc -w <<<"$pids") processes together"
}

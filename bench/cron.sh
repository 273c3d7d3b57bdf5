# cron.sh: tasks of every minute, ujobs beside pg_cron: how long after the
# minute each job runs, and how many of them a second once the minute is there.
#
# 200 tasks, each inserts the clock into a table. pg_cron runs a job in a
# session that it opens by libpq, or in a background worker. Its releases before
# 1.5 have no schedules of seconds, so a minute is what can be compared.
#
#     UJOBS_BENCH_CRON_MINUTES=2

. "$ROOT/bench/peers.sh"

cron_make()
{
	ground_cluster cron "shared_preload_libraries = 'ujobs, pg_cron'" "cron.database_name = 'bench'" \
		"cron.host = '$WORK/cron'" "cron.log_run = off" "cron.log_statement = off"
	psql -c "create extension pg_cron" -f "$SCRATCH/src/bench/cron.sql"
}

# cron_wait: all tasks have fired in so many minutes; not begun shortly before one
cron_wait()
{
	local give_up=$((SECONDS + 60 * minutes + 75))

	while [ "$(psql -c "select count(*) from bench.fired")" -lt $((tasks * minutes)) ]; do
		[ "$SECONDS" -lt "$give_up" ] || { echo "bench: the tasks did not fire" >&2; return 1; }
		sleep 0.5
	done
}

# cron_run SIDE
cron_run()
{
	while [ "$((10#$(date +%S)))" -ge 45 ]; do
		sleep 1
	done
	psql -c "truncate bench.fired" -c "call bench.cron_$1($tasks)"
	cron_wait
	psql -c "call bench.cron_stop()"
	psql -c "call bench.cron_figures()" | while read -r line; do
		# shellcheck disable=SC2086
		note "cron-$2" $line
	done
}

cron_rows()
{
	report "cron-$1" 1 %.1f ms "$2: after the minute, first of the $tasks"
	report "cron-$1" 2 %.1f ms "  p50"
	report "cron-$1" 3 %.1f ms "  last"
	report "cron-$1" 4 %.1f runs/s "  from the first to the last"
}

figure_cron()
{
	local tasks=200 minutes=${UJOBS_BENCH_CRON_MINUTES:-2}

	if [ ! -e "$("$SCRATCH/server/ujobs-bin/pg_config" --sharedir)/extension/pg_cron.control" ]; then
		remark "Without pg_cron: this server does not have it."
		return
	fi
	cron_make
	cron_run ujobs ujobs
	cron_run pg_cron libpq
	restart_with cron.use_background_workers on
	cron_run pg_cron workers
	heading "Tasks of every minute: $tasks of them, $minutes minutes each"
	cron_rows ujobs "ujobs"
	cron_rows libpq "pg_cron, by libpq"
	cron_rows workers "pg_cron, background workers"
	remark "pg_cron $(psql -c "select extversion from pg_extension where extname = 'pg_cron'")."
	ground_drop cron
}

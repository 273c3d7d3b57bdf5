# load.sh: jobs enqueued at a fixed rate by some clients, while a side runs
# them.  Sourced by peers-mixed.sh and snapshot.sh.
#
# pgbench sends them, at random instants around the rate.  A job carries the
# clock at which its statement ran; its time is from there to the end of its
# handler, or to the job's end in the history of ujobs.

. "$ROOT/bench/peers.sh"

load_pids=

load_make()
{
	[ -n "$(psql -c "select to_regclass('bench.ran')")" ] || psql -f "$SCRATCH/src/bench/load.sql"
}

# The statement that enqueues one job of a kind; :k is its number.
load_statement()
{
	local payload="'userId', :k::bigint, 'at', extract(epoch from clock_timestamp())" after

	case $1 in
		ujobs*)
			after=$([ "$2" != later ] || echo ", delay => interval '1 second'")
			echo "select id from ujobs.enqueue('load_$2', jsonb_build_object($payload)$after)" ;;
		skip_locked) echo "insert into bench.queue (payload) values (jsonb_build_object($payload))" ;;
		graphile)
			after=$([ "$2" != later ] || echo ", run_at => now() + interval '1 second'")
			echo "select graphile_worker.add_job('$2', json_build_object($payload)$after)" ;;
		pgboss)
			after=$([ "$2" != later ] || echo ", 'startAfter', '1 second'")
			peer pgboss sql "load_$2" | sed "s/json_build_object('userId', \$1::bigint)/json_build_object($payload)$after/" ;;
	esac
}

# load_workers SIDE TASK...: those that do the jobs; the file of Node's lines is $ground/ran
load_workers()
{
	local side=$1 i

	shift
	load_pids=
	psql -c "truncate bench.ran, bench.sent, bench.queue"
	case $side in
		ujobs*) psql -c "truncate ujobs_internal.job_history" ;;
		skip_locked)
			for ((i = 0; i < 4; i++)); do
				psql -c "call bench.work_by_hand()" &
				load_pids+=" $!"
			done ;;
		*)
			peer "$side" reset
			rm -f "$ground/ran"
			mkfifo "$ground/ready"
			BENCH_PATIENCE=7200000 peer "$side" load "$ground/ran" "$@" >"$ground/ready" &
			load_pids=$!
			read -r _ <"$ground/ready"
			rm "$ground/ready" ;;
	esac
}

# load_send SIDE RATE CLIENTS SECONDS TASK@WEIGHT...: prints how many were sent
load_send()
{
	local side=$1 scripts=() task clients=$3 rate=$2 seconds=$4

	shift 4
	for task in "$@"; do
		{ echo "\\set k random(1, 2000000000)"; load_statement "$side" "${task%@*}"; echo ";"; } >"$SCRATCH/load-$side-${task%@*}.pgbench"
		scripts+=(-f "$SCRATCH/load-$side-${task%@*}.pgbench@${task#*@}")
	done
	as_tester "$SCRATCH/server/ujobs-bin/pgbench" -n -M prepared -h "$ground" -U postgres -c "$clients" -j 2 -R "$rate" -T "$seconds" \
		"${scripts[@]}" bench 2>"$ground/pgbench.log" |
		awk '/^number of transactions actually processed/ { print $6 + 0; exit }' || { cat "$ground/pgbench.log" >&2; return 1; }
}

# load_end SIDE: the jobs that are left are done, and all are in bench.ran
load_end()
{
	local pid

	psql -c "insert into bench.sent values (0, now())"
	if [[ $1 == ujobs* ]]; then
		psql -c "call bench.take_from_history()" -c "truncate ujobs_internal.job_history"
		return
	fi
	for pid in $load_pids; do
		wait "$pid"
	done
	[ "$1" = skip_locked ] ||
		psql -c "create temp table line (task text, n bigint, sent_at float8, ended_at float8)" -c "\\copy line from '$ground/ran'" \
			-c "insert into bench.ran select task, n, to_timestamp(sent_at), to_timestamp(ended_at) from line"
}

# snapshot.sh: a steady load for many minutes while one session holds an old
# snapshot and three reports of two minutes overlap; nothing that is deleted
# meanwhile can be vacuumed.
#
#     UJOBS_BENCH_SNAPSHOT_MINUTES=20      length, of every side; 20 in a full run, otherwise 4
#     UJOBS_BENCH_SNAPSHOT_SIDES="ujobs graphile pgboss skip_locked"        these; "ujobs_high" is ujobs at the higher rate
#     UJOBS_BENCH_SNAPSHOT_RATE=300        jobs a second, from four clients; ujobs_high has UJOBS_BENCH_SNAPSHOT_HIGH=2000
#
# Each side has a cluster and a core of its own, for the server, the clients and
# the workers; as many sides run at a time as there are cores.  Before its run a
# side has two minutes without a snapshot, the control.  The load begins a second
# after the snapshot was taken, the first report after a quarter of the time, the
# others 40 s later each.  Figures are by the minute in which jobs ended.

. "$ROOT/bench/load.sh"

snapshot_title()
{
	case $1 in
		ujobs) echo "ujobs" ;;
		ujobs_high) echo "ujobs, $high/s" ;;
		*) title "$1" ;;
	esac
}

# hold SECONDS [SCAN]: a session with a snapshot, which reads a large table first
hold()
{
	psql -c "begin isolation level repeatable read read only" -c "select count(*) from bench.account" \
		${2:+-c "select sum(hashtext(t::text)) from bench.report t"} \
		-c "select pg_sleep(greatest(0, $1 - extract(epoch from clock_timestamp() - now())))" -c "commit" >/dev/null
}

hold_all()
{
	local i

	hold "$seconds" &
	holders=$!
	for i in 0 1 2; do
		{ sleep $((seconds / 4 + 1 + i * report / 3)); hold "$report" scan; } &
		holders+=" $!"
	done
	sleep 1
}

# Dead row versions and MB of all tables but the bench's own, at the end of each slot.
watch_tables()
{
	local i began_at=$SECONDS

	for ((i = 1; i <= slots; i++)); do
		sleep $((began_at + i * slot - SECONDS > 0 ? began_at + i * slot - SECONDS : 0))
		psql -c "select sum(n_dead_tup), round(sum(pg_total_relation_size(relid)) / 1048576.0, 1) from pg_stat_user_tables
			where schemaname <> 'bench' or relname = 'queue'" | tr '|' ' '
	done >"$ground/watched"
}

# snapshot_run SIDE NAME: $SCRATCH/snapshot-NAME gets a line a slot: done a second, p50, p99, dead versions, MB
snapshot_run()
{
	local side=$1 watcher began sent pid holders=

	load_workers "$side" noop
	[ "$2" != "$side" ] || hold_all
	began=$(psql -c "select clock_timestamp()")
	watch_tables &
	watcher=$!
	sent=$(load_send "$side" "$([ "$side" = ujobs_high ] && echo "$high" || echo "$steady")" 4 "$((slot * slots))" noop@1)
	wait "$watcher"
	for pid in $holders; do
		wait "$pid"
	done
	load_end "$side"
	psql -c "select * from bench.by_slot('$began', $slot, $slots)" | tr '|' ' ' | paste -d' ' - "$ground/watched" >"$SCRATCH/snapshot-$2"
	note "snapshot-$2" "$(snapshot_summary <"$SCRATCH/snapshot-$2")"
	echo "$2: $sent sent, $(psql -c "select count(*) from bench.ran") done"
}

# done in the first slot, in the worst, their ratio; p99 in the first and the worst; dead versions and MB at the end
snapshot_summary()
{
	awk '
		NR == 1 { first = worst = $1; p99 = most = $3 }
		{ worst = $1 < worst ? $1 : worst; most = $3 > most ? $3 : most; dead = $4; mb = $5 }
		END { print first, worst, worst / first, p99, most, dead, mb }'
}

# snapshot_side SIDE: on a cluster of its own, first the control run
snapshot_side()
{
	local slots

	ground_cluster "snapshot_$1"
	work_make
	load_make
	psql -c "create table bench.report as select n, md5(n::text) as t from generate_series(1, $(scaled 2000000)) n"
	case $1 in
		graphile | pgboss) peer "$1" setup ;;
	esac
	slots=2 snapshot_run "$1" "$1-control"
	slots=$whole snapshot_run "$1" "$1"
	ground_drop "snapshot_$1"
}

# snapshot_lane CORE: every so many-th side, one after the other
snapshot_lane()
{
	local i=0 side

	taskset -cp "$1" "$BASHPID" >/dev/null
	for side in $sides; do
		[ $((i++ % cores)) != "$1" ] || snapshot_side "$side"
	done
}

# snapshot_curves COLUMN TITLE
snapshot_curves()
{
	local side i titles=()

	for side in $sides; do
		titles+=("$(snapshot_title "$side")")
	done
	series "$2" "minute" "${titles[@]}"
	for ((i = 1; i <= whole; i++)); do
		echo "$i$(for side in $sides; do printf ' %s' "$(awk -v i="$i" -v c="$1" 'NR == i { v = $c } END { print (v == "" ? "-" : v) }' "$SCRATCH/snapshot-$side")"; done)"
	done | series_rows
}

snapshot_rows()
{
	local side

	heading "Held snapshot: steady load, $steady jobs a second, one core for each side"
	for side in $sides; do
		report "snapshot-$side" 1 %.1f jobs/s "$(snapshot_title "$side"), $((whole * slot)) s: done in the first minute"
		report "snapshot-$side" 2 %.1f jobs/s "  in the worst minute"
		report "snapshot-$side" 3 %.3f "" "  worst / first"
		report "snapshot-$side-control" 3 %.3f "" "  worst / first, control run without snapshots ($((2 * slot)) s)"
		report "snapshot-$side" 4 %.2f ms "  from sending to the end, p99 of the first minute"
		report "snapshot-$side" 5 %.2f ms "  p99 of the worst minute"
		report "snapshot-$side-control" 5 %.2f ms "  p99 of the worst minute, control run"
		report "snapshot-$side" 6 %d versions "  dead row versions at the end"
		report "snapshot-$side" 7 %.1f MB "  tables and indexes at the end"
	done
}

figure_snapshot()
{
	local core lanes= lane peers_ready= minutes whole slot seconds report
	local steady=${UJOBS_BENCH_SNAPSHOT_RATE:-300} high=${UJOBS_BENCH_SNAPSHOT_HIGH:-2000}
	local sides=${UJOBS_BENCH_SNAPSHOT_SIDES:-ujobs graphile pgboss skip_locked}

	minutes=${UJOBS_BENCH_SNAPSHOT_MINUTES:-$(is_full && echo 20 || echo 4)}
	slot=$((minutes < 4 ? minutes * 15 : 60))		# a short trial has four slots too
	whole=$((minutes < 4 ? 4 : minutes))
	seconds=$((whole * slot + 2))
	report=$((seconds < 300 ? seconds / 4 : 120))
	for ((core = 0; core < cores; core++)); do
		snapshot_lane "$core" &
		lanes+=" $!"
	done
	for lane in $lanes; do
		wait "$lane"
	done
	snapshot_rows
	snapshot_curves 1 "Held snapshot: jobs done a second, by the minute"
	snapshot_curves 3 "Held snapshot: p99 from sending to the end in ms, by the minute"
	snapshot_curves 4 "Held snapshot: dead row versions, by the minute"
	snapshot_curves 5 "Held snapshot: MB of tables and indexes, by the minute"
	peers_versions
}

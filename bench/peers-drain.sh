# peers-drain.sh: ujobs and its peers emptying a full queue.
#
# Two kinds of work: a job that does nothing, and one that updates one row of a
# table of 1000.  In each round every side does it once, and the ratios are
# those of the round.  A side whose rate is that of the disk, or of round trips,
# has a tenth of the jobs, or a quarter: only the rate counts.

. "$ROOT/bench/peers.sh"

# jobs_of SIDE TASK COMMIT JOBS
jobs_of()
{
	local n=$4

	case $1-$2-$3 in
		ujobs_1-*-on | hand_one-*-on | graphile_plain-*) n=$((n / 10)) ;;
		graphile_*-account-* | pgboss-account-*) if is_full; then n=$((n / 4)); else n=$((n / 10)); fi ;;
		graphile_local-* | hand_one-*) n=$((n / 4)) ;;
		absurd-*) n=$((n / 50)) ;;
	esac
	n=$((n / 400 * 400))
	echo $((n < 400 ? 400 : n))
}

label_of()
{
	case $1 in
		ujobs_1) echo "ujobs, batch 1" ;;
		ujobs_64) echo "ujobs, batch 64" ;;
		floor) echo "floor: rows to a history, 100 a transaction, plain SQL, one session" ;;
		hand_one) echo "SKIP LOCKED by hand, one a claim, 4 clients" ;;
		hand_hundred) echo "SKIP LOCKED by hand, 100 a transaction, 2 clients" ;;
		graphile_best) echo "graphile-worker, local queue 500, batched completion" ;;
		graphile_local) echo "graphile-worker, local queue 500" ;;
		graphile_plain) echo "graphile-worker, defaults" ;;
		pgboss) echo "pg-boss, batch 1000" ;;
		absurd) echo "absurd, SDK" ;;
	esac
}

# sides_of TASK COMMIT: without synchronous commit only those that come near
sides_of()
{
	echo "ujobs_64 ujobs_1 hand_hundred graphile_best"
	[ "$1" != noop ] || echo "floor"
	[ "$2" = on ] || return 0
	echo "hand_one"
	! is_full || echo "graphile_local graphile_plain"
	echo "pgboss"
	! has_absurd || echo "absurd"
}

# The definition of ujobs for a task, but for its batch.
job_of()
{
	if [ "$1" = noop ]; then echo batch; else echo "$1"; fi
}

# drain_hand SCRIPT TASK JOBS CLIENTS TOGETHER
drain_hand()
{
	local script=$SCRATCH/skip_locked.pgbench handler seconds TIMEFORMAT='%U %S'

	handler=$([ "$2" = noop ] && echo noop || echo account_add)
	sed "s/HANDLER/$handler/" "$ROOT/bench/peers/skip_locked_$1.pgbench" >"$script"
	psql -c "truncate bench.queue" -c "checkpoint" \
		-c "insert into bench.queue (payload) select bench.input(n) from generate_series(1, $3) n"
	drain_begins
	seconds=$( { time as_tester "$SCRATCH/server/ujobs-bin/pgbench" -n -M prepared -h "$ground" -U postgres -c "$4" -j 2 \
		-t $(($3 / $4 / $5)) -f "$script" bench >"$SCRATCH/pgbench.out" 2>"$SCRATCH/pgbench.log"; } 2>&1) ||
		{ cat "$SCRATCH/pgbench.log" >&2; return 1; }
	drain_ended "$(awk '{ print $1 + $2 }' <<<"$seconds")"
	psql -c "do 'begin if exists (select from bench.queue) then raise ''jobs were left''; end if; end'"
	awk -v together="$5" '/^tps/ { printf "%d\n", $3 * together }' "$SCRATCH/pgbench.out"
}

# drain_peer PEER CONFIG TASK JOBS
drain_peer()
{
	local values

	peer "$1" reset
	peer "$1" enqueue "$4" "$3"
	psql -c "checkpoint"
	drain_begins
	values=$(peer "$1" drain "$4" "$3" "$2")
	drain_ended "${values##* }"
	echo "${values%% *}"
}

# drain_side SIDE TASK JOBS: prints jobs a second
drain_side()
{
	psql -c "call bench.reset_accounts()"
	case $1 in
		ujobs_*) ujobs_drain "$(job_of "$2")_${1#ujobs_}" "$3" ;;
		floor) psql -c "call bench.fill_plain($3)" -c "checkpoint"; psql -c "call bench.move_plain($3, 100)" ;;
		hand_one) drain_hand one "$2" "$3" 4 1 ;;
		hand_hundred) drain_hand hundred "$2" "$3" 2 100 ;;
		graphile_*) drain_peer graphile "${1#graphile_}" "$2" "$3" ;;
		*) drain_peer "$1" best "$2" "$3" ;;
	esac
	[ "$2" = noop ] || psql -c "call bench.check_accounts($3)"
}

# drain_round TASK COMMIT JOBS
drain_round()
{
	local side value batch_64 batch_1

	for side in $(sides_of "$1" "$2"); do
		value=$(drain_side "$side" "$1" "$(jobs_of "$side" "$1" "$2" "$3")")
		case $side in
			ujobs_64) batch_64=$value ;;
			ujobs_1) batch_1=$value ;;
		esac
		note "peers-drain-$1-$2-$side" "$value" "$(ratio "${batch_64:-0}" "$value")" "$(ratio "${batch_1:-0}" "$value")"
	done
}

# drain_table TASK COMMIT JOBS WORK
drain_table()
{
	local side n label

	heading "Peers: drain of $3 jobs that $4, synchronous_commit $2"
	for side in $(sides_of "$1" "$2"); do
		n=$(jobs_of "$side" "$1" "$2" "$3")
		label=$(label_of "$side")
		[ "$n" = "$3" ] || label="$label ($n jobs)"
		report "peers-drain-$1-$2-$side" 1 %d jobs/s "$label"
		[[ $side != ujobs_* ]] || continue
		report "peers-drain-$1-$2-$side" 2 %.2f times "  ujobs, batch 64 / this"
		report "peers-drain-$1-$2-$side" 3 %.2f times "  ujobs, batch 1 / this"
	done
}

figure_peers-drain()
{
	local round commit jobs

	peers_make
	jobs=$(peers_scaled "$(is_full && echo 100000 || echo 20000)")
	for ((round = 0; round < rounds; round++)); do
		for commit in $(peers_commits); do
			peers_commit "$commit"
			drain_round noop "$commit" "$jobs"
			drain_round account "$commit" "$jobs"
		done
	done
	peers_commit_reset
	for commit in $(peers_commits); do
		drain_table noop "$commit" "$jobs" "do nothing"
		drain_table account "$commit" "$jobs" "update one row"
	done
	peers_versions
}

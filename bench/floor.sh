# floor.sh: what the same server does with plain SQL, one session, no ujobs.
#
# Tables of the same shape and indexes.  Batch 1 of the drain can be held
# against "one row moved to a history", batch 64 against 100 of them; the drain
# has as many sessions as there are executors.

# floor_once SERIES PROCEDURE ROWS TOGETHER SYNCHRONOUS_COMMIT
floor_once()
{
	psql -c "call bench.fill_plain($3)"
	note "$1" "$(psql -c "set synchronous_commit = $5" -c "call bench.$2($3, $4)")"
}

figure_floor()
{
	local round commit rows few

	rows=$(scaled 50000)
	few=$(scaled 1000)
	psql -c "checkpoint"
	for ((round = 0; round < rounds; round++)); do
		for commit in off on; do
			note "floor-insert-$commit" "$(rate plain "$commit" 1)"
			floor_once "floor-delete-$commit" delete_plain "$rows" 100 "$commit"
			floor_once "floor-move-many-$commit" move_plain "$rows" 100 "$commit"
		done
		floor_once floor-move-off move_plain "$rows" 1 off
		floor_once floor-move-on move_plain "$few" 1 on
	done

	heading "The floor: plain SQL in one session on the same server"
	for commit in off on; do
		report "floor-insert-$commit" 1 %d rows/s "INSERT of one row (pgbench, 3 indexes), synchronous_commit $commit"
		report "floor-delete-$commit" 1 %d rows/s "DELETE, 100 rows a transaction, synchronous_commit $commit"
		report "floor-move-many-$commit" 1 %d rows/s "row to history, 100 a transaction, synchronous_commit $commit"
		report "floor-move-$commit" 1 %d rows/s "row to history, one a transaction, synchronous_commit $commit"
	done
}

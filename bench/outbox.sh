# outbox.sh: messages through the relay to real systems on loopback, and jobs through a queue on a broker.
#
# nats-server with JetStream in files, redis-server with appendonly, and a
# receiver of webhooks that does nothing.  All share the cores with the server.
# The relay and the brokers are processes of several threads, so their time is
# utime and stime of /proc/PID/stat, whose grain of 10 ms is small beside a run.

outbox_pids=()					# of brokers and the receiver
declare -A outbox_pid outbox_url

outbox_port()
{
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# outbox_await PIDFILE PORT: it has said its pid and takes connections
outbox_await()
{
	local tries

	for ((tries = 0; tries < 500; tries++)); do
		[ ! -s "$1" ] || ! (: <"/dev/tcp/127.0.0.1/$2") 2>/dev/null || return 0
		sleep 0.02
	done
	echo "bench: what should listen on port $2 does not" >&2
	return 1
}

outbox_nats()
{
	as_tester nats-server -js -a 127.0.0.1 -p "${outbox_url[nats]##*:}" -sd "$outbox_place/nats" -P "$outbox_place/nats.pid" \
		-l "$outbox_place/nats.log" 2>>"$SCRATCH/nats.err" &
	disown						# its end is no news for the shell
	outbox_await "$outbox_place/nats.pid" "${outbox_url[nats]##*:}"
	outbox_pid[nats]=$(<"$outbox_place/nats.pid")
	outbox_pids+=("${outbox_pid[nats]}")
}

outbox_redis()
{
	local port

	port=$(outbox_port)
	as_tester redis-server --bind 127.0.0.1 --port "$port" --appendonly yes --save "" --dir "$outbox_place" \
		--pidfile "$outbox_place/redis.pid" --daemonize yes --logfile "$outbox_place/redis.log" >/dev/null
	outbox_await "$outbox_place/redis.pid" "$port"
	outbox_url[redis]=redis://127.0.0.1:$port
	outbox_pid[redis]=$(<"$outbox_place/redis.pid")
	outbox_pids+=("${outbox_pid[redis]}")
}

outbox_http()
{
	local tries

	# A python3 that is in the caller's home first in PATH is not for the tester.
	PATH=/usr/bin:$PATH as_tester python3 "$SCRATCH/src/bench/receiver.py" "$outbox_place/http.pid" >"$SCRATCH/http.port" 2>"$SCRATCH/http.err" &
	disown
	for ((tries = 0; tries < 500; tries++)); do
		[ ! -s "$SCRATCH/http.port" ] || break
		sleep 0.02
	done
	outbox_await "$outbox_place/http.pid" "$(<"$SCRATCH/http.port")"
	outbox_url[http]=http://127.0.0.1:$(<"$SCRATCH/http.port")/hook
	outbox_pid[http]=$(<"$outbox_place/http.pid")
	outbox_pids+=("${outbox_pid[http]}")
}

outbox_end()
{
	[ "${#outbox_pids[@]}" -eq 0 ] || kill -KILL "${outbox_pids[@]}" 2>/dev/null || true
	outbox_pids=()
}

outbox_psql_b()
{
	psql -d bench_b "$@"
}

outbox_make()
{
	local kind options

	outbox_place=$WORK/outbox
	as_tester mkdir "$outbox_place"
	trap 'outbox_end; scratch_remove' EXIT
	outbox_url[nats]=nats://127.0.0.1:$(outbox_port)
	outbox_nats
	outbox_redis
	outbox_http

	settings ujobs.http_allow_private on
	psql -f "$SCRATCH/src/bench/outbox.sql"
	psql -d postgres -c "create database bench_b"
	outbox_psql_b -c "create extension ujobs" -c "grant execute on function ujobs.define_job to app" \
		-f "$SCRATCH/src/bench/loops.sql" -f "$SCRATCH/src/bench/outbox.sql"
	for kind in nats redis http; do
		options="{\"url\": \"${outbox_url[$kind]}\""
		[ "$kind" != nats ] || options+=', "stream": "BENCH", "subjects": "bench.>"'
		[ "$kind" != redis ] || options+=', "stream": "bench"'
		psql -c "do \$\$ begin perform ujobs.define_sink('$kind', '$kind', '$options}'); end \$\$"
		[ "$kind" = http ] || outbox_psql_b -c "do \$\$ begin perform ujobs.define_sink('$kind', '$kind', '$options}'); end \$\$"
	done
	for kind in bench bench_b; do
		psql -d "$kind" -U app -c "do 'begin perform ujobs.define_job(''bridged'', ''bench.noop'', ''bridged:{userId}'', queue => ''bridged'', batch => 64); end'"
	done
	for kind in nats redis http; do
		psql -c "do \$\$ begin perform ujobs.publish('$kind', 'bench.made', '{}'); end \$\$"
		psql -c "call bench.await_delivered(1)"
		psql -c "truncate ujobs_internal.outbox_published"
	done
}

# Milliseconds of processor time, of all threads.
cpu_ms()
{
	local pid

	for pid in "$@"; do
		sed 's/.*) //' "/proc/$pid/stat"
	done | awk -v tick="$(getconf CLK_TCK)" '{ sum += $12 + $13 } END { printf "%d\n", sum * 1000 / tick }'
}

# outbox_deliver KIND KEYS MESSAGES: notes the rate, and us of the relay and of the broker for a message
outbox_deliver()
{
	local kind=$1 keys=$2 messages=$3 relay broker relay_before broker_before values

	relay=$(psql -c "select pid from pg_stat_activity where backend_type = 'ujobs relay' and datname = 'bench'")
	broker=${outbox_pid[$kind]}
	psql -c "checkpoint"
	relay_before=$(cpu_ms "$relay")
	broker_before=$(cpu_ms "$broker")
	values=$(psql -c "call bench.deliver('$kind', $messages, $keys)")
	# shellcheck disable=SC2046
	note "outbox-$kind-$keys" "$values" $(awk -v n="$messages" -v a="$(($(cpu_ms "$relay") - relay_before))" \
		-v b="$(($(cpu_ms "$broker") - broker_before))" 'BEGIN { print a * 1000 / n, b * 1000 / n }')
	psql -c "truncate ujobs_internal.outbox, ujobs_internal.outbox_published"
}

# Messages of one kind and number of keys: one key's go one at a time, so there are fewer.
outbox_messages()
{
	case $1-$2 in
		http-0) scaled 10000 ;;
		http-*) scaled 5000 ;;
		*-1) scaled 2000 ;;
		*) scaled 50000 ;;
	esac
}

outbox_rates()
{
	local kind keys round name

	for ((round = 0; round < rounds; round++)); do
		for kind in nats redis http; do
			for keys in 0 1000 1; do
				[ "$kind-$keys" = http-1 ] || outbox_deliver "$kind" "$keys" "$(outbox_messages "$kind" "$keys")"
			done
		done
	done
	heading "Outbox: publish in transactions of 1000, from the first commit until every receipt is recorded"
	for kind in nats redis http; do
		for keys in 0 1000 1; do
			[ "$kind-$keys" != http-1 ] || continue
			name=$([ "$keys" = 0 ] && echo "without keys" || { [ "$keys" = 1 ] && echo "one key" || echo "$keys keys"; })
			report "outbox-$kind-$keys" 1 %d messages/s "$kind, $name ($(outbox_messages "$kind" "$keys") messages)"
			[ "$keys" = 1 ] || report "outbox-$kind-$keys" 2 %.0f "us/message" "  processor time of the relay"
			[ "$keys" = 1 ] || report "outbox-$kind-$keys" 3 %.0f "us/message" "  processor time of the other system"
		done
	done
}

# publish beside a plain INSERT of the row, while no engine runs.
outbox_publish()
{
	local round messages values keys

	messages=$(scaled 20000)
	psql -c "do 'begin perform ujobs.stop_workers(); end'"
	while [ -n "$(psql -c "select 1 from pg_stat_activity where backend_type = 'ujobs relay' and datname = 'bench'")" ]; do
		sleep 0.05
	done
	for ((round = 0; round < rounds; round++)); do
		for keys in 0 1000; do
			values=$(psql <<-SQL
				create temp table at as select clock_timestamp() as t;
				call bench.publish_plain($messages, $keys);
				insert into at select clock_timestamp();
				call bench.publish('nats', $messages, $keys) \g /dev/null
				insert into at select clock_timestamp();
				select concat_ws(' ', round($messages / a), round($messages / b), round(a / b, 3))
				  from (select extract(epoch from t - lag(t) over (order by t)) as a,
				               extract(epoch from lead(t) over (order by t) - t) as b from at) x
				 where a is not null and b is not null;
				truncate bench.plain_outbox, ujobs_internal.outbox;
			SQL
			)
			# shellcheck disable=SC2086
			note "outbox-publish-$keys" $values
		done
	done
	psql -c "do 'begin perform ujobs.start_workers(); end'"
	heading "Outbox: publish beside a plain INSERT of the row, in transactions of 1000, one client"
	for keys in 0 1000; do
		report "outbox-publish-$keys" 1 %d rows/s "INSERT, $([ "$keys" = 0 ] && echo "without a key" || echo "$keys keys")"
		report "outbox-publish-$keys" 2 %d messages/s "publish"
		report "outbox-publish-$keys" 3 %.2f "" "  publish / INSERT"
	done
}

outbox_latency()
{
	local kind round messages values

	messages=$(scaled 400)
	for ((round = 0; round < rounds; round++)); do
		for kind in nats redis http; do
			values=$(psql -c "call bench.publish_latency('$kind', $messages)")
			# shellcheck disable=SC2086
			note "outbox-lag-$kind" $values
			psql -c "truncate ujobs_internal.outbox_published"
		done
	done
	heading "Outbox: commit of publish to the receipt, 200 messages a second, $messages a round"
	for kind in nats redis http; do
		report "outbox-lag-$kind" 1 %.2f ms "$kind, p50"
		report "outbox-lag-$kind" 2 %.2f ms "  p99"
	done
}

outbox_bridge()
{
	local kind round jobs first last before relays

	jobs=$(scaled 20000)
	for kind in nats redis; do
		psql -c "do 'begin perform ujobs.set_queue_driver(''bridged'', ''$kind'', ''$kind''); end'"
		outbox_psql_b -c "do 'begin perform ujobs.consume_queue(''bridged'', ''$kind''); end'"
		for ((round = -1; round < rounds; round++)); do
			relays=$(engine_pids relay)
			before=$([ "$round" -lt 0 ] || cpu_ms $relays)
			first=$(psql -c "call bench.send_jobs($([ "$round" -lt 0 ] && echo 100 || echo "$jobs"))")
			last=$(outbox_psql_b -c "call bench.await_jobs($([ "$round" -lt 0 ] && echo 100 || echo "$jobs"))")
			# The first round only makes streams and connections.
			# shellcheck disable=SC2046,SC2086
			[ "$round" -lt 0 ] || note "outbox-jobs-$kind" $(awk -v n="$jobs" -v a="$first" -v b="$last" -v c="$(($(cpu_ms $relays) - before))" \
				'BEGIN { print n / (b - a), c * 1000 / n }')
			outbox_psql_b -c "truncate ujobs_internal.job_history, ujobs_internal.inbox"
			psql -c "truncate ujobs_internal.outbox_published"
		done
		outbox_psql_b -c "do 'begin perform ujobs.consume_queue(''bridged'', ''$kind'', enabled => false); end'"
	done
	psql -c "do 'begin perform ujobs.set_queue_driver(''bridged''); end'"
	heading "Outbox: $jobs jobs enqueued in one database, run in another one of the same server, batch 64"
	for kind in nats redis; do
		report "outbox-jobs-$kind" 1 %d jobs/s "queue on $kind: first commit of an enqueue to the last finish"
		report "outbox-jobs-$kind" 2 %.0f us/job "  processor time of both relays"
	done
}

# A transaction that inserts a row, and one that also publishes, while the broker is there and while it is not.
outbox_business()
{
	local round plain up down

	for ((round = 0; round < rounds; round++)); do
		psql -c "checkpoint"
		plain=$(rate business on 1)
		up=$(rate business-publish on 1)
		kill -KILL "${outbox_pid[nats]}"
		wait_gone "${outbox_pid[nats]}"
		down=$(rate business-publish on 1)
		rm -f "$outbox_place/nats.pid"
		outbox_nats
		while [ -n "$(psql -c "select 1 from ujobs_internal.outbox limit 1")" ]; do
			sleep 0.1
		done
		# shellcheck disable=SC2046
		note outbox-business $(awk -v a="$plain" -v b="$up" -v c="$down" 'BEGIN { print a, b, c, c / b }')
		psql -c "truncate ujobs_internal.outbox_published, bench.business"
	done
	heading "Outbox: business transactions, one INSERT each, one client, synchronous_commit on"
	report outbox-business 1 %d commits/s "without publish"
	report outbox-business 2 %d commits/s "with publish, broker up"
	report outbox-business 3 %d commits/s "with publish, broker killed"
	report outbox-business 4 %.2f "" "  killed / up"
}

wait_gone()
{
	while kill -0 "$1" 2>/dev/null; do
		sleep 0.02
	done
}

figure_outbox()
{
	outbox_make
	outbox_rates
	outbox_publish
	outbox_latency
	outbox_bridge
	outbox_business
	outbox_end
	psql -c "alter system reset ujobs.http_allow_private" -c "do 'begin perform pg_reload_conf(); end'"
	psql -c "do 'begin perform ujobs.drop_sink(s.name) from ujobs.sinks s; end'"
	psql -d postgres -c "drop database bench_b with (force)"
}

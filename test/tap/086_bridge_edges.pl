# What people are told of a sink, and a receiver that is slow or refuses: nobody else pays for it.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use SinkTest;
use Test::More;
use UjobsTest;

my $receiver = receiver_start('edges');
my $redis = redis_start('edges');
my $node = ujobs_cluster('edges', conf => "fsync = off\nujobs.http_allow_private = on\nujobs.poll_interval = 1s\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $log = sub { return slurp_file($node->logfile); };

# ---- options that only the relay reads are looked at where they are given ----

my ($code, undef, $said) = $node->psql('postgres', q{select ujobs.define_sink('none', 'http', '{"url": "http://127.0.0.1/", "attempts": 0}')});
like($said, qr/option "attempts" of the sink has an invalid value: "0"/, 'no attempt at all is refused');

# ---- a secret ----

$sql->(qq{select ujobs.define_sink('red', 'redis', '{"url": "$redis->{url}", "stream": "s"}')});
is($sql->(q{set log_statement = 'none'; create temp table shown (query text);
	do $$begin
		perform ujobs.set_sink_secret('red', '{"password": "edge-secret"}');
		insert into shown select query from pg_stat_activity where pid = pg_backend_pid();
	end$$;
	select query from shown}), '<ujobs.set_sink_secret>', 'what pg_stat_activity shows has no secret in it');
$node->psql('postgres', q{set log_statement = 'none'; select ujobs.set_sink_secret('red', '{"passwort": "edge-secret"}')});
like($log->(), qr/have no secret "passwort"/, 'a secret that is refused is in the log');
unlike($log->(), qr/edge-secret/, 'without its statement');
is($sql->(q{set log_statement = 'none'; set log_min_error_statement = error; select ujobs.set_sink_secret('red', '{"password": "edge-secret"}');
	show log_min_error_statement}) =~ s/\s//gr, 'error', 'what is hidden is that statement alone');

# ---- a sink is up again when it is, whoever found it down ----

ok(wait_until_sql($node, q{select state = 'down' and last_error ~ 'AUTH' from ujobs.sinks where name = 'red'}), 'a wrong secret: down');
my $next = $sql->(q{select next_try_at from ujobs.sinks where name = 'red'});
ok(wait_until_sql($node, qq{select next_try_at > '$next' from ujobs.sinks where name = 'red'}), 'the next try is the next one');
$sql->(q{select ujobs.set_sink_secret('red', '{}')});
ok(wait_until_sql($node, q{select state = 'up' from ujobs.sinks where name = 'red'}), 'mended: up, though nothing is published');
redis_kill($redis);
$sql->(q{select ujobs.publish('red', 'edge', '{}')});
ok(wait_until_sql($node, q{select state = 'down' from ujobs.sinks where name = 'red'}), 'it is killed: down');
my $relay = $sql->(q{select pid from ujobs.workers where kind = 'relay'});
$sql->("select pg_terminate_backend($relay)");
wait_until_sql($node, "select pid <> $relay from ujobs.workers where kind = 'relay'");
redis_again($redis);
ok(wait_until_sql($node, q{select state = 'up' from ujobs.sinks where name = 'red'}), 'another relay finds it up');

# ---- a slow receiver ----

$sql->(qq{select ujobs.define_sink('hook', 'http', '{"url": "$receiver->{url}", "timeout": "2s"}')});
$sql->(q{select ujobs.publish('hook', 'hang', to_jsonb(n)) from generate_series(1, 40) n});
my $last = $sql->(q{select ujobs.publish('hook', 'after', '{}')});
ok(wait_until_sql($node, "select state = 'published' from ujobs.outbox where id = $last"), 'a message behind many that get no answer arrives');
unlike($log->(), qr/cannot reach sink "hook"/, 'and the receiver is not given up');
is($sql->(q{select count(*) from ujobs.outbox where topic = 'hang' and attempts > 0 and last_error ->> 'message' ~ 'timed out'}) > 0 ? 1 : 0, 1,
	'each of them for itself');

# ---- a parked message of a queue is given up ----

$sql->(q{select ujobs.consume_queue('edge', 'red', allow_unsigned => true)});
wait_for('group', sub { redis_cli($redis, qw(xinfo groups s:edge)) =~ /ujobs/ });
redis_cli($redis, qw(xadd s:edge * id edge-1 payload), '{"name": "nobody"}');
ok(wait_until_sql($node, q{select exists (select from ujobs.inbox where message_id = 'edge-1' and state = 'parked')}), 'a message of an unknown job is parked');
$sql->(q{select ujobs.skip_inbox('edge-1')});
is($sql->(q{select state, job_id is null, message is null from ujobs.inbox where message_id = 'edge-1'}), 'taken|t|t', 'and given up');
(undef, undef, $said) = $node->psql('postgres', q{select ujobs.skip_inbox('edge-1')});
like($said, qr/there is no parked message "edge-1" in the inbox/, 'once');

$node->stop;
done_testing();

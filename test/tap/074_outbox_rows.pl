# Rows of the outbox over dump, restore, copy and time: secrets stay behind,
# messages and their numbers come along, a copy is a store of its own to the
# brokers, and what was delivered goes after its retention.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('outbox', conf => "fsync = off\nujobs.poll_interval = '1s'\n");
my $sql = sub { my ($query, $database) = @_; return $node->safe_psql($database // 'postgres', $query); };
my $uuid = sub { return $sql->('select uuid from ujobs_internal.origin', $_[0]); };

# A sink as define_sink leaves it, of a module that need not be there.
$sql->(<<'SQL');
create function echo(input jsonb) returns jsonb language sql return input;
select ujobs.define_job('echo', 'public.echo', '{n}');
insert into ujobs_internal.sink (name, kind, options, created_at) values ('bus', 'nats', '{"url": "nats://127.0.0.1:1"}', now());
insert into ujobs_internal.sink_status (sink_id) select id from ujobs_internal.sink;
insert into ujobs_internal.sink_secret select id, '{"password": "very-secret-indeed"}' from ujobs_internal.sink;
select ujobs.set_queue_driver('far', 'nats', 'bus');
select ujobs.consume_queue('near', 'bus', enabled => false);
select ujobs.publish('bus', 'a', '{"n": 1}', key => 'k');
select ujobs.publish('bus', 'b', '{"n": 2}', key => 'k');
select run_id from ujobs.enqueue('echo', '{"n": 3}', queue => 'far');
SQL

# ---- dump and restore ----

my $dump = $node->backup_dir . '/outbox.sql';
mkdir $node->backup_dir;
$node->command_ok([ 'pg_dump', '-f', $dump, '-p', $node->port, '-h', $node->host, 'postgres' ], 'a dump');
my $text = slurp_file($dump);
like($text, qr/nats:\/\/127\.0\.0\.1:1/, 'it holds the sink');
unlike($text, qr/very-secret-indeed/, 'and no secret');
is($sql->('select has_secret from ujobs.sinks'), 't', 'a view tells that there is a secret');

$sql->('create database restored');
$node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-p', $node->port, '-h', $node->host, 'restored' ], 'a restore');
is($sql->(q{select string_agg(topic || coalesce(key, '-'), ' ' order by id) from ujobs.outbox}, 'restored'), 'ak bk far-', 'messages come along');
is($sql->(q{select has_secret from ujobs.sinks}, 'restored'), 'f', 'the secret does not');
is($sql->(q{select ujobs.publish('bus', 'c', '3') > max(id) from ujobs_internal.outbox}, 'restored'), 't', 'numbers go on');
is($sql->(q{select id is null from ujobs.enqueue('echo', '{"n": 4}', queue => 'far')}, 'restored'), 't', 'the queue lives where it did');
is($sql->(q{select count(*) from ujobs.check()}, 'restored'), '0', 'it is healthy');

# ---- by which name brokers know it ----

my $own = $uuid->();
like($own, qr/^[0-9a-f-]{36}$/, 'a store has a name');
is($uuid->('restored'), $own, 'a restored one keeps it while it is paused');
$sql->('select ujobs.start_workers()', 'restored');
isnt($uuid->('restored'), $own, 'accepted, it gets its own');
my $accepted = $uuid->('restored');
$sql->('select ujobs.stop_workers()', 'restored');
$sql->('select ujobs.start_workers()', 'restored');
is($uuid->('restored'), $accepted, 'and keeps it');
$sql->('create database copied template restored');
$sql->('select ujobs.start_workers()', 'copied');
isnt($uuid->('copied'), $accepted, 'a copy gets its own too');
$sql->('select ujobs.start_workers()');
$node->restart;
wait_until_engine($node);
is($uuid->(), $own, 'a restart changes nothing');

# ---- what is delivered goes after a while ----

$sql->(<<'SQL');
insert into ujobs_internal.outbox_published (id, created_at, published_at, sink_id, attempts, publisher, is_job, message_id, topic, headers, payload)
select -n, now() - age, now() - age, 1, 0, 10, false, gen_random_uuid(), 'old', '{}', '{}'
  from generate_series(1, 2500) n, (values (interval '8 days')) a (age);
insert into ujobs_internal.outbox_published (id, created_at, published_at, sink_id, attempts, publisher, is_job, message_id, topic, headers, payload)
values (0, now(), now() - interval '6 days', 1, 0, 10, false, gen_random_uuid(), 'young', '{}', '{}');
insert into ujobs_internal.inbox (taken_at, job_id, sink_id, parked, message_id, queue, message, error)
select now() - age, case when parked then null else 1 end, 1, parked, id, 'near',
       case when parked then '{"name": "nobody"}'::jsonb end, case when parked then '{}'::jsonb end
  from (values ('old', interval '8 days', false), ('young', interval '6 days', false), ('parked', interval '80 days', true)) i (id, age, parked);
SQL
$sql->(q{alter system set ujobs.retention = '1h'});
$node->reload;
$sql->(q{select pg_terminate_backend(pid) from ujobs.workers where kind = 'scheduler' and database = 'postgres'});
wait_until_sql($node, q{select count(*) = 0 from ujobs.outbox where state = 'published'});
wait_until_sql($node, q{select not exists (select from ujobs.inbox where message_id = 'old')});
is($sql->(q{select string_agg(message_id, ' ' order by message_id) from ujobs.inbox}), 'parked young',
	'records of what was taken in stay a week, parked messages for good');
is($sql->(q{select count(*) from ujobs.outbox}), '3', 'what is not delivered stays');

# ---- prepared transactions tell nobody, and lose nothing ----

$sql->(q{begin; select ujobs.publish('bus', 'p', '1'); prepare transaction 'message'});
is($sql->(q{select count(*) from ujobs.outbox where topic = 'p'}), '0', 'a prepared message is not there');
$sql->(q{commit prepared 'message'});
is($sql->(q{select count(*) from ujobs.outbox where topic = 'p'}), '1', 'committed it is');

# ---- dropping ----

is(sql_state($node, q{select ujobs.drop_sink('bus')}), 'UJ006', 'a sink with messages stays');
$sql->(q{select ujobs.skip_outbox(id) from ujobs.outbox; select ujobs.set_queue_driver('far'); select ujobs.drop_sink('bus')});
is($sql->(q{select count(*) from ujobs_internal.sink_secret}), '0', 'with the sink goes its secret');
$sql->('drop extension ujobs cascade');
is($sql->(q{select count(*) from pg_namespace where nspname like 'ujobs%'}), '0', 'nothing is left of it');

done_testing();

# What an administrator allows an owner: so many running jobs, so long an attempt.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('caps', conf => "fsync = off\nujobs.max_workers = 6\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->(q{create role greedy login; create role modest login; grant create on schema public to greedy, modest;
	grant execute on function ujobs.define_job to greedy, modest});
$sql->(handler_sql('take', 'begin perform pg_advisory_lock_shared(1); return null; end'), extra_params => [ '-U', 'greedy' ]);
$sql->(handler_sql('work', 'begin return null; end'), extra_params => [ '-U', 'modest' ]);

# ---- running jobs of one owner ----

$sql->('alter system set ujobs.max_running_per_owner = 2');
$sql->('select pg_reload_conf()');
my $gate = $node->background_psql('postgres');
$gate->query_safe('select pg_advisory_lock(1)');
my @take = map { enqueue_job($node, 'take') } 1 .. 8;
wait_until_sql($node, q{select count(*) = 2 from ujobs.jobs where name = 'take' and state = 'running'});
is(run_job($node, 'work'), 'done 1', 'another owner gets an executor');
is($sql->(q{select count(*) from ujobs.jobs where name = 'take' and state = 'running'}), '2', 'while one is at the cap');
my $waiting = $sql->(q{select min(id) from ujobs.jobs where name = 'take' and state = 'ready'});
wait_until_sql_is($node, qq{select ujobs.why($waiting) ->> 'reason'}, 'waiting: owner "greedy" is at its limit of 2 running jobs (ujobs.max_running_per_owner)');
pass('why() names it');
$sql->('alter system set ujobs.max_running_per_owner = 0');
$sql->('select pg_reload_conf()');
wait_until_sql($node, q{select count(*) > 2 from ujobs.jobs where name = 'take' and state = 'running'});
pass('and without it more run');
$gate->query_safe('select pg_advisory_unlock(1)');
is(job_end($node, $_), 'done 1', 'all end') foreach @take;

# ---- how long an attempt may take ----

$sql->(q{alter system set ujobs.max_timeout = '1s'});
$sql->('select pg_reload_conf()');
wait_until_sql_is($node, 'show ujobs.max_timeout', '1s');
$sql->(handler_sql('forever', 'begin perform pg_sleep(3600); return null; end', with => q{retry => '{"attempts": 1}'}), extra_params => [ '-U', 'modest' ]);
is(run_job($node, 'forever'), 'dead 1 UJ022 UJ014', 'an attempt without a timeout ends by the cap');
my (undef, $out, $said) = $node->psql('postgres', q{select ujobs.define_job('forever', 'public.forever', '{n}', timeout => '1 hour', replace => true)},
	extra_params => [ '-U', 'modest' ]);
like($said, qr/NOTICE:  option "timeout" is cut to 1000 ms/, 'a longer timeout is cut');
is($sql->(q{select timeout from ujobs.definitions where name = 'forever'}), '00:00:01', 'and stored so');

# ---- how many queues jobs may name ----

$sql->('alter system set ujobs.max_queues = 5');
$sql->('select pg_reload_conf()');
wait_until_sql_is($node, 'show ujobs.max_queues', '5');
$sql->(q{select ujobs.set_queue('known', concurrency => 1); select ujobs.define_external_job('apart', '{n}', queue => 'own')});
my $into = sub { return sql_state($node, qq{select ujobs.enqueue('apart', '{}', queue => '$_[0]', idempotency_key => gen_random_uuid()::text)}); };
is($into->("q$_"), '', "a new queue: $_ of five") foreach 1 .. 5;
is($into->('q6'), '53400', 'one more is refused');
is($into->('q3'), '', 'one that is there is not');
is($into->('known'), '', 'nor one that set_queue made known');
is($into->('own'), '', 'nor that of the definition');

# ---- an owner that may not connect to the database ----

$sql->('create database closed');
$node->safe_psql('closed', q{create extension ujobs; grant create on schema public to modest; grant execute on function ujobs.define_job to modest});
$node->safe_psql('closed', handler_sql('shut', 'begin return null; end'), extra_params => [ '-U', 'modest' ]);
$node->safe_psql('closed', 'revoke connect on database closed from public');
my $shut = enqueue_job($node, 'shut', database => 'closed');
wait_until_sql_is($node, "select concat_ws(' ', state, attempt, last_error ->> 'sqlstate') from ujobs.jobs where id = $shut", 'suspended 0 UJ025', database => 'closed');
like($node->safe_psql('closed', "select ujobs.why($shut) ->> 'reason'"), qr/owner "modest" of job "shut" may not connect to the database/, 'why() says what is missing');
$node->safe_psql('closed', 'grant connect on database closed to modest');
is(job_end($node, $shut, database => 'closed'), 'done 1', 'it goes on when the owner may');

$gate->quit;
$node->stop('fast');
done_testing();

# The scheduler as a process: it sleeps until a task is due or changes, is
# stopped, ended and doubled, comes back after downtime, and no occurrence
# fires twice whatever happens.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('scheduler', store => 1, conf => "fsync = off\nujobs.max_workers = 4\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $scheduler = sub { return $sql->(q{select pid from ujobs.workers where kind = 'scheduler' and database = 'postgres'}); };

# What a task fired: "occurrences jobs"; they differ when one fired twice.
my $fired = sub {
	my ($task) = @_;

	return $sql->("select count(distinct idempotency_key) || ' ' || count(*) from ujobs.jobs where idempotency_key like '$task:%'");
};
my $once = sub {
	my ($task, $name) = @_;
	my ($occurrences, $jobs) = split / /, $fired->($task);

	is($jobs, $occurrences, $name);
	return;
};
# Waits until a task fired for an occurrence after this SQL instant.
my $fires_after = sub {
	my ($task, $instant) = @_;

	return wait_until_sql($node, "select last_occurrence > $instant from ujobs.tasks where name = '$task'");
};
# Time passes; nothing can announce that.
my $reach = sub { return wait_until_sql($node, "select clock_timestamp() >= $_[0]"); };
my $now = sub { return "timestamptz '" . $sql->('select clock_timestamp()') . "'"; };

$sql->(<<'SQL');
create function tick(input jsonb) returns jsonb language sql return null::jsonb;
select ujobs.define_job('tick', 'public.tick', 'k:{n}');
select ujobs.define_task('second', '* * * * * *', 'UTC', '[["tick", {"n": 1}]]');
SQL

# ---- it is told, and it is there on time ----

wait_until_sql($node, q{select count(*) >= 3 from ujobs.jobs where idempotency_key like 'second:%' and state = 'done'});
is($sql->(q{select min(j.run_at) - t.created_at <= '1 s' from ujobs.jobs j, ujobs.tasks t where j.idempotency_key like 'second:%' group by t.created_at}),
	't', 'a new task fires at its first occurrence: the scheduler is told');
is($sql->(q{select bool_and(run_at = date_trunc('second', run_at) and created_at >= run_at) from ujobs.jobs where idempotency_key like 'second:%'}),
	't', 'run_at is the occurrence, never before its time');
$sql->(q{select ujobs.pause_task('second')});
my $paused = $now->();
$reach->("$paused + '1.2 s'");
is($sql->("select count(*) from ujobs.jobs where idempotency_key like 'second:%' and run_at > $paused"), '0', 'a paused task is silent at once');
$sql->(q{select ujobs.resume_task('second')});
$fires_after->('second', $paused);
is($sql->("select count(*) from ujobs.jobs where idempotency_key like 'second:%' and run_at > $paused and run_at <= $paused + '1 s'"), '0',
	'what came due in the pause is gone');

# ---- stopped, ended, killed ----

my $pid = $scheduler->();
kill 'STOP', $pid or die;
my $stopped = $now->();
$reach->("$stopped + '4 s'");
kill 'CONT', $pid or die;
$fires_after->('second', "$stopped + '4 s'");
cmp_ok($sql->("select count(*) from ujobs.jobs where idempotency_key like 'second:%' and run_at > $stopped + '0.5 s' and run_at < $stopped + '3 s'"),
	'<=', 1, 'skip: of what came due while it stood still only the latest fired');
$sql->("select pg_terminate_backend($pid)");
$fires_after->('second', $now->());
isnt($scheduler->(), $pid, 'a scheduler that was ended is back in seconds');
$node->stop('immediate');
$node->start;
$fires_after->('second', $now->());
$once->('second', 'after all that no occurrence fired twice');

# ---- two of them ----

$sql->(q{select count(ujobs.define_task('double' || n, '* * * * * *', 'UTC', format('[["tick", {"n": %s}]]', n + 1000)::jsonb)) from generate_series(1, 100) as n});
$fires_after->('double100', $now->());
my $doubled = $now->();
my @others = map {
	IPC::Run::start([ 'psql', '-XAtq', '-d', $node->connstr('postgres') ],
		'<', \"do \$\$ declare until timestamptz = $doubled + '4 s'; begin while clock_timestamp() < until loop perform ujobs_internal.fire_due_tasks(); commit; end loop; end \$\$",
		'>', \my $out, '2>', \my $err)
} 1 .. 2;
ok($_->finish, 'another scheduler, without any lock between them') for @others;
is($sql->(q{select count(*) from (select from ujobs.jobs where idempotency_key like 'double%' group by idempotency_key having count(*) > 1) d}), '0',
	'three at once: an occurrence fires once');
cmp_ok($sql->(q{select count(*) from ujobs.jobs where idempotency_key like 'double%'}), '>=', 300, 'and they do fire');
$sql->(q{select ujobs.drop_task(name) from ujobs.tasks where name like 'double%'});

# ---- downtime ----

$sql->(q{select ujobs.stop_workers()});
wait_until_sql($node, q{select not exists (select from ujobs.workers where database = 'postgres' and pid is not null)});
$sql->(<<'SQL');
select ujobs.define_task('skip', '30 * * * *', 'Europe/Berlin', '[["tick", {"n": 2}]]');
select ujobs.define_task('once', '30 * * * *', 'Europe/Berlin', '[["tick", {"n": 3}]]', catch_up => 'run-once');
select ujobs.define_task('all', '30 * * * *', 'Europe/Berlin', '[["tick", {"n": 4}]]', catch_up => 'run-all', max_catch_up => 5);
select ujobs.define_task('future', '* * * * * *', 'UTC', '[["tick", {"n": 5}]]');
update test_store.task set watermark = date_trunc('hour', now()) - interval '1 year' where name in ('skip', 'once', 'all');
update test_store.task set watermark = now() + interval '1 hour' where name = 'future';
update test_store.task set watermark = now() - interval '80 minutes' where name = 'second';
SQL
my $restart = $now->();
$sql->(q{select ujobs.start_workers()});
wait_until_sql($node, q{select count(*) = 3 from ujobs.tasks where name in ('skip', 'once', 'all') and last_fired_at is not null});
$fires_after->('second', "$restart + '1 s'");
is($fired->('skip'), '1 1', 'a year of downtime: skip fires one');
is($sql->(q{select run_at > now() - interval '61 minutes' from ujobs.jobs where idempotency_key like 'skip:%'}), 't', 'the latest');
is($fired->('once'), '1 1', 'run-once fires one');
is($sql->(q{select run_at < now() - interval '364 days' from ujobs.jobs where idempotency_key like 'once:%'}), 't', 'the earliest');
is($fired->('all'), '5 5', 'run-all fires as many as it may');
is($sql->(q{select min(run_at) > now() - interval '301 minutes' from ujobs.jobs where idempotency_key like 'all:%'}), 't', 'the newest');
is($sql->(q{select dropped between 365 * 24 - 7 and 366 * 24 from ujobs.tasks where name = 'all'}), 't', 'the others are counted');
ok(wait_until_log($node, qr/ujobs task "all" catches up with its newest 5 occurrences; \d+ are dropped/), 'and logged');
cmp_ok($sql->("select count(*) from ujobs.jobs where idempotency_key like 'second:%' and run_at > $restart - interval '80 minutes' and run_at < $restart - interval '3 minutes'"),
	'==', 0, 'eighty minutes under a task of every second: nothing of them');
is($fired->('future'), '0 0', 'the clock was set back an hour: nothing fires until it is where it was');
$sql->(q{select ujobs.resume_task('future')});
$fires_after->('future', $restart);
pass('or until the task is resumed');
$sql->(q{select ujobs.drop_task(name) from ujobs.tasks});

# ---- a broken one among healthy ones ----

$sql->(<<'SQL');
create role leaver login;
create function what(occurrence timestamptz) returns jsonb language plpgsql as $$
begin
    insert into public.seen select session_user, backend_type from pg_stat_activity where pid = pg_backend_pid();
    return '[["tick", {"n": 6}]]';
end $$;
create table seen (who text, backend text);
grant insert on seen to leaver;
grant execute on function ujobs.define_task to leaver;
select ujobs.grant_enqueue('tick', 'leaver');
set role leaver;
select ujobs.define_task('leaver', '* * * * * *', 'UTC', enqueue_fn => 'public.what');
reset role;
select ujobs.define_task('stayer', '* * * * * *', 'UTC', '[["tick", {"n": 7}]]');
SQL
wait_until_sql($node, q{select count(*) >= 2 from ujobs.jobs where idempotency_key like 'leaver:%:k:6' and state = 'done'});
is($sql->('select distinct who, backend from seen'), 'leaver|ujobs executor', 'enqueue_fn runs in an executor of its owner');
$once->('leaver', 'once per occurrence');
$sql->('drop owned by leaver; drop role leaver');
wait_until_sql($node, q{select broken like 'UJ025:%leaver%' from ujobs.tasks where name = 'leaver'});
my $broken = $now->();
$fires_after->('stayer', "$broken + '1 s'");
pass('the owner is gone: that task alone is broken');
$sql->(q{create role leaver login; grant insert on seen to leaver; select ujobs.grant_enqueue('tick', 'leaver')});
isnt($sql->(q{select broken from ujobs.tasks where name = 'leaver'}), '', 'another role of that name gets nothing of it');
$sql->(q{select ujobs.set_task_owner('leaver', 'leaver')});
$fires_after->('leaver', $broken);
is($sql->(q{select broken is null from ujobs.tasks where name = 'leaver'}), 't', 'it goes on when an administrator gives it another owner');
$sql->(q{select ujobs.drop_task(name) from ujobs.tasks});

# ---- a dump a week later ----

$sql->(<<'SQL');
select ujobs.define_task('dumped', '0 12 * * *', 'UTC', '[["tick", {"n": 8}]]');
SQL
$sql->('create database later');
$node->command_ok([ 'sh', '-c', "pg_dump -Fc -d '" . $node->connstr('postgres') . "' | pg_restore -d '" . $node->connstr('later') . "'" ], 'dumped and restored');
wait_until_sql($node, q{select exists (select from ujobs.workers where database = 'later' and state like 'paused%')});
is($node->safe_psql('later', q{select last_fired_at is null from ujobs.tasks}), 't', 'a restored task is silent');
$node->safe_psql('later', q{update test_store.task set watermark = now() - interval '7 days'});
$node->safe_psql('later', 'select ujobs.start_workers()');
wait_until_sql($node, q{select last_fired_at is not null from ujobs.tasks}, database => 'later');
is($node->safe_psql('later', q{select count(*), min(run_at) > now() - interval '1 day' from ujobs.jobs where idempotency_key like 'dumped:%'}), '1|t',
	'until it is told to go on: then its policy decides');
$sql->('drop database later with (force)');
$sql->(q{select ujobs.drop_task('dumped')});

# ---- a copy of the database, and the extension made anew ----

$sql->(q{select ujobs.define_task('copied', '* * * * * *', 'UTC', '[["tick", {"n": 8}]]')});
$fires_after->('copied', $now->());
is(sql_state($node, 'create database copy template postgres', database => 'template1'), '', 'CREATE DATABASE ... TEMPLATE while a task of every second fires');
my $copied = $now->();
$fires_after->('copied', $copied);
is($node->safe_psql('copy', "select coalesce(last_occurrence < $copied, true) from ujobs.tasks where name = 'copied'"), 't',
	'the original goes on, the copy is silent');
$sql->('drop database copy with (force)');
$sql->('create database other; ');
$node->safe_psql('other', 'create extension ujobs');
$node->safe_psql('other', q{create function tick(input jsonb) returns jsonb language sql return null::jsonb});
for my $turn ('first', 'again')
{
	$node->safe_psql('other', q{select ujobs.define_job('tick', 'public.tick', 'k:{n}'); select ujobs.define_task('anew', '* * * * * *', 'UTC', '[["tick", {"n": 1}]]')});
	wait_until_sql($node, q{select last_fired_at is not null from ujobs.tasks}, database => 'other');
	$node->safe_psql('other', 'drop extension ujobs; create extension ujobs');
	pass("DROP EXTENSION while a task of every second fires, $turn");
}
is(sql_state($node, 'drop database other with (force)'), '', 'DROP DATABASE');
$sql->(q{select ujobs.drop_task('copied')});

# ---- ten thousand at one instant ----

$sql->(q{select ujobs.stop_workers()});
wait_until_sql($node, q{select not exists (select from ujobs.workers where database = 'postgres' and pid is not null)});
$sql->(<<'SQL');
select ujobs.pause_queue('default');
select ujobs.define_task('many', '0 0 * * *', 'UTC', '[["tick", {"n": 9}]]');
insert into test_store.task (name, cron, tz, enqueue, catch_up, max_catch_up, enabled, paused, owner, owner_name, created_at, watermark)
select name || n, cron, tz, format('[["tick", {"n": %s}]]', n + 10)::jsonb, catch_up, max_catch_up, enabled, paused, owner, owner_name, created_at, now() - interval '1 day'
  from test_store.task, generate_series(1, 10000) as n;
select ujobs.start_workers();
SQL
wait_until_sql($node, q{select count(*) = 10000 from ujobs.jobs where idempotency_key like 'many%' and state = 'ready'});
note('10000 tasks: ' . $sql->(q{select max(last_fired_at) - min(last_fired_at) from ujobs.tasks}) . ' from the first batch to the last');
is($sql->(q{select count(distinct last_fired_at) between 10 and 12 from ujobs.tasks}), 't', '10000 tasks due at one instant: bounded batches');
is($sql->(q{select max(last_fired_at) - min(last_fired_at) < interval '5 s' from ujobs.tasks}), 't', 'in a moment, also on a busy machine');
is($sql->(q{select count(distinct idempotency_key) from ujobs.jobs where idempotency_key like 'many%'}), '10000', 'each once');
is($sql->(q{select count(*) from ujobs.check() where rule not like 'grant%'}), '0', 'the store is whole');

done_testing();

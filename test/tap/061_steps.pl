# Durable jobs in real workers: where a step may stand, what the handler may
# do between steps, timeouts, sleeps, and large numbers of all of it.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);
use UjobsTest;

my $node = ujobs_cluster('steps', conf => "ujobs.max_workers = 3\nujobs.worker_idle_timeout = 1h\nfsync = off\n");
my $once = q{retry => '{"attempts": 1}'};
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $definitions = '';
my $define = sub { my ($name, $body, %options) = @_; $definitions .= handler_sql($name, $body, procedure => 1, with => $once, %options); return; };
my $define_all = sub { $sql->($definitions); $definitions = ''; return; };

$sql->(<<'SQL');
create table trail (n int generated always as identity, note text);
create table source (n int primary key);
insert into source select generate_series(1, 5);
create table deferred_check (a int unique deferrable initially deferred);
create sequence entered;
create function note(what text) returns text language sql as 'insert into public.trail (note) values (what) returning note';
create function swallow() returns text language plpgsql as
	$$ begin perform pg_sleep(3600); return null; exception when query_canceled then return 'swallowed'; end $$;
create function in_function() returns void language plpgsql as $$ begin call ujobs.step_run('s', 'select note(''never'')'); end $$;
create function valued() returns int language plpgsql as $$ begin call ujobs.step_run('s', 'select note(''never'')'); return 1; end $$;
create procedure plain() language plpgsql as $$ begin call ujobs.step_run('s', 'select note(''plain'')'); end $$;
create procedure definer() security definer language plpgsql as $$ begin call ujobs.step_run('s', 'select note(''never'')'); end $$;
create procedure setter() set work_mem = '1MB' language plpgsql as $$ begin call ujobs.step_run('s', 'select note(''never'')'); end $$;
create procedure by_sql() language sql as $$ call ujobs.step_run('s', 'select note(''never'')') $$;
SQL
# "name status attempts, ..." of a job's steps.
my $steps_of = q{(select coalesce(string_agg(concat_ws(' ', s ->> 'name', s ->> 'status', s ->> 'attempts'), ', '), '')
	from jsonb_array_elements(ujobs.inspect_job(j.id) -> 'steps') s)};
my $steps = sub {
	my ($job) = @_;

	return $sql->("select $steps_of from ujobs.jobs j where j.name = '$job' order by j.id desc limit 1");
};
# Runs these jobs; a hash of how each ended: end (as job_end), message, detail, hint, steps.
my $outcomes = sub {
	my $names = join(',', @_);
	my %outcome;

	$sql->("select count(*) from unnest('{$names}'::text[]) n, ujobs.enqueue(n, '{}', idempotency_key => gen_random_uuid()::text)");
	wait_until_sql($node, "select count(*) = 0 from ujobs.jobs where name = any ('{$names}') and finished_at is null");
	foreach (split /\n/, $sql->(<<"SQL"))
select j.name, concat_ws(' ', state, attempt, last_error ->> 'sqlstate', last_error -> 'cause' ->> 'sqlstate'),
	e.e ->> 'message', e.e ->> 'detail', e.e ->> 'hint', $steps_of
  from ujobs.jobs j, coalesce(last_error -> 'cause', last_error) as e where j.name = any ('{$names}')
SQL
	{
		my ($name, %facts);

		($name, @facts{qw(end message detail hint steps)}) = split /\|/, $_, -1;
		$outcome{$name} = \%facts;
	}
	return %outcome;
};
my $trail = sub { return $sql->(q{select coalesce(string_agg(note, ' ' order by n), '') from trail}); };
# ---- many sleepers; they wake in their order while all that follows is tried ----

my $sleepers = 10000;
my $alarm = int(time) + 30;
$sql->('create table woke (n int generated always as identity, due int); create sequence went_to_sleep');
$define->('sleeper', qq{begin
	if current_timestamp < to_timestamp($alarm) then perform nextval('went_to_sleep'); end if;
	call ujobs.step_sleep_until('nap', to_timestamp($alarm) + (input ->> 'due')::int * interval '0.1 ms');
	insert into woke (due) values ((input ->> 'due')::int);
	end}, with => q{queue => 'sleepers', concurrency => 1, retention => '0'});
$define_all->();
# In an order that has nothing to do with the one in which they wake.
$sql->(qq{select count(*) from ujobs.enqueue_many('sleeper', array(
	select jsonb_build_object('n', n, 'due', (n * 7919) % $sleepers) from generate_series(0, $sleepers - 1) n))});

# ---- where a step cannot stand ----

my %refused = (
	function => [ q{begin perform in_function(); end}, qr/inside a function/ ],
	assigned => [ q{declare n int; begin n := valued(); end}, qr/inside a function/ ],
	definer => [ q{begin call definer(); end}, qr/inside a function, or in a procedure with SECURITY DEFINER/ ],
	setter => [ q{begin call setter(); end}, qr/SECURITY DEFINER or SET/ ],
	by_sql => [ q{begin call by_sql(); end}, qr/language other than/ ],
	execute => [ q{begin execute 'call ujobs.step_run(''s'', ''select note(''''never'''')'')'; end}, qr/through EXECUTE/ ],
	exception => [ q{begin begin call ujobs.step_run('s', 'select note(''never'')'); exception when others then null; end; end}, qr/EXCEPTION block/ ],
	exception_around => [ q{begin begin call plain(); exception when others then null; end; end}, qr/EXCEPTION block/ ],
	sleep_caught => [ q{begin begin call ujobs.step_sleep('1 hour'); exception when query_canceled then null; end; end}, qr/EXCEPTION block/ ],
	step_in_step => [ q{begin call ujobs.step_run('outer', 'call ujobs.step_run(''s'', ''select 1'')'); end}, qr/command of another step/ ],
	begin_in_step => [ q{begin call ujobs.step_run('outer', 'select ujobs.step_begin(''s'')'); end}, qr/command of another step/ ],
	end_in_exception => [ q{begin if ujobs.step_begin('s') then begin perform note('never'); call ujobs.step_end(); exception when others then null; end; end if; end}, qr/EXCEPTION block/ ],
	end_by_execute => [ q{begin if ujobs.step_begin('s') then perform note('never'); execute 'call ujobs.step_end()'; end if; end}, qr/through EXECUTE/ ],
	caught_and_on => [ q{begin begin perform in_function(); exception when others then null; end; call ujobs.step_run('t', 'select note(''never'')'); end}, qr/EXCEPTION block/ ]);
$define->("r_$_", $refused{$_}[0]) foreach sort keys %refused;
$define_all->();
$sql->(handler_sql('r_atomic', q{begin call ujobs.step_run('s', 'select note(''never'')'); return null; end}, with => $once));
$sql->(qq{select ujobs.define_command('r_command', 'call plain()', '{n}', $once)});
$refused{atomic} = $refused{command} = [ undef, qr/function or a command/ ];
my %outcome = $outcomes->(map { "r_$_" } keys %refused);
foreach my $name (sort keys %refused)
{
	is($outcome{"r_$name"}{end}, 'dead 1 UJ016', "a step is refused: $name");
	like($outcome{"r_$name"}{detail}, $refused{$name}[1], 'which says why');
}
is($trail->(), '', 'none of them ran');
is(sql_state($node, qq{select ujobs.define_job('d', '$_', '{n}')}), 'UJ016', "a handler is refused: $_")
  foreach map { $sql->("create procedure d_$_->[0](input jsonb) $_->[1]"); "d_$_->[0]" }
  ([ 'definer', q{security definer language plpgsql as 'begin end'} ], [ 'set', q{set work_mem = '1MB' language plpgsql as 'begin end'} ],
	[ 'sql', q{language sql as 'select 1'} ]);

# ---- blocks ----

my %unbalanced = (
	commit => [ q{begin if ujobs.step_begin('s') then perform note('never'); commit; call ujobs.step_end(); end if; end}, qr/was begun and not ended/ ],
	rollback => [ q{begin if ujobs.step_begin('s') then perform note('never'); rollback; call ujobs.step_end(); end if; end}, qr/a ROLLBACK ended the block/ ],
	rollback_and_end => [ q{begin if ujobs.step_begin('s') then rollback; end if; end}, qr/a ROLLBACK ended the block/ ],
	end => [ q{begin if ujobs.step_begin('s') then perform note('never'); end if; end}, qr/was begun and not ended/ ],
	step => [ q{begin if ujobs.step_begin('s') then call ujobs.step_run('t', 'select note(''never'')'); end if; end}, qr/was begun and not ended/ ],
	sleeping => [ q{begin if ujobs.step_begin('s') then call ujobs.step_sleep('1 hour'); end if; end}, qr/was begun and not ended/ ],
	no_begin => [ q{begin call ujobs.step_end(); end}, qr/without a step that was begun/ ]);
$define->("u_$_", $unbalanced{$_}[0]) foreach sort keys %unbalanced;
$define->('u_twice', q{begin call ujobs.step_run('s', 'select 1'); call ujobs.step_run('s', 'select note(''never'')'); end});
$define_all->();
%outcome = $outcomes->('u_twice', map { "u_$_" } keys %unbalanced);
foreach my $name (sort keys %unbalanced)
{
	is($outcome{"u_$name"}{end}, 'dead 1 UJ026', "unbalanced: $name");
	like($outcome{"u_$name"}{message}, $unbalanced{$name}[1], 'which says how');
}
is($outcome{u_twice}{end}, 'dead 1 UJ012', 'a name is used once');
is($outcome{u_twice}{steps}, 's completed 1', 'its first use stands');
is($trail->(), '', 'nothing of them stands');

# ---- between steps ----

$define->('between', q{begin
	perform note('a'); commit;
	perform note('never'); rollback;
	call ujobs.step_run('one', 'select note(''one'')');
	perform note('with two');
	call ujobs.step_run('two', 'select note(''two'')');
	perform note('never'); rollback;
	if ujobs.step_begin('three') then
		begin perform note('never'), 1 / 0; exception when division_by_zero then perform note('caught'); end;
		call ujobs.step_end('{"ok": true}');
	end if;
	perform note('with the end');
	end});
$define->('loops', q{declare r record; result jsonb; begin
	for r in select n from source order by n loop call ujobs.step_run('select ' || r.n, 'select note($1 #>> ''{}'')', to_jsonb(r.n)); end loop;
	for r in select n from source where n < 3 order by n for update loop call ujobs.step_run('update ' || r.n, 'select note(''u'' || ($1 #>> ''{}''))', to_jsonb(r.n)); end loop;
	call plain();
	end});
$define->('returning', q{declare r record; begin
	for r in update source set n = n returning n loop call ujobs.step_run('s' || r.n, 'select note(''never'')'); end loop;
	end});
$define->('deferred', q{begin
	call ujobs.step_run('good', 'insert into deferred_check values (1)');
	call ujobs.step_run('bad', 'insert into deferred_check values (1)');
	end}, with => q{retry => '{"attempts": 2, "delay": 0}'});
$define->('deferred_block', q{begin
	if ujobs.step_begin('bad') then insert into deferred_check values (2), (2); call ujobs.step_end(); end if;
	end});
$define->('read_only', q{begin
	set transaction read only;
	call ujobs.step_run('one', 'select current_setting(''transaction_read_only'')');
	commit; set transaction isolation level serializable;
	call ujobs.step_run('two', 'select current_setting(''transaction_isolation'')');
	end});
$define_all->();
is(run_job($node, 'between'), 'done 1', 'a handler that commits and rolls back between its steps');
is($trail->(), 'a one with two two caught with the end', 'which commits what came before, or undoes it');
$sql->('truncate trail');
is(run_job($node, 'loops'), 'done 1', 'loops over cursors with steps inside');
is($trail->(), '1 2 3 4 5 u1 u2 plain', 'one step for each row');
$sql->('truncate trail');
is(run_job($node, 'returning'), 'dead 1 UJ022 55000', 'a RETURNING loop is the error of the server');
is(run_job($node, 'deferred'), 'dead 2 UJ022 23505', q{what is violated at a step's commit fails the step});
is($steps->('deferred'), 'good completed 1, bad failed 2', 'that one alone');
is(run_job($node, 'deferred_block'), 'dead 1 UJ022 23505', 'or the block');
is($steps->('deferred_block'), 'bad failed 1', 'which is not remembered');
is($sql->('select count(*) from deferred_check'), '1', 'and leaves nothing');
is(run_job($node, 'read_only'), 'done 1', 'in a transaction of another kind');
is($steps->('read_only'), 'one completed 1, two completed 1', 'steps are remembered too');
is($trail->(), '', 'no step ran that should not');

# ---- timeouts ----

my $step_slow = qq{step_timeout => '200 ms', $once};
my $job_slow = qq{timeout => '200 ms', $once};
$define->('t_step', q{begin call ujobs.step_run('a', 'select 1'); call ujobs.step_run('b', 'select pg_sleep(3600)'); end}, with => $step_slow);
$define->('t_step_caught', q{begin call ujobs.step_run('b', 'select swallow()'); call ujobs.step_run('c', 'select note(''never'')'); end}, with => $step_slow);
$define->('t_block_caught', q{begin if ujobs.step_begin('b') then
	begin perform pg_sleep(3600); exception when query_canceled then null; end; call ujobs.step_end(); end if; end}, with => $step_slow);
$define->('t_block_end', q{begin if ujobs.step_begin('b') then
	begin perform pg_sleep(3600); exception when query_canceled then null; end; end if; end}, with => $step_slow);
$define->('t_not_between', q{begin call ujobs.step_run('b', 'select 1'); perform pg_sleep(0.5); if ujobs.step_begin('c') then call ujobs.step_end(); end if;
	perform pg_sleep(0.5); end}, with => $step_slow);
$define->('t_job', q{begin call ujobs.step_run('a', 'select 1'); perform pg_sleep(3600); end}, with => $job_slow);
$define->('t_job_in_step', q{begin call ujobs.step_run('b', 'select pg_sleep(3600)'); end}, with => $job_slow);
$define->('t_job_caught', q{begin begin perform pg_sleep(3600); exception when query_canceled then null; end;
	call ujobs.step_run('b', 'select note(''never'')'); end}, with => $job_slow);
$define->('t_job_caught_end', q{begin begin perform pg_sleep(3600); exception when query_canceled then null; end; perform note('never'); end}, with => $job_slow);
$define->('t_many', q{begin for i in 1 .. 1000000 loop call ujobs.step_run('s' || i, 'select 1'); end loop; end}, with => $job_slow);
$define_all->();
%outcome = $outcomes->(qw(t_step t_step_caught t_block_caught t_block_end t_job t_job_in_step t_job_caught t_job_caught_end t_many t_not_between));
foreach my $case ([ t_step => 'a completed 1, b failed 1' ], [ t_step_caught => 'b failed 1' ], [ t_block_caught => 'b failed 1' ],
	[ t_block_end => 'b failed 1' ], [ t_job => 'a completed 1' ], [ t_job_in_step => 'b failed 1' ], [ t_job_caught => '' ], [ t_job_caught_end => '' ])
{
	my ($name, $expected) = @$case;
	my $which = $name =~ /^t_job/ ? 'timeout' : 'step_timeout';

	is($outcome{$name}{end}, 'dead 1 UJ022 UJ014', "a timeout: $name");
	like($outcome{$name}{hint}, qr/Raise the definition's $which,/, "of $which");
	is($outcome{$name}{steps}, $expected, 'and its steps');
}
is($outcome{t_many}{end}, 'dead 1 UJ022 UJ014', 'or of a job of many short steps');
is($outcome{t_not_between}{end}, 'done 1', 'step_timeout is no limit for what stands between steps');
is($trail->(), '', 'nothing of what was too late stands');

# ---- results and settings ----

$sql->(q{create schema apart; create table apart.things (a int); create table only_here (a text)});
$sql->(<<"SQL");
create procedure public.result(input jsonb, inout result jsonb) language plpgsql as
	\$\$ begin call ujobs.step_run('a', 'select 41'); result := to_jsonb((ujobs.step_result('a'))::int + 1); end \$\$;
select ujobs.define_job('result', 'public.result', '{n}', $once);
SQL
$define->('large', q{declare r jsonb; begin
	call ujobs.step_run('large', 'select jsonb_build_array(repeat(md5(''x''), 655360))', null, r);
	if length(r ->> 0) <> 20971520 or ujobs.step_result('large') <> r then raise 'not the same'; end if;
	call ujobs.step_sleep('10 ms');
	call ujobs.step_run('large', 'select 1', null, r);
	if ujobs.step_result('large') <> r or r ->> 0 <> repeat(md5('x'), 655360) then raise 'not the same later'; end if;
	end});
$sql->(q{create function seen() returns text language sql as $$ select current_setting('ujobs.tenant_id') || ' ' || current_user || ' ' || (ujobs.current_job() ->> 'tenantId') $$});
$define->('sees', q{begin
	rollback;
	perform note(seen());
	call ujobs.step_run('a', 'select note(seen())');
	rollback;
	perform note(seen());
	commit;
	perform note(seen());
	end}, with => "tenant => '{org}', $once");
$sql->(q{create role acting; grant acting to postgres; grant insert, select on trail to acting; grant usage on sequence trail_n_seq to acting});
$define->('sets', q{begin
	set search_path = apart, public;
	set local work_mem = '77kB';
	create temp table mine (a int) on commit preserve rows;
	call ujobs.step_run('a', 'insert into things values (1)');
	insert into mine values (7);
	call ujobs.step_run('b', 'insert into things select a from mine');
	set role acting;
	perform public.note(current_setting('work_mem') || ' ' || current_setting('search_path') || ' ' || (select string_agg(a::text, ',' order by a) from things));
	call ujobs.step_run('c', 'select public.note(current_user)');
	prepare left_behind as select 1;
	perform pg_advisory_lock(99);
	end});
$sql->(q{grant usage on schema apart to acting; grant select on apart.things to acting});
$define->('after', q{begin
	perform note(concat_ws(' ', current_setting('search_path'), current_user, current_setting('work_mem'), to_regclass('pg_temp.mine') is null,
		(select count(*) from pg_prepared_statements), (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()),
		'<' || current_setting('ujobs.tenant_id', true) || '>', '<' || current_setting('ujobs.traceparent', true) || '>'));
	end}, with => "concurrency => 1, $once");
$define_all->();
is(job_result($node, 'result'), '42', 'a procedure gives back its INOUT argument');
is(run_job($node, 'large', look => end_sql(':id')), 'dead 1 UJ012', 'a large result is the same at once and after a sleep; a name is used once all the same');
is($sql->(q{select length(output ->> 0), attempts from ujobs.steps where name = 'large' and job_id = (select max(id) from ujobs.jobs where name = 'large')}),
	'20971520|1', 'it was computed once');
is(run_job($node, 'sees', input => '{"org": "acme"}'), 'done 1', 'a job of a tenant');
is($trail->(), join(' ', ('acme postgres acme') x 4), 'sees it in every transaction');
$sql->('truncate trail');
is(run_job($node, 'sets'), 'done 1', 'a handler with settings');
is($trail->(), q{4MB apart, public 1,7 acting}, 'which hold in later steps, and SET LOCAL until the next');
$sql->('truncate trail');
# In all executors at once.
$sql->(q{select count(*) from ujobs.enqueue_many('after', array(select jsonb_build_object('n', n) from generate_series(1, 20) n))});
wait_until_sql($node, q{select count(*) = 20 from ujobs.jobs where name = 'after' and state = 'done'});
is($sql->(q{select distinct note from trail}), q{"$user", public postgres 4MB t 0 0 <> <>}, 'and nothing of it is left for other jobs');
$sql->('truncate trail');

# ---- sleeps ----

$define->('naps', q{begin
	perform nextval('entered');
	call ujobs.step_run('before', 'select note(''before'')');
	call ujobs.step_sleep((input ->> 'nap')::interval);
	call ujobs.step_run('after', 'select note(''after'')');
	end}, with => qq{timeout => '1 s', concurrency => 1, queue => 'naps', $once});
$define_all->();
my $id = enqueue_job($node, 'naps', input => '{"nap": "4 s"}');
wait_until_sql($node, "select state = 'suspended' from ujobs.jobs where id = $id");
is($sql->("select count(*) from ujobs.workers where job_id = $id"), '0', 'a sleeping job has no process');
is(run_job($node, 'naps', input => '{"nap": "0"}'), 'done 1', 'and no unit of a limit');
is($sql->("select state from ujobs.jobs where id = $id"), 'suspended', 'while it still sleeps');
is(job_end($node, $id), 'done 1', 'it sleeps longer than its timeout');
is($trail->(), 'before before after after', 'and goes on where it was');

# ---- many steps, linear ----

$define->('many', q{begin
	for i in 1 .. 10000 loop call ujobs.step_run('step ' || i, 'select $1', to_jsonb(i)); end loop;
	call ujobs.step_sleep('1 ms');
	end});
$define_all->();
$sql->(q{select pg_stat_reset_single_table_counters('ujobs_internal.job_step'::regclass)});
is(run_job($node, 'many'), 'done 1', 'a job of 10 000 steps');
# Each is written once, and read once by each attempt and at the end; once for every step would be millions.
wait_until_sql($node, q{select n_tup_ins between 10001 and 20000 and n_tup_del >= 10001 and idx_tup_fetch between 30000 and 500000
	from pg_stat_user_tables where relid = 'ujobs_internal.job_step'::regclass});
pass('reads its rows a few times, not once for every step');
is($sql->(q{select count(*), max(seq), max(attempts), bool_and((output #>> '{}')::int = seq or seq = 10001) from ujobs.steps where job_id = (select max(id) from ujobs.jobs where name = 'many')}),
	'10001|10001|1|t', 'all are remembered, in order');

# ---- the server is away when a job should wake ----

$sql->('truncate trail; select setval(\'entered\', 1)');
$id = enqueue_job($node, 'naps', input => '{"nap": "3 s"}');
wait_until_sql($node, "select state = 'suspended' from ujobs.jobs where id = $id");
my $wake = $sql->("select extract(epoch from wake_at) from ujobs.steps where job_id = $id and wake_at is not null");
$node->stop('fast');
1 until time >= $wake;			# the server is down, so no query can tell
$node->start;
wait_until_sql($node, "select state = 'done' and attempt = 1 from ujobs.jobs where id = $id");
pass('a sleep that ended while the server was down is over when it is back');
is($sql->(q{select last_value from entered}), '3', 'the handler was entered twice');
is($trail->(), 'before after', 'and each step ran once');

# ---- the many sleepers ----

wait_until_sql($node, qq{select count(*) = $sleepers from woke}, patience => 120);
is($sql->('select last_value from went_to_sleep'), $sleepers, 'all were asleep in time');
is($sql->(q{select count(*) from (select due, lag(due) over (order by n) as previous from woke) w where due < previous}), '0', "$sleepers sleepers woke in their order");
is($sql->(q{select count(distinct due) from woke}), $sleepers, 'each of them once');
is($sql->(q{select count(*) from ujobs.check()}), '0', 'the store is in order');
unlike(slurp_file($node->logfile), qr/(PANIC|TRAP|WARNING):/, 'nothing strange in the log');
$node->stop;
done_testing();

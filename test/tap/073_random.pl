# Many sessions do everything at once, processes die, and afterwards the books are right.
#
# Limits are judged by the handlers themselves: each takes one of as many
# advisory locks as its limit allows, and there is always a free one, or too
# many ran at the same time.
use strict;
use warnings;

use IPC::Run qw(start finish);
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('random', conf => "fsync = off\nujobs.max_workers = 6\nujobs.poll_interval = 500ms\nrestart_after_crash = on\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

$sql->(<<'SQL');
create table effect (job bigint primary key, name text);
create function seat(kind int, what text, seats int) returns void language plpgsql as $$
begin
    for n in 1 .. seats loop
        if pg_try_advisory_xact_lock(kind, hashtext(what || n)) then
            return;
        end if;
    end loop;
    raise exception 'more than % run for %', seats, what using errcode = 'LIMIT';
end $$;
-- Queue "narrow": two for each tenant.  Definition "single": one at a time.
create function work(input jsonb) returns jsonb language plpgsql as $$
begin
    if ujobs.current_job() ->> 'name' = 'narrow' then
        perform seat(1, ujobs.current_job() ->> 'tenantId', 2);
    elsif ujobs.current_job() ->> 'name' = 'single' then
        perform seat(2, 'single', 1);
    end if;
    insert into effect values ((ujobs.current_job() ->> 'id')::bigint, ujobs.current_job() ->> 'name');
    if ujobs.current_job() ->> 'name' = 'narrow' then
        perform pg_sleep(random() * 0.02);
    end if;
    if random() < 0.1 then
        raise 'by chance';
    end if;
    return null;
end $$;
create procedure steps(input jsonb) language plpgsql as $$
begin
    call ujobs.step_run('effect', 'insert into effect values ((ujobs.current_job() ->> ''id'')::bigint, ''steps'')');
    call ujobs.step_sleep('20 ms');
    call ujobs.step_wait_for_event('event', 'random', input ->> 'n', '200 ms');
end $$;
select ujobs.define_job('narrow', 'work', '{n}', tenant => '{tenant}', queue => 'narrow', retry => '{"attempts": 5, "delay": "10ms"}');
select ujobs.define_job('single', 'work', '{n}', concurrency => 1, batch => 8, retry => '{"attempts": 5, "delay": "10ms"}');
select ujobs.define_job('steps', 'steps', '{n}', queue => 'steps', retry => '{"attempts": 5, "delay": "10ms"}');
select ujobs.define_external_job('outside', '{n}', queue => 'outside', retry => '{"attempts": 5, "delay": "10ms"}', concurrency => 3);
select ujobs.set_queue('narrow', per_tenant => 2);
SQL

# One transaction of a session each; what is refused in passing is no fault.
my %act = (
	enqueue => [ 12, q{select count(*) from (select (array['narrow', 'single', 'steps', 'outside'])[1 + floor(random() * 4)] as name) as n,
		lateral ujobs.enqueue(n.name, jsonb_build_object('n', floor(random() * 1e6)::int, 'tenant', 'tenant ' || floor(random() * 2)), delay => random() * interval '50 ms');} ],
	rollback => [ 1, q{begin; select count(*) from ujobs.enqueue('narrow', jsonb_build_object('n', floor(random() * 1e6)::int, 'tenant', 'x')); rollback;} ],
	publish => [ 2, q{select ujobs.publish_event('random', '{}', floor(random() * 1e6)::int::text);} ],
	cancel => [ 2, q{do $$ begin perform ujobs.cancel(id) from ujobs.jobs where finished_at is null order by random() limit 1; exception when others then null; end $$;} ],
	# One at a time: a done job can be retried too, and the letter that another session just retried may be done by now.
	retry => [ 1, q{do $$ begin perform pg_advisory_xact_lock(7); perform ujobs.retry(id) from ujobs.dead_letters limit 1; exception when others then null; end $$;} ],
	limit => [ 1, q{do $$ begin perform ujobs.set_queue('steps', concurrency => nullif(floor(random() * 4)::int, 0)); exception when others then null; end $$;} ],
	pause => [ 1, q{do $$ begin perform ujobs.pause_queue('single'); end $$; do $$ begin perform ujobs.resume_queue('single'); end $$;} ],
	claim => [ 4, <<'SQL' ]);
set client_min_messages = warning; create temp table if not exists mine (id bigint, lease bigint);
do $$ begin insert into mine select id, lease from ujobs.claim('random', '{outside}', 3, '1 second'); exception when others then null; end $$;
do $$ declare m record; begin
    for m in delete from mine returning * loop
        case floor(random() * 4)
            when 0 then perform ujobs.nack(m.id, m.lease, 'by chance', '0');
            when 1 then perform ujobs.heartbeat(m.id, m.lease, '100 ms');
            else perform ujobs.ack(m.id, m.lease);
        end case;
    end loop;
exception when others then null; end $$;
SQL
my $directory = PostgreSQL::Test::Utils::tempdir;
foreach my $name (keys %act)
{
	append_to_file("$directory/$name.sql", $act{$name}[1] . "\n");
}
my @command = ('pgbench', '-n', '-c', '6', '-j', '2', '-R', '500', '-T', $ENV{UJOBS_TEST_RANDOM_SECONDS} // 6, '-h', $node->host, '-p', $node->port, '-U', 'postgres',
	(map { ('-f', "$directory/$_.sql\@$act{$_}[0]") } sort keys %act), 'postgres');

# Runs the load and does something to the server once it is under way.
my $under_load = sub {
	my ($what, $do) = @_;
	my ($out, $err) = ('', '');
	my $before = $sql->('select count(*) from effect');
	my $load = start(\@command, '>', \$out, '2>', \$err);

	wait_until_sql($node, "select count(*) > $before + 100 from effect");
	$do->();
	finish($load);
	note($err);
	wait_until_engine($node);
	pass($what);
	return;
};
my $signal = sub {
	my ($kind, $name) = @_;

	return sub { kill $name, (engine_pids($node, $kind))[0]; };
};

$under_load->('undisturbed', sub { });
$under_load->('an executor is terminated', $signal->('ujobs executor', 'TERM'));
$under_load->('the dispatcher is terminated', $signal->('ujobs dispatcher', 'TERM'));
$under_load->('an executor is killed: the server starts anew', $signal->('ujobs executor', 'KILL'));

# ---- everything comes to its end ----

$sql->(q{select ujobs.set_queue('steps'), ujobs.resume_queue('single')});
wait_until_sql($node, <<'SQL');
with ended as (select ujobs.ack(c.id, c.lease) from ujobs.claim('random', '{outside}', 100) as c)
select (select count(*) from ended) = 0 and not exists (select from ujobs.jobs where finished_at is null)
SQL
is($sql->('select coalesce(sum(ready + delayed + running + suspended), 0) from ujobs.stats()'), '0', 'no counter says that something is left');
is($sql->(q{select count(*) from ujobs.jobs where last_error::text like '%LIMIT%'}), '0', 'no limit was ever exceeded');
is($sql->(q{select count(*) from ujobs.jobs j where state = 'done' and name in ('narrow', 'single', 'steps') and not exists (select from effect where job = j.id)}), '0',
	'what is done has its effect');
is($sql->(q{select string_agg(concat_ws(' ', j.id, j.name, j.state, j.attempt, j.last_error ->> 'message'), ', ') from effect e join ujobs.jobs j on j.id = e.job
	where j.name in ('narrow', 'single') and j.state <> 'done'}), '', 'and what is not has none');
cmp_ok($sql->(q{select count(*) from ujobs.jobs where name = 'outside' and state = 'done'}), '>', 0, 'programs outside did their part');
is($sql->(q{select count(*) from ujobs.jobs where attempt > max_attempts}), '0', 'nobody had more attempts than it may');
is($sql->(q{select coalesce(string_agg(rule || ': ' || detail, '; '), '') from ujobs.check()}), '', 'the store is sound');
$node->stop;
done_testing();

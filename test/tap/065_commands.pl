# Commands on a schedule: what must stand at top level, as which role, with a history.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('commands', conf => "fsync = off\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $done = sub {
	my ($job, $more) = @_;

	return wait_until_sql($node, "select count(*) >= 2 from ujobs.jobs where name = '$job' and state = 'done'" . ($more // ''));
};

$sql->(<<'SQL');
create role keeper login;
create schema shop authorization keeper;
grant execute on function ujobs.define_command, ujobs.define_task to keeper;
set role keeper;
create table shop.sale (day date, amount int);
insert into shop.sale select current_date, n from generate_series(1, 100) as n;
create materialized view shop.daily as select day, sum(amount) as amount from shop.sale group by day;
create unique index on shop.daily (day);
create table shop.log (who text, role text, tx xid8);
create procedure shop.in_parts() language plpgsql as $$
begin
    for part in 1 .. 3 loop
        insert into shop.log values (session_user, current_user, pg_current_xact_id());
        commit;
    end loop;
end $$;
select ujobs.define_command('vacuum_sales', 'vacuum (analyze) shop.sale', 'vacuum');
select ujobs.define_command('refresh_daily', 'refresh materialized view concurrently shop.daily', 'refresh');
select ujobs.define_command('parts', 'call shop.in_parts()', 'parts');
select ujobs.define_command('wrong', 'select 1 / 0', 'wrong', retry => '{"attempts": 2, "backoff": "fixed", "delay": 10}');
insert into shop.sale values (current_date, 1000);
select ujobs.define_task('upkeep', '* * * * * *', 'UTC', '[["vacuum_sales"], ["refresh_daily"], ["parts"]]');
select ujobs.define_task('failing', '* * * * * *', 'UTC', '[["wrong"]]');
SQL
$done->($_) for 'vacuum_sales', 'refresh_daily', 'parts';
wait_until_sql($node, q{select vacuum_count > 0 and analyze_count > 0 from pg_stat_user_tables where relname = 'sale'});
pass('VACUUM on a schedule');
is($sql->('select amount from shop.daily'), '6050', 'REFRESH MATERIALIZED VIEW CONCURRENTLY');
is($sql->('select distinct who, role from shop.log'), 'keeper|keeper', 'CALL, as the role that defined it');
is($sql->('select count(distinct tx) = count(*) from shop.log'), 't', 'whose COMMITs are its own');
is($sql->(q{select bool_and(idempotency_key = 'upkeep:' || extract(epoch from run_at)::bigint * 1000 || ':vacuum' and started_at >= run_at and finished_at >= started_at)
	from ujobs.jobs where name = 'vacuum_sales' and state = 'done'}), 't', 'each run stands in the history, with its occurrence');
wait_until_sql($node, q{select count(*) >= 2 from ujobs.dead_letters where name = 'wrong'});
is($sql->(q{select distinct attempt, last_error ->> 'sqlstate', last_error -> 'cause' ->> 'sqlstate' from ujobs.dead_letters where name = 'wrong'}), '2|UJ022|22012',
	'and each that failed, with its error and after its retries');
is($sql->(q{select count(*) from ujobs.tasks where broken is not null}), '0', 'which is no fault of the task');

done_testing();

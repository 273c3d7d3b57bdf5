# Draining on a server that has not preloaded the library and has no engine, and
# what a drain means to an engine that serves.
use strict;
use warnings;

use FindBin;
use lib $FindBin::Bin;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $schema = handler_sql('plain', 'begin return input; end')
  . handler_sql('nested', q{begin perform ujobs.drain(); return 'true'; end}, with => q{retry => '{"attempts": 1}'});
my $drain = q{select string_agg(name || ' ' || outcome, ', ') from ujobs.drain()};

# ---- without preload ----

my $late = ujobs_cluster('drain_late', preload => 0);
$late->safe_psql('postgres', $schema);
is($late->safe_psql('postgres', "begin; select deduped from ujobs.enqueue('plain', '{\"n\": 1}'); $drain; rollback;"),
	"f\nplain done", 'a transaction tries its own job');
is($late->safe_psql('postgres', $drain), '', 'and its rollback leaves nothing');
enqueue_job($late, 'plain');
is($late->safe_psql('postgres', $drain), 'plain done', "another session's job, as no engine serves");
is($late->safe_psql('postgres', "select string_agg(state, ' ') from ujobs.jobs"), 'done', 'is done for good');
is(scalar engine_pids($late, 'ujobs'), 0, 'and no process was started for it');
is($late->safe_psql('postgres', "select count(*) from pg_locks where locktype = 'advisory'"), 0, 'nothing is left');
$late->stop;

# ---- while an engine serves ----

my $node = ujobs_cluster('drain');
$node->safe_psql('postgres', $schema);
is(run_job($node, 'nested'), 'dead 1 UJ022 55000', 'a handler cannot drain');

# What the transaction drained is no longer there for the engine, which is told of it at commit.
my $ids = $node->safe_psql('postgres', <<"SQL");
begin;
select id from ujobs.enqueue('plain', '{"n": 1}');
$drain;
commit;
SQL
my ($id, $outcome) = split /\n/, $ids;
is($outcome, 'plain done', 'drained before the commit');
is(job_end($node, $id), 'done 1', 'and done once it has committed');
is(run_job($node, 'plain'), 'done 1', 'the engine goes on');

# A retry that a drain leaves behind is the engine's at commit.
$node->safe_psql('postgres', handler_sql('second', q{begin
	if ujobs.current_job() ->> 'attempt' = '1' then raise exception 'not yet'; end if;
	return 'true'; end}, with => q{retry => '{"delay": "10 ms"}'}));
$ids = $node->safe_psql('postgres', <<"SQL");
begin;
select id from ujobs.enqueue('second', '{"n": 1}');
select outcome from ujobs.drain(max_jobs => 1);
commit;
SQL
($id, $outcome) = split /\n/, $ids;
is($outcome, 'retry', 'the first attempt was made by a drain');
is(job_end($node, $id), 'done 2', 'the second one by the engine');
$node->stop;
done_testing();

# What a role makes is evaluated in processes that serve all roles: it can hold up none of them.
use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('bounds', conf => "fsync = off\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

# Forty references, each of which leads to the next one twice.
my $boom = q{(select jsonb_build_object('$ref', '#/$defs/a0', '$defs', jsonb_object_agg('a' || i,
	case when i < 40 then jsonb_build_object('anyOf', jsonb_build_array(
			jsonb_build_object('$ref', '#/$defs/a' || i + 1), jsonb_build_object('$ref', '#/$defs/a' || i + 1)))
		else '{"type": "string"}'::jsonb end))
	from generate_series(0, 40) as i)};

$sql->(handler_sql('good', 'begin return null; end') . handler_sql('slow', 'begin return null; end'));
$sql->(q{select ujobs.define_job('good', 'public.good', 'g', replace => true);
	select ujobs.define_job('slow', 'public.slow', 's', replace => true);
	select ujobs.define_task('good', '* * * * * *', 'UTC', '[["good"]]');
	select ujobs.define_task('slow', '* * * * * *', 'UTC', '[["slow"]]')});
wait_until_sql($node, q{select count(distinct name) = 2 from ujobs.jobs where state = 'done'});
$sql->(qq{select ujobs.define_job('slow', 'public.slow', 's', replace => true, input_schema => $boom)});
wait_until_sql($node, q{select broken like 'UJ027:%' from ujobs.tasks where name = 'slow'});
pass('a task whose input takes too many steps to check is broken');
my $seen = $sql->(q{select count(*) from ujobs.jobs where name = 'good'});
wait_until_sql($node, qq{select count(*) > $seen + 2 from ujobs.jobs where name = 'good' and state = 'done'});
pass('the others fire');
is(sql_state($node, q{select ujobs.enqueue('slow')}), 'UJ027', 'an enqueue fails');
$sql->(q{select ujobs.define_job('slow', 'public.slow', 's', replace => true)});
wait_until_sql($node, q{select broken is null and last_fired_at > now() - interval '2 seconds' from ujobs.tasks where name = 'slow'});
pass('with another schema it goes on');
is($sql->('select count(*) from ujobs.check()'), '0', 'the store is sound');

$node->stop('fast');
done_testing();

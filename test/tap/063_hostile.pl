# Durable handlers that do what nobody should: the attempt says so, and nothing is half done.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('hostile', conf => "ujobs.worker_idle_timeout = 1h\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };

# A durable job with this body; how it ends.
my $end_of = sub {
	my ($name, $body) = @_;

	$sql->(handler_sql($name, "begin $body end", procedure => 1));
	return run_job($node, $name);
};

# ---- waits that can never end ----

is($end_of->('orphan', q{call ujobs.step_wait_for_job('child', -1);}), 'dead 1 UJ018',
	'a child that never existed ends the job at its first attempt');
is($end_of->('itself', q{call ujobs.step_wait_for_job('me', (ujobs.current_job() ->> 'id')::bigint);}), 'dead 1 UJ003',
	'a job does not wait for itself');

# ---- steps inside a step's commit ----

$sql->(<<'SQL');
create table late (n int);
create function begins_late() returns trigger language plpgsql as $$
begin
	perform ujobs.step_begin('late');
	return null;
end $$;
create constraint trigger late after insert on late deferrable initially deferred for each row execute function begins_late();
SQL
is($end_of->('late', q{call ujobs.step_run('insert', 'insert into public.late values (1)'); call ujobs.step_run('next', 'select 1');}),
	'dead 1 UJ016', 'a deferred trigger begins no step while another one is committed');
is($sql->('select count(*) from late'), '0', 'and that one is undone');

$node->stop;
done_testing();

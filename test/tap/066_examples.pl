# The examples of durable jobs, run for real by workers; test/sql/examples.sql runs them in virtual time.
use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $node = ujobs_cluster('examples', conf => "fsync = off\nujobs.max_workers = 4\n");
my $sql = sub { return $node->safe_psql('postgres', @_); };
my $load = sub {
	my ($name) = @_;

	return $node->command_ok([ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-h', $node->host, '-p', $node->port, '-U', 'postgres',
		'-d', 'postgres', '-f', "$FindBin::Bin/../../examples/$name.sql" ], "examples/$name.sql runs");
};
my $enqueue = sub {
	my ($job, $input) = @_;

	return $sql->("select id from ujobs.enqueue('$job', '$input')");
};

# ---- onboarding ----

$load->('onboarding');
$sql->('insert into onboarding.account values (1), (2)');
$sql->('insert into onboarding.purchase values (2)');
my @id = map { $enqueue->('onboarding.welcome', qq({"accountId": $_, "quiet": "300 ms"})) } 1, 2;
is(job_end($node, $_), 'done 1', 'onboarding') foreach @id;
is($sql->(q{select string_agg(account_id || template, ' ' order by account_id, template) from onboarding.mail}), '1nudge 1welcome 2welcome',
	'who bought nothing is nudged, each mail once');
is($sql->("select string_agg(name || ' ' || status, ', ' order by seq) from ujobs.steps where job_id = $id[0]"),
	'provision completed, welcome mail completed, quiet days completed, nudge completed', 'its steps are kept');

# ---- fan-out ----

$load->('fan_out');
$sql->(q{insert into fan_out.sale select 'region ' || n % 200, n from generate_series(1, 1000) as n});
is(job_end($node, $enqueue->('fan_out.month_report', '{"month": "2026-04"}')), 'done 1', 'fan-out over 200 parts, and join');
is($sql->('select total, missing from fan_out.report'), '500500|{}', 'the sum of all parts');

# ---- approval ----

$load->('approval');
$sql->('insert into approval.refund values (1, 10), (2, 20), (3, 30)');
$sql->(q{select ujobs.publish_event('refund_decided', '{"approved": true}', '1')});
my %decided;
$decided{declined} = $enqueue->('approval.decide', '{"refundId": 2}');
$decided{expired} = $enqueue->('approval.decide', '{"refundId": 3, "patience": "200 ms"}');
wait_until_sql($node, "select state = 'suspended' from ujobs.jobs where id = $decided{declined}");
$sql->(q{select ujobs.publish_event('refund_decided', '{"approved": false}', '2')});
foreach my $state (sort keys %decided)
{
	is(job_end($node, $decided{$state}), 'done 1', "approval: $state");
	is($sql->("select result ->> 'state' from ujobs.jobs where id = $decided{$state}"), $state, 'is its result');
}
# An event that is older than the job does not count for it.
my $late = $enqueue->('approval.decide', '{"refundId": 1, "patience": "200 ms"}');
is(job_end($node, $late), 'done 1', 'approval of a job that came after its event');
is($sql->('select string_agg(state, \' \' order by id) from approval.refund'), 'expired declined expired', 'as decided');

# ---- saga ----

$load->('saga');
$sql->(q{insert into saga.offer values ('flight', 30), ('hotel', 30), ('car', 20)});
@id = map { $enqueue->('saga.book_trip', qq({"trip": $_})) } 1 .. 30;
is(scalar(grep { job_end($node, $_) eq 'done 1' } @id), 30, 'thirty trips end');
is($sql->(q{select count(*) filter (where result ->> 'trip' = 'booked'), count(*) filter (where result ->> 'trip' = 'not booked')
	from ujobs.jobs where name = 'saga.book_trip'}), '20|10', 'twenty got a car');
is($sql->(q{select string_agg(kind || '=' || free, ' ' order by kind) from saga.offer}), 'car=0 flight=10 hotel=10', 'what the others booked was taken back');
is($sql->('select count(*), count(distinct trip) from saga.booking'), '60|20', 'nothing is left of them');

is($sql->('select count(*) from ujobs.check()'), '0', 'the store is sound');
$node->stop;
done_testing();

# What the README and the tutorial tell a reader to type works as written, with the engine running.
use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

# Follow the link that the tests are run through.
my $root = readlink("$FindBin::Bin") // $FindBin::Bin;
$root =~ s{/test/tap$}{};

my $node = ujobs_cluster('docs', extension => 0);

for my $page ('README.md', 'docs/tutorial.md')
{
	my $text = slurp_file("$root/$page");
	my @blocks = $text =~ /^```sql\n(.*?)^```$/msg;
	(my $database = lc $page) =~ s/\W/_/g;
	my $sql = join "\n", @blocks;

	ok(@blocks > 0, "$page has statements to type");
	$node->safe_psql('postgres', "create database $database");
	# The tutorial begins where the README has installed the extension.
	$node->safe_psql($database, 'create extension ujobs') unless $sql =~ /create extension/;
	$node->safe_psql('postgres', 'create role web') if $sql =~ /'web'/;
	my ($out, $err);
	my $status = $node->psql($database, $sql, stdout => \$out, stderr => \$err, on_error_stop => 1);
	is($status, 0, "$page: every statement works") or diag $err;
}

# ---- the roles of docs/security.md ----

{
	my $sql = join "\n", slurp_file("$root/docs/security.md") =~ /^```sql\n(.*?)^```$/msg;
	my $state = sub {
		my ($role, $text) = @_;
		my $err = '';

		$node->psql('roles', "\\set VERBOSITY sqlstate\n$text", stderr => \$err, on_error_stop => 1, extra_params => [ '-U', $role ]);
		return $err =~ /ERROR:\s+([0-9A-Z]{5})/ ? $1 : 'fine';
	};

	$node->safe_psql('postgres', 'create database roles');
	$node->safe_psql('roles', "create extension ujobs; $sql; grant create on schema public to app_owner");
	is($state->('app_owner', q{create function make_invoice(input jsonb) returns void language sql as 'select';
		select ujobs.define_job('make_invoice', 'public.make_invoice', '{n}'), ujobs.define_external_job('resize_image', '{n}');
		select ujobs.grant_enqueue('make_invoice', 'app'), ujobs.grant_enqueue('resize_image', 'app'), ujobs.grant_work('resize_image', 'app_worker')}), 'fine', 'an owner defines and grants');
	is($state->('app', q{select ujobs.enqueue('make_invoice', '{"n": 1}'), ujobs.enqueue('resize_image', '{"n": 1, "secret": 2}')}), 'fine', 'an application enqueues');
	wait_until_sql($node, q{select count(*) = 1 from ujobs.jobs where name = 'make_invoice' and state = 'done'}, database => 'roles');
	is($node->safe_psql('roles', q{select count(*) from ujobs.jobs where input is null}, extra_params => [ '-U', 'app_observer' ]), '2', 'an observer sees jobs without their input');
	is($state->('app_worker', q{select ujobs.ack(id, lease) from ujobs.claim('w', '{default}')}), 'fine', 'a worker claims and acknowledges');
	is($state->('app_admin', q{select ujobs.pause_queue('default'), ujobs.resume_queue('default'), ujobs.purge('1 day'); select * from ujobs.check()}), 'fine', 'an administrator manages queues');
	my %refused = (
		app => [ q{select ujobs.cancel(1)}, q{select ujobs.claim('w', '{default}')}, q{select ujobs.pause_queue('default')}, q{select ujobs.grant_enqueue('make_invoice', 'public')} ],
		app_worker => [ q{select ujobs.enqueue('make_invoice', '{"n": 2}')}, q{select ujobs.purge('0')}, q{select ujobs.check()} ],
		app_observer => [ q{select ujobs.cancel(1)}, q{select ujobs.enqueue('make_invoice', '{"n": 2}')}, q{select ujobs.stop_workers()} ],
		app_admin => [ q{select ujobs.cancel(1)}, q{select ujobs.define_sink('s', 'http', '{"url": "http://example.com"}')}, q{select ujobs.queue_key('q')} ]);
	foreach my $role (sort keys %refused)
	{
		is($state->($role, $_), '42501', "$role may not: $_") foreach @{ $refused{$role} };
	}
}

wait_until_sql($node, q{select count(*) = 1 from ujobs.jobs where state = 'done' and result = '{"welcomed": true}'},
	database => 'readme_md');
pass('the job of the README was done');
wait_until_sql($node, 'select count(*) = 1 from invoice where order_id = 7', database => 'docs_tutorial_md');
pass('the invoice of the tutorial was made, once');

$node->stop;
done_testing();

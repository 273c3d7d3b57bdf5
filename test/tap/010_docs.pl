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

wait_until_sql($node, q{select count(*) = 1 from ujobs.jobs where state = 'done' and result = '{"welcomed": true}'},
	database => 'readme_md');
pass('the job of the README was done');
wait_until_sql($node, 'select count(*) = 1 from invoice where order_id = 7', database => 'docs_tutorial_md');
pass('the invoice of the tutorial was made, once');

$node->stop;
done_testing();

# The official test suite of JSON Schema, draft 2020-12: every case is answered as it says, or its schema is refused.
#
# Debian ships the suite in libtest-json-schema-acceptance-perl; only its data
# is used.  The server reads the files, so that no other JSON library touches
# numbers and characters.  What is refused stands, by name, in
# json_schema_refused.txt; the list must be exactly what is refused.
use strict;
use warnings;

use FindBin;
use PostgreSQL::Test::Utils;
use Test::More;
use UjobsTest;

my $suite = '/usr/share/perl5/auto/share/dist/Test-JSON-Schema-Acceptance/tests/draft2020-12';
my $list = "$FindBin::Bin/json_schema_refused.txt";

plan skip_all => 'the suite is not installed' unless -d $suite;

# Assertions of format are optional, and here format is an annotation: no optional/format.
my @files = sort map { s{^\Q$suite\E/}{}r } glob("$suite/*.json $suite/optional/*.json");
my $node = ujobs_cluster('json_schema', preload => 0, conf => "fsync = off\n");

$node->safe_psql('postgres', <<'SQL');
create table answer (file text, title text, test text, expected boolean, fits boolean, refused text);

-- A schema that jsonb cannot hold (a NUL character) is refused by jsonb itself.
-- The functions of json stumble over it too, so it travels as another character.
create function ask(schema text, input text, out fits boolean, out refused text)
language plpgsql as $$
begin
	fits := ujobs_internal.schema_check(replace(schema, '\ue000', '\u0000')::jsonb, replace(input, '\ue000', '\u0000')::jsonb) is null;
exception
	when sqlstate 'UJ003' then
		get stacked diagnostics refused = pg_exception_detail;
		refused := regexp_replace(refused, ' ?\[X_[A-Z_]+\]$', '');
	when untranslatable_character then
		refused := sqlerrm;
end
$$;

create function ask_file(directory text, file text) returns void
language sql as $$
	insert into answer
	select ask_file.file, (suite -> 'description')::jsonb #>> '{}', (test -> 'description')::jsonb #>> '{}',
	       (test -> 'valid')::text::boolean,
	       (ask((suite -> 'schema')::text, (test -> 'data')::text)).*
	  from json_array_elements(replace(pg_read_file(directory || '/' || ask_file.file), '\u0000', '\ue000')::json) as suite,
	       json_array_elements(suite -> 'tests') as test
$$;
SQL

# ---- answers ----

$node->safe_psql('postgres', join "\n", map { "select ask_file('$suite', '$_');" } @files);
foreach my $file (@files)
{
	my $wrong = $node->safe_psql('postgres', <<"SQL");
select concat_ws(' | ', title, test, 'expected', expected)
  from answer
 where file = '$file' and fits is distinct from expected and refused is null
 order by 1
SQL
	is($wrong, '', "$file: what is not refused is answered as the suite says");
}

# ---- what is refused ----

my $refused = $node->safe_psql('postgres', q{
	select distinct concat_ws(' | ', file, title, refused) collate "C" from answer where refused is not null order by 1});
is("$refused\n", slurp_file($list), 'what is refused is what the list says, for the reason it says');

# Never half of a schema: a refusal is of all its tests.
is($node->safe_psql('postgres', q{
	select string_agg(file || ' | ' || title, E'\n')
	  from (select file, title from answer group by 1, 2 having count(refused) not in (0, count(*))) as mixed}),
	'', 'a schema is refused or answers all its tests');

my ($answered, $not) = split /\|/, $node->safe_psql('postgres',
	'select count(*) filter (where refused is null), count(refused) from answer');
note("$answered cases answered, $not refused");
cmp_ok($answered, '>', 1000, 'the suite has been asked');

$node->stop;
done_testing();

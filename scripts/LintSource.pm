# LintSource: the text that scripts/lint looks at, read once.
package LintSource;

use strict;
use warnings;

use Exporter 'import';
use FindBin;
chdir "$FindBin::Bin/.." or die "no source tree: $!\n";

our @EXPORT = qw(slurp lines_with each_function @sources %text %code @everything);

sub slurp
{
	my ($path) = @_;
	local $/;
	open my $file, '<', $path or die "$path: $!\n";
	return scalar <$file>;
}

our @sources = sort glob('src/*.[ch] src/*/*.[ch] src/*/*/*.[ch] src/store/*.inc');
our %text = map { $_ => slurp($_) } @sources;

# The C text without comments; strings stay.  Line numbers do not move.
sub without_comments
{
	my ($text) = @_;
	$text =~ s{("(?:\\.|[^"\\])*")|(/\*.*?\*/)}{defined $1 ? $1 : "\n" x ($2 =~ tr/\n//)}gse;
	return $text;
}
our %code = map { $_ => without_comments($text{$_}) } @sources;

# Lines ("file:line: text") of the code that match.
sub lines_with
{
	my ($pattern, @files) = @_;
	my @found;

	for my $file (@files)
	{
		my $n = 0;
		for my $line (split /\n/, $code{$file})
		{
			$n++;
			push @found, "$file:$n: $line" if $line =~ $pattern;
		}
	}
	return @found;
}

# Every file of the tree but scripts/lint, which names what it forbids.
our @everything = grep { -f && !m{^scripts/lint$} }
  split /\n/, `find . -type f -not -path './.git' -not -path './.git/*' -not -path './build/*' -not -name '*.o' -not -name '*.so' -not -name '*.bc' | sed 's,^\\./,,'`;

# Calls back with (file, name, first line, lines, parameters, signature is not ours) for each function.
sub each_function
{
	my ($call) = @_;

	for my $file (grep { /\.c$/ } @sources)
	{
		while ($code{$file} =~ /^(\w+)\(([^;{}]*)\)\n\{\n(.*?)^\}$/msg)
		{
			my ($name, $parameters, $body) = ($1, $2, $3);
			my $line = 1 + (substr($code{$file}, 0, $-[0]) =~ tr/\n//);
			my $count = $parameters =~ /^\s*void\s*$/ ? 0 : 1 + ($parameters =~ tr/,//);
			# The utility hook has PostgreSQL's own signature.
			my $given = $parameters =~ /QueryCompletion \*/;
			$call->($file, $name, $line, 2 + ($body =~ tr/\n//), $count, $given);
		}
	}
}

1;

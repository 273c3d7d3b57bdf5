/*
 * pattern.c: ECMA 262 patterns as PostgreSQL's advanced regular expressions.
 *
 * The two languages agree in most of what people write, and disagree silently
 * in a few escapes (\b is a word's edge to one and a backspace to the other).
 * So a pattern is walked once, character by character: what is the same passes
 * through, what is spelled differently is respelled, and what has no equal is
 * a fault.  Collation is "C", so \d and \w are ASCII, as in ECMA 262, and a
 * pattern means the same in every database.
 */
#include "postgres.h"

#include "catalog/pg_collation.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "regex/regex.h"
#include "regex/regexport.h"
#include "utils/memutils.h"

#include "core/error.h"
#include "model/effort.h"
#include "model/pattern.h"

/* White space of ECMA 262 beyond ASCII, and its line ends. */
#define WIDE_SPACE "\\u00a0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff"
#define WIDE_LINE_END "\\u2028\\u2029"

/* Bounds of what a pattern may cost. */
#define MAX_DEPTH 50			/* of groups */
#define MAX_ATOMS 5000			/* after repetitions such as {100} are written out */
#define MAX_STATES 20000		/* of the engine's automaton */

struct UjobsPattern
{
	char	   *source;
	int			states;
	bool		looks;
	regex_t		regex;
	MemoryContextCallback free;
};

/* The walk over a source. */
typedef struct Walk
{
	const char *at;
	const char *end;
	bool		wide;			/* code points above ASCII can be named */
	bool		in_class;		/* between brackets */
	StringInfoData out;
	char	   *fault;
	bool		looks;			/* has a look ahead or behind */
	char	   *excess;			/* why it would cost too much */
	int			depth;			/* of groups */
	int64		size[MAX_DEPTH + 1];	/* what each open group is expanded to, in atoms */
	int64		last;			/* the same of the last atom */
} Walk;

static void
fault(Walk *w, const char *what)
{
	if (w->fault == NULL)
		w->fault = pstrdup(what);
}

/* ---- what it costs ---- */

static void
exceed(Walk *w, const char *what)
{
	if (w->excess == NULL)
		w->excess = pstrdup(what);
}

static void
count_atom(Walk *w, int64 size)
{
	w->last = size;
	w->size[w->depth] += size;
	if (w->size[w->depth] > MAX_ATOMS)
		exceed(w, psprintf("has more than %d atoms when its repetitions are written out", MAX_ATOMS));
}

static void
open_group(Walk *w)
{
	if (w->depth == MAX_DEPTH)
	{
		exceed(w, psprintf("has groups deeper than %d", MAX_DEPTH));
		return;
	}
	w->size[++w->depth] = 0;
}

static void
close_group(Walk *w)
{
	int64		size;

	if (w->depth == 0)
		return;
	size = w->size[w->depth--];
	count_atom(w, Max(size, 1));
}

/* At the brace of {m}, {m,} or {m,n}: the last atom is written out so many times. */
static void
count_repetition(Walk *w)
{
	const char *p = w->at;
	int64		times = 0;

	for (int64 number = 0; p < w->end && *p != '}'; p++)
	{
		number = isdigit((unsigned char) *p) ? Min(number * 10 + *p - '0', MAX_ATOMS) : 0;
		times = Max(times, number);
	}
	if (times > 1)
		count_atom(w, w->last * (times - 1));
}

/* ---- escapes ---- */

/* Exactly n hexadecimal digits at p; -1 when they are not there. */
static int64
hex_at(const Walk *w, const char *p, int n)
{
	int64		value = 0;

	if (w->end - p < n)
		return -1;
	for (int i = 0; i < n; i++)
	{
		if (!isxdigit((unsigned char) p[i]))
			return -1;
		value = value * 16 + (isdigit((unsigned char) p[i]) ?
							  p[i] - '0' : (p[i] | 0x20) - 'a' + 10);
	}
	return value;
}

static void
put_code(Walk *w, int64 code)
{
	if (code > 0x7f && !w->wide)
		fault(w, "names a character outside ASCII, which takes a database in UTF8");
	else
		appendStringInfo(&w->out, "\\U%08x", (unsigned int) code);
}

/* \u{h...} */
static void
walk_braced(Walk *w)
{
	const char *close = memchr(w->at, '}', w->end - w->at);
	int			n = close == NULL ? 0 : close - w->at - 1;
	int64		code = n < 1 || n > 8 ? -1 : hex_at(w, w->at + 1, n);

	if (code < 0 || code > 0x10ffff)
	{
		fault(w, "has an escape \\u that is not a code point");
		return;
	}
	put_code(w, code);
	w->at = close + 1;
}

/* After \u: four digits, a surrogate pair of them, or braces. */
static void
walk_unicode(Walk *w)
{
	int64		code = hex_at(w, w->at, 4);

	if (w->at < w->end && *w->at == '{')
	{
		walk_braced(w);
		return;
	}
	if (code < 0)
	{
		fault(w, "has an escape \\u without four hexadecimal digits");
		return;
	}
	w->at += 4;
	if (code >= 0xd800 && code < 0xdc00 && w->end - w->at >= 6 && w->at[0] == '\\' &&
		w->at[1] == 'u')
	{
		int64		low = hex_at(w, w->at + 2, 4);

		if (low >= 0xdc00 && low < 0xe000)
		{
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			w->at += 6;
		}
	}
	if (code >= 0xd800 && code < 0xe000)
		fault(w, "names half of a surrogate pair");
	else
		put_code(w, code);
}

/* After \x: the engine would take as many digits as it finds. */
static void
walk_hex(Walk *w)
{
	int64		code = hex_at(w, w->at, 2);

	if (code < 0)
	{
		fault(w, "has an escape \\x without two hexadecimal digits");
		return;
	}
	w->at += 2;
	put_code(w, code);
}

static void
walk_space(Walk *w, bool complement)
{
	if (complement && w->in_class)
		appendStringInfoString(&w->out, "\\S");
	else if (w->in_class)
		appendStringInfo(&w->out, "\\s%s", w->wide ? WIDE_SPACE : "");
	else
		appendStringInfo(&w->out, "[%s\\s%s]", complement ? "^" : "", w->wide ? WIDE_SPACE : "");
}

/* A digit that ECMA 262 would read as the begin of an octal escape. */
static bool
is_octal(const Walk *w, char c)
{
	if (c == '0')
		return w->at < w->end && isdigit((unsigned char) *w->at);
	return w->in_class && isdigit((unsigned char) c);
}

/* After a backslash. */
static void
walk_escape(Walk *w)
{
	char		c;

	if (w->at == w->end)
	{
		fault(w, "ends with a backslash");
		return;
	}
	c = *w->at++;
	if (c == 'u')
		walk_unicode(w);
	else if (c == 'x')
		walk_hex(w);
	else if (c == 's' || c == 'S')
		walk_space(w, c == 'S');
	else if (c == 'b' && !w->in_class)
		appendStringInfoString(&w->out, "\\y");
	else if (c == 'B' && !w->in_class)
		appendStringInfoString(&w->out, "\\Y");
	else if (c == 'c' && w->at < w->end && isalpha((unsigned char) *w->at))
		appendStringInfo(&w->out, "\\c%c", *w->at++);
	else if (c == 'p' || c == 'P')
		fault(w,
			  psprintf("has the escape \\%c, but PostgreSQL's engine knows no Unicode properties",
					   c));
	else if (isalpha((unsigned char) c) && strchr("bdDfnrtvwW", c) == NULL)
		fault(
			w,
			psprintf(
				"has the escape \\%c, which is none of ECMA 262 or has no equal in PostgreSQL's engine",
				c));
	else if (is_octal(w, c))
		fault(w, "has an octal escape");
	else if (c >= '1' && c <= '9')
		exceed(w, "has a back-reference");
	else
		appendStringInfo(&w->out, "\\%c", c);
}

/* ---- everything else ---- */

/* After an opening bracket. */
static void
walk_class_begin(Walk *w)
{
	w->in_class = true;
	appendStringInfoChar(&w->out, '[');
	if (w->at < w->end && *w->at == '^')
		appendStringInfoChar(&w->out, *w->at++);
	if (w->at < w->end && *w->at == ']')
		fault(w, "has an empty class [] or [^]");
}

/* After "(?": groups and looks are the same in both, options and names are not. */
static void
walk_group(Walk *w)
{
	static const char *const shared[] = {":", "=", "!", "<=", "<!"};

	for (int i = 0; i < lengthof(shared); i++)
	{
		if (w->end - w->at > strlen(shared[i]) &&
			strncmp(w->at + 1, shared[i], strlen(shared[i])) == 0)
		{
			w->looks |= i > 0;
			appendStringInfo(&w->out, "(?%s", shared[i]);
			w->at += 1 + strlen(shared[i]);
			return;
		}
	}
	fault(w, "has a group (? with a name or an option");
}

static void
walk_one(Walk *w)
{
	char		c = *w->at++;

	if (c == '\\')
		walk_escape(w);
	else if (w->in_class)
	{
		if (c == '[')			/* [: [. and [= would begin a class of their own */
			appendStringInfoChar(&w->out, '\\');
		w->in_class = c != ']';
		appendStringInfoChar(&w->out, c);
	}
	else if (c == '[')
		walk_class_begin(w);
	else if (c == '.')
		appendStringInfo(&w->out, "[^\\n\\r%s]", w->wide ? WIDE_LINE_END : "");
	else if (c == '(' && w->at < w->end && *w->at == '?')
		walk_group(w);
	else
		appendStringInfoChar(&w->out, c);
	if (c == '(' && !w->in_class)
		open_group(w);
	else if (c == ')' && !w->in_class)
		close_group(w);
	else if (c == '{' && !w->in_class)
		count_repetition(w);
	else
		count_atom(w, 1);
}

static void
refuse_cost(const char *source, int length, const char *why)
{
	ereport(ERROR,
			(ujobs_errcode(TOO_COMPLEX),
			 errmsg("a pattern of input_schema would cost too much"),
			 errdetail("\"%.*s\" %s.", pg_mbcliplen(source, length, 100), source, why),
			 errhint("Write a simpler pattern.")));
}

static char *
translate(const char *source, int length, char **reason, bool *looks)
{
	Walk		w = {.at = source, .end = source + length};

	w.wide = GetDatabaseEncoding() == PG_UTF8;
	initStringInfo(&w.out);
	if (length >= 3 && strncmp(source, "***", 3) == 0)
		fault(&w, "begins with a quantifier");
	while (w.at < w.end && w.fault == NULL && w.excess == NULL)
		walk_one(&w);
	if (w.in_class && w.excess == NULL)
		fault(&w, "has a class that is not closed");
	*reason = w.fault;
	if (w.fault == NULL && w.excess != NULL)
		refuse_cost(source, length, w.excess);
	*looks = w.looks;
	return w.out.data;
}

/* ---- the engine ---- */

static pg_wchar *
wide_text(const char *text, int length, int *n)
{
	pg_wchar   *wide = palloc((length + 1) * sizeof(pg_wchar));

	*n = pg_mb2wchar_with_len(text, wide, length);
	return wide;
}

/* Some servers allocate a regular expression outside of all contexts. */
static void
pattern_free(void *pattern)
{
	pg_regfree(&((UjobsPattern *) pattern)->regex);
}

/* The engine gives up when an interrupt waits: serve it. */
static char *
engine_fault(const UjobsPattern *pattern, int code)
{
	char		text[100];

	CHECK_FOR_INTERRUPTS();
	pg_regerror(code, &pattern->regex, text, sizeof(text));
	return pstrdup(text);
}

UjobsPattern *
ujobs_pattern_compile(const char *source, int length, char **reason)
{
	UjobsPattern *pattern = palloc0(sizeof(UjobsPattern));
	char	   *are = translate(source, length, reason, &pattern->looks);
	pg_wchar   *wide;
	int			n;
	int			code;

	if (*reason != NULL)
		return NULL;
	wide = wide_text(are, strlen(are), &n);
	code = pg_regcomp(&pattern->regex, wide, n, REG_ADVANCED | REG_NOSUB, C_COLLATION_OID);
	if (code != REG_OKAY)
	{
		*reason = psprintf("is refused by PostgreSQL's engine: %s", engine_fault(pattern, code));
		return NULL;
	}
	pattern->free.func = pattern_free;
	pattern->free.arg = pattern;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &pattern->free);
	pattern->states = pg_reg_getnumstates(&pattern->regex);
	if (pattern->states > MAX_STATES)
		refuse_cost(source, length, psprintf("needs %d states", pattern->states));
	pattern->source = pnstrdup(source, length);
	pfree(wide);
	pfree(are);
	return pattern;
}

/* Each character may meet each state; a look runs again at each place. */
static int64
steps_of(const UjobsPattern *pattern, int characters)
{
	int64		steps = 1 + (int64) characters * (1 + pattern->states / 64);

	return pattern->looks ? steps * (1 + characters / 64) : steps;
}

bool
ujobs_pattern_matches(const UjobsPattern *pattern, const char *text, int length)
{
	int			n;
	pg_wchar   *wide = wide_text(text, length, &n);
	regex_t    *regex = unconstify(regex_t *, &pattern->regex);
	int			code;

	ujobs_effort_spend(steps_of(pattern, n));
	code = pg_regexec(regex, wide, n, 0, NULL, 0, NULL, 0);
	pfree(wide);
	if (code != REG_OKAY && code != REG_NOMATCH)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_REGULAR_EXPRESSION),
				 errmsg("regular expression failed: %s", engine_fault(pattern, code)),
				 errhint("Write a simpler pattern in input_schema.")));
	return code == REG_OKAY;
}

const char *
ujobs_pattern_source(const UjobsPattern *pattern)
{
	return pattern->source;
}

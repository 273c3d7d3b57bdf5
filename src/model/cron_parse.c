/*
 * cron_parse.c: a cron expression is cut into fields, a field into items, and
 * an item sets bits.
 *
 * Anything outside the grammar is an error that names the field; nothing is
 * skipped or guessed.  What other schedulers know and this one does not has a
 * hint of its own.
 */
#include "postgres.h"

#include "model/cron_parse.h"

#define MAX_FIELDS 6

/* A piece of the expression: not ended by a NUL. */
typedef struct Piece
{
	const char *at;
	int			length;
} Piece;

typedef enum FieldKind
{
	FIELD_SECOND,
	FIELD_MINUTE,
	FIELD_HOUR,
	FIELD_DAY,
	FIELD_MONTH,
	FIELD_WEEKDAY
} FieldKind;

typedef struct Names
{
	int			first;			/* the value of the first name */
	int			count;
	const char *const *name;
	const char *noun;
} Names;

typedef struct Field
{
	const char *name;
	int			low;
	int			high;
	int			period;			/* after so many the values begin again */
	const Names *names;
} Field;

/* The values of one item, before they become bits. */
typedef struct Range
{
	int			from;
	int			to;
	int			step;
} Range;

static const char *const month_names[] = {
	"january", "february", "march", "april", "may", "june",
	"july", "august", "september", "october", "november", "december"
};

static const char *const weekday_names[] = {
	"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"
};

static const Names months = {1, 12, month_names, "month"};
static const Names weekdays = {0, 7, weekday_names, "day"};

static const Field fields[] = {
	[FIELD_SECOND] = {"second", 0, 59, 60, NULL},
	[FIELD_MINUTE] = {"minute", 0, 59, 60, NULL},
	[FIELD_HOUR] = {"hour", 0, 23, 24, NULL},
	[FIELD_DAY] = {"day-of-month", 1, 31, 31, NULL},
	[FIELD_MONTH] = {"month", 1, 12, 12, &months},
	[FIELD_WEEKDAY] = {"day-of-week", 0, 7, 7, &weekdays}
};

static const char *const general_hint =
"Write the 5 fields minute, hour, day-of-month, month and day-of-week, or 6 with a leading second, or a macro such as @daily.";

/* ---- words of a refusal ---- */

static bool refuse(UjobsCronError *error, const char *hint,
				   const char *format,...) pg_attribute_printf(3, 4);

/* Always false, so that a caller can return it.  hint NULL: the general one. */
static bool
refuse(UjobsCronError *error, const char *hint, const char *format,...)
{
	va_list		args;

	va_start(args, format);
	vsnprintf(error->detail, sizeof(error->detail), format, args);
	va_end(args);
	error->hint = hint ? hint : general_hint;
	return false;
}

/* ---- pieces ---- */

static char
lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Is the piece this word?  word is lower case. */
static bool
is_word(Piece piece, const char *word)
{
	int			i = 0;

	for (; i < piece.length && word[i] != '\0'; i++)
	{
		if (lower(piece.at[i]) != word[i])
			return false;
	}
	return i == piece.length && word[i] == '\0';
}

static bool
begins_with(Piece piece, const char *word)
{
	int			length = strlen(word);

	return piece.length >= length && is_word((Piece) {piece.at, length}, word);
}

static bool
ends_with(Piece piece, char c)
{
	return piece.length > 0 && lower(piece.at[piece.length - 1]) == c;
}

static bool
has_char(Piece piece, char c)
{
	return piece.length > 0 && memchr(piece.at, c, piece.length) != NULL;
}

/* Takes what is before the first c, and c itself, off the rest; all of it when there is none. */
static Piece
cut(Piece *rest, char c)
{
	const char *found = rest->length > 0 ? memchr(rest->at, c, rest->length) : NULL;
	Piece		head = {rest->at, found ? found - rest->at : rest->length};
	int			taken = head.length + (found != NULL);

	rest->at += taken;
	rest->length -= taken;
	return head;
}

static Piece
without_last(Piece piece)
{
	return (Piece) {piece.at, piece.length - 1};
}

/* ---- numbers and names ---- */

/* False when it is not all digits.  Too many of them are a large number. */
static bool
read_digits(Piece piece, int *value)
{
	int			n = 0;

	for (int i = 0; i < piece.length; i++)
	{
		if (piece.at[i] < '0' || piece.at[i] > '9')
			return false;
		n = Min(n * 10 + (piece.at[i] - '0'), 1000000);
	}
	*value = n;
	return piece.length > 0;
}

static bool
is_short_for(Piece piece, const char *word)
{
	for (int i = 0; i < piece.length; i++)
	{
		if (lower(piece.at[i]) != word[i])
			return false;
	}
	return true;
}

/* In full or by the first three letters. */
static bool
read_name(const Names *names, Piece piece, int *value)
{
	for (int i = 0; i < names->count; i++)
	{
		if (is_word(piece, names->name[i]) ||
			(piece.length == 3 && is_short_for(piece, names->name[i])))
		{
			*value = names->first + i;
			return true;
		}
	}
	return false;
}

static bool
refuse_value(const Field *field, Piece piece, UjobsCronError *error)
{
	char		first = lower(piece.at[0]);
	const char *hint = NULL;

	if (first == '?')
		return refuse(error, NULL,
					  "%s field: \"?\" is only allowed in day-of-month and day-of-week",
					  field->name);
	if (is_word(piece, "h") || begins_with(piece, "h("))
		return refuse(error,
					  "A value picked by a hash of the name is not supported; write a number.",
					  "%s field: \"H\" is not supported", field->name);
	if (is_word(piece, "l"))
		return refuse(
			error,
			"L is written alone, or as L-3 for days before the last, in day-of-month; in day-of-week it follows a day, as in 5L.",
			"%s field: \"L\" is not supported here", field->name);
	if (first == '$')
		hint = "The last day of the month, pg_cron's $ is written L.";
	if (field->names != NULL && first >= 'a' && first <= 'z')
		return refuse(error, NULL, "%s field: \"%.*s\" is not a %s name", field->name,
					  piece.length, piece.at, field->names->noun);
	return refuse(error, hint, "%s field: \"%.*s\" is not a number", field->name, piece.length,
				  piece.at);
}

/* One value of the field. */
static bool
read_value(const Field *field, Piece piece, int *value, UjobsCronError *error)
{
	if (read_digits(piece, value))
	{
		if (*value >= field->low && *value <= field->high)
			return true;
		return refuse(error, NULL, "%s field: %.*s is out of range %d-%d", field->name,
					  piece.length, piece.at, field->low, field->high);
	}
	if (field->names != NULL && read_name(field->names, piece, value))
		return true;
	return refuse_value(field, piece, error);
}

/* ---- items ---- */

static bool
read_step(const Field *field, Piece piece, int *step, UjobsCronError *error)
{
	int			most = field->high - field->low;

	if (piece.length == 0)
		return refuse(error, NULL, "%s field: missing step after \"/\"", field->name);
	if (!read_digits(piece, step))
		return refuse(error, NULL, "%s field: step \"%.*s\" is not a number", field->name,
					  piece.length, piece.at);
	if (*step < 1 || *step > most)
		return refuse(error, NULL, "%s field: step %.*s must be between 1 and %d", field->name,
					  piece.length, piece.at, most);
	return true;
}

/* "a-b", with the dash known to be there. */
static bool
read_bounds(const Field *field, Piece piece, Range *range, UjobsCronError *error)
{
	Piece		rest = piece;
	Piece		from = cut(&rest, '-');

	if (from.length == 0)
		return refuse(error, NULL, "%s field: missing value before \"-\"", field->name);
	if (rest.length == 0)
		return refuse(error, NULL, "%s field: missing value after \"-\"", field->name);
	if (has_char(rest, '-'))
		return refuse(error, NULL, "%s field: malformed range \"%.*s\"", field->name, piece.length,
					  piece.at);
	if (!read_value(field, from, &range->from, error) ||
		!read_value(field, rest, &range->to, error))
		return false;
	if (range->from > range->to)
		range->to += field->period;
	return true;
}

/* ("*" | value ["-" value]) ["/" step] */
static bool
read_range(const Field *field, Piece item, Range *range, UjobsCronError *error)
{
	bool		stepped = has_char(item, '/');
	Piece		step = item;
	Piece		values = cut(&step, '/');

	if (values.length == 0)
		return refuse(error, NULL, "%s field: missing value before \"/\"", field->name);
	range->step = 1;
	if (stepped && !read_step(field, step, &range->step, error))
		return false;
	if (is_word(values, "*"))
	{
		range->from = field->low;
		range->to = field->high;
		return true;
	}
	if (has_char(values, '-'))
		return read_bounds(field, values, range, error);
	if (!read_value(field, values, &range->from, error))
		return false;
	range->to = stepped ? field->high : range->from;
	return true;
}

/* The stride goes on across the wrap. */
static uint64
range_bits(const Field *field, const Range *range)
{
	uint64		bits = 0;

	for (int value = range->from; value <= range->to; value += range->step)
		bits |= UINT64CONST(1) << (field->low + (value - field->low) % field->period);
	return bits;
}

static bool
read_plain_item(const Field *field, Piece item, uint64 *bits, UjobsCronError *error)
{
	Range		range = {0, 0, 1};

	if (!read_range(field, item, &range, error))
		return false;
	*bits |= range_bits(field, &range);
	return true;
}

/* "L" or "L-n"; the piece begins with L. */
static bool
read_last_day(Piece item, UjobsCron *cron, UjobsCronError *error)
{
	int			before = 0;
	Piece		number = {item.at + 2, item.length - 2};

	if (item.length > 1 &&
		(item.at[1] != '-' || !read_digits(number, &before) || before < 1 || before > 30))
		return refuse(error, "L is the last day of the month, L-3 three days before it.",
					  "day-of-month field: \"%.*s\" is not L or L-1 to L-30", item.length, item.at);
	cron->day_from_last |= 1u << before;
	return true;
}

static bool
read_day_item(Piece item, UjobsCron *cron, UjobsCronError *error)
{
	uint64		bits = 0;

	if (is_word(item, "?"))
		bits = range_bits(&fields[FIELD_DAY], &(Range) {1, 31, 1});
	else if (ends_with(item, 'w'))
		return refuse(error,
					  "The weekday nearest to a day is not supported; list the days themselves.",
					  "day-of-month field: \"W\" is not supported");
	else if (begins_with(item, "l"))
		return read_last_day(item, cron, error);
	else if (!read_plain_item(&fields[FIELD_DAY], item, &bits, error))
		return false;
	cron->day |= bits;
	return true;
}

/* "value#n" */
static bool
read_nth_weekday(Piece item, UjobsCron *cron, UjobsCronError *error)
{
	Piece		nth = item;
	Piece		value = cut(&nth, '#');
	int			weekday;
	int			n;

	if (value.length == 0)
		return refuse(error, NULL, "day-of-week field: missing value before \"#\"");
	if (!read_value(&fields[FIELD_WEEKDAY], value, &weekday, error))
		return false;
	if (!read_digits(nth, &n) || n < 1 || n > 5)
		return refuse(error, "5#2 is the second Friday of the month.",
					  "day-of-week field: \"%.*s\" after \"#\" must be between 1 and 5", nth.length, nth.at);
	cron->weekday_nth[weekday % 7] |= 1 << n;
	return true;
}

static bool
read_weekday_item(Piece item, UjobsCron *cron, UjobsCronError *error)
{
	const Field *field = &fields[FIELD_WEEKDAY];
	uint64		bits = 0;
	int			weekday;

	if (is_word(item, "l"))
		return refuse(error, "Write the day before it: 5L is the last Friday of the month.",
					  "day-of-week field: \"L\" needs a day, for example 5L");
	if (is_word(item, "?"))
		bits = range_bits(field, &(Range) {0, 6, 1});
	else if (has_char(item, '#'))
		return read_nth_weekday(item, cron, error);
	else if (ends_with(item, 'l') && !has_char(item, '-'))
	{
		if (!read_value(field, without_last(item), &weekday, error))
			return false;
		cron->weekday_last |= 1 << (weekday % 7);
		return true;
	}
	else if (!read_plain_item(field, item, &bits, error))
		return false;
	cron->weekday |= bits;
	return true;
}

/* ---- fields ---- */

static bool
read_item(FieldKind kind, Piece item, UjobsCron *cron, UjobsCronError *error)
{
	uint64		bits = 0;

	if (item.length == 0)
		return refuse(error, NULL, "%s field: empty list item", fields[kind].name);
	if (kind == FIELD_DAY)
		return read_day_item(item, cron, error);
	if (kind == FIELD_WEEKDAY)
		return read_weekday_item(item, cron, error);
	if (!read_plain_item(&fields[kind], item, &bits, error))
		return false;
	if (kind == FIELD_SECOND)
		cron->second |= bits;
	else if (kind == FIELD_MINUTE)
		cron->minute |= bits;
	else if (kind == FIELD_HOUR)
		cron->hour |= bits;
	else
		cron->month |= bits;
	return true;
}

static bool
read_field(FieldKind kind, Piece field, UjobsCron *cron, UjobsCronError *error)
{
	Piece		rest = field;
	bool		any = is_word(field, "*") || is_word(field, "?") || is_word(field, "*/1");

	if (kind == FIELD_DAY)
		cron->day_any = any;
	if (kind == FIELD_WEEKDAY)
		cron->weekday_any = any;
	for (;;)
	{
		bool		more = has_char(rest, ',');
		Piece		item = cut(&rest, ',');

		if (!read_item(kind, item, cron, error))
			return false;
		if (!more)
			return true;
	}
}

/* ---- a schedule that never comes ---- */

static int
longest_month(const UjobsCron *cron)
{
	const uint32 long_months = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 10 | 1 << 12;

	if (cron->month & long_months)
		return 31;
	return (cron->month & ~(1u << 2)) ? 30 : 29;
}

static bool
can_fire(const UjobsCron *cron, UjobsCronError *error)
{
	int			days = longest_month(cron);
	const char *hint = "Choose a day that one of the months has, or L for the last day of each.";

	if (cron->day_any || !cron->weekday_any)
		return true;
	for (int day = 1; day <= days; day++)
	{
		if ((cron->day & (1u << day)) || (cron->day_from_last & (1u << (day - 1))))
			return true;
	}
	for (int day = days + 1; day <= 31; day++)
	{
		if (cron->day & (1u << day))
			return refuse(error, hint, "can never fire: no selected month has day %d", day);
	}
	return refuse(error, hint, "can never fire: no selected month has more than %d days", days);
}

/* ---- the whole ---- */

static bool
read_macro(Piece macro, UjobsCron *cron, UjobsCronError *error)
{
	static const struct
	{
		const char *name;
		const char *meaning;
	}			macros[] = {
		{"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
		{"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"},
		{"@hourly", "0 * * * *"}
	};

	for (int i = 0; i < lengthof(macros); i++)
	{
		if (is_word(macro, macros[i].name))
			return ujobs_cron_parse(macros[i].meaning, strlen(macros[i].meaning), cron, error);
	}
	if (begins_with(macro, "@every"))
		return refuse(error, "Intervals are not supported; write fields, such as */5 * * * *.",
					  "@every is an interval, not a cron expression");
	if (is_word(macro, "@reboot"))
		return refuse(error, "A start of the server is not a point in time; it is not supported.",
					  "@reboot is an event, not a cron expression");
	return refuse(
		error,
		"The macros are @yearly, @annually, @monthly, @weekly, @daily, @midnight and @hourly.",
		"unknown macro \"%.*s\"", macro.length, macro.at);
}

/* Returns how many fields there are, of which at most MAX_FIELDS are kept. */
static int
split(Piece expr, Piece *found)
{
	int			n = 0;

	for (int i = 0; i < expr.length;)
	{
		int			begin = i;

		while (i < expr.length && expr.at[i] != ' ' && expr.at[i] != '\t')
			i++;
		if (i > begin && n++ < MAX_FIELDS)
			found[n - 1] = (Piece) {expr.at + begin, i - begin};
		while (i < expr.length && (expr.at[i] == ' ' || expr.at[i] == '\t'))
			i++;
	}
	return n;
}

static bool
check_count(int n, Piece first, UjobsCronError *error)
{
	if (n > 0 && (begins_with(first, "tz=") || begins_with(first, "cron_tz=")))
		return refuse(error, "Leave it out and pass tz as an argument of its own.",
					  "a time zone prefix is not supported");
	if (n == 7)
		return refuse(
			error,
			"With 6 fields the first is the second; a year field is not supported; leave it out.",
			"expected 5 or 6 fields, got %d", n);
	if (n < 5 || n > 7)
		return refuse(error, NULL, "expected 5 or 6 fields, got %d", n);
	return true;
}

bool
ujobs_cron_parse(const char *expr, size_t length, UjobsCron *cron, UjobsCronError *error)
{
	Piece		found[MAX_FIELDS];
	int			n;

	memset(cron, 0, sizeof(*cron));
	if (length > UJOBS_CRON_MAX_BYTES)
		return refuse(error, "Shorten it, or split it into several tasks.",
					  "it has %zu bytes; at most %d are allowed", length, UJOBS_CRON_MAX_BYTES);
	n = split((Piece) {expr, (int) length}, found);
	if (n > 0 && found[0].at[0] == '@')
	{
		Piece		last = found[Min(n, MAX_FIELDS) - 1];

		return read_macro((Piece) {found[0].at, last.at + last.length - found[0].at}, cron, error);
	}
	if (!check_count(n, n > 0 ? found[0] : (Piece) {expr, 0}, error))
		return false;
	if (n == 5)
		cron->second = 1;
	for (int i = 0; i < n; i++)
	{
		if (!read_field(FIELD_WEEKDAY - (n - 1) + i, found[i], cron, error))
			return false;
	}
	return can_fire(cron, error);
}

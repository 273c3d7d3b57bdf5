/*
 * option.c: the options and secrets of a sink, and the texts and times that every module needs.
 *
 * Linked into each module; nothing in here waits or allocates.
 */
#include "sink/option.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *
ujobs_option_find(const UjobsSinkOptions *options, const char *name)
{
	return ujobs_sink_pair_find(options->options, options->n_options, name);
}

const char *
ujobs_option_secret(const UjobsSinkOptions *options, const char *name)
{
	return ujobs_sink_pair_find(options->secrets, options->n_secrets, name);
}

/* Milliseconds of a unit's name; 0 = there is no such unit. */
static int64_t
unit_length(const char *unit)
{
	static const struct
	{
		const char *name;
		int64_t		ms;
	}			units[] = {
		{"ms", 1}, {"", 1000}, {"s", 1000}, {"sec", 1000}, {"second", 1000}, {"seconds", 1000},
		{"m", 60000}, {"min", 60000}, {"minute", 60000}, {"minutes", 60000},
		{"h", 3600000}, {"hour", 3600000}, {"hours", 3600000},
		{"d", 86400000}, {"day", 86400000}, {"days", 86400000}
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
	{
		if (strcmp(units[i].name, unit) == 0)
			return units[i].ms;
	}
	return 0;
}

bool
ujobs_option_read_span(const UjobsSinkOptions *options, const char *name, int64_t *ms,
					   UjobsSinkError *error)
{
	const char *text = ujobs_option_find(options, name);
	char	   *end;
	double		count;
	int64_t		unit;

	if (text == NULL)
		return true;
	count = strtod(text, &end);
	while (*end == ' ')
		end++;
	unit = unit_length(end);
	if (end == text || unit == 0 || !(count * unit >= 1) || count * unit > 1e14)
		return ujobs_option_fail(
			error, "option \"%s\" is not a span of time such as \"30s\" or \"1d\": \"%s\"", name,
			text);
	*ms = (int64_t) (count * unit);
	return true;
}

bool
ujobs_option_is_stopped(const UjobsSinkOptions *options)
{
	return options->stop != NULL && *options->stop;
}

/* Bytes of the UTF-8 character at the text; 0 = that is none. */
static size_t
measure_character(const unsigned char *text)
{
	size_t		length = text[0] < 0x80 ? 1 : text[0] < 0xC2 ? 0 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : text[0] < 0xF5 ? 4 : 0;

	for (size_t i = 1; i < length; i++)
	{
		if ((text[i] & 0xC0) != 0x80)
			return 0;
	}
	/* Too long for what it says, a surrogate, or beyond the last one. */
	if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
		(text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
		return 0;
	return length;
}

/* Whatever a system answered: what is no character becomes "?", a control character a blank. */
static void
clean_text(char *text)
{
	while (*text != '\0')
	{
		size_t		length = measure_character((unsigned char *) text);

		if (length == 0)
			*text = '?';
		else if ((unsigned char) *text < 0x20 || *text == 0x7f)
			*text = ' ';
		text += length == 0 ? 1 : length;
	}
}

bool
ujobs_option_fail(UjobsSinkError *error, const char *format,...)
{
	va_list		arguments;
	size_t		length;

	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	length = strlen(error->text);
	if (length == sizeof(error->text) - 1)
	{
		/* Take the last character away with its first byte: it may be half of one. */
		do
			length--;
		while (length > 0 && (error->text[length] & 0xC0) == 0x80);
		error->text[length] = '\0';
	}
	clean_text(error->text);
	return false;
}

int64_t
ujobs_option_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

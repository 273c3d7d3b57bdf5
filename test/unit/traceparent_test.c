/*
 * traceparent_test.c: good and bad trace contexts.
 *
 * sources: src/model/traceparent.c
 */
#include "postgres.h"

#include "unit.h"
#include "model/traceparent.h"

#define GOOD "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void
test_table(void)
{
	static const char *const cases[][2] = {
		{GOOD, NULL},
		{"00-00000000000000000000000000000001-0000000000000001-00", NULL},
		{"", "does not have the form"},
		{GOOD "0", "does not have the form"},
		{"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "is not of version 00"},
		{"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "is not of version 00"},
		{"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "lower-case"},
		{"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01", "lower-case"},
		{"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x", "lower-case"},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", "trace id of zeros"},
		{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "parent id of zeros"},
	};
	int			wrong = 0;

	for (int i = 0; i < lengthof(cases); i++)
	{
		const char *fault = ujobs_traceparent_fault(cases[i][0]);

		wrong += cases[i][1] == NULL ? fault != NULL : fault == NULL ||
			strstr(fault, cases[i][1]) == NULL;
	}
	unit_ok(wrong == 0, "traceparent: a table of good and bad ones");
}

/* Whatever one byte of a good one is replaced by, only another digit is good. */
static void
test_each_byte(void)
{
	int			wrong = 0;

	for (int i = 0; i < strlen(GOOD); i++)
	{
		for (int c = 1; c < 256; c++)
		{
			char		text[] = GOOD;
			bool		good = c == GOOD[i] ||
				(i > 2 && GOOD[i] != '-' && strchr("0123456789abcdef", c) != NULL);

			text[i] = (char) c;
			wrong += (ujobs_traceparent_fault(text) == NULL) != good;
		}
	}
	unit_ok(wrong == 0, "traceparent: each byte replaced by each other");
}

void
unit_main(void)
{
	test_table();
	test_each_byte();
}

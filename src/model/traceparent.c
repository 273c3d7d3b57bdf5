/*
 * traceparent.c: is this text a traceparent?
 *
 * 00-<trace id, 32 hex>-<parent id, 16 hex>-<flags, 2 hex>, lower-case, no id
 * all zero.  Other versions are refused: what reads the value later could not
 * know what it means.
 */
#include "postgres.h"

#include "model/traceparent.h"

/* Reads n lower-case hexadecimal digits; tells whether all of them are zero. */
static bool
hex_run(const char *text, int n, bool *zero)
{
	*zero = true;
	for (int i = 0; i < n; i++)
	{
		if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f')))
			return false;
		if (text[i] != '0')
			*zero = false;
	}
	return true;
}

const char *
ujobs_traceparent_fault(const char *text)
{
	bool		trace_zero;
	bool		parent_zero;
	bool		flags_zero;

	if (strlen(text) != 55 || text[2] != '-' || text[35] != '-' || text[52] != '-')
		return "does not have the form 00-<32 hex digits>-<16 hex digits>-<2 hex digits>";
	if (strncmp(text, "00", 2) != 0)
		return "is not of version 00";
	if (!hex_run(text + 3, 32, &trace_zero) || !hex_run(text + 36, 16, &parent_zero) ||
		!hex_run(text + 53, 2, &flags_zero))
		return "holds characters that are not lower-case hexadecimal digits";
	if (trace_zero)
		return "has a trace id of zeros";
	if (parent_zero)
		return "has a parent id of zeros";
	return NULL;
}

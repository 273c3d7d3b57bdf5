/*
 * sink_nats_error.c: texts of what went wrong, ours, libnats's and JetStream's.
 *
 * JetStream answers in JSON; what is needed of an answer is whether it is an
 * error, its number and its description.  The server writes these itself, so
 * they are found by their names; nothing of a message's own text is in there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sink/option.h"
#include "sink/sink_nats_error.h"

const char *
ujobs_nats_error_detail(void)
{
	const char *detail = nats_GetLastError(NULL);
	const char *text = detail != NULL ? strstr(detail, "): ") : NULL;

	if (text != NULL)
		return text + 3;		/* behind "(file.c:line): " */
	return detail != NULL ? detail : "";
}

bool
ujobs_nats_error_status(UjobsSinkError *error, const char *what, natsStatus status)
{
	const char *detail = ujobs_nats_error_detail();

	if (detail[0] != '\0')
		return ujobs_option_fail(error, "%s: %s (%s)", what, natsStatus_GetText(status), detail);
	return ujobs_option_fail(error, "%s: %s", what, natsStatus_GetText(status));
}

/* The text after "name": in an answer, or NULL. */
static const char *
find_field(const char *json, const char *name)
{
	char		field[32];
	const char *found;

	snprintf(field, sizeof(field), "\"%s\":", name);
	found = strstr(json, field);
	return found ? found + strlen(field) : NULL;
}

bool
ujobs_nats_error_answered(natsMsg *answer, int *code, UjobsSinkError *error)
{
	const char *json = natsMsg_GetData(answer);
	const char *field;

	*code = 0;
	if (json == NULL)
		return false;
	field = find_field(json, "error");
	if (field == NULL)
		return false;
	json = field;
	field = find_field(json, "err_code");
	if (field != NULL)
		*code = atoi(field);
	field = find_field(json, "description");
	if (field != NULL && *field == '"')
		ujobs_option_fail(error, "%.*s (JetStream %d)", (int) strcspn(field + 1, "\""), field + 1,
						  *code);
	else
		ujobs_option_fail(error, "JetStream error %d", *code);
	return true;
}

bool
ujobs_nats_error_is_shortage(int code)
{
	switch (code)
	{
		case JSAccountResourcesExceededErr:
		case JSClusterNotAvailErr:
		case JSClusterNotLeaderErr:
		case JSInsufficientResourcesErr:
		case JSMemoryResourcesExceededErr:
		case JSStorageResourcesExceededErr:
		case JSNotEnabledErr:
		case JSNotEnabledForAccountErr:
		case JSStreamStoreFailedErr:
		case JSStreamOfflineErr:
		case 10167:				/* too many requests */
			return true;
		default:
			return false;
	}
}

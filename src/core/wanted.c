/*
 * wanted.c: the list of the setting ujobs.databases.
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/varlena.h"

#include "core/guc.h"
#include "core/wanted.h"

bool
ujobs_wanted_check(char **newval, void **extra, GucSource source)
{
	char	   *copy = pstrdup(*newval);
	List	   *names;
	bool		parses = SplitIdentifierString(copy, ',', &names);

	if (!parses)
		GUC_check_errdetail("List syntax is invalid: names are separated by commas, and those with capitals, blanks or commas stand in double quotes.");
	list_free(names);
	pfree(copy);
	return parses;
}

bool
ujobs_wanted(const char *database)
{
	char	   *copy;
	List	   *names;
	ListCell   *cell;
	bool		wanted = false;

	if (!ujobs_guc_preloaded || strcmp(ujobs_guc_databases, "*") == 0)
		return true;
	copy = pstrdup(ujobs_guc_databases);
	(void) SplitIdentifierString(copy, ',', &names);
	foreach(cell, names)
	{
		const char *name = lfirst(cell);

		wanted |= strcmp(name, "*") == 0 || strcmp(name, database) == 0;
	}
	list_free(names);
	pfree(copy);
	return wanted;
}

bool
ujobs_wanted_here(void)
{
	return ujobs_wanted(get_database_name(MyDatabaseId));
}

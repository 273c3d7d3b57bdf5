/*
 * leftovers.c: step 8 of the walk, in a client's session.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/dependency.h"
#include "commands/prepare.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

#include "run/leftovers.h"
#include "store/drain_store.h"

List *
ujobs_leftovers_note(void)
{
	UjobsIdentity identity;
	List	   *leftovers;

	CommandCounterIncrement();
	PushActiveSnapshot(GetTransactionSnapshot());
	ujobs_identity_enter(&identity);
	leftovers = ujobs_drain_leftovers(&identity);
	ujobs_identity_leave(&identity);
	PopActiveSnapshot();
	return leftovers;
}

static bool
was_there(const List *before, const UjobsLeftover *leftover)
{
	ListCell   *lc;

	foreach(lc, before)
	{
		const UjobsLeftover *old = lfirst(lc);

		if (old->kind == leftover->kind && strcmp(old->name, leftover->name) == 0 &&
			old->class_id == leftover->class_id && old->object_id == leftover->object_id)
			return true;
	}
	return false;
}

static void
close_cursor(const char *name)
{
	Portal		portal = GetPortalByName(name);

	if (PortalIsValid(portal) && portal->status != PORTAL_ACTIVE && !portal->portalPinned)
		PortalDrop(portal, false);
}

void
ujobs_leftovers_remove(const List *before)
{
	List	   *now = ujobs_leftovers_note();
	ObjectAddresses *temporary = new_object_addresses();
	ListCell   *lc;

	Assert(IsTransactionState());
	foreach(lc, now)
	{
		const UjobsLeftover *leftover = lfirst(lc);
		ObjectAddress object = {leftover->class_id, leftover->object_id, 0};

		if (was_there(before, leftover))
			continue;
		switch (leftover->kind)
		{
			case UJOBS_LEFTOVER_CURSOR:
				close_cursor(leftover->name);
				break;
			case UJOBS_LEFTOVER_PREPARED:
				DropPreparedStatement(leftover->name, false);
				break;
			case UJOBS_LEFTOVER_TEMPORARY:
				add_exact_object_address(&object, temporary);
				break;
		}
	}
	/* Last, when no cursor reads them any more. */
	performMultipleDeletions(temporary, DROP_CASCADE,
							 PERFORM_DELETION_INTERNAL | PERFORM_DELETION_QUIETLY |
							 PERFORM_DELETION_SKIP_EXTENSIONS);
	free_object_addresses(temporary);
}

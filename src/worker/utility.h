/*
 * utility.h: the statements of others that the engine must know of.
 */
#ifndef UJOBS_WORKER_UTILITY_H
#define UJOBS_WORKER_UTILITY_H

#include "postgres.h"

/*
 * Installs the utility hook (preloaded servers only): COMMIT PREPARED asks
 * for a rescan; DROP, CREATE ... TEMPLATE and ALTER DATABASE first ask the
 * engine of that database to leave, because the server refuses them while
 * a session is connected.
 */
extern void ujobs_utility_install(void);

#endif							/* UJOBS_WORKER_UTILITY_H */

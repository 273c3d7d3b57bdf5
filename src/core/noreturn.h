/*
 * noreturn.h: pg_noreturn, which is written before a declaration since 18.
 */
#ifndef UJOBS_CORE_NORETURN_H
#define UJOBS_CORE_NORETURN_H

#include "postgres.h"

#ifndef pg_noreturn
#define pg_noreturn pg_attribute_noreturn()
#endif

#endif							/* UJOBS_CORE_NORETURN_H */

/*
 * hash.c: names as numbers.
 */
#include "postgres.h"

#include "common/hashfn.h"

#include "core/hash.h"

uint32
ujobs_hash_queue(const char *queue)
{
	return hash_bytes((const unsigned char *) queue, strlen(queue));
}

uint64
ujobs_hash_claimed_queue(const char *queue)
{
	return hash_bytes_extended((const unsigned char *) queue, strlen(queue), 0);
}

uint64
ujobs_hash_tenant(const char *tenant)
{
	uint64		hash;

	if (tenant[0] == '\0')
		return 0;
	hash = hash_bytes_extended((const unsigned char *) tenant, strlen(tenant), 0);
	return hash == 0 ? 1 : hash;
}

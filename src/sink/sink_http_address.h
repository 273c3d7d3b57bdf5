/*
 * sink_http_address.h: which addresses a webhook may not reach.
 */
#ifndef UJOBS_SINK_SINK_HTTP_ADDRESS_H
#define UJOBS_SINK_SINK_HTTP_ADDRESS_H

#include <stddef.h>
#include <sys/socket.h>

/*
 * Why a server should not speak to this address on a stranger's behalf ("a
 * loopback address"), or NULL.  text: the address as people write it.
 */
extern const char *ujobs_http_address_refusal(const struct sockaddr *address, char *text,
											  size_t size);

#endif							/* UJOBS_SINK_SINK_HTTP_ADDRESS_H */

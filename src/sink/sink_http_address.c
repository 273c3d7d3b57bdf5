/*
 * sink_http_address.c: which addresses a webhook may not reach.
 *
 * A role that may publish must not be able to reach what is behind the server's
 * firewall: the host itself, its networks, the metadata service of a
 * cloud.  The decision is about the address that is connected to, not about the
 * name, so that no name server can get around it.
 */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "sink/sink_http_address.h"

typedef struct Range
{
	uint8_t		bytes[16];
	int			bits;
	const char *what;
} Range;

static const Range ranges4[] = {
	{{0}, 8, "an address of no host"},
	{{10}, 8, "a private address"},
	{{100, 64}, 10, "a private address"},
	{{127}, 8, "a loopback address"},
	{{169, 254}, 16, "a link-local address"},
	{{172, 16}, 12, "a private address"},
	{{192, 0, 0}, 24, "a reserved address"},
	{{192, 168}, 16, "a private address"},
	{{198, 18}, 15, "a reserved address"},
	{{224}, 4, "a multicast address"},
	{{240}, 4, "a reserved address"}
};

static const Range ranges6[] = {
	{{0}, 128, "an address of no host"},
	{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, "a loopback address"},
	{{0, 0x64, 0xff, 0x9b, 0, 1}, 48, "a private address"},
	{{0xfc}, 7, "a private address"},
	{{0xfe, 0x80}, 10, "a link-local address"},
	{{0xfe, 0xc0}, 10, "a private address"},
	{{0xff}, 8, "a multicast address"}
};

/* IPv6 addresses with an IPv4 one in them: where it begins, and whether it is inverted. */
static const struct
{
	Range		range;
	int			begin;
	uint8_t		mask;
}			embedded[] = {
	{{{0}, 96, NULL}, 12, 0},
	{{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, NULL}, 12, 0},
	{{{0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, 96, NULL}, 12, 0},
	{{{0, 0x64, 0xff, 0x9b}, 96, NULL}, 12, 0},
	{{{0x20, 0x02}, 16, NULL}, 2, 0},
	{{{0x20, 0x01}, 32, NULL}, 12, 0xff}
};

static bool
have_same_bits(const uint8_t *a, const uint8_t *b, int bits)
{
	int			rest = bits % 8;

	if (memcmp(a, b, bits / 8) != 0)
		return false;
	return rest == 0 || ((a[bits / 8] ^ b[bits / 8]) >> (8 - rest)) == 0;
}

static const char *
range_of(const uint8_t *bytes, const Range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
	{
		if (have_same_bits(bytes, ranges[i].bytes, ranges[i].bits))
			return ranges[i].what;
	}
	return NULL;
}

static const char *
refusal4(const uint8_t *bytes)
{
	return range_of(bytes, ranges4, sizeof(ranges4) / sizeof(ranges4[0]));
}

static const char *
refusal6(const uint8_t *bytes)
{
	const char *what = range_of(bytes, ranges6, sizeof(ranges6) / sizeof(ranges6[0]));

	for (size_t i = 0; what == NULL && i < sizeof(embedded) / sizeof(embedded[0]); i++)
	{
		uint8_t		inner[4];

		if (!have_same_bits(bytes, embedded[i].range.bytes, embedded[i].range.bits))
			continue;
		for (int j = 0; j < 4; j++)
			inner[j] = bytes[embedded[i].begin + j] ^ embedded[i].mask;
		what = refusal4(inner);
	}
	return what;
}

/* The address's bytes, their number in *size; NULL = of another family. */
static const uint8_t *
bytes_of(const struct sockaddr *address, size_t *size)
{
	if (address->sa_family == AF_INET)
	{
		*size = 4;
		return (const uint8_t *) &((const struct sockaddr_in *) address)->sin_addr;
	}
	if (address->sa_family == AF_INET6)
	{
		const uint8_t *bytes =
			(const uint8_t *) &((const struct sockaddr_in6 *) address)->sin6_addr;
		static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

		*size = memcmp(bytes, mapped, 12) == 0 ? 4 : 16;
		return *size == 4 ? bytes + 12 : bytes;
	}
	return NULL;
}

/* Is it in the network of one of this host's interfaces? */
static bool
is_own(const uint8_t *bytes, size_t size)
{
	struct ifaddrs *interfaces;
	bool		own = false;

	if (getifaddrs(&interfaces) != 0)
		return true;			/* nothing is known: rather not */
	for (struct ifaddrs *interface = interfaces; interface != NULL && !own;
		 interface = interface->ifa_next)
	{
		size_t		own_size = 0;
		size_t		mask_size = 0;
		const uint8_t *address = interface->ifa_addr != NULL ?
									 bytes_of(interface->ifa_addr, &own_size) :
									 NULL;
		const uint8_t *mask = interface->ifa_netmask != NULL ?
								  bytes_of(interface->ifa_netmask, &mask_size) :
								  NULL;

		if (address == NULL || own_size != size)
			continue;
		own = true;
		for (size_t i = 0; i < size && own; i++)
			own = ((address[i] ^ bytes[i]) &
				   (mask != NULL && mask_size == size ? mask[i] : 0xff)) == 0;
	}
	freeifaddrs(interfaces);
	return own;
}

const char *
ujobs_http_address_refusal(const struct sockaddr *address, char *text, size_t size)
{
	size_t		count = 0;
	const uint8_t *bytes = bytes_of(address, &count);
	const char *what;

	if (bytes == NULL)
	{
		snprintf(text, size, "family %d", address->sa_family);
		return "not of the internet";
	}
	inet_ntop(count == 4 ? AF_INET : AF_INET6, bytes, text, size);
	what = count == 4 ? refusal4(bytes) : refusal6(bytes);
	return what != NULL ? what : is_own(bytes, count) ? "in a network of this host" : NULL;
}

/*
 * sink_http_header.h: the headers of a request.
 */
#ifndef UJOBS_SINK_SINK_HTTP_HEADER_H
#define UJOBS_SINK_SINK_HTTP_HEADER_H

#include <curl/curl.h>

#include "core/sink.h"

/* Are the headers of options and secrets well-formed? */
extern bool ujobs_http_header_validate(const UjobsSinkOptions *options, UjobsSinkError *error);

/*
 * All headers of a message; free with curl_slist_free_all.  NULL with an error
 * if one of its own is refused.
 */
extern struct curl_slist *ujobs_http_header_list(const UjobsSinkOptions *options,
												 const UjobsSinkMessage *message,
												 UjobsSinkError *error);

#endif							/* UJOBS_SINK_SINK_HTTP_HEADER_H */

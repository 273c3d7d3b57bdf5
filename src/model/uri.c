/*
 * uri.c: URI references, as far as a schema needs them.
 *
 * RFC 3986: a reference is split into its five parts (appendix B), and the
 * missing ones are taken from the base (section 5.2).  Nothing is normalized
 * but dot segments, and nothing is ever fetched.
 */
#include "postgres.h"

#include "lib/stringinfo.h"

#include "model/uri.h"

typedef struct Part
{
	const char *text;			/* NULL = undefined */
	int			length;
} Part;

typedef struct Uri
{
	Part		scheme;
	Part		authority;
	Part		path;			/* never undefined */
	Part		query;
} Uri;

static Part
part(const char *text, const char *end)
{
	Part		result = {text, end - text};

	return result;
}

/* Without the fragment. */
static void
split(const char *text, Uri *uri)
{
	const char *p = text;
	size_t		n = strcspn(p, ":/?#");

	memset(uri, 0, sizeof(*uri));
	if (n > 0 && p[n] == ':')
	{
		uri->scheme = part(p, p + n);
		p += n + 1;
	}
	if (p[0] == '/' && p[1] == '/')
	{
		p += 2;
		n = strcspn(p, "/?#");
		uri->authority = part(p, p + n);
		p += n;
	}
	n = strcspn(p, "?#");
	uri->path = part(p, p + n);
	p += n;
	if (*p == '?')
		uri->query = part(p + 1, p + 1 + strcspn(p + 1, "#"));
}

/* "/a/./b/../c" is "/a/c": section 5.2.4, by whole segments. */
static char *
remove_dots(const char *path)
{
	StringInfoData out;

	initStringInfo(&out);
	while (*path)
	{
		size_t		slash = (*path == '/');
		size_t		n = slash + strcspn(path + slash, "/");
		bool		last = path[n] == '\0';
		bool		one = n - slash == 1 && path[slash] == '.';
		bool		two = n - slash == 2 && path[slash] == '.' && path[slash + 1] == '.';

		if (two)
		{
			while (out.len > 0 && out.data[out.len - 1] != '/')
				out.len--;
			if (out.len > 0)
				out.len--;
			out.data[out.len] = '\0';
		}
		if (!one && !two)
			appendBinaryStringInfo(&out, path, n);
		else if (last && slash)
			appendStringInfoChar(&out, '/');
		path += n;
	}
	return out.data;
}

/* Section 5.2.3. */
static char *
merge(const Uri *base, const Part *path)
{
	int			keep = base->path.length;

	if (base->authority.text != NULL && keep == 0)
		return psprintf("/%.*s", path->length, path->text);
	while (keep > 0 && base->path.text[keep - 1] != '/')
		keep--;
	return psprintf("%.*s%.*s", keep, base->path.text, path->length, path->text);
}

static char *
recompose(const Uri *uri)
{
	StringInfoData out;

	initStringInfo(&out);
	if (uri->scheme.text != NULL)
		appendStringInfo(&out, "%.*s:", uri->scheme.length, uri->scheme.text);
	if (uri->authority.text != NULL)
		appendStringInfo(&out, "//%.*s", uri->authority.length, uri->authority.text);
	appendBinaryStringInfo(&out, uri->path.text, uri->path.length);
	if (uri->query.text != NULL)
		appendStringInfo(&out, "?%.*s", uri->query.length, uri->query.text);
	return out.data;
}

static void
set_path(Uri *uri, char *path)
{
	uri->path = part(path, path + strlen(path));
}

char *
ujobs_uri_resolve(const char *base, const char *reference)
{
	Uri			b;
	Uri			r;

	split(base, &b);
	split(reference, &r);
	if (r.scheme.text == NULL)
	{
		r.scheme = b.scheme;
		if (r.authority.text == NULL)
		{
			r.authority = b.authority;
			if (r.path.length == 0)
			{
				r.path = b.path;
				if (r.query.text == NULL)
					r.query = b.query;
				return recompose(&r);
			}
			if (r.path.text[0] != '/')
				set_path(&r, merge(&b, &r.path));
		}
	}
	set_path(&r, remove_dots(pnstrdup(r.path.text, r.path.length)));
	return recompose(&r);
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *
ujobs_uri_fragment(const char *uri)
{
	const char *hash = strchr(uri, '#');
	StringInfoData out;

	initStringInfo(&out);
	for (const char *p = hash ? hash + 1 : ""; *p; p++)
	{
		if (*p == '%' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0)
		{
			appendStringInfoChar(&out, hex_digit(p[1]) * 16 + hex_digit(p[2]));
			p += 2;
		}
		else
			appendStringInfoChar(&out, *p);
	}
	return out.data;
}

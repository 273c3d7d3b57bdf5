-- Last: at commit an engine may start here, if the server preloads the library.
create function ujobs_internal.installed() returns void
    language c volatile
    as 'MODULE_PATHNAME', 'ujobs_sql_installed';
revoke execute on function ujobs_internal.installed() from public;

select ujobs_internal.installed();

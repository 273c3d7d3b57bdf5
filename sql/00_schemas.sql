-- The two schemas: ujobs is the contract, ujobs_internal is not part of it.
\echo Use "CREATE EXTENSION ujobs" to load this file. \quit

create schema ujobs;
create schema ujobs_internal;

comment on schema ujobs is 'background jobs: what users call and see';
comment on schema ujobs_internal is 'background jobs: tables and internal functions; nothing here is a promise';

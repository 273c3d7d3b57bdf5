-- What a handler may ask and say about itself means nothing outside a job.
\set SHOW_CONTEXT never
select ujobs.current_job() is null as outside;
\set VERBOSITY default
select ujobs.fail('no such customer');
select ujobs.retry_after('1 minute');
\set VERBOSITY sqlstate
select ujobs.fail('no such customer');
select ujobs.retry_after('1 minute');

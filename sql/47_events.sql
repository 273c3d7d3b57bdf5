-- Named facts that jobs wait for.

create function ujobs.publish_event(
    event text,
    payload jsonb default '{}',
    match text default null,
    ttl interval default '7 days')
returns bigint
language c volatile parallel unsafe
as 'MODULE_PATHNAME', 'ujobs_sql_publish_event';

comment on function ujobs.publish_event is
$$Publishes an event in this transaction and returns its id: rolled back it never was, and the commit wakes the jobs that wait for it.

A job that begins to wait later finds it as well, if it was published at or after the job was enqueued and has not expired. One event may satisfy many jobs.

Arguments:
  event    its name; 1 to 1000 bytes
  payload  any jsonb value, given to those who wait
  match    a key, such as an order's number: a wait with a match takes only events with the same one, a wait without takes any; at most 1000 bytes
  ttl      how long it can be found, from this call on; not negative

A running job may always call it. Others need a grant: GRANT EXECUTE ON FUNCTION ujobs.publish_event TO app. What PUBLIC has counts only inside jobs.

Errors: UJ003 an option is invalid; 22004 NULL event, payload or ttl; 25006 read-only transaction or standby; 42501 no grant.

Example: select ujobs.publish_event('order_paid', '{"amount": 12}', match => 'order-42');$$;

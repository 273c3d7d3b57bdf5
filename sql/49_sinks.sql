-- Other systems: sinks, publishing to them, queues that live on them.

create function ujobs.define_sink(name text, kind text, options jsonb, replace boolean default false) returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_define_sink';

comment on function ujobs.define_sink(text, text, jsonb, boolean) is
'Names a system that messages go to, and returns {name, kind, options, hasSecret}. Superuser only. Defining it again with the same options changes nothing.

  name     its name, 1 to 63 bytes
  kind     ''nats'' (JetStream), ''redis'' (Streams) or ''http'' (webhooks); each needs its module, see docs/outbox.md
  options  a JSON object: url, such as nats://127.0.0.1:4222, redis://127.0.0.1:6379/0 or https://example.com/hook, without user and password; timeout of one exchange (an interval, or milliseconds; default 10s); maxPayload, the most bytes of one message as JSON text (default 1 MB for nats, 16 MB else, at most 64 MB); attempts, after which a message that fails is parked; check: true tries the connection now and is not kept; and those of the kind, see docs/outbox.md
  replace  true: change a sink that has other options; connections are made anew at commit

Publishing never waits for a server: without check nothing is connected here.

Errors: UJ003 an unknown kind or option, or a value that the kind does not take; UJ005 it has other options and replace is false; UJ006 another kind while something uses it; UJ024 the kind''s module is not installed, or with check the server cannot be reached, with the reason; 22004 an argument is NULL; 25006 read-only transaction or standby; 42501 not a superuser.

Example: select ujobs.define_sink(''bus'', ''nats'', ''{"url": "nats://127.0.0.1:4222", "stream": "UJOBS", "check": true}'');';

create function ujobs.set_sink_secret(name text, secret jsonb) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_set_sink_secret';

comment on function ujobs.set_sink_secret(text, jsonb) is
'Gives a sink its password, token or key. No view, function, message or dump shows it again. Superuser only. Connections are made anew at commit.

The server logs statements if log_statement says so: set it to none in the session before.

  name    the sink
  secret  a JSON object whose members depend on the kind, such as {"user": "app", "password": "..."} (see docs/outbox.md); ''{}'' for none

Errors: UJ003 an unknown member or a value that the kind does not take; UJ024 the kind''s module is not installed; 22004 an argument is NULL; 25006 read-only transaction or standby; 42501 not a superuser; 42704 no such sink.

Example: select ujobs.set_sink_secret(''bus'', ''{"user": "app", "password": "..."}'');';

create function ujobs.drop_sink(name text) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_drop_sink';

comment on function ujobs.drop_sink(text) is
'Forgets a sink and its secret. Superuser only. Waits for transactions that are publishing.

  name  the sink

Errors: UJ006 messages to it are not delivered yet, or a queue uses it; 22004 name is NULL; 25006 read-only transaction or standby; 42501 not a superuser; 42704 no such sink.

Example: select ujobs.drop_sink(''bus'');';

create function ujobs.publish(sink text, topic text, payload jsonb, key text default null, headers jsonb default '{}')
returns bigint
    language c volatile parallel unsafe as 'MODULE_PATHNAME', 'ujobs_sql_publish';

comment on function ujobs.publish(text, text, jsonb, text, jsonb) is
'Writes a message to another system in this transaction and returns its id in ujobs.outbox: rolled back it never was, committed it is delivered at least once, soon after. It never waits for that system.

Every delivery carries the same message id, by which the receiver can tell a repetition: the header Nats-Msg-Id, the field id of a Redis entry, the header Idempotency-Key of a request.

Arguments:
  sink     name of the sink
  topic    where to: the subject of NATS; the stream of Redis, unless the sink names one; what {topic} in the url of HTTP stands for; 1 to 1000 bytes
  payload  any jsonb value; as text at most as long as the sink''s maxPayload
  key      messages of one key are delivered in the order of their ids, and one that is held back holds back those after it; 1 to 1000 bytes; NULL: in any order
  headers  a JSON object of strings; at most 50, each with its name at most 4000 bytes. ujobs.traceparent goes along as traceparent unless there is one

Messages of one key that transactions publish which did not wait for each other have no defined order.

A running job may always call it. Others need a grant: GRANT EXECUTE ON FUNCTION ujobs.publish TO app. What PUBLIC has counts only inside jobs.

Errors: UJ003 an option is invalid; 22004 NULL sink, topic or payload; 25006 read-only transaction or standby; 42501 no grant; 42704 no such sink; 54000 the payload is larger than the sink takes.

Example: select ujobs.publish(''bus'', ''orders.paid'', ''{"orderId": 42}'', key => ''42'');';

create function ujobs.set_queue_driver(queue text, driver text default 'pg', sink text default null) returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_set_queue_driver';

comment on function ujobs.set_queue_driver(text, text, text) is
'Says where the jobs of a queue live, and returns {queue, driver, sink}. Superuser only. No job code changes.

With nats or redis an enqueue into the queue, also of a task, writes a message for that sink instead of a row here, in the same transaction: it returns id NULL, a run_id and deduped false. Databases that called ujobs.consume_queue take the messages in and run the jobs. Jobs that are here already run here.

  queue   its name, 1 to 63 bytes
  driver  ''pg'' (rows of this database), ''nats'' or ''redis''
  sink    a sink of that kind; NULL for pg

Errors: UJ003 an unknown driver, or the sink is of another kind, missing or too many; 22004 queue is NULL; 25006 read-only transaction or standby; 42501 not a superuser; 42704 no such sink.

Example: select ujobs.set_queue_driver(''mail'', ''nats'', ''bus'');';

create function ujobs.consume_queue(queue text, sink text, enabled boolean default true,
    allow_unsigned boolean default false) returns jsonb
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_consume_queue';

comment on function ujobs.consume_queue(text, text, boolean, boolean) is
'Takes the jobs of a broker''s queue in here, and returns {queue, sink, enabled, allowUnsigned}. Superuser only.

Each message becomes a job of the definition of that name here, in a queue of the same name, in exactly one of the databases that consume the queue. The message is acknowledged once the job is committed. One whose job is not defined here, or whose input is refused, is parked (ujobs.inbox) and tried again when definitions change.

A message must be signed with a key of the queue (UJ030 parks it): the first call makes one. Give it to the other databases of the queue and to programs that write to it, with ujobs.queue_key and ujobs.set_queue_key.

  queue           its name, 1 to 63 bytes
  sink            a sink of kind nats or redis
  enabled         false: takes no more
  allow_unsigned  true: messages need no signature, so every program that can write to the broker can run any job here

Errors: UJ003 the sink is of kind http; 22004 queue or sink is NULL; 25006 read-only transaction or standby; 42501 not a superuser; 42704 no such sink.

Example: select ujobs.consume_queue(''mail'', ''bus'');';

create function ujobs.queue_key(queue text) returns text
    language c stable as 'MODULE_PATHNAME', 'ujobs_sql_queue_key';
comment on function ujobs.queue_key(text) is
'The key that signs the messages of a broker''s queue, as hexadecimal digits; NULL when there is none. Superuser only. Who has it can make jobs of any definition in the databases that consume the queue.

  queue  its name

Errors: 22004 queue is NULL; 42501 not a superuser.

Example: select ujobs.queue_key(''mail'');';

create function ujobs.set_queue_key(queue text, key text, sign boolean default true) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_set_queue_key';
comment on function ujobs.set_queue_key(text, text, boolean) is
'Accepts messages of a broker''s queue that are signed with this key, and signs with it from now on. Keys that were accepted before stay so until ujobs.retire_queue_keys. Superuser only.

  queue  its name
  key    what ujobs.queue_key or ujobs.rotate_queue_key returned in another database
  sign   false: accepts it only

Errors: UJ003 key is not 32 to 256 hexadecimal digits; 22004 queue or key is NULL; 25006 read-only transaction or standby; 42501 not a superuser.

Example: select ujobs.set_queue_key(''mail'', ''2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683'');';

create function ujobs.rotate_queue_key(queue text, sign boolean default true) returns text
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_rotate_queue_key';
comment on function ujobs.rotate_queue_key(text, boolean) is
'Makes a new key for a broker''s queue, accepts it, signs with it from now on, and returns it. Superuser only. With several databases: make it with sign false, give it to all with ujobs.set_queue_key(queue, key, false), then let all sign with it, and at last call ujobs.retire_queue_keys in all.

  queue  its name
  sign   false: accepts it only

Errors: 22004 queue is NULL; 25006 read-only transaction or standby; 42501 not a superuser.

Example: select ujobs.rotate_queue_key(''mail'');';

create function ujobs.retire_queue_keys(queue text) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_retire_queue_keys';
comment on function ujobs.retire_queue_keys(text) is
'Accepts messages of a broker''s queue only with the key that signs. Superuser only. Messages that are still at the broker with another key are parked then.

  queue  its name

Errors: 22004 queue is NULL; 25006 read-only transaction or standby; 42501 not a superuser.

Example: select ujobs.retire_queue_keys(''mail'');';

create function ujobs.retry_outbox(id bigint) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_retry_outbox';

comment on function ujobs.retry_outbox(bigint) is
'Tries a message again that is parked or waits for its next try: due now, attempts 0.

  id  of a message in ujobs.outbox

Errors: 22004 id is NULL; 25006 read-only transaction or standby; 42704 no such message; 55000 it is published.

Example: select ujobs.retry_outbox(id) from ujobs.outbox where state = ''parked'';';

create function ujobs.skip_outbox(id bigint) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_skip_outbox';

comment on function ujobs.skip_outbox(bigint) is
'Removes a message from the outbox for good; those of its key go on. One that is on its way may arrive nevertheless.

  id  of a message in ujobs.outbox

Errors: 22004 id is NULL; 25006 read-only transaction or standby; 42704 no such message; 55000 it is published.

Example: select ujobs.skip_outbox(17);';

create function ujobs.skip_inbox(message_id text) returns void
    language c volatile as 'MODULE_PATHNAME', 'ujobs_sql_skip_inbox';
comment on function ujobs.skip_inbox(text) is
'Gives up a message that was taken in and is parked: it never becomes a job, neither here nor in another database.

  message_id  that of ujobs.inbox
Errors: 42704 no parked message has that id.
Example: select ujobs.skip_inbox(message_id) from ujobs.inbox where state = ''parked'' and message ->> ''name'' = ''old'';';

-- Counts of each sink, for everybody: exact up to 20000 messages, sampled
-- beyond.  oldest is the first message that is neither delivered nor parked.
create function ujobs_internal.sink_counts(out sink text, out pending bigint, out parked bigint, out oldest timestamptz,
    out published bigint, out up boolean) returns setof record
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
    most constant bigint := 20000;
    sample_pages constant float8 := 1000;
    percent float8;
    s record;
    total bigint;
begin
    for s in
        select k.id, k.name, t.published, t.last_error is null as up
          from ujobs_internal.sink k
          left join ujobs_internal.sink_status t on t.sink_id = k.id
         order by k.name
    loop
        select count(*) into total
          from (select from ujobs_internal.outbox o where o.sink_id = s.id order by o.sink_id, o.id limit most + 1) r;
        if total > most then
            percent := least(100, 100 * sample_pages /
                             (pg_relation_size('ujobs_internal.outbox') / current_setting('block_size')::float8));
            select greatest(total, round(count(*) * 100 / percent)) into total
              from ujobs_internal.outbox o tablesample system (percent)
             where o.sink_id = s.id;
        end if;
        select count(*) into parked
          from (select from ujobs_internal.outbox o where o.sink_id = s.id and o.parked limit most) r;
        select o.created_at into oldest
          from ujobs_internal.outbox o
         where o.sink_id = s.id
           and not o.parked
         order by o.sink_id, o.id
         limit 1;
        sink := s.name;
        pending := total - parked;
        published := coalesce(s.published, 0);
        up := s.up;
        return next;
    end loop;
end
$$;

create function ujobs_internal.inbox_counts(out queue text, out parked bigint) returns setof record
    language sql stable security definer
    set search_path = pg_catalog, pg_temp
begin atomic
    select c.queue::text,
           (select pg_catalog.count(*)
              from (select from ujobs_internal.inbox i where i.parked and i.queue = c.queue limit 20000) r)
      from ujobs_internal.consumer c
     group by c.queue;
end;

create function ujobs_internal.publishing() returns bigint[]
    language c volatile parallel restricted as 'MODULE_PATHNAME', 'ujobs_sql_publishing';

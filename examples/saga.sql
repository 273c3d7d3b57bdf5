-- A saga written by hand: three bookings that must all succeed, and are taken
-- back in reverse order when one does not.  A failed booking is a result, not
-- an error: its block catches it.
--
--     psql -f examples/saga.sql YOUR_DATABASE_WITH_UJOBS

create schema saga;
create table saga.offer (kind text primary key, free int not null check (free >= 0));
create table saga.booking (trip bigint not null, kind text not null, unique (trip, kind));

create procedure saga.book_trip(input jsonb, inout result jsonb)
language plpgsql as $$
declare
    trip_id bigint := (input ->> 'trip')::bigint;
    part text;
    booked text[] := '{}';
    failed boolean := false;
    outcome jsonb;
begin
    foreach part in array array['flight', 'hotel', 'car'] loop
        if ujobs.step_begin('book ' || part) then
            begin
                update saga.offer set free = free - 1 where kind = part;
                insert into saga.booking values (trip_id, part);
                outcome := 'true';
            exception when check_violation then
                outcome := 'false';
            end;
            call ujobs.step_end(outcome);
        end if;
        failed := not (ujobs.step_result('book ' || part))::boolean;
        exit when failed;
        booked := part || booked;
    end loop;

    if failed then
        foreach part in array booked loop
            if ujobs.step_begin('take back ' || part) then
                delete from saga.booking where trip = trip_id and kind = part;
                update saga.offer set free = free + 1 where kind = part;
                call ujobs.step_end();
            end if;
        end loop;
        result := jsonb_build_object('trip', 'not booked', 'takenBack', to_jsonb(booked));
    else
        result := jsonb_build_object('trip', 'booked');
    end if;
end
$$;

select ujobs.define_job('saga.book_trip', 'saga.book_trip', 'trip:{trip}') ->> 'kind' as kind;

-- A try: there is one car less than there are trips.
begin;
insert into saga.offer values ('flight', 2), ('hotel', 2), ('car', 1);
select deduped from ujobs.enqueue('saga.book_trip', '{"trip": 1}');
select deduped from ujobs.enqueue('saga.book_trip', '{"trip": 2}');
select name, outcome from ujobs.drain();
select idempotency_key, result from ujobs.jobs where idempotency_key like 'trip:%' order by 1;
select trip, kind from saga.booking order by 1, 2;
select kind, free from saga.offer order by 1;
rollback;

-- input_schema: what it refuses when a job is defined, and what an enqueue refuses then.
create schema input_schema;

-- What an error says, in full.
create function input_schema.try(command text) returns table (shows text)
language plpgsql as $$
declare
    d text;
    h text;
begin
    return query execute command;
exception when others then
    get stacked diagnostics d = pg_exception_detail, h = pg_exception_hint;
    return query values (sqlstate || ': ' || sqlerrm), ('  detail: ' || d), ('  hint: ' || h);
end
$$;

-- Defines a job of the schema: '' or what is wrong with it.
create function input_schema.define(schema jsonb) returns text
language plpgsql as $$
declare
    d text;
    h text;
begin
    perform ujobs.define_external_job('input_schema.one', '{n}', input_schema => schema, replace => true);
    return 'defined';
exception when sqlstate 'UJ003' then
    get stacked diagnostics d = pg_exception_detail, h = pg_exception_hint;
    return d || chr(10) || '  ' || h;
end
$$;

-- ---- each rule, as an enqueue names it ----

create function input_schema.rule(rule jsonb, value jsonb) returns text
language sql as $$
    select coalesce(ujobs_internal.schema_check(jsonb_build_object('properties', jsonb_build_object('a', rule)),
                                                jsonb_build_object('a', value)), 'fits')
$$;
\pset format unaligned
select rule, value, input_schema.rule(rule, value)
  from (values
    ('{"type": "integer"}'::jsonb, '1.0'::jsonb),
    ('{"type": "integer"}', '1.5'),
    ('{"type": "integer"}', '"1"'),
    ('{"type": ["string", "null", "array"]}', '{}'),
    ('{"type": "number"}', '12345678901234567890.5'),
    ('{"const": {"b": 1, "c": [1, 2]}}', '{"c": [1.0, 2], "b": 1.00}'),
    ('{"const": 1}', 'true'),
    ('{"enum": ["red", "green", 3]}', '"blue"'),
    ('{"enum": []}', '1'),
    ('{"minimum": 1}', '0'),
    ('{"exclusiveMinimum": 1}', '1'),
    ('{"maximum": 1.5}', '1.50001'),
    ('{"exclusiveMaximum": 1.5}', '1.50'),
    ('{"multipleOf": 0.01}', '19.99'),
    ('{"multipleOf": 0.01}', '19.999'),
    ('{"minLength": 3}', '"ää"'),
    ('{"maxLength": 2}', '"äöü"'),
    ('{"maxLength": 2}', '"ää"'),
    ('{"pattern": "^[a-z]+$"}', '"abC"'),
    ('{"pattern": "^[a-z]+$"}', '"abc"'),
    ('{"minItems": 2}', '[1]'),
    ('{"maxItems": 2}', '[1, 2, 3]'),
    ('{"items": {"type": "string"}}', '["a", "b", 3]'),
    ('{"prefixItems": [{"type": "string"}], "items": false}', '["a", "b"]'),
    ('{"contains": {"const": 7}}', '[1, 2]'),
    ('{"contains": {"const": 7}, "minContains": 2}', '[7, 2]'),
    ('{"contains": {"const": 7}, "maxContains": 1}', '[7, 7.0]'),
    ('{"uniqueItems": true}', '[{"x": 1}, 2, {"x": 1.0}]'),
    ('{"prefixItems": [true], "unevaluatedItems": false}', '[1, 2]'),
    ('{"minProperties": 1}', '{}'),
    ('{"maxProperties": 1}', '{"x": 1, "y": 2}'),
    ('{"required": ["x", "y"]}', '{"x": 1}'),
    ('{"dependentRequired": {"card": ["address"]}}', '{"card": 1}'),
    ('{"dependentSchemas": {"card": {"properties": {"limit": {"maximum": 10}}}}}', '{"card": 1, "limit": 11}'),
    ('{"dependencies": {"card": ["address"]}}', '{"card": 1}'),
    ('{"additionalProperties": false}', '{"x": 1}'),
    ('{"additionalProperties": {"type": "string"}}', '{"x/y~z": 1}'),
    ('{"patternProperties": {"^n_": {"type": "number"}}}', '{"n_x": "1"}'),
    ('{"propertyNames": {"maxLength": 2}}', '{"abc": 1}'),
    ('{"allOf": [{"properties": {"x": true}}], "unevaluatedProperties": false}', '{"x": 1, "y": 1}'),
    ('{"allOf": [{"minimum": 1}, {"maximum": 5}]}', '6'),
    ('{"anyOf": [{"type": "string"}, {"minimum": 5}]}', '1'),
    ('{"oneOf": [{"type": "integer"}, {"minimum": 5}]}', '7'),
    ('{"oneOf": [{"type": "string"}, {"minimum": 5}]}', '1'),
    ('{"not": {"type": "string"}}', '"x"'),
    ('{"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"minimum": 0}}', '""'),
    ('{"if": {"type": "string"}, "then": {"minLength": 1}, "else": {"minimum": 0}}', '-1'),
    ('false', '1'),
    ('true', '1'),
    ('{"$ref": "#/properties/a/$defs/small", "$defs": {"small": {"maximum": 5}}}', '6'),
    ('{"$ref": "#small", "$defs": {"x": {"$anchor": "small", "maximum": 5}}}', '6'),
    ('{"format": "email", "title": "t", "description": "d", "default": 1, "examples": [], "$comment": "c",
       "deprecated": true, "readOnly": true, "writeOnly": false, "contentEncoding": "base64", "x-mine": 1}', '1')
  ) as t(rule, value);

-- ---- patterns: ECMA 262 and PostgreSQL's engine ----

select pattern, text, input_schema.rule(jsonb_build_object('pattern', pattern), to_jsonb(text))
  from (values
    ('\bcat\b', 'a cat.'), ('\bcat\b', 'concat'), ('a\Bb', 'ab'),
    ('^\d+$', '٣'), ('^\w$', 'ä'), ('^\s$', chr(160)), ('^[\s]$', chr(8201)), ('^\S$', chr(160)),
    ('^a.c$', E'a\nc'), ('^a.c$', 'abc'), ('^a$', E'a\n'),
    ('^\x41b$', 'Ab'), ('^\u00e4$', 'ä'), ('^\ud83d\ude00$', '😀'), ('^\u{1f600}$', '😀'), ('^.$', '😀'),
    ('^[[:]+$', '[:'), ('^(?:ab)+?(?=c)', 'ababc'), ('(?<!x)y', 'xy'), ('\/\-\.', '/-.')
  ) as t(pattern, text);
select pattern, input_schema.define(jsonb_build_object('pattern', pattern))
  from (values ('['), ('a{2,1}'), ('(?i)a'), ('(?<n>a)'), ('***=a'), ('\p{L}'), ('\y'), ('\A'), ('\a'), ('[]'), ('\012'),
               ('\u12'), ('\xg'), ('\ud800'), ('\'), ('[a')) as t(pattern);

-- ---- schemas that are refused ----

select schema, input_schema.define(schema)
  from (values
    ('[]'::jsonb), ('1'), ('"object"'),
    ('{"properties": {"qty": {"minimun": 1}}}'), ('{"propertys": {}}'), ('{"nullable": true}'),
    ('{"$ref": "https://example.com/other.json"}'), ('{"items": {"$ref": "#/$defs/none"}}'), ('{"$ref": "#none"}'),
    ('{"$dynamicRef": "other.json#x"}'),
    ('{"$schema": "http://json-schema.org/draft-07/schema#"}'),
    ('{"$vocabulary": {}}'), ('{"additionalItems": false}'), ('{"$recursiveRef": "#"}'), ('{"id": "x"}'),
    ('{"items": [{"type": "string"}]}'),
    ('{"$id": "x#y"}'), ('{"$anchor": "1x"}'), ('{"$anchor": 1}'),
    ('{"allOf": [{"$anchor": "x"}, {"$anchor": "x"}]}'), ('{"allOf": [{"$id": "x"}, {"$id": "x"}]}'),
    ('{"$ref": "#"}'), ('{"anyOf": [{"type": "string"}, {"$ref": "#"}]}'),
    ('{"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}}}'),
    ('{"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}]}'),
    ('{"type": "text"}'), ('{"type": []}'), ('{"type": 1}'),
    ('{"enum": 1}'), ('{"required": "x"}'), ('{"required": [1]}'), ('{"dependentRequired": {"a": "b"}}'),
    ('{"properties": []}'), ('{"properties": {"a": 1}}'), ('{"not": "x"}'), ('{"allOf": []}'), ('{"allOf": {}}'), ('{"oneOf": [1]}'),
    ('{"minimum": "1"}'), ('{"multipleOf": 0}'), ('{"maxLength": -1}'), ('{"maxLength": 1.5}'), ('{"minItems": "1"}'),
    ('{"uniqueItems": 1}'), ('{"pattern": 1}'), ('{"patternProperties": {"(": true}}'),
    ('{"title": 1}'), ('{"format": {}}'), ('{"examples": 1}'), ('{"deprecated": 1}'), ('{"$comment": null}'), ('{"contentSchema": 1}'),
    ('{"a/b": {}}'), ('{"properties": {"a/b": {"x~y": 1}}}')
  ) as t(schema);
select input_schema.define('{"maxLength": 99999999999999999999, "properties": {"n": {"$ref": "#"}}}');

-- ---- defining ----

\pset format aligned
create function input_schema.handler(input jsonb) returns int language sql as 'select 1';
select input_schema.try($$ select ujobs.define_job('input_schema.bad', 'input_schema.handler', 'k', input_schema => '{"tpye": "object"}')::text $$);
select input_schema.try($$ select ujobs.define_command('input_schema.bad', 'vacuum', 'k', input_schema => '{"tpye": "object"}')::text $$);
select count(*) from test_store.definition where name = 'input_schema.bad';
select ujobs.define_job('input_schema.order', 'input_schema.handler', 'order:{id}', queue => 'input_schema', input_schema =>
    '{"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}, "items": {"items": {"properties": {"qty": {"minimum": 1}}}}}}');
select ujobs.describe_job('input_schema.order') -> 'input';
select input_schema from ujobs.definitions where name = 'input_schema.order';

-- ---- enqueueing ----

select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": 1, "items": [{"qty": 2}, {"qty": 0}]}')).deduped::text $$);
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{}')).deduped::text $$);
select input_schema.try($$ select (ujobs.enqueue('input_schema.order')).deduped::text $$);
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '[1]')).deduped::text $$);
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '"x"', idempotency_key => 'k')).deduped::text $$);
select input_schema.try($$ select deduped::text from ujobs.enqueue_many('input_schema.order', array['{"id": 1}', '{"id": "1"}']::jsonb[]) $$);
select input_schema.try($$ select (ujobs.enqueue_as('{"id": "me"}', 'input_schema.order', '{"id": 1.5}')).deduped::text $$);
select count(*) from ujobs.jobs where name = 'input_schema.order';
select deduped from ujobs.enqueue('input_schema.order', '{"id": 1}');
select deduped from ujobs.enqueue_many('input_schema.order', array['{"id": 2, "items": [{"qty": 1}]}', '{"id": 3.0}']::jsonb[]);
select deduped from ujobs.enqueue_as('{"id": "me"}', 'input_schema.order', '{"id": 4}');
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": 1, "items": [{"qty": 0}]}', on_conflict => 'replace')).deduped::text $$);
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": 1, "items": [{"qty": 9}]}', on_conflict => 'replace')).deduped::text $$);
select idempotency_key, input from ujobs.jobs where name = 'input_schema.order' order by id;

-- Another schema is for later enqueues: what waits runs as it is.
select input_schema.try($$ select ujobs.define_job('input_schema.order', 'input_schema.handler', 'order:{id}', queue => 'input_schema')::text $$);
select ujobs.define_job('input_schema.order', 'input_schema.handler', 'order:{id}', queue => 'input_schema', replace => true,
    input_schema => '{"required": ["id", "lines"]}') -> 'input';
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": 5}')).deduped::text $$);
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": "a", "lines": []}')).deduped::text $$);
select name, outcome, error from ujobs.drain('input_schema');
select ujobs.define_job('input_schema.order', 'input_schema.handler', 'order:{id}', queue => 'input_schema', replace => true) -> 'input';
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": "b"}')).deduped::text $$);

-- A change rolled back leaves the old schema in force.
begin;
select ujobs.define_job('input_schema.order', 'input_schema.handler', 'order:{id}', queue => 'input_schema', replace => true, input_schema => 'false') -> 'input';
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": "c"}')).deduped::text $$);
rollback;
select input_schema.try($$ select (ujobs.enqueue('input_schema.order', '{"id": "c"}')).deduped::text $$);

-- Schemas that meet themselves, and deep inputs.
select input_schema.define('{"$defs": {"tree": {"type": "object", "properties": {"n": {"type": "integer"}, "kids": {"items": {"$ref": "#/$defs/tree"}}}}}, "$ref": "#/$defs/tree"}');
select input_schema.try($$ select (ujobs.enqueue('input_schema.one', '{"n": 1, "kids": [{"n": 2, "kids": [{"n": "3"}]}]}')).deduped::text $$);
select input_schema.define('{"items": {"$ref": "#"}}');
select input_schema.try($$ select (ujobs.enqueue('input_schema.one', (repeat('[', 2000) || repeat(']', 2000))::jsonb, idempotency_key => 'deep')).deduped::text $$);

-- What would cost too much is refused (UJ027), when it is defined or when an input is checked.
select input_schema.try(format($$ select ujobs.define_external_job('input_schema.one', '{n}', replace => true, input_schema => %L)::text $$,
                               jsonb_build_object('pattern', pattern)))
  from (values ('^(a)\1$'), ('((a{1,100}){1,100}){1,100}'), (repeat('(', 60) || repeat(')', 60))) as t(pattern);
select input_schema.define('{"pattern": "(x{0,48}a){90}"}');
select input_schema.try($$ select (ujobs.enqueue('input_schema.one', to_jsonb(repeat('xa', 10000)), idempotency_key => 'long')).deduped::text $$);
select input_schema.try($$ select ujobs.define_job('input_schema.bad', 'input_schema.handler', 'k',
    input_schema => (select jsonb_build_object('properties', jsonb_object_agg('member' || n, true)) from generate_series(1, 20000) as n))::text $$);
select input_schema.define(('{"multipleOf": 1.' || repeat('37', 8000) || '}')::jsonb);
select input_schema.try($$ select (ujobs.enqueue('input_schema.one', '9e131000', idempotency_key => 'long')).deduped::text $$);
set ujobs.max_validation_steps = 1000;
select input_schema.define('{"uniqueItems": true}');
select input_schema.try($$ select (ujobs.enqueue('input_schema.one', (select jsonb_agg(n) from generate_series(1, 1000) as n), idempotency_key => 'long')).deduped::text $$);
reset ujobs.max_validation_steps;

select ujobs.drop_job('input_schema.order', force => true);
select ujobs.drop_job('input_schema.one', force => true);
drop schema input_schema cascade;

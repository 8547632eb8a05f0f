#!/usr/bin/env escript
main(_) ->
    application:set_env(mnesia, dir, "db"),
    ok = mnesia:create_schema([node()]),
    ok = mnesia:start(),
    {atomic, ok} = mnesia:create_table(orders, [{disc_copies, [node()]}, {attributes, [id, customer, total]}]),
    [{atomic, ok} = mnesia:transaction(fun() -> mnesia:write({orders, N, N rem 700, N * 3}) end) || N <- lists:seq(1, 20000)],
    io:format("~p~n", [mnesia:table_info(orders, size)]),
    mnesia:sync_log(),
    stopped = mnesia:stop().

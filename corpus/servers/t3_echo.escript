#!/usr/bin/env escript
%% t3_echo.escript PORT MS: a process for each connection; each message comes back after MS milliseconds, in two pieces.
%%! -noinput +S 2:2
main([Port, Ms]) ->
    {ok, Listener} = gen_tcp:listen(list_to_integer(Port), [binary, {active, false}, {reuseaddr, true}, {nodelay, true}, {backlog, 1024}]),
    accept(Listener, list_to_integer(Ms)).

accept(Listener, Ms) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn(fun() -> receive go -> serve(Socket, Ms) end end),
    ok = gen_tcp:controlling_process(Socket, Pid),
    Pid ! go,
    accept(Listener, Ms).

serve(Socket, Ms) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Bytes} ->
            timer:sleep(Ms),
            Half = byte_size(Bytes) div 2,
            gen_tcp:send(Socket, binary:part(Bytes, 0, Half)),
            timer:sleep(3),
            gen_tcp:send(Socket, binary:part(Bytes, Half, byte_size(Bytes) - Half)),
            serve(Socket, Ms);
        _ ->
            gen_tcp:close(Socket)
    end.

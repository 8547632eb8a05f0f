:- use_module(library(persistency)).
:- persistent seen(host:atom, port:integer).

main :-
    db_attach('seen.db', [sync(close)]),
    forall(between(1, 90000, N), (P is N mod 1024, atom_concat(host, N, H), assert_seen(H, P))),
    db_detach.

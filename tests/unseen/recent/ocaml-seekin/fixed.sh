ocamlopt unix.cmxa direct.ml -o direct
exec ./direct

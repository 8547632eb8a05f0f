ocamlopt unix.cmxa lookup.ml -o lookup

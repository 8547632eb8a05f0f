(* Answers a list of questions from a table of records of fixed length. *)
let record = 32

let () =
  let table = open_in_bin "prices.tbl" in
  let records = in_channel_length table / record in
  let state = ref 12345 and sum = ref 0 in
  for _ = 1 to 150_000 do
    state := (!state * 1103515245 + 12345) land 0x3fffffff;
    seek_in table (!state mod records * record);
    let line = really_input_string table record in
    sum := !sum + int_of_string (String.trim (String.sub line 16 8))
  done;
  close_in table;
  Printf.printf "%d\n" !sum

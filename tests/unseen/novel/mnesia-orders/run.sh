exec escript orders.escript

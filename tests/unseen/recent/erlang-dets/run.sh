exec escript stock.escript

exec escript stock.escript hundred

exec ./geo

exec ./orders

exec ./till

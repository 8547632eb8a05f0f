exec ./sum

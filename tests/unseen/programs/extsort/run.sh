exec ./sort

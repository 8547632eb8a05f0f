exec ./journald journal

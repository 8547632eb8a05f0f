mkdir sessions

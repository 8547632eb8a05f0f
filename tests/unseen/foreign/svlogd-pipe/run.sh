svlogd -tt log < requests

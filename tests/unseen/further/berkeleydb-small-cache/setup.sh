mkdir env

exec ./deliver

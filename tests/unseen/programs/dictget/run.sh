exec ./dict

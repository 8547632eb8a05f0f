git add tree && git commit -q -m first && git status --short | head -3

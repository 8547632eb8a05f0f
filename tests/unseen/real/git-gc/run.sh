git gc -q && git status --short | head -3

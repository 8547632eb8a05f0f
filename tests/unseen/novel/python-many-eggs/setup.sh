for n in $(seq 200); do
  mkdir -p eggs/dep$n.egg/dep$n
  echo "from . import part1, part2, part3, part4, part5" > eggs/dep$n.egg/dep$n/__init__.py
  for p in 1 2 3 4 5; do echo "VALUE = $p" > eggs/dep$n.egg/dep$n/part$p.py; done
  echo "import dep$n"
done > main.py

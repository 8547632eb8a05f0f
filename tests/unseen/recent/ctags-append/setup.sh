mkdir src
for n in $(seq 250); do
  awk -v n=$n 'BEGIN { for (f = 0; f < 60; f++) printf "static int module%d_step%d(int a)\n{\n\treturn a + %d;\n}\n\n", n, f, f }' > src/module$n.c
done
